package plugd_test

import (
	"os"
	"os/exec"
	"testing"

	"plugd/internal/wiretest"
)

// asPlugin makes this test program one of its plugins.
const asPlugin = "PLUGD_TEST_PLUGIN"

func TestMain(m *testing.M) {
	if run, isPlugin := plugins[os.Getenv(asPlugin)]; isPlugin {
		run()
	}
	os.Exit(m.Run())
}

// plugins are the programs of these tests.
var plugins = map[string]func(){
	"bare": bare,
	"echo": func() { newEcho(1).Serve() },
	"wide": func() { newEcho(64).Serve() },

	"rough": func() { newRough(1).Serve() },
	"wrong": func() { newWrong().Serve() },
}

// start runs one of the plugins as a process.
func start(t testing.TB, name string, args ...string) *wiretest.Peer {
	return wiretest.Process(t, command(name, args...))
}

func command(name string, args ...string) *exec.Cmd {
	command := exec.Command(os.Args[0], args...)
	command.Env = append(os.Environ(), asPlugin+"="+name)
	return command
}
