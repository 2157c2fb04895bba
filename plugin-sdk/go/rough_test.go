package plugd_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"log"
	"math"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"sync"
	"time"

	"plugd"
)

// newRough is a plugin whose handlers do what handlers should not, and more.
func newRough(concurrency int) *plugd.Plugin {
	r := &rough{meeting: make(chan struct{})}
	none := func(name string, handler func(*plugd.Context, struct{}) (any, error)) *plugd.Operation {
		return plugd.Op(name, handler, plugd.Description("Does as it is called. For tests."))
	}
	return plugd.New("rough", "1.0.0").
		Requires("other", "^1").
		Concurrency(concurrency).
		Reload(plugd.WithConfig(func(*plugd.InitContext, struct{}) error { return nil })).
		Operation(
			plugd.Op("echo", func(_ *plugd.Context, args textArgs) (string, error) { return args.Text, nil }),
			plugd.Op("give", give),
			plugd.Op("numbers", func(_ *plugd.Context, args numberArgs) (numberArgs, error) { return args, nil }),
			plugd.Op("meet", r.meet),
			none("print", printing),
			none("children", children),
			none("descriptors", descriptors),
			none("crash", crash),
			none("goexit", func(*plugd.Context, struct{}) (any, error) { runtime.Goexit(); return nil, nil }),
			none("log", func(*plugd.Context, struct{}) (any, error) { log.Print("by the package"); return nil, nil }),
			none("spin", spin),
			none("sleep", func(*plugd.Context, struct{}) (any, error) { time.Sleep(time.Hour); return nil, nil }),
			none("attentive", attentive),
			none("polling", polling),
			none("alone", r.alone),
			none("large", func(*plugd.Context, struct{}) (any, error) { return strings.Repeat("x", 16<<20), nil }),
			none("chatter", chatter),
		)
}

type rough struct {
	mu      sync.Mutex
	running int
	meeting chan struct{}
}

type textArgs struct {
	Text string `json:"text"`
}

type numberArgs struct {
	Signed   int64           `json:"signed,omitempty"`
	Unsigned uint64          `json:"unsigned,omitempty"`
	Any      any             `json:"any,omitempty"`
	Raw      json.RawMessage `json:"raw,omitempty"`
}

type giveArgs struct {
	What string `json:"what" enum:"nan|cycle|function|nothing|list|map|wrapped|null|misnamed|literal|long"`
}

// give gives back what JSON has no form for, and what is nil.
func give(_ *plugd.Context, args giveArgs) (any, error) {
	switch args.What {
	case "nan":
		return map[string]any{"share": math.NaN()}, nil
	case "cycle":
		type node struct{ Next *node }
		first := new(node)
		first.Next = first
		return first, nil
	case "function":
		return func() {}, nil
	case "wrapped":
		inner := &plugd.Error{Name: "no_ticket", Message: "no ticket", Hint: "look again", Retryable: true}
		return nil, fmt.Errorf("looking it up: %w", inner)
	case "misnamed":
		return nil, plugd.Errorf("NotThere", "no ticket %d", 9)
	case "literal":
		return nil, &plugd.Error{Name: "NotThere", Message: "no ticket 9"}
	case "long":
		panic(strings.Repeat(strings.Repeat("a line ", 100)+"\n", 1000))
	case "null":
		return nil, fmt.Errorf("an odd one: %w", error((*plugd.Error)(nil)))
	default:
		return nil, errors.New("nothing\nto give")
	}
}

// meet answers once as many calls as wanted are under way.
func (r *rough) meet(cx *plugd.Context, args struct {
	Calls int `json:"calls"`
}) (bool, error) {
	r.mu.Lock()
	r.running++
	if r.running == args.Calls {
		close(r.meeting)
	}
	r.mu.Unlock()
	select {
	case <-r.meeting:
		return true, nil
	case <-cx.Done():
		return false, cx.Err()
	}
}

// alone gives how many of its kind run.
func (r *rough) alone(*plugd.Context, struct{}) (any, error) {
	r.mu.Lock()
	r.running++
	running := r.running
	r.mu.Unlock()
	// Longer than the reading stands still for a call.
	time.Sleep(40 * time.Millisecond)
	r.mu.Lock()
	r.running--
	r.mu.Unlock()
	return running, nil
}

func printing(*plugd.Context, struct{}) (any, error) {
	fmt.Print("stray {")
	fmt.Fprint(os.Stdout, "without an end")
	return "printed", nil
}

// children runs programs that read the standard input they inherit, and one that writes to the output.
func children(*plugd.Context, struct{}) (any, error) {
	var said []string
	for _, words := range [][]string{{"cat"}, {"head", "-c", "20"}} {
		program := exec.Command(words[0], words[1:]...)
		program.Stdin = os.Stdin
		output, err := program.Output()
		if err != nil {
			return nil, err
		}
		said = append(said, string(output))
	}
	loud := exec.Command("echo", "from the child")
	loud.Stdout = os.Stdout
	return said, loud.Run()
}

// descriptors lists those that a child program gets.
func descriptors(*plugd.Context, struct{}) (any, error) {
	program := exec.Command("ls", "/proc/self/fd")
	program.Stdin = os.Stdin
	output, err := program.Output()
	return strings.Fields(string(output)), err
}

func crash(*plugd.Context, struct{}) (any, error) {
	var list []int
	return list[5], nil
}

func spin(*plugd.Context, struct{}) (any, error) {
	for {
	}
}

func attentive(cx *plugd.Context, _ struct{}) (any, error) {
	cx.Progress(1, 0, "")
	<-cx.Done()
	return nil, cx.Err()
}

func polling(cx *plugd.Context, _ struct{}) (any, error) {
	cx.Progress(1, 0, "")
	for cx.Err() == nil {
		runtime.Gosched()
	}
	return nil, fmt.Errorf("giving up: %w", cx.Err())
}

// chatter writes until it is ended.
func chatter(cx *plugd.Context, _ struct{}) (any, error) {
	for {
		cx.Info("still here")
	}
}
