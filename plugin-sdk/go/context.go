// What a call knows of itself.

package plugd

import (
	"context"
	"encoding/json"
	"sync"
	"time"
)

const (
	// timeLeftMax bounds the time of a call, whatever its deadline says.
	timeLeftMax = 24 * time.Hour
	// timeForTest is how long a call in a test without a host has.
	timeForTest = 30 * time.Second
)

// Context is one call: who asked, how long there is, and how to speak to the host meanwhile.
//
// It is a [context.Context] that ends when the host cancels the call, at the deadline, and when the handler
// has returned: hand it on to whatever works for the call. There is nothing ambient; two calls at once share
// nothing through it. Its methods may be used from several goroutines.
//
// What needs a type is a function rather than a method: [Call] uses another plugin, [Ask] asks the person
// behind the call.
type Context struct {
	reporter
	// turn is the reader's turn that the call takes; see [turns].
	turn uint64
	told callContext

	mu sync.Mutex
	// end is when the host stops waiting, but for the time that people take.
	end    time.Time
	people peopleTook
	// done is made when somebody first wants it, and closed once err is set.
	done  chan struct{}
	err   error
	timer *time.Timer
}

// peopleTook is how long people were asked, counted once where several questions are open.
type peopleTook struct {
	open   int
	since  time.Time
	before time.Duration
}

var _ context.Context = (*Context)(nil)

// ContextForTest is a call without a host, for tests of handlers as plain functions.
//
// It has 30 seconds; what it logs is lost and what it asks the host fails with no_host. Where those matter,
// use the package plugdtest.
func ContextForTest() *Context {
	cx := new(Context)
	cx.begin(nil, &callContext{CallID: "test", DeadlineMS: uint64(timeForTest.Milliseconds()), Attempt: 1})
	return cx
}

func (c *Context) begin(s *session, told *callContext) {
	c.reporter = reporter{session: s, callID: told.CallID, traceparent: told.Traceparent}
	c.told = *told
	if c.told.Attempt == 0 {
		c.told.Attempt = 1
	}
	left := timeLeftMax
	if told.DeadlineMS < uint64(timeLeftMax.Milliseconds()) {
		left = time.Duration(told.DeadlineMS) * time.Millisecond
	}
	c.end = time.Now().Add(left)
}

// CallID is the call's id, the host's own.
func (c *Context) CallID() string { return c.told.CallID }

// SessionID is the session the call belongs to; empty without one.
func (c *Context) SessionID() string { return c.told.SessionID }

// Traceparent is the W3C trace context to hand on to remote services; empty without one.
func (c *Context) Traceparent() string { return c.told.Traceparent }

// TraceID is the trace's id within [Context.Traceparent]: 32 hexadecimal digits, or empty.
func (c *Context) TraceID() string { return traceID(c.told.Traceparent) }

// Attempt is 1, or more where the host tries a call again.
func (c *Context) Attempt() int { return c.told.Attempt }

// IdempotencyKey is the caller's key for having this done once; empty without one.
func (c *Context) IdempotencyKey() string { return c.told.IdempotencyKey }

// Caller says who calls: a caller's profile, or plugin:NAME; empty for the owner.
func (c *Context) Caller() string { return c.told.Caller }

// Locale is the language the caller speaks, a BCP 47 tag; empty where it is not known.
func (c *Context) Locale() string { return c.told.Locale }

// Deadline says when the host stops waiting; later by as long as people took to answer [Ask].
func (c *Context) Deadline() (time.Time, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.deadline(), true
}

// TimeLeft is how long the host still waits; zero once the deadline has passed.
func (c *Context) TimeLeft() time.Duration {
	deadline, _ := c.Deadline()
	if left := time.Until(deadline); left > 0 {
		return left
	}
	return 0
}

// Done is closed when the call is cancelled, at its deadline, and when the handler has returned.
func (c *Context) Done() <-chan struct{} {
	c.attend()
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.done == nil {
		c.done = make(chan struct{})
		if c.err != nil {
			close(c.done)
		} else {
			c.timer = time.AfterFunc(time.Until(c.deadline()), c.expire)
		}
	}
	return c.done
}

// Err says why the call is over: [context.Canceled], or [context.DeadlineExceeded]; nil while it is not.
//
// Look at it between two steps. A handler that returns this error answers that the call was cancelled.
func (c *Context) Err() error {
	c.attend()
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.err == nil && !time.Now().Before(c.deadline()) {
		c.stop(context.DeadlineExceeded)
	}
	return c.err
}

// Value has no values of its own.
func (c *Context) Value(any) any { return nil }

// Partial sends a piece of the result ahead of it, to those who watch; the answer must still be whole.
//
// It fails where the piece is no JSON, or is longer than a message can be.
func (c *Context) Partial(piece any) error {
	if c.session == nil || !c.session.offers("partial") {
		return nil
	}
	return c.session.notify("partial", struct {
		CallID string `json:"call_id"`
		Data   any    `json:"data"`
	}{c.told.CallID, piece})
}

// attend has somebody read on, so that a cancel is heard while the handler runs.
func (c *Context) attend() {
	if c.session != nil {
		c.session.readOn(c.turn)
	}
}

// over is why the call ended, without looking for new reasons.
func (c *Context) over() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.err
}

// cancel ends the call for a reason, unless it has ended.
func (c *Context) cancel(reason error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.stop(reason)
}

// stop is cancel for who holds the lock.
func (c *Context) stop(reason error) {
	if c.err != nil {
		return
	}
	c.err = reason
	if c.done != nil {
		close(c.done)
		c.timer.Stop()
	}
}

// expire ends the call if its deadline has passed, and otherwise sets the clock again.
func (c *Context) expire() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.err != nil || c.people.open > 0 {
		return
	}
	if left := time.Until(c.deadline()); left <= 0 {
		c.stop(context.DeadlineExceeded)
	} else if c.timer != nil {
		c.timer.Reset(left)
	}
}

// deadline is for who holds the lock.
func (c *Context) deadline() time.Time {
	took := c.people.before
	if c.people.open > 0 {
		took += time.Since(c.people.since)
	}
	return c.end.Add(took)
}

// whilePeopleAreAsked has the deadline move by as long as this takes, as the host's does.
func (c *Context) whilePeopleAreAsked(ask func() (json.RawMessage, error)) (json.RawMessage, error) {
	c.mu.Lock()
	if c.people.open == 0 {
		c.people.since = time.Now()
	}
	c.people.open++
	c.mu.Unlock()
	defer func() {
		c.mu.Lock()
		c.people.open--
		if c.people.open == 0 {
			c.people.before += time.Since(c.people.since)
		}
		c.mu.Unlock()
		c.expire() // sets the clock going again
	}()
	return ask()
}
