// Requests to the host, and what comes back.

package plugd

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strconv"
	"sync"
)

// HostReply is what another plugin answered.
type HostReply[T any] struct {
	// Data is what it gave.
	Data T
	// Summary is its one line about it.
	Summary string
	// CallID is the id of that call.
	CallID string
}

// Call uses another plugin's operation, plugin.operation, and waits for its answer.
//
// The manifest must name that plugin: [Plugin.Requires]. The inner call shares this one's deadline, session
// and trace, and ends when this one is cancelled. Arguments are anything that becomes a JSON object; nil is
// one without members.
//
//	found, err := plugd.Call[Weather](cx, "weather.get_weather", map[string]any{"city": city})
//
// It fails with the inner call's [*Error] and its cause: returned as it is, or wrapped with %w, the answer to
// this call names the plugin that failed.
func Call[T any](cx *Context, operation string, arguments any) (HostReply[T], error) {
	var reply HostReply[T]
	if arguments == nil {
		arguments = struct{}{}
	}
	params := struct {
		CallID    string `json:"call_id"`
		Operation string `json:"operation"`
		Arguments any    `json:"arguments"`
	}{cx.CallID(), operation, arguments}
	raw, err := cx.request("host/call", "host_calls", params)
	if err != nil {
		return reply, err
	}
	var whole struct {
		Data    json.RawMessage `json:"data"`
		Summary string          `json:"summary"`
		CallID  string          `json:"call_id"`
	}
	if err := json.Unmarshal(raw, &whole); err != nil {
		return reply, unexpected(operation, err)
	}
	data, err := readAs[T](whole.Data)
	if err != nil {
		return reply, unexpected(operation, err)
	}
	return HostReply[T]{Data: data, Summary: whole.Summary, CallID: whole.CallID}, nil
}

func unexpected(operation string, err error) *Error {
	return &Error{
		Name:    "unexpected_reply",
		Message: fmt.Sprintf("%s answered in a form not expected here: %s", operation, misfit(err)),
		wraps:   err,
	}
}

// Vars are the variables of the session that a call belongs to.
//
// The protocol sets this aside and no host offers it yet: every use fails with not_offered, and the form may
// still change.
type Vars struct{ cx *Context }

// Vars gives the variables of the call's session.
func (c *Context) Vars() Vars { return Vars{c} }

// Get reads a variable into a pointer; whether there is one of that name.
func (v Vars) Get(name string, into any) (found bool, err error) {
	raw, err := v.request(map[string]any{"get": []string{name}})
	if err != nil {
		return false, err
	}
	var whole struct {
		Vars map[string]json.RawMessage `json:"vars"`
	}
	if err := json.Unmarshal(raw, &whole); err != nil {
		return false, unexpected("host/vars", err)
	}
	value, found := whole.Vars[name]
	if !found || bytes.Equal(value, []byte("null")) {
		return false, nil
	}
	if err := readJSON(value, into, true); err != nil {
		return true, unexpected("host/vars", err)
	}
	return true, nil
}

// Set writes a variable.
func (v Vars) Set(name string, value any) error {
	_, err := v.request(map[string]any{"set": map[string]any{name: value}})
	return err
}

// CompareAndSet writes a variable if it still has the expected value; whether it did.
func (v Vars) CompareAndSet(name string, expected, value any) (swapped bool, err error) {
	compare := map[string]any{"name": name, "expected": expected, "value": value}
	raw, err := v.request(map[string]any{"compare_and_set": compare})
	if err != nil {
		return false, err
	}
	var whole struct {
		Swapped bool `json:"swapped"`
	}
	if err := json.Unmarshal(raw, &whole); err != nil {
		return false, unexpected("host/vars", err)
	}
	return whole.Swapped, nil
}

func (v Vars) request(params map[string]any) (json.RawMessage, error) {
	params["call_id"] = v.cx.CallID()
	return v.cx.request("host/vars", "host_vars", params)
}

// Emit tells those who watch that something happened.
//
// The protocol sets this aside and no host offers it yet: it fails with not_offered, and the form may still
// change.
func (c *Context) Emit(event string, data any) error {
	params := map[string]any{"call_id": c.CallID(), "event": event, "data": data}
	_, err := c.request("host/emit", "host_emit", params)
	return err
}

// request asks the host something and waits: it answers in time, or the call ends.
func (c *Context) request(method, feature string, params any) (json.RawMessage, error) {
	if c.session == nil {
		return nil, noHost()
	}
	if !c.session.offers(feature) {
		return nil, notOffered(feature)
	}
	if c.Err() != nil {
		return nil, cancelled()
	}
	answers, forget, err := c.session.ask(method, params)
	if err != nil {
		return nil, err
	}
	defer forget()
	select {
	case answer := <-answers:
		return answer.result, answer.err
	case <-c.Done():
		return nil, cancelled()
	}
}

// hostAnswer is how a request to the host ended.
type hostAnswer struct {
	result json.RawMessage
	err    error
}

// asked has the requests to the host that are not answered yet.
type asked struct {
	mu   sync.Mutex
	last uint64
	// waiting is nil once no answer can come any more.
	waiting map[uint64]chan<- hostAnswer
}

// ask sends a request; forget says that its answer is not waited for any more.
func (s *session) ask(method string, params any) (answers <-chan hostAnswer, forget func(), err error) {
	id, answer := s.asked.add()
	f := newFrame()
	if err := f.request(strconv.AppendUint(nil, id, 10), method, params); err != nil {
		f.done()
		s.asked.remove(id)
		return nil, nil, err
	}
	if f.tooLong() {
		defer f.done()
		s.asked.remove(id)
		return nil, nil, tooLarge("too_large", method, f.Len())
	}
	s.wire.send(f)
	return answer, func() { s.asked.remove(id) }, nil
}

// answered hands an answer to who waits for it; late and unknown ones are dropped.
func (s *session) answered(m *message) {
	id, err := strconv.ParseUint(string(m.ID), 10, 64)
	if err != nil {
		return
	}
	if waiter := s.asked.remove(id); waiter != nil {
		answer := hostAnswer{result: m.Result}
		if m.Error != nil {
			answer = hostAnswer{err: m.Error}
		}
		waiter <- answer
	}
}

// add opens a request. Its channel has room for the one answer.
func (a *asked) add() (uint64, <-chan hostAnswer) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.last++
	answer := make(chan hostAnswer, 1)
	if a.waiting == nil {
		answer <- hostAnswer{err: noHost()}
	} else {
		a.waiting[a.last] = answer
	}
	return a.last, answer
}

func (a *asked) remove(id uint64) chan<- hostAnswer {
	a.mu.Lock()
	defer a.mu.Unlock()
	waiter := a.waiting[id]
	delete(a.waiting, id)
	return waiter
}

// noMoreAnswers wakes all who wait: the host is gone.
func (a *asked) noMoreAnswers() {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, waiter := range a.waiting {
		waiter <- hostAnswer{err: noHost()}
	}
	a.waiting = nil
}
