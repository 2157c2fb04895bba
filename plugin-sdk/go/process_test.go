package plugd_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"regexp"
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

func TestWhatTheSDKSaysOfACallBeginsALine(t *testing.T) {
	plugin := start(t, "rough")
	for id, operation := range []string{"print", "crash", "print", "goexit"} {
		plugin.SendCall(id+1, operation, "{}")
		plugin.Line()
	}
	plugin.HangUp()
	plugin.Status()
	for _, did := range []string{"crash panicked", "goexit ended its goroutine"} {
		line := regexp.MustCompile(`without an end\ncall \S* ?of ` + did)
		if !line.MatchString(plugin.Stderr()) {
			t.Errorf("%q: stderr %q", did, plugin.Stderr())
		}
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

func TestAPanicFailsItsCallAndIsToldOnStderr(t *testing.T) {
	plugin := start(t, "rough")
	plugin.SendCall(1, "crash", "{}")
	plugin.Expect(`{"jsonrpc":"2.0","id":1,"error":{"code":2,
		"message":"crash failed unexpectedly: it panicked"}}`)
	plugin.SendCall(2, "goexit", "{}")
	plugin.Expect(`{"jsonrpc":"2.0","id":2,"error":{"code":2,"message":"goexit failed unexpectedly: it ended its goroutine"}}`)
	plugin.SendCall(3, "echo", `{"text":"alive"}`)
	plugin.Expect(`{"jsonrpc":"2.0","id":3,"result":{"data":"alive"}}`)
	plugin.HangUp()
	plugin.Status()
	stderr := plugin.Stderr()
	for _, wanted := range []string{"call c-1 of crash panicked: runtime error: index out of range [5] with length 0", "rough_test.go:",
		"call c-2 of goexit ended its goroutine"} {
		if strings.Count(stderr, wanted) < 1 {
			t.Errorf("%q is not in %s", wanted, stderr)
		}
	}
	if strings.Count(stderr, "call c-1 of crash") != 1 {
		t.Errorf("told more than once: %s", stderr)
	}
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
