// The manifest: what a plugin answers when it is described.

package plugd

import (
	"encoding/json"
	"fmt"
	"regexp"
	"strings"
	"unicode"
)

const (
	// nameMax is how long a name may be, in bytes.
	nameMax = 64
	// concurrencyMax is how many calls a plugin may take at once.
	concurrencyMax = 256
)

// Manifest is what a plugin declares of itself.
type Manifest struct {
	// Protocol is the protocol's version.
	Protocol int `json:"protocol"`
	// Name is the plugin's name for itself.
	Name string `json:"name"`
	// Version is the plugin's own version.
	Version string `json:"version"`
	// Description says what the plugin is.
	Description string `json:"description,omitempty"`
	// Requires names the plugins that this one uses.
	Requires map[string]Requirement `json:"requires,omitempty"`
	// Priority starts a plugin before those of smaller priority.
	Priority int `json:"priority,omitempty"`
	// Features says what the plugin can do.
	Features Features `json:"features"`
	// ConfigSchema is the JSON Schema of the configuration.
	ConfigSchema json.RawMessage `json:"config_schema,omitempty"`
	// Operations are those that the plugin offers.
	Operations []Declaration `json:"operations"`
}

// Requirement says which versions of a plugin will do.
type Requirement struct {
	// Version is a range, such as >=1.0.
	Version string `json:"version"`
	// Optional says that it need not be there.
	Optional bool `json:"optional,omitempty"`
}

// Features says what a plugin can do.
type Features struct {
	// Concurrency is how many calls it takes at once; 0 stands for 1.
	Concurrency int `json:"concurrency,omitempty"`
	// Cancel says that its handlers stop early when they are cancelled.
	Cancel bool `json:"cancel,omitempty"`
	// Ping says that it answers pings.
	Ping bool `json:"ping,omitempty"`
	// Reload says that it takes up a changed configuration without a new process.
	Reload bool `json:"reload,omitempty"`
}

// Declaration is what is declared of an operation; the options of [Op] tell what each part is for.
type Declaration struct {
	Name           string          `json:"name"`
	Title          string          `json:"title,omitempty"`
	Description    string          `json:"description,omitempty"`
	WhenToUse      string          `json:"when_to_use,omitempty"`
	WhenNotToUse   string          `json:"when_not_to_use,omitempty"`
	Examples       []string        `json:"examples,omitempty"`
	Category       string          `json:"category,omitempty"`
	Audience       string          `json:"audience,omitempty"`
	InputSchema    json.RawMessage `json:"input_schema"`
	OutputSchema   json.RawMessage `json:"output_schema,omitempty"`
	Effects        Effects         `json:"effects"`
	TimeoutMS      int64           `json:"timeout_ms,omitempty"`
	StallTimeoutMS int64           `json:"stall_timeout_ms,omitempty"`
	LongRunning    bool            `json:"long_running,omitempty"`
	Confirm        Confirmation    `json:"confirm,omitempty"`
	Scope          string          `json:"scope,omitempty"`
	CacheTTL       int64           `json:"cache_ttl,omitempty"`
	ResultLimit    int             `json:"result_limit,omitempty"`
}

// Effects are claims about what an operation does; what is nil is not declared.
type Effects struct {
	ReadOnly    *bool `json:"read_only,omitempty"`
	Destructive *bool `json:"destructive,omitempty"`
	Idempotent  *bool `json:"idempotent,omitempty"`
	OpenWorld   *bool `json:"open_world,omitempty"`
}

// Manifest is the plugin's manifest, as describe answers it.
//
// The error names everything that is wrong with the declaration, a fault a line: a name that is none, an
// operation declared twice, arguments that are no object, a tag that does not fit its field.
func (p *Plugin) Manifest() (*Manifest, error) {
	faults := append([]string(nil), p.faults...)
	if !isPluginName(p.name) {
		faults = append(faults, fmt.Sprintf(
			"%q is not a plugin name: expected 1 to %d letters, digits, '_' or '-', beginning with a letter or digit",
			p.name, nameMax))
	}
	if p.version == "" {
		faults = append(faults, "the plugin has no version: expected one such as 1.0.0")
	}
	manifest := &Manifest{
		Protocol:    protocolVersion,
		Name:        p.name,
		Version:     p.version,
		Description: p.description,
		Requires:    p.requires,
		Priority:    p.priority,
		Features:    Features{Cancel: p.stops, Ping: true, Reload: p.reload.run != nil},
		Operations:  make([]Declaration, 0, len(p.operations)),
	}
	if p.concurrency > 1 {
		manifest.Features.Concurrency = p.concurrency
	}
	for _, hook := range []ConfigHook{p.init, p.reload} {
		faults = append(faults, hook.faults...)
		if manifest.ConfigSchema == nil {
			manifest.ConfigSchema = hook.schema
		}
	}
	if p.configSchema != nil {
		manifest.ConfigSchema = p.configSchema
	}
	declared := make(map[string]bool)
	for _, operation := range p.operations {
		for _, fault := range operation.check() {
			faults = append(faults, operation.name+": "+fault)
		}
		if declared[operation.name] {
			faults = append(faults, operation.name+": declared twice")
		}
		declared[operation.name] = true
		manifest.Operations = append(manifest.Operations, operation.declaration)
	}
	if len(faults) > 0 {
		return nil, fmt.Errorf("the plugin %s is declared wrongly:\n  %s", p.name, strings.Join(faults, "\n  "))
	}
	return manifest, nil
}

var (
	pluginName    = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9_-]*$`)
	operationName = regexp.MustCompile(`^[a-z0-9_]+$`)
	versionRange  = regexp.MustCompile(
		`^(\*|(=|>=?|<=?|~|\^)?\s*\d+(\.(\d+|\*)){0,2}(-[0-9A-Za-z.-]+)?)(\s*,\s*(=|>=?|<=?|~|\^)?\s*\d+(\.(\d+|\*)){0,2}(-[0-9A-Za-z.-]+)?)*$`)
)

func isPluginName(name string) bool {
	return len(name) <= nameMax && pluginName.MatchString(name)
}

// isOperationName is whether an operation, or a failure, may be called so.
func isOperationName(name string) bool {
	return len(name) <= nameMax && operationName.MatchString(name)
}

// check says what is wrong with an operation's declaration.
func (o *Operation) check() []string {
	faults := append([]string(nil), o.faults...)
	if !isOperationName(o.name) {
		faults = append(faults, fmt.Sprintf("%q is not an operation name: %s", o.name, nameRule(o.name)))
	}
	return faults
}

// nameRule says what the name of an operation or a failure is, and the nearest one to what was given.
func nameRule(given string) string {
	rule := fmt.Sprintf("expected 1 to %d of a-z, 0-9 and '_'", nameMax)
	if nearest := snakeCase(given); nearest != "" {
		rule += fmt.Sprintf("; did you mean %q?", nearest)
	}
	return rule
}

// snakeCase is the nearest legal spelling of an operation's name; empty where there is none.
func snakeCase(name string) string {
	var spelled strings.Builder
	previous := '_'
	for _, r := range name {
		if unicode.IsUpper(r) && previous != '_' && !unicode.IsUpper(previous) {
			spelled.WriteByte('_')
		}
		if r == '-' || r == ' ' || r == '.' {
			r = '_'
		}
		spelled.WriteRune(unicode.ToLower(r))
		previous = r
	}
	nearest := spelled.String()
	if !isOperationName(nearest) {
		return ""
	}
	return nearest
}
