// What may be declared about an operation besides its name and types.

package plugd

import (
	"encoding/json"
	"fmt"
	"time"
)

// Option declares something about an operation, for [Op].
type Option func(*Operation)

// Title is a short title for people.
func Title(text string) Option {
	return func(o *Operation) { o.declaration.Title = text }
}

// Description says what the operation does and what is special about its arguments: two sentences or more.
func Description(text string) Option {
	return func(o *Operation) { o.declaration.Description = text }
}

// WhenToUse says when it is the right choice.
func WhenToUse(text string) Option {
	return func(o *Operation) { o.declaration.WhenToUse = text }
}

// WhenNotToUse says when it is not, and what is instead.
func WhenNotToUse(text string) Option {
	return func(o *Operation) { o.declaration.WhenNotToUse = text }
}

// Examples are sentences with which people ask for it.
func Examples(sentences ...string) Option {
	return func(o *Operation) { o.declaration.Examples = append(o.declaration.Examples, sentences...) }
}

// Category says what kind of operation it is.
func Category(text string) Option {
	return func(o *Operation) { o.declaration.Category = text }
}

// ForPlugins offers it to other plugins and operators only, never to models.
func ForPlugins() Option {
	return func(o *Operation) { o.declaration.Audience = "plugins" }
}

// ReadOnly claims that it changes nothing: the host may try it again.
func ReadOnly() Option {
	return func(o *Operation) { o.declaration.Effects.ReadOnly = claim(true) }
}

// Idempotent claims that running it twice is as good as once: the host may try it again.
func Idempotent() Option {
	return func(o *Operation) { o.declaration.Effects.Idempotent = claim(true) }
}

// Destructive warns that it may destroy something: somebody must agree before it runs.
func Destructive() Option {
	return func(o *Operation) { o.declaration.Effects.Destructive = claim(true) }
}

// OpenWorld says that it reaches beyond this machine.
func OpenWorld() Option {
	return func(o *Operation) { o.declaration.Effects.OpenWorld = claim(true) }
}

// Not claims the opposite of effects: Not(plugd.Destructive()) says that it destroys nothing.
func Not(effects ...Option) Option {
	return func(o *Operation) {
		claimed := new(Operation)
		for _, effect := range effects {
			effect(claimed)
		}
		named, denied := claimed.declaration.Effects, &o.declaration.Effects
		deny(&denied.ReadOnly, named.ReadOnly)
		deny(&denied.Destructive, named.Destructive)
		deny(&denied.Idempotent, named.Idempotent)
		deny(&denied.OpenWorld, named.OpenWorld)
	}
}

// LongRunning gives its callers a job at once, which they need not wait for.
func LongRunning() Option {
	return func(o *Operation) { o.declaration.LongRunning = true }
}

// Timeout is how long it may run, in whole milliseconds; 30 seconds unless said.
func Timeout(limit time.Duration) Option {
	return func(o *Operation) {
		o.declaration.TimeoutMS = o.whole("timeout", limit, time.Millisecond)
	}
}

// StallTimeout is how long it may go without progress, in whole milliseconds; without limit unless said.
func StallTimeout(limit time.Duration) Option {
	return func(o *Operation) {
		o.declaration.StallTimeoutMS = o.whole("stall timeout", limit, time.Millisecond)
	}
}

// CacheTTL gives the same arguments of the same caller the same answer for so long, in whole seconds.
//
// Only what is [ReadOnly] is kept.
func CacheTTL(keep time.Duration) Option {
	return func(o *Operation) { o.declaration.CacheTTL = o.whole("cache TTL", keep, time.Second) }
}

// ResultLimit gives data of more bytes in pages; 65,536 unless said, at least 256.
func ResultLimit(bytes int) Option {
	return func(o *Operation) {
		if bytes < 256 {
			o.faults = append(o.faults, fmt.Sprintf("a result limit of %d bytes: expected at least 256", bytes))
		}
		o.declaration.ResultLimit = bytes
	}
}

// Confirmation says when somebody must agree before an operation runs.
type Confirmation string

// The confirmations that there are.
const (
	// ConfirmAuto is where it is destructive; so it is unless said.
	ConfirmAuto Confirmation = "auto"
	// ConfirmAlways is every time.
	ConfirmAlways Confirmation = "always"
	// ConfirmNever is never.
	ConfirmNever Confirmation = "never"
)

// Confirm says whether somebody must agree before it runs: [ConfirmAuto], [ConfirmAlways], [ConfirmNever].
func Confirm(when Confirmation) Option {
	return func(o *Operation) {
		if when != ConfirmAuto && when != ConfirmAlways && when != ConfirmNever {
			o.faults = append(o.faults, fmt.Sprintf("confirm %q: expected auto, always or never", when))
		}
		o.declaration.Confirm = when
	}
}

// Scope offers it only to callers whose profile holds that scope, and to the owner.
func Scope(name string) Option {
	return func(o *Operation) { o.declaration.Scope = name }
}

// InputSchema declares this JSON Schema of the arguments instead of the one made from the handler's type.
func InputSchema(schema json.RawMessage) Option {
	return func(o *Operation) {
		if !isObject(schema) {
			o.faults = append(o.faults, "the input schema is no JSON object")
		}
		o.declaration.InputSchema = schema
	}
}

// OutputSchema declares this JSON Schema of the data instead of the one made from the handler's type.
func OutputSchema(schema json.RawMessage) Option {
	return func(o *Operation) {
		if !isObject(schema) {
			o.faults = append(o.faults, "the output schema is no JSON object")
		}
		o.declaration.OutputSchema = schema
	}
}

func claim(is bool) *bool {
	return &is
}

func deny(effect **bool, named *bool) {
	if named != nil {
		*effect = claim(false)
	}
}

// whole gives a time in whole units; what is less than one is a fault.
func (o *Operation) whole(what string, given, unit time.Duration) int64 {
	if given < unit {
		o.faults = append(o.faults, fmt.Sprintf("a %s of %v: expected at least %v", what, given, unit))
	}
	return int64(given / unit)
}
