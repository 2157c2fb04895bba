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
			c.complain("ended its goroutine", debug.Stack())
			out.refusal(c.id, fault(c.operation.name, "ended its goroutine"))
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
			value := recover()
			if value != nil {
				c.complain(fmt.Sprint("panicked: ", value), debug.Stack())
			}
			failure = panicked(c.operation.name, value)
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
		failure, bad := failureOf(err, c.over())
		if bad != nil {
			c.complain(fmt.Sprintf("returned an error of a wrong name: %v", bad), nil)
		}
		return failure
	}
	if err := out.result(c.id, answer); err != nil {
		text := fmt.Sprintf("the result of %s is no JSON: %v", c.operation.name, err)
		c.session.tellFault(text, c.told.CallID, c.TraceID())
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

// complain tells the log what a handler did that is a fault: the text may quote what is not for callers.
func (c *call) complain(did string, stack []byte) {
	c.session.tellFault(fmt.Sprintf("%s %s\n%s", c.operation.name, did, stack), c.told.CallID, c.TraceID())
}

// fault is what a caller is told of what no handler means to do.
func fault(what, did string) *Error {
	return &Error{Message: what + " failed unexpectedly: it " + did, code: codeHandlerFailed}
}

// tooLarge is what fails because a message would be longer than the host reads.
func tooLarge(name, what string, size int) *Error {
	return &Error{
		Name:    name,
		Message: fmt.Sprintf("the %s takes a message of %d bytes, and the host reads %d at most", what, size, frameMax),
		Hint:    "give less at once",
	}
}
