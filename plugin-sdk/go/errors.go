// What a handler says when it fails, and how that goes over the wire.

package plugd

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
)

// The codes of errors that the protocol gives a meaning.
const (
	codeOperationFailed = 1
	codeHandlerFailed   = 2
	codeNoMethod        = -32601
	codeInvalidParams   = -32602
	codeCancelled       = -32800
)

// messageMax is how many characters of a message the host shows.
const messageMax = 2000

// Error is a failure in the plugin's own words.
//
// Any error that a handler returns fails its call with the error's text as the message. A failure that
// callers should tell from others gets a name, and a hint where they can do something about it:
//
//	return nil, &plugd.Error{
//		Name:    "ticket_not_found",
//		Message: "there is no ticket TK-9",
//		Hint:    "tickets.list_open shows the tickets there are",
//	}
//
// A name that is none, such as one with capitals, is a fault of the plugin: the caller gets the message and is
// told so, and the log says what is wrong with it.
//
// It may be wrapped with fmt.Errorf and %w: the message is then the whole text, the rest stays. Callers,
// models among them, read it: put no stack, password or file content into it.
type Error struct {
	// Name is the failure's name in snake case, for programs: up to 64 of a-z, 0-9 and _, or none at all.
	Name string
	// Message says what happened, for people. Of more than 2,000 characters the rest is cut off.
	Message string
	// Hint says what the caller can do about it.
	Hint string
	// Retryable says whether the same call may succeed later.
	Retryable bool
	// Cause is the failed call behind it, where this came from [Call]: the host's own JSON, handed on.
	Cause json.RawMessage

	code  int
	wraps error
}

// Errorf makes a named failure, with a message as of fmt.Errorf; %w wraps.
//
// It panics where the name is none: names are written down, not computed. The caller gets the message all the
// same.
func Errorf(name, format string, args ...any) *Error {
	err := fmt.Errorf(format, args...)
	if bad := checkName(name, err.Error()); bad != nil {
		panic(bad)
	}
	return &Error{Name: name, Message: err.Error(), wraps: errors.Unwrap(err)}
}

// WithHint gives a copy that says what the caller can do about it.
func (e *Error) WithHint(hint string) *Error {
	changed := *e
	changed.Hint = hint
	return &changed
}

// WithRetry gives a copy that says that the same call may succeed later.
func (e *Error) WithRetry() *Error {
	changed := *e
	changed.Retryable = true
	return &changed
}

// Error gives the message.
func (e *Error) Error() string {
	return e.Message
}

// Unwrap gives the error behind it: that of %w, or [context.Canceled] where the call was cancelled.
func (e *Error) Unwrap() error {
	return e.wraps
}

// Code is the failure's JSON-RPC code on the wire: 1 unless the host or this package gave another.
func (e *Error) Code() int {
	if e.code == 0 {
		return codeOperationFailed
	}
	return e.code
}

// cancelled is the answer to a call that stopped because it was cancelled.
func cancelled() *Error {
	return &Error{Message: "the call was cancelled", code: codeCancelled, wraps: context.Canceled}
}

// notOffered is what using a feature fails with that the host does not have.
func notOffered(feature string) *Error {
	failure := &Error{Name: "not_offered", Hint: "do without"}
	switch feature {
	case "host_vars":
		failure.Message = "this host offers no session variables"
		failure.Hint = "do without, or keep it in data_dir"
	case "host_emit":
		failure.Message = "this host offers no events"
		failure.Hint = "do without, or keep it in data_dir"
	case "host_calls":
		failure.Message = "this host offers no calls of other plugins"
	default:
		failure.Message = "this host offers no questions"
	}
	return failure
}

// noHost is what fails where nobody is there to answer, or no longer.
func noHost() *Error {
	return &Error{Name: "no_host", Message: "there is no host to ask", Hint: "run it under plugd, or in a test with plugdtest"}
}

// failureOf turns what a handler returned into what is answered. Where its name is none, it gives that as well.
func failureOf(err error, over error) (*Error, *badName) {
	if over != nil && (errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded)) {
		return cancelled(), nil
	}
	text := err.Error()
	var failure *Error
	if !errors.As(err, &failure) {
		return &Error{Message: text}, nil
	}
	// What has a code came from the host, whose names are not for us to refuse.
	if bad := checkName(failure.Name, text); bad != nil && failure.code == 0 {
		return bad.failure(), bad
	}
	if text == failure.Message {
		return failure, nil
	}
	wrapped := *failure
	wrapped.Message = text
	return &wrapped, nil
}

// badName is a failure under a name that is none.
type badName struct{ name, message string }

// checkName gives what is wrong with the name of a failure; nil where nothing is.
func checkName(name, message string) *badName {
	if name == "" || isOperationName(name) {
		return nil
	}
	return &badName{name, message}
}

// Error says what is wrong, for the log.
func (b *badName) Error() string {
	return fmt.Sprintf("%q is not a failure's name: %s", b.name, nameRule(b.name))
}

// failure is what the caller is told: what the author wrote, and that the name is a fault.
func (b *badName) failure() *Error {
	text := fmt.Sprintf("%s; a fault in the plugin: %q is not a failure's name", b.message, b.name)
	return &Error{Message: text, code: codeHandlerFailed}
}

// panicked is what is answered where code of the plugin's author panicked with a value.
func panicked(what string, value any) *Error {
	if bad, ok := value.(*badName); ok {
		return bad.failure()
	}
	return fault(what, "panicked")
}

// errorObject is an error object of JSON-RPC.
type errorObject struct {
	Code    int        `json:"code"`
	Message string     `json:"message"`
	Data    *errorData `json:"data,omitempty"`
}

type errorData struct {
	Name      string          `json:"name,omitempty"`
	Hint      string          `json:"hint,omitempty"`
	Retryable bool            `json:"retryable,omitempty"`
	Cause     json.RawMessage `json:"cause,omitempty"`
}

// MarshalJSON writes the failure as an error object of JSON-RPC.
func (e *Error) MarshalJSON() ([]byte, error) {
	object := errorObject{Code: e.Code(), Message: clip(e.Message, messageMax)}
	if e.Name != "" || e.Hint != "" || e.Retryable || len(e.Cause) > 0 {
		object.Data = &errorData{Name: e.Name, Hint: e.Hint, Retryable: e.Retryable, Cause: e.Cause}
	}
	return json.Marshal(object)
}

// UnmarshalJSON reads an error object of JSON-RPC.
func (e *Error) UnmarshalJSON(raw []byte) error {
	var object errorObject
	if err := json.Unmarshal(raw, &object); err != nil {
		return err
	}
	*e = Error{Message: object.Message, code: object.Code}
	if data := object.Data; data != nil {
		e.Name, e.Hint, e.Retryable, e.Cause = data.Name, data.Hint, data.Retryable, data.Cause
	}
	if e.code == codeCancelled {
		e.wraps = context.Canceled
	}
	return nil
}

// clip cuts a text off behind so many characters.
func clip(text string, most int) string {
	if len(text) <= most {
		return text
	}
	count := 0
	for at := range text {
		if count == most {
			return text[:at] + "…"
		}
		count++
	}
	return text
}

// onOneLine gives a text without line breaks, cut off behind 500 characters.
func onOneLine(text string) string {
	return clip(strings.Join(strings.Fields(text), " "), 500)
}
