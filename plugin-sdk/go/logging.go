// Lines for the plugin's log, and how far something is.

package plugd

import (
	"fmt"
	"io"
	"log"
	"strings"
)

// Level says how much a line of the log matters.
type Level int8

// The levels, least first.
const (
	LevelTrace Level = iota
	LevelDebug
	LevelInfo
	LevelWarn
	LevelError
)

var levelNames = [...]string{"trace", "debug", "info", "warn", "error"}

// logMax is how many characters of one line of the log are sent.
const logMax = 64 << 10

const (
	// faultMax is how much is told of a fault, in bytes.
	faultMax = 32 << 10
	// logEntryMax is about what the host keeps of one line of the log, in bytes: a longer stack takes several.
	logEntryMax = 8000
)

// String gives the level's name in the protocol.
func (l Level) String() string {
	if l < LevelTrace || l > LevelError {
		return "info"
	}
	return levelNames[l]
}

// levelOf reads a level's name; an unknown one is info.
func levelOf(name string) Level {
	for level, known := range levelNames {
		if known == name {
			return Level(level)
		}
	}
	return LevelInfo
}

type logParams struct {
	Level   string `json:"level"`
	Message string `json:"message"`
	CallID  string `json:"call_id,omitempty"`
	TraceID string `json:"trace_id,omitempty"`
}

type progressParams struct {
	CallID  string  `json:"call_id,omitempty"`
	Done    float64 `json:"done"`
	Total   float64 `json:"total,omitempty"`
	Message string  `json:"message,omitempty"`
}

// reporter tells the host what goes on, in a call's name or in none.
type reporter struct {
	// session is nil where there is no host: what is told is lost.
	session     *session
	callID      string
	traceparent string
}

// Log writes a line to the plugin's log, unless the host wants none of that level.
func (r *reporter) Log(level Level, message string) {
	if r.session != nil {
		r.session.log(level, message, r.callID, traceID(r.traceparent))
	}
}

// Debug logs something for finding faults.
func (r *reporter) Debug(message string) { r.Log(LevelDebug, message) }

// Debugf is [Context.Debug] with a format as of fmt.Sprintf.
func (r *reporter) Debugf(format string, args ...any) { r.logf(LevelDebug, format, args...) }

// Info logs something normal.
func (r *reporter) Info(message string) { r.Log(LevelInfo, message) }

// Infof is [Context.Info] with a format as of fmt.Sprintf.
func (r *reporter) Infof(format string, args ...any) { r.logf(LevelInfo, format, args...) }

// Warn logs something odd that was handled.
func (r *reporter) Warn(message string) { r.Log(LevelWarn, message) }

// Warnf is [Context.Warn] with a format as of fmt.Sprintf.
func (r *reporter) Warnf(format string, args ...any) { r.logf(LevelWarn, format, args...) }

// Error logs a failure.
func (r *reporter) Error(message string) { r.Log(LevelError, message) }

// Errorf is [Context.Error] with a format as of fmt.Sprintf.
func (r *reporter) Errorf(format string, args ...any) { r.logf(LevelError, format, args...) }

// Progress says how far it is: done of total, where a total of 0 is an unknown one.
//
// In a call it puts off a stall timeout, never the deadline. In an init it asks for more time, 300 seconds
// in all at most. A few a second are plenty.
func (r *reporter) Progress(done, total float64, message string) {
	if r.session != nil && r.session.offers("progress") {
		params := progressParams{CallID: r.callID, Done: done, Total: total, Message: clip(message, messageMax)}
		// What is no number in JSON is not worth a failure.
		_ = r.session.notify("progress", params)
	}
}

func (r *reporter) logf(level Level, format string, args ...any) {
	// A line that nobody wants is not put together.
	if r.session != nil && r.session.wants(level) {
		r.Log(level, fmt.Sprintf(format, args...))
	}
}

func (s *session) log(level Level, message, callID, traceID string) {
	if !s.wants(level) {
		return
	}
	if !s.offers("log") {
		s.complain(message)
		return
	}
	// Text alone: there is nothing in it that JSON could refuse.
	_ = s.notify("log", logParams{level.String(), clip(message, logMax), callID, traceID})
}

// tellFault tells the log of a fault, in parts that the host shows whole; where there is no log, stderr.
func (s *session) tellFault(text, callID, traceID string) {
	text = strings.TrimRight(text, "\n")
	if len(text) > faultMax {
		text = text[:faultMax] + "…"
	}
	if !s.offers("log") {
		s.complain(text)
		return
	}
	for text != "" {
		end := len(text)
		if end > logEntryMax {
			if end = strings.LastIndexByte(text[:logEntryMax], '\n'); end < 0 {
				end = logEntryMax
			}
		}
		if end > 0 {
			s.log(LevelError, text[:end], callID, traceID)
		}
		text = strings.TrimPrefix(text[end:], "\n")
	}
}

// wants says whether the host wants lines of this level.
func (s *session) wants(level Level) bool {
	return level >= Level(s.logLevel.Load())
}

// logWriter takes what the log package writes: a line at info, of no call.
type logWriter struct{ session *session }

func (w logWriter) Write(text []byte) (int, error) {
	w.session.log(LevelInfo, strings.TrimRight(string(text), "\n"), "", "")
	return len(text), nil
}

// takeLog has the log package write to the plugin's log, unless the plugin sent its lines elsewhere.
func takeLog(s *session, standardError io.Writer) {
	if log.Writer() != standardError {
		return
	}
	log.SetOutput(logWriter{s})
	if log.Flags() == log.LstdFlags {
		log.SetFlags(0) // the host notes the time itself
	}
}

// traceID is the trace's id in a W3C traceparent; empty where there is none.
func traceID(traceparent string) string {
	parts := strings.SplitN(traceparent, "-", 4)
	if len(parts) < 4 || len(parts[1]) != 32 {
		return ""
	}
	return parts[1]
}
