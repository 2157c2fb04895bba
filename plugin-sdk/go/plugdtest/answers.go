// What the plugin says, and what it asks.

package plugdtest

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strconv"

	"plugd"
)

// What the host's errors are numbered with.
const (
	codeCallFailed = 3
	codeAskFailed  = 4
	codeNoMethod   = -32601
)

// listen takes what the plugin says.
func (h *Host) listen(from *os.File) {
	defer close(h.listened)
	defer from.Close()
	in := bufio.NewReader(from)
	for {
		line, err := in.ReadBytes('\n')
		if err != nil {
			break
		}
		h.take(line)
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, request := range h.requests {
		if !request.over {
			request.over = true
			request.reply.Err = &plugd.Error{Message: "the plugin has ended without an answer"}
		}
	}
	h.changed.Broadcast()
}

// fromPlugin is any line of a plugin.
type fromPlugin struct {
	ID     json.RawMessage `json:"id"`
	Method string          `json:"method"`
	Params json.RawMessage `json:"params"`
	Result json.RawMessage `json:"result"`
	Error  *plugd.Error    `json:"error"`
}

func (h *Host) take(line []byte) {
	var m fromPlugin
	if err := json.Unmarshal(line, &m); err != nil {
		h.t.Errorf("the plugin wrote what is no message: %s", line)
		return
	}
	switch {
	case m.Method == "":
		h.ended(&m)
	case len(m.ID) == 0:
		h.note(&m)
	default:
		// A test's function may take its time, as people do.
		go h.answer(&m)
	}
}

// ended notes the answer to a request.
func (h *Host) ended(m *fromPlugin) {
	id, err := strconv.Atoi(string(m.ID))
	h.mu.Lock()
	defer h.mu.Unlock()
	request := h.requests[id]
	if err != nil || request == nil {
		h.t.Errorf("the plugin answered what nobody asked: %s", m.ID)
		return
	}
	request.result, request.reply.Err, request.over = m.Result, m.Error, true
	if m.Error == nil {
		var result struct {
			Data        json.RawMessage    `json:"data"`
			Summary     string             `json:"summary"`
			NextActions []plugd.NextAction `json:"next_actions"`
		}
		// A result of another form is that of another method.
		_ = json.Unmarshal(m.Result, &result)
		request.reply.Data, request.reply.Summary = result.Data, result.Summary
		request.reply.NextActions = result.NextActions
	}
	h.changed.Broadcast()
}

// note takes a notification down.
func (h *Host) note(m *fromPlugin) {
	var params struct {
		CallID string          `json:"call_id"`
		Data   json.RawMessage `json:"data"`
	}
	var log Log
	var progress Progress
	for _, into := range []any{&params, &log, &progress} {
		if err := json.Unmarshal(m.Params, into); err != nil {
			h.t.Errorf("the params of %s: %v", m.Method, err)
			return
		}
	}
	id, _ := strconv.Atoi(params.CallID)
	h.mu.Lock()
	defer h.mu.Unlock()
	request := h.requests[id]
	switch {
	case m.Method == "log" && request != nil:
		request.reply.Logs = append(request.reply.Logs, log)
	case m.Method == "log":
		h.logs = append(h.logs, log)
		if log.Level == plugd.LevelError.String() {
			// Of a hook, whose stack nobody would see otherwise.
			fmt.Fprintln(os.Stderr, log.Message)
		}
	case request == nil:
	case m.Method == "progress":
		request.reply.Progress = append(request.reply.Progress, progress)
	case m.Method == "partial":
		request.reply.Partials = append(request.reply.Partials, params.Data)
	}
	h.changed.Broadcast()
}

// answer answers a request of the plugin.
func (h *Host) answer(m *fromPlugin) {
	var result any
	var err error
	code := codeCallFailed
	switch m.Method {
	case "host/call":
		result, err = h.play(m.Params)
	case "host/ask":
		code = codeAskFailed
		result, err = h.askPerson(m.Params)
	default:
		code = codeNoMethod
		err = fmt.Errorf("this host knows no %s", m.Method)
	}
	message := map[string]any{"id": m.ID, "result": result}
	if err != nil {
		message = map[string]any{"id": m.ID, "error": errorObject(err, code)}
	}
	line, err := toLine(message)
	if err != nil {
		h.t.Errorf("what is answered to %s is no JSON: %v", m.Method, err)
		return
	}
	// A plugin that has ended waits for no answer.
	_, _ = h.toPlugin.Write(line)
}

// errorObject writes a test's error as the host would.
func errorObject(err error, code int) map[string]any {
	var failure *plugd.Error
	if !errors.As(err, &failure) {
		failure = &plugd.Error{Message: err.Error()}
	}
	data := map[string]any{"retryable": failure.Retryable}
	if failure.Name != "" {
		data["name"] = failure.Name
	}
	if failure.Hint != "" {
		data["hint"] = failure.Hint
	}
	if len(failure.Cause) > 0 {
		data["cause"] = failure.Cause
	}
	return map[string]any{"code": code, "message": err.Error(), "data": data}
}

func (h *Host) play(params json.RawMessage) (any, error) {
	var call struct {
		Operation string          `json:"operation"`
		Arguments json.RawMessage `json:"arguments"`
	}
	if err := json.Unmarshal(params, &call); err != nil {
		return nil, err
	}
	answer := h.plugins[call.Operation]
	if answer == nil {
		return nil, fmt.Errorf("this test plays no %s: see plugdtest.Play", call.Operation)
	}
	data, err := answer(call.Arguments)
	if err != nil {
		return nil, err
	}
	return map[string]any{"data": data, "call_id": "inner"}, nil
}

func (h *Host) askPerson(params json.RawMessage) (any, error) {
	var asked struct {
		Questions []Question `json:"questions"`
	}
	if err := json.Unmarshal(params, &asked); err != nil {
		return nil, err
	}
	if h.person == nil {
		return nil, plugd.Errorf("nobody_to_ask", "this test plays nobody to ask: see plugdtest.Person")
	}
	answers := make(map[string]any, len(asked.Questions))
	for _, question := range asked.Questions {
		answer, err := h.person(question)
		if err != nil {
			return nil, err
		}
		answers[question.Name] = answer
	}
	return map[string]any{"answers": answers}, nil
}
