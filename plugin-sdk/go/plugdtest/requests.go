// Requests to the plugin, and waiting for what becomes of them.

package plugdtest

import (
	"bytes"
	"encoding/json"
	"strconv"
	"time"
)

// Running is a call under way.
type Running struct {
	host *Host
	id   int
}

// Cancel tells the plugin to stop the call.
func (r *Running) Cancel() {
	r.host.t.Helper()
	r.host.write(map[string]any{"method": "cancel", "params": map[string]any{"call_id": strconv.Itoa(r.id)}})
}

// WaitForProgress waits until the call said it was as far as done. The test ends here if it does not get there.
func (r *Running) WaitForProgress(done float64) {
	r.host.t.Helper()
	isThere := func(request *request) bool {
		for _, progress := range request.reply.Progress {
			if progress.Done >= done {
				return true
			}
		}
		return false
	}
	reached := r.host.wait(r.id, func(request *request) bool { return request.over || isThere(request) })
	if !isThere(&reached) {
		r.host.t.Fatalf("the call has ended before it was that far: %s %v", reached.reply.Data, reached.reply.Err)
	}
}

// Wait waits for the call's end.
func (r *Running) Wait() *Reply {
	r.host.t.Helper()
	ended := r.host.wait(r.id, func(request *request) bool { return request.over })
	ended.reply.t = r.host.t
	return &ended.reply
}

func (h *Host) describe() json.RawMessage {
	h.t.Helper()
	features := make([]string, 0, len(h.features))
	for feature := range h.features {
		features = append(features, feature)
	}
	manifest, err := h.ask("describe", map[string]any{
		"protocol": map[string]any{"versions": []int{1}, "features": features},
		"host":     map[string]any{"name": "plugdtest", "version": "0"},
	})
	if err != nil {
		h.t.Fatalf("describe: %v", err)
	}
	return manifest
}

// ask makes a request and waits for its result.
func (h *Host) ask(method string, params map[string]any) (json.RawMessage, error) {
	h.t.Helper()
	id := h.send(method, params, func(int) {})
	ended := h.wait(id, func(request *request) bool { return request.over })
	if ended.reply.Err != nil {
		return nil, ended.reply.Err
	}
	return ended.result, nil
}

// send makes a request; number is told its id before it is sent.
func (h *Host) send(method string, params map[string]any, number func(id int)) (id int) {
	h.t.Helper()
	h.mu.Lock()
	h.last++
	id = h.last
	h.requests[id] = new(request)
	h.mu.Unlock()
	number(id)
	h.write(map[string]any{"id": id, "method": method, "params": params})
	return id
}

func (h *Host) write(message map[string]any) {
	h.t.Helper()
	line, err := toLine(message)
	if err != nil {
		h.t.Fatalf("this is no JSON: %v", err)
	}
	if _, err := h.toPlugin.Write(line); err != nil {
		h.t.Fatalf("the plugin does not read: %v", err)
	}
}

// wait waits until a request is as it should be, and gives a copy of it.
func (h *Host) wait(id int, until func(*request) bool) request {
	h.t.Helper()
	end := time.Now().Add(patience)
	alarm := time.AfterFunc(patience, func() {
		h.mu.Lock()
		h.changed.Broadcast()
		h.mu.Unlock()
	})
	defer alarm.Stop()
	h.mu.Lock()
	defer h.mu.Unlock()
	for !until(h.requests[id]) {
		if !time.Now().Before(end) {
			h.t.Fatalf("the plugin has not answered within %v", patience)
		}
		h.changed.Wait()
	}
	return *h.requests[id]
}

func toLine(message map[string]any) ([]byte, error) {
	message["jsonrpc"] = "2.0"
	var line bytes.Buffer
	encoder := json.NewEncoder(&line)
	encoder.SetEscapeHTML(false)
	err := encoder.Encode(message)
	return line.Bytes(), err
}
