// Package plugdtest is a host in memory, for tests of a whole plugin.
//
// The plugin runs in goroutines of the test and speaks the real protocol over a pipe. Only the process is
// missing, and most of the host's validation: arguments arrive as the test gives them, with the defaults filled
// in, but for keys that nobody declared, which are refused as a host does.
//
//	func TestAdaIsGreeted(t *testing.T) {
//		host := plugdtest.New(t, newPlugin(), plugdtest.Config(map[string]any{"word": "hi"}))
//		reply := host.Call("hello", map[string]any{"name": "Ada"})
//		if got := plugdtest.Data[string](reply); got != "hi Ada" {
//			t.Errorf("greeted with %q", got)
//		}
//	}
//
// A handler alone needs no host: it is a function, to be called with [plugd.ContextForTest].
package plugdtest

import (
	"encoding/json"
	"os"
	"strconv"
	"sync"
	"testing"
	"time"

	"plugd"
)

// patience is how long a test waits: beyond it it has found a plugin that does not answer.
const patience = 30 * time.Second

// Host runs a plugin within a test and calls it. It hangs up when the test ends.
type Host struct {
	t        testing.TB
	config   any
	deadline time.Duration
	told     map[string]any
	features map[string]bool
	plugins  map[string]func(json.RawMessage) (any, error)
	person   func(Question) (any, error)
	// operations are those that the plugin declares.
	operations []plugd.Declaration

	toPlugin *os.File
	// listened is closed once the plugin has said its last word.
	listened chan struct{}
	starting sync.Once
	startErr error

	mu      sync.Mutex
	changed sync.Cond
	last    int
	// requests are those that were made, by their ids; also those that are over.
	requests map[int]*request
	// logs are the lines of no call.
	logs []Log
}

// request is one request to the plugin and what came of it.
type request struct {
	reply  Reply
	result json.RawMessage
	over   bool
}

// New takes a plugin in; it is described and initialised at the first call.
//
// The test ends here where the plugin is declared wrongly.
func New(t testing.TB, plugin *plugd.Plugin, options ...Option) *Host {
	t.Helper()
	h := &Host{
		t:        t,
		config:   struct{}{},
		deadline: 30 * time.Second,
		told:     map[string]any{"attempt": 1, "caller": "test"},
		features: map[string]bool{
			"host_calls": true, "host_asks": true, "progress": true, "partial": true, "log": true,
		},
		plugins:  map[string]func(json.RawMessage) (any, error){},
		listened: make(chan struct{}),
		requests: map[int]*request{},
	}
	h.changed.L = &h.mu
	for _, option := range options {
		option(h)
	}
	manifest, err := plugin.Manifest()
	if err != nil {
		t.Fatal(err)
	}
	h.operations = manifest.Operations
	pluginIn, toPlugin, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	fromPlugin, pluginOut, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	h.toPlugin = toPlugin
	go h.listen(fromPlugin)
	go func() {
		// What could fail has been looked at above.
		_ = plugin.ServeOn(pluginIn, pluginOut)
		_ = pluginOut.Close()
	}()
	t.Cleanup(func() {
		_ = toPlugin.Close()
		select {
		case <-h.listened:
		case <-time.After(patience):
			t.Errorf("the plugin has not ended within %v of the host's hanging up", patience)
		}
		_ = pluginIn.Close()
	})
	return h
}

// Start describes and initialises the plugin, once. The error is that of its init.
func (h *Host) Start() error {
	h.t.Helper()
	h.starting.Do(func() {
		h.describe()
		_, h.startErr = h.ask("init", map[string]any{
			"config": h.config, "data_dir": h.t.TempDir(), "locale": "en", "log_level": "trace",
		})
	})
	return h.startErr
}

// Manifest is what the plugin answers to describe.
func (h *Host) Manifest() *plugd.Manifest {
	h.t.Helper()
	manifest := new(plugd.Manifest)
	if err := json.Unmarshal(h.describe(), manifest); err != nil {
		h.t.Fatalf("the manifest cannot be read: %v", err)
	}
	return manifest
}

// Call calls an operation and waits for its end. Arguments are anything that becomes a JSON object.
func (h *Host) Call(operation string, arguments any) *Reply {
	h.t.Helper()
	return h.Begin(operation, arguments).Wait()
}

// Begin calls an operation without waiting.
func (h *Host) Begin(operation string, arguments any) *Running {
	h.t.Helper()
	if err := h.Start(); err != nil {
		h.t.Fatalf("the plugin does not start: %v", err)
	}
	if arguments == nil {
		arguments = struct{}{}
	}
	if failure := h.undeclared(operation, arguments); failure != nil {
		return h.refuse(failure)
	}
	context := map[string]any{"deadline_ms": h.deadline.Milliseconds()}
	for name, value := range h.told {
		context[name] = value
	}
	params := map[string]any{"operation": operation, "arguments": arguments, "context": context}
	return &Running{host: h, id: h.send("call", params, func(id int) { context["call_id"] = strconv.Itoa(id) })}
}

// Reload gives the plugin a changed configuration. The error is that of its hook.
func (h *Host) Reload(config any) error {
	h.t.Helper()
	if err := h.Start(); err != nil {
		h.t.Fatalf("the plugin does not start: %v", err)
	}
	_, err := h.ask("reload", map[string]any{"config": config})
	return err
}

// Shutdown tells the plugin to shut down and waits until it has. The error is that of its hook.
func (h *Host) Shutdown() error {
	h.t.Helper()
	_, err := h.ask("shutdown", map[string]any{"reason": "stop", "grace_ms": 5000})
	return err
}

// Logs are the lines that belong to no call, so far: those of an init, and of the log package.
func (h *Host) Logs() []Log {
	h.mu.Lock()
	defer h.mu.Unlock()
	return append([]Log(nil), h.logs...)
}
