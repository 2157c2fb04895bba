package plugd_test

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"sort"
	"strings"
	"testing"
	"time"

	"plugd"
	"plugd/internal/wiretest"
)

type echoArgs struct {
	Text string `json:"text" desc:"What comes back."`
}

func newEcho(concurrency int) *plugd.Plugin {
	echo := func(_ *plugd.Context, args echoArgs) (echoArgs, error) { return args, nil }
	return plugd.New("echo", "1.0.0").
		Concurrency(concurrency).
		Operation(plugd.Op("echo", echo, plugd.Description("Gives back what it got. For measurements.")))
}

// bare is what the SDK is measured against: the loop that one would write without it.
func bare() {
	bareOn(os.Stdin, os.Stdout)
	os.Exit(0)
}

func bareOn(from io.Reader, to io.Writer) {
	in := bufio.NewReaderSize(from, 64<<10)
	for {
		line, err := in.ReadBytes('\n')
		if err != nil {
			return
		}
		var request struct {
			ID     json.RawMessage `json:"id"`
			Method string          `json:"method"`
			Params struct {
				Operation string   `json:"operation"`
				Arguments echoArgs `json:"arguments"`
				Context   struct {
					CallID     string `json:"call_id"`
					DeadlineMS int64  `json:"deadline_ms"`
				} `json:"context"`
			} `json:"params"`
		}
		if json.Unmarshal(line, &request) != nil || request.Method != "call" {
			continue
		}
		var answer struct {
			JSONRPC string          `json:"jsonrpc"`
			ID      json.RawMessage `json:"id"`
			Result  struct {
				Data echoArgs `json:"data"`
			} `json:"result"`
		}
		answer.JSONRPC, answer.ID, answer.Result.Data = "2.0", request.ID, request.Params.Arguments
		written, err := json.Marshal(answer)
		if err != nil {
			continue
		}
		if _, err := to.Write(append(written, '\n')); err != nil {
			return
		}
	}
}

// BenchmarkOverhead compares plugins made with the SDK with the bare loop, one call in flight.
//
// The rounds of the contenders take turns, so that what else the machine does befalls them alike. The figures
// are medians of rounds: of a round trip's time, and of that time by the bare loop's. The last ones are the
// CPU time that the plugin's process has taken for a call.
func BenchmarkOverhead(b *testing.B) {
	for _, size := range []int{32, 1 << 10, 64 << 10} {
		b.Run(fmt.Sprintf("%dB", size), func(b *testing.B) { overhead(b, size) })
	}
}

func overhead(b *testing.B, size int) {
	const rounds = 21
	calls := b.N/rounds + 1
	line := wiretest.Call(7, "echo", `{"text":"`+strings.Repeat("x", size)+`"}`) + "\n"
	names := []string{"bare", "echo", "wide"}
	peers := make([]*contender, len(names))
	for at, name := range names {
		peers[at] = contend(b, name)
		peers[at].run(b, line, 50) // warm
	}
	times := make([][]float64, len(names))
	ratios := make([][]float64, len(names))
	b.ResetTimer()
	for round := 0; round < rounds; round++ {
		for at, peer := range peers {
			took := peer.run(b, line, calls)
			times[at] = append(times[at], took)
			ratios[at] = append(ratios[at], took/times[0][round])
		}
	}
	b.StopTimer()
	b.ReportMetric(0, "ns/op")
	var bareCPU float64
	for at, name := range names {
		cpu := float64(peers[at].end(b).Nanoseconds()) / float64(rounds*calls+50)
		b.ReportMetric(median(times[at])/1000, name+"-µs")
		if at == 0 {
			bareCPU = cpu
			b.ReportMetric(cpu/1000, name+"-cpu-µs")
			continue
		}
		b.ReportMetric(median(ratios[at]), name+"/bare")
		b.ReportMetric(cpu/bareCPU, name+"/bare-cpu")
	}
}

func median(values []float64) float64 {
	sorted := append([]float64(nil), values...)
	sort.Float64s(sorted)
	return sorted[len(sorted)/2]
}

// contender is a plugin that is measured.
type contender struct {
	process *exec.Cmd
	in      io.WriteCloser
	out     *bufio.Reader
}

func contend(b *testing.B, name string) *contender {
	process := command(name)
	in, err := process.StdinPipe()
	if err != nil {
		b.Fatal(err)
	}
	out, err := process.StdoutPipe()
	if err != nil {
		b.Fatal(err)
	}
	if err := process.Start(); err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = process.Process.Kill() })
	return &contender{process, in, bufio.NewReaderSize(out, 1<<20)}
}

// run makes calls one after the other and gives the time of one in nanoseconds.
func (c *contender) run(b *testing.B, line string, calls int) float64 {
	begin := time.Now()
	for i := 0; i < calls; i++ {
		if _, err := io.WriteString(c.in, line); err != nil {
			b.Fatal(err)
		}
		if _, err := c.out.ReadSlice('\n'); err != nil {
			b.Fatal(err)
		}
	}
	return float64(time.Since(begin).Nanoseconds()) / float64(calls)
}

// end gives the CPU time that the plugin took.
func (c *contender) end(b *testing.B) time.Duration {
	_ = c.in.Close()
	if err := c.process.Wait(); err != nil {
		b.Fatal(err)
	}
	return c.process.ProcessState.UserTime() + c.process.ProcessState.SystemTime()
}

// BenchmarkLoop compares the two without processes and pipes: what reading, running and answering cost alone.
func BenchmarkLoop(b *testing.B) {
	for _, size := range []int{32, 1 << 10, 64 << 10} {
		line := []byte(wiretest.Call(7, "echo", `{"text":"`+strings.Repeat("x", size)+`"}`) + "\n")
		b.Run(fmt.Sprintf("bare/%dB", size), func(b *testing.B) {
			b.ReportAllocs()
			bareOn(&repeated{line: line, left: b.N}, io.Discard)
		})
		b.Run(fmt.Sprintf("sdk/%dB", size), func(b *testing.B) {
			b.ReportAllocs()
			if err := newEcho(1).ServeOn(&repeated{line: line, left: b.N}, io.Discard); err != nil {
				b.Fatal(err)
			}
		})
	}
}

// repeated is input that has one line over and over.
type repeated struct {
	line []byte
	at   int
	left int
}

func (r *repeated) Read(into []byte) (int, error) {
	if r.left == 0 {
		return 0, io.EOF
	}
	n := copy(into, r.line[r.at:])
	if r.at += n; r.at == len(r.line) {
		r.at = 0
		r.left--
	}
	return n, nil
}
