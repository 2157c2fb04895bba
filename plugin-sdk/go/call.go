// One call, from its arguments to its answer.

package plugd

import (
	"context"
	"encoding/json"
	"fmt"
	"runtime/debug"
)

// call is a request to run an operation.
type call struct {
	Context
	id        json.RawMessage
	arguments json.RawMessage
	operation *Operation
}

// start runs the call, answers it and frees its lane, whatever the handler does.
func (c *call) start() {
	out := newFrame()
	answered := false
	defer func() {
		if !answered {
			// Only runtime.Goexit comes here.
			out.Reset()
			out.refusal(c.id, c.fault("the handler ended its goroutine", debug.Stack()))
		}
		c.cancel(context.Canceled)
		c.session.wire.send(out)
		c.session.traffic.leave(c)
	}()
	if failure := c.perform(out); failure != nil {
		out.Reset()
		out.refusal(c.id, failure)
	}
	answered = true
}

// perform runs the handler and writes its result. It gives the failure where there is one.
func (c *call) perform(out *frame) (failure *Error) {
	ended := false
	defer func() {
		if !ended {
			failure = c.fault(recover(), debug.Stack())
		}
	}()
	failure = c.attempt(out)
	ended = true
	return failure
}

// attempt is perform without its net: code of the plugin's author may panic in all of it.
func (c *call) attempt(out *frame) *Error {
	if failure := c.session.opening.wait(); failure != nil {
		return failure
	}
	answer, err := c.operation.run(&c.Context, c.arguments)
	if err != nil {
		return failureOf(err, c.over())
	}
	if err := out.result(c.id, answer); err != nil {
		text := fmt.Sprintf("the result of %s is no JSON: %v", c.operation.name, err)
		c.session.complain(fmt.Sprintf("call %s: %s", c.told.CallID, text))
		return &Error{Message: onOneLine(text), code: codeHandlerFailed}
	}
	if out.tooLong() {
		return tooLarge("too_large", "result of "+c.operation.name, out.Len())
	}
	return nil
}

func (c *call) cancelCall(callID string) {
	if c.told.CallID == callID {
		c.cancel(context.Canceled)
	}
}

// fault is what a panic is answered with. Where it happened is told on stderr only.
func (c *call) fault(value any, stack []byte) *Error {
	return c.session.fault(fmt.Sprintf("call %s of %s", c.told.CallID, c.operation.name), value, stack)
}

func (s *session) fault(where string, value any, stack []byte) *Error {
	text := fmt.Sprint(value)
	s.complain(fmt.Sprintf("%s panicked: %s\n%s", where, text, stack))
	return &Error{Message: onOneLine(text), code: codeHandlerFailed}
}

// tooLarge is what fails because a message would be longer than the host reads.
func tooLarge(name, what string, size int) *Error {
	return &Error{
		Name:    name,
		Message: fmt.Sprintf("the %s takes a message of %d bytes, and the host reads %d at most", what, size, frameMax),
		Hint:    "give less at once",
	}
}
