package plugdtest

import (
	"encoding/json"
	"time"
)

// Option says how a [Host] behaves.
type Option func(*Host)

// Config is the configuration for the plugin's init; its defaults are the plugin's to fill.
func Config(config any) Option {
	return func(h *Host) { h.config = config }
}

// Deadline is how long each call has; 30 seconds unless said.
func Deadline(limit time.Duration) Option {
	return func(h *Host) { h.deadline = limit }
}

// Tell adds members to the context that every call gets, such as caller, session_id or idempotency_key.
func Tell(members map[string]any) Option {
	return func(h *Host) {
		for name, value := range members {
			h.told[name] = value
		}
	}
}

// Without plays a host that lacks features, such as host_calls, host_asks, progress, partial or log.
func Without(features ...string) Option {
	return func(h *Host) {
		for _, feature := range features {
			delete(h.features, feature)
		}
	}
}

// Play plays another plugin: what it answers to an operation, written as plugin.operation.
//
// An error fails the inner call; a *plugd.Error fails it under its name.
func Play(operation string, answer func(arguments json.RawMessage) (any, error)) Option {
	return func(h *Host) { h.plugins[operation] = answer }
}

// Question is what the plugin asks the person behind a call.
type Question struct {
	// Name is the one under which the answer goes back.
	Name string `json:"name"`
	// Prompt is the question in words.
	Prompt string `json:"prompt"`
	// Schema is the JSON Schema of the answer.
	Schema json.RawMessage `json:"schema"`
	// Sensitive is whether the answer is a secret.
	Sensitive bool `json:"sensitive"`
}

// Person plays the person behind the calls. Without one there is nobody to ask.
func Person(answer func(Question) (any, error)) Option {
	return func(h *Host) { h.person = answer }
}
