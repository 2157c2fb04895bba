// A plugin: what it is, its hooks, and the operations it offers.

package plugd

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
)

// Plugin is a whole plugin. Declare it with [New] and its methods, then hand over to [Plugin.Serve].
//
// What is declared wrongly is told by [Plugin.Manifest] and [Plugin.Serve], all of it at once.
type Plugin struct {
	name, version, description string

	requires     map[string]Requirement
	priority     int
	concurrency  int
	stops        bool
	configSchema json.RawMessage
	operations   []*Operation
	init         ConfigHook
	reload       ConfigHook
	shutdown     func(*InitContext) error
	faults       []string
}

// New makes a plugin without operations. The version is by preference a semantic one.
func New(name, version string) *Plugin {
	return &Plugin{name: name, version: version, concurrency: 1}
}

// Description says what the plugin is, in a sentence or two.
func (p *Plugin) Description(text string) *Plugin {
	p.description = text
	return p
}

// Operation offers operations; [Op] makes them.
func (p *Plugin) Operation(operations ...*Operation) *Plugin {
	p.operations = append(p.operations, operations...)
	return p
}

// Init runs a hook once at the start, before any call: it opens what handlers need.
//
// An error disables the plugin with its message as the reason, until its configuration or program changes.
// For a trouble that will pass, such as a database that is not up yet, log why and call os.Exit(1): the host
// tries again, each time later.
//
//	Init(plugd.WithConfig(func(cx *plugd.InitContext, config Config) error { … }))
func (p *Plugin) Init(hook ConfigHook) *Plugin {
	p.init = hook
	return p
}

// Reload takes up a changed configuration without a new process. Without it the host starts the plugin anew.
//
// An error must leave the plugin as it was: the host goes on with the old configuration and shows the error.
// The hook never runs beside a handler, unless [Plugin.Concurrency] allows several calls at once: then it
// does, and what both touch needs a lock.
func (p *Plugin) Reload(hook ConfigHook) *Plugin {
	p.reload = hook
	return p
}

// Shutdown runs a hook once when the host says to shut down, to release what the plugin holds.
//
// It does not run when the host is gone: a plugin then leaves at once.
func (p *Plugin) Shutdown(hook func(cx *InitContext) error) *Plugin {
	p.shutdown = hook
	return p
}

// Requires names a plugin that this one uses and cannot do without, and the versions that will do.
func (p *Plugin) Requires(plugin, versions string) *Plugin {
	return p.require(plugin, Requirement{Version: versions})
}

// RequiresOptional names a plugin that this one uses where it is there.
func (p *Plugin) RequiresOptional(plugin, versions string) *Plugin {
	return p.require(plugin, Requirement{Version: versions, Optional: true})
}

func (p *Plugin) require(plugin string, requirement Requirement) *Plugin {
	switch {
	case !isPluginName(plugin):
		p.faults = append(p.faults, fmt.Sprintf("%q is required and is not a plugin name", plugin))
	case !versionRange.MatchString(requirement.Version):
		p.faults = append(p.faults, fmt.Sprintf("%s is required in %q, which is no range: expected one such as %q",
			plugin, requirement.Version, ">=1.0"))
	default:
		if p.requires == nil {
			p.requires = make(map[string]Requirement)
		}
		p.requires[plugin] = requirement
	}
	return p
}

// Priority starts it before plugins of smaller priority that nothing orders otherwise.
func (p *Plugin) Priority(priority int) *Plugin {
	p.priority = priority
	return p
}

// Concurrency takes up to so many calls at once, 1 to 256, each on a goroutine of its own; 1 unless said.
func (p *Plugin) Concurrency(calls int) *Plugin {
	if calls < 1 || calls > concurrencyMax {
		p.faults = append(p.faults, fmt.Sprintf("%d calls at once: expected 1 to %d", calls, concurrencyMax))
		return p
	}
	p.concurrency = calls
	return p
}

// StopsWhenCancelled promises that handlers look at their context and stop early.
func (p *Plugin) StopsWhenCancelled() *Plugin {
	p.stops = true
	return p
}

// ConfigSchema declares this JSON Schema of the configuration instead of the one made from the hooks' type.
func (p *Plugin) ConfigSchema(schema json.RawMessage) *Plugin {
	if !isObject(schema) {
		p.faults = append(p.faults, "the configuration's schema is no JSON object")
	}
	p.configSchema = schema
	return p
}

// ServeOn speaks the protocol over in and out until the host is done, and leaves the process as it is.
//
// It is for tests, and for plugins that are reached by other ways than a process of their own. The error says
// what is declared wrongly.
func (p *Plugin) ServeOn(in io.Reader, out io.Writer) error {
	session, err := newSession(p, in, out, os.Stderr)
	if err != nil {
		return err
	}
	session.serve()
	return nil
}

func isObject(raw json.RawMessage) bool {
	var members map[string]json.RawMessage
	return json.Unmarshal(raw, &members) == nil && members != nil
}
