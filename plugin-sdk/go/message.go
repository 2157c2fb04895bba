// The messages of the protocol as this side reads them.

package plugd

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
)

// message is any line from the host: a request, a notification, or the answer to a request of ours.
type message struct {
	ID     json.RawMessage `json:"id"`
	Method string          `json:"method"`
	Params params          `json:"params"`
	Result json.RawMessage `json:"result"`
	Error  *Error          `json:"error"`
}

// params has the members of all methods' params, so that a line is read in one go.
type params struct {
	// Of describe.
	Protocol *offer `json:"protocol"`
	// Of init and reload.
	Config   json.RawMessage `json:"config"`
	DataDir  string          `json:"data_dir"`
	Locale   string          `json:"locale"`
	LogLevel string          `json:"log_level"`
	// Of call.
	Operation string          `json:"operation"`
	Arguments json.RawMessage `json:"-"` // see cutArguments
	Context   callContext     `json:"context"`
	// Of cancel.
	CallID string `json:"call_id"`
	// Of shutdown.
	GraceMS uint64 `json:"grace_ms"`
}

// offer is what the host can do.
type offer struct {
	Versions []int    `json:"versions"`
	Features []string `json:"features"`
}

// callContext is what the host says about a call.
type callContext struct {
	CallID         string `json:"call_id"`
	DeadlineMS     uint64 `json:"deadline_ms"`
	Attempt        int    `json:"attempt"`
	SessionID      string `json:"session_id"`
	Traceparent    string `json:"traceparent"`
	IdempotencyKey string `json:"idempotency_key"`
	Caller         string `json:"caller"`
	Locale         string `json:"locale"`
}

// wantsAnswer says whether the message has an id to answer to.
func (m *message) wantsAnswer() bool {
	return len(m.ID) > 0 && !bytes.Equal(m.ID, []byte("null"))
}

// misfit says in words what is wrong with JSON that was read into a type; it quotes no value.
func misfit(err error) string {
	var mistyped *json.UnmarshalTypeError
	if !errors.As(err, &mistyped) {
		return err.Error()
	}
	text := fmt.Sprintf("expected %s, found %s", mistyped.Type, mistyped.Value)
	if mistyped.Field != "" {
		text = mistyped.Field + ": " + text
	}
	return text
}

// idIn finds the id in the beginning of a message that is too long to be read.
func idIn(head []byte) json.RawMessage {
	decoder := json.NewDecoder(bytes.NewReader(head))
	if open, err := decoder.Token(); err != nil || open != json.Delim('{') {
		return nil
	}
	for {
		key, err := decoder.Token()
		if err != nil {
			return nil
		}
		var value json.RawMessage
		if decoder.Decode(&value) != nil {
			return nil
		}
		if key == "id" {
			return value
		}
	}
}
