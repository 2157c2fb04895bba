package plugdtest

import (
	"encoding/json"
	"strings"
	"testing"

	"plugd"
)

// Reply is how a call went.
type Reply struct {
	// Data is what it gave; nil where it failed.
	Data json.RawMessage
	// Err is why it failed; nil where it went well.
	Err *plugd.Error
	// Summary is its one line about the data.
	Summary string
	// NextActions are the calls that it thinks worth making next.
	NextActions []plugd.NextAction
	// Logs are the lines that it logged.
	Logs []Log
	// Progress is how far it said it was, each time.
	Progress []Progress
	// Partials are the pieces that it sent ahead.
	Partials []json.RawMessage

	t testing.TB
}

// Log is a line of the plugin's log.
type Log struct {
	// Level is trace, debug, info, warn or error.
	Level string `json:"level"`
	// Message is the line.
	Message string `json:"message"`
}

// Progress is how far a call said it was.
type Progress struct {
	// Done is how much was done.
	Done float64 `json:"done"`
	// Total is of how much; 0 where that is not known.
	Total float64 `json:"total"`
	// Message says what was being done.
	Message string `json:"message"`
}

// Data gives the data of a call that went well, as a T. Otherwise the test ends here.
func Data[T any](reply *Reply) T {
	reply.t.Helper()
	if reply.Err != nil {
		reply.t.Fatalf("expected data, got the failure %q: %s%s", reply.Err.Name, reply.Err.Message, reply.errors())
	}
	var data T
	if err := json.Unmarshal(reply.Data, &data); err != nil {
		reply.t.Fatalf("the data %s does not fit: %v", reply.Data, err)
	}
	return data
}

// errors is what was logged of failures, such as the stack of a panic.
func (r *Reply) errors() string {
	var text strings.Builder
	for _, line := range r.Logs {
		if line.Level == plugd.LevelError.String() {
			text.WriteString("\n" + line.Message)
		}
	}
	return text.String()
}

// Failure gives the failure of a call that did not go well. Otherwise the test ends here.
func Failure(reply *Reply) *plugd.Error {
	reply.t.Helper()
	if reply.Err == nil {
		reply.t.Fatalf("expected a failure, got the data %s", reply.Data)
	}
	return reply.Err
}
