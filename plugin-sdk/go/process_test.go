package plugd_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"plugd"
	"plugd/internal/wiretest"
)

func TestPrintsAndChildrenCannotTouchTheWire(t *testing.T) {
	plugin := start(t, "rough")
	plugin.SendCall(1, "print", "{}")
	plugin.Expect(`{"jsonrpc":"2.0","id":1,"result":{"data":"printed"}}`)
	plugin.SendCall(2, "echo", `{"text":"一"}`)
	plugin.Expect(`{"jsonrpc":"2.0","id":2,"result":{"data":"一"}}`)
	plugin.HangUp()
	if status := plugin.Status(); status != 0 || !strings.Contains(plugin.Stderr(), "stray {without an end") {
		t.Errorf("status %d, stderr %q", status, plugin.Stderr())
	}
}

func TestWhatTheSDKSaysBeginsALine(t *testing.T) {
	plugin := start(t, "rough")
	plugin.SendCall(1, "print", "{}")
	plugin.Line()
	plugin.Send("no message")
	plugin.HangUp()
	plugin.Status()
	if !strings.Contains(plugin.Stderr(), "without an end\nskipped a line from the host") {
		t.Errorf("stderr %q", plugin.Stderr())
	}
}

// Case C143.
func TestC143ProgramsThatReadTheirInputFindItEmptyAndEatNothing(t *testing.T) {
	plugin := start(t, "rough")
	for id := 1; id <= 2; id++ {
		// The next request stands in the pipe already while the programs run.
		plugin.Send(wiretest.Call(id, "children", "{}") + "\n" + wiretest.Call(id+10, "echo", `{"text":"still whole"}`))
		plugin.Expect(fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"result":{"data":["",""]}}`, id))
		plugin.Expect(fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"result":{"data":"still whole"}}`, id+10))
	}
	plugin.HangUp()
	if status := plugin.Status(); status != 0 || !strings.Contains(plugin.Stderr(), "from the child") {
		t.Errorf("status %d, stderr %q", status, plugin.Stderr())
	}
}

func TestChildProgramsGetTheStandardDescriptorsOnly(t *testing.T) {
	if _, err := os.Stat("/proc/self/fd"); err != nil {
		t.Skip("there is no /proc here")
	}
	// What this test itself was left with, others are, too.
	here, err := exec.Command("ls", "/proc/self/fd").Output()
	if err != nil {
		t.Fatal(err)
	}
	expected, err := json.Marshal(strings.Fields(string(here)))
	if err != nil {
		t.Fatal(err)
	}
	plugin := start(t, "rough")
	plugin.SendCall(1, "descriptors", "{}")
	plugin.Expect(fmt.Sprintf(`{"jsonrpc":"2.0","id":1,"result":{"data":%s}}`, expected))
}

func TestTheHostsHangingUpEndsThePlugin(t *testing.T) {
	for _, operation := range []string{"", "sleep", "spin", "attentive"} {
		t.Run("during "+operation, func(t *testing.T) {
			plugin := start(t, "rough")
			plugin.SendCall(1, "echo", `{"text":"up"}`)
			plugin.Line()
			if operation != "" {
				plugin.SendCall(2, operation, "{}")
			}
			begin := time.Now()
			plugin.HangUp()
			if status := plugin.Status(); status != 0 {
				t.Errorf("status %d: %s", status, plugin.Stderr())
			}
			// A quarter of a second is promised; the machine may be busy.
			if took := time.Since(begin); took > 2*time.Second {
				t.Errorf("it took %v", took)
			}
		})
	}
}

// Case C066: as when the host is killed, both ends of the pipes go at once.
func TestC066APluginWhoseHostIsGoneLeavesQuietly(t *testing.T) {
	plugin := command("rough")
	in, err := plugin.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := plugin.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	var stderr bytes.Buffer
	plugin.Stderr = &stderr
	if err := plugin.Start(); err != nil {
		t.Fatal(err)
	}
	defer plugin.Process.Kill()
	if _, err := in.Write([]byte(wiretest.Call(1, "chatter", "{}") + "\n")); err != nil {
		t.Fatal(err)
	}
	if _, err := out.Read(make([]byte, 1)); err != nil {
		t.Fatal(err)
	}
	if err := out.Close(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- plugin.Wait() }()
	select {
	case err := <-ended:
		if err != nil || stderr.Len() > 0 {
			t.Errorf("%v, stderr %q", err, stderr.String())
		}
	case <-time.After(20 * time.Second):
		t.Error("it stays although nobody reads what it writes")
	}
}

func TestThePackageLogGoesToThePluginsLog(t *testing.T) {
	plugin := start(t, "rough")
	plugin.SendCall(1, "log", "{}")
	plugin.Expect(`{"jsonrpc":"2.0","method":"log","params":{"level":"info","message":"by the package"}}`)
	plugin.Expect(`{"jsonrpc":"2.0","id":1,"result":{"data":null}}`)
}

// fault reads what the plugin logs of a fault, an entry at error of its call.
func fault(t *testing.T, plugin *wiretest.Peer, callID string) string {
	t.Helper()
	var entry struct {
		Method string
		Params struct {
			Level, Message string
			CallID         string `json:"call_id"`
		}
	}
	line := plugin.Line()
	if err := json.Unmarshal([]byte(line), &entry); err != nil {
		t.Fatal(err)
	}
	if entry.Method != "log" || entry.Params.Level != "error" || entry.Params.CallID != callID {
		t.Errorf("no entry of a fault of %s: %s", callID, line)
	}
	return entry.Params.Message
}

func TestAFailureUnderABadNameIsToldWithItsMessage(t *testing.T) {
	plugin := start(t, "rough")
	for id, how := range []string{"misnamed", "literal"} {
		plugin.SendCall(id+1, "give", fmt.Sprintf(`{"what":%q}`, how))
		told := fault(t, plugin, fmt.Sprintf("c-%d", id+1))
		rule := `"NotThere" is not a failure's name: expected 1 to 64 of a-z, 0-9 and '_'; did you mean "not_there"?`
		if !strings.HasPrefix(told, "give ") || !strings.Contains(told, rule) {
			t.Errorf("%s: the log has %s", how, told)
		}
		if how == "misnamed" && !strings.Contains(told, "rough_test.go:") {
			t.Errorf("the place is not in %s", told)
		}
		plugin.Expect(fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"error":{"code":2,
			"message":"no ticket 9; a fault in the plugin: \"NotThere\" is not a failure's name"}}`, id+1))
	}
}

func TestAPanicFailsItsCallAndIsToldInTheLog(t *testing.T) {
	plugin := start(t, "rough")
	plugin.SendCall(1, "crash", "{}")
	told := fault(t, plugin, "c-1")
	plugin.Expect(`{"jsonrpc":"2.0","id":1,"error":{"code":2,
		"message":"crash failed unexpectedly: it panicked"}}`)
	plugin.SendCall(2, "goexit", "{}")
	told += fault(t, plugin, "c-2")
	plugin.Expect(`{"jsonrpc":"2.0","id":2,"error":{"code":2,"message":"goexit failed unexpectedly: it ended its goroutine"}}`)
	plugin.SendCall(3, "echo", `{"text":"alive"}`)
	plugin.Expect(`{"jsonrpc":"2.0","id":3,"result":{"data":"alive"}}`)
	plugin.HangUp()
	plugin.Status()
	for _, wanted := range []string{"crash panicked: runtime error: index out of range [5] with length 0\n",
		"rough_test.go:", "goexit ended its goroutine\n"} {
		if !strings.Contains(told, wanted) {
			t.Errorf("%q is not in %s", wanted, told)
		}
	}
	if plugin.Stderr() != "" {
		t.Errorf("told on stderr, too: %s", plugin.Stderr())
	}
}

func TestAHostWithoutALogReadsOfAFaultOnStderr(t *testing.T) {
	plugin := start(t, "rough")
	plugin.Send(`{"jsonrpc":"2.0","id":1,"method":"describe","params":{"protocol":{"versions":[1],"features":[]}}}`)
	plugin.Line()
	plugin.SendCall(2, "print", "{}")
	plugin.Line()
	plugin.SendCall(3, "crash", "{}")
	plugin.Expect(`{"jsonrpc":"2.0","id":3,"error":{"code":2,"message":"crash failed unexpectedly: it panicked"}}`)
	plugin.HangUp()
	plugin.Status()
	if !strings.Contains(plugin.Stderr(), "without an end\ncrash panicked: runtime error") {
		t.Errorf("stderr %q", plugin.Stderr())
	}
}

func TestALongFaultIsToldInPartsThatTheHostShowsWhole(t *testing.T) {
	plugin := start(t, "rough")
	plugin.SendCall(1, "give", `{"what":"long"}`)
	var parts []string
	for len(parts) == 0 || !strings.HasSuffix(parts[len(parts)-1], "…") {
		parts = append(parts, fault(t, plugin, "c-1"))
		if part := parts[len(parts)-1]; len(part) > 8<<10 || len(parts) > 10 {
			t.Fatalf("part %d has %d bytes", len(parts), len(part))
		}
	}
	if len(parts) < 4 || !strings.HasPrefix(parts[0], "give panicked: ") {
		t.Errorf("%d parts: %.100s", len(parts), parts[0])
	}
	plugin.Expect(`{"jsonrpc":"2.0","id":1,"error":{"code":2,"message":"give failed unexpectedly: it panicked"}}`)
}

func TestWhatIsAskedOnTheCommandLine(t *testing.T) {
	run := func(name string, args ...string) (stdout, stderr string, status int) {
		t.Helper()
		var out, err bytes.Buffer
		program := command(name, args...)
		program.Stdout, program.Stderr = &out, &err
		// Like a terminal in being a device that one can read for ever.
		program.Stdin, _ = os.Open("/dev/zero")
		failed := program.Run()
		var exit *exec.ExitError
		if failed != nil && !errors.As(failed, &exit) {
			t.Fatal(failed)
		}
		return out.String(), err.String(), program.ProcessState.ExitCode()
	}
	if out, err, status := run("rough", "--describe"); status != 0 || err != "" || !strings.Contains(out, `"name": "echo"`) {
		t.Errorf("--describe: %d %q %q", status, out, err)
	}
	if out, _, status := run("rough", "--version"); status != 0 || out != "rough 1.0.0\n" {
		t.Errorf("--version: %d %q", status, out)
	}
	if out, _, status := run("rough", "--help"); status != 0 || !strings.Contains(out, "echo text=…") {
		t.Errorf("--help: %d %q", status, out)
	}
	if out, err, status := run("rough"); status != 2 || out != "" || !strings.Contains(err, "is started by plugd") {
		t.Errorf("by hand: %d %q %q", status, out, err)
	}
	out, err, status := run("wrong")
	if status != 125 || out != "" || !strings.Contains(err, "same: declared twice") || !strings.Contains(err, `"my plugin"`) {
		t.Errorf("declared wrongly: %d %q %q", status, out, err)
	}
}

// newWrong is declared in as many wrong ways as there are.
func newWrong() *plugd.Plugin {
	nothing := func(*plugd.Context, struct{}) (any, error) { return nil, nil }
	return plugd.New("my plugin", "").
		Requires("weather", "soon").
		Requires("../weather", "1").
		Concurrency(1000).
		ConfigSchema([]byte(`[]`)).
		Operation(
			plugd.Op("doIt", nothing),
			plugd.Op("same", nothing),
			plugd.Op("same", nothing),
			plugd.Op("listed", func(*plugd.Context, []string) (any, error) { return nil, nil }),
			plugd.Op("tagged", func(*plugd.Context, wronglyTagged) (chan int, error) { return nil, nil }),
			plugd.Op("odd", nothing, plugd.Timeout(0), plugd.CacheTTL(time.Millisecond), plugd.ResultLimit(7),
				plugd.Confirm("perhaps"), plugd.InputSchema([]byte("7")), plugd.OutputSchema([]byte("true"))),
		)
}

type wronglyTagged struct {
	Least    int                    `json:"least" min:"few"`
	Length   string                 `json:"length" max:"-1"`
	Options  string                 `json:"options" enum:"a|b" default:"c"`
	Count    int                    `json:"count" default:"many"`
	Range    int                    `json:"range" min:"1" max:"3" default:"4"`
	Pattern  string                 `json:"pattern" pattern:"("`
	Format   int                    `json:"format" format:"date"`
	Secret   string                 `json:"secret" sensitive:"very"`
	Sizeless bool                   `json:"sizeless" min:"1"`
	Callback func()                 `json:"callback"`
	Reader   fmt.Stringer           `json:"reader"`
	Keyed    map[bool]int           `json:"keyed"`
	Choices  []int                  `json:"choices" enum:"1|two"`
	Nested   struct{ X []chan int } `json:"nested"`
}

func TestEveryFaultOfADeclarationIsToldAtOnce(t *testing.T) {
	_, err := newWrong().Manifest()
	if err == nil {
		t.Fatal("nothing is wrong with it")
	}
	for _, fault := range []string{
		`"my plugin" is not a plugin name`, "has no version", `weather is required in "soon"`, `"../weather"`,
		"1000 calls at once", "the configuration's schema", `"doIt" is not an operation name`, `did you mean "do_it"`,
		"same: declared twice", "listed: the arguments are a []string, which is no object",
		`tagged: least: min:"few"`, `length: max:"-1"`, `options: default:"c"`, `count: default:"many"`,
		`range: default:"4"`, `pattern: pattern:"("`, `format: format:"date"`, `secret: sensitive:"very"`,
		`sizeless: min:"1"`, "callback: func() has no JSON form", "reader: no JSON", "keyed: a map with keys",
		`choices: enum:"1|two"`, "nested.X: chan int has no JSON form", "tagged: chan int has no JSON form",
		"odd: a timeout of 0s", "a cache TTL of 1ms", "a result limit of 7", `confirm "perhaps"`,
		"the input schema is no JSON object", "the output schema is no JSON object",
	} {
		if !strings.Contains(err.Error(), fault) {
			t.Errorf("%s is not told in: %v", fault, err)
		}
	}
}
