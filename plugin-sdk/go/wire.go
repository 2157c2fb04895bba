// Frames to the host: how they are made, and the one writer.

package plugd

import (
	"bytes"
	"encoding/json"
	"io"
	"sync"
)

// frameKept is the size above which a frame's memory is not kept for the next one.
const frameKept = 1 << 20

// frame is one message in the making: a line.
type frame struct {
	bytes.Buffer
	encoder *json.Encoder
}

var spareFrames = sync.Pool{New: func() any {
	f := new(frame)
	f.encoder = json.NewEncoder(&f.Buffer)
	f.encoder.SetEscapeHTML(false)
	return f
}}

func newFrame() *frame {
	f := spareFrames.Get().(*frame)
	f.Reset()
	return f
}

// done gives the frame's memory back.
func (f *frame) done() {
	if f.Cap() <= frameKept {
		spareFrames.Put(f)
	}
}

// value writes any value as JSON. Where that fails, nothing was written.
func (f *frame) value(value any) error {
	if err := f.encoder.Encode(value); err != nil {
		return err
	}
	f.Truncate(f.Len() - 1) // the encoder ends each value with a line feed
	return nil
}

// result writes the answer to a call.
func (f *frame) result(id json.RawMessage, answer answer) error {
	f.open(id)
	f.WriteString(`,"result":{"data":`)
	if err := f.value(answer.data); err != nil {
		return err
	}
	if answer.summary != "" {
		f.WriteString(`,"summary":`)
		if err := f.value(answer.summary); err != nil {
			return err
		}
	}
	if len(answer.next) > 0 {
		f.WriteString(`,"next_actions":`)
		if err := f.value(answer.next); err != nil {
			return err
		}
	}
	f.WriteString("}}\n")
	return nil
}

// rawResult writes the answer to another request.
func (f *frame) rawResult(id, result json.RawMessage) {
	f.open(id)
	f.WriteString(`,"result":`)
	f.Write(result)
	f.WriteString("}\n")
}

// refusal writes that a request failed.
func (f *frame) refusal(id json.RawMessage, failure *Error) {
	f.open(id)
	f.WriteString(`,"error":`)
	if err := f.value(failure); err != nil {
		// Only a cause that somebody made up can be no JSON.
		plain := *failure
		plain.Cause = nil
		_ = f.value(&plain)
	}
	f.WriteString("}\n")
}

// notification writes a message that gets no answer.
func (f *frame) notification(method string, params any) error {
	f.WriteString(`{"jsonrpc":"2.0"`)
	return f.methodWith(method, params)
}

// request writes a request to the host.
func (f *frame) request(id json.RawMessage, method string, params any) error {
	f.open(id)
	return f.methodWith(method, params)
}

// methodWith writes what a request and a notification end with.
func (f *frame) methodWith(method string, params any) error {
	f.WriteString(`,"method":"`)
	f.WriteString(method)
	f.WriteString(`","params":`)
	if err := f.value(params); err != nil {
		return err
	}
	f.WriteString("}\n")
	return nil
}

func (f *frame) open(id json.RawMessage) {
	f.WriteString(`{"jsonrpc":"2.0","id":`)
	f.Write(id)
}

// tooLong says whether the host would refuse to read the frame.
func (f *frame) tooLong() bool {
	return f.Len()-1 > frameMax
}

// wire is the way to the host: whole frames, one after the other.
type wire struct {
	mu sync.Mutex
	// out is nil once nobody listens any more.
	out io.Writer
	// gone is called once, when a write has failed: nobody reads a broken pipe again.
	gone func()
}

// send writes a frame at once and gives its memory back.
func (w *wire) send(f *frame) {
	w.mu.Lock()
	broke := false
	if w.out != nil {
		if _, err := w.out.Write(f.Bytes()); err != nil {
			w.out, broke = nil, true
		}
	}
	w.mu.Unlock()
	f.done()
	if broke {
		w.gone()
	}
}
