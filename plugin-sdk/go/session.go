// The conversation: reads the host's messages, runs calls, answers.

package plugd

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"sort"
	"strings"
	"sync/atomic"
	"time"
	"unicode/utf8"
)

// protocolVersion is the version of the protocol that is spoken here.
const protocolVersion = 1

// lastWords is how long answers that are nearly there may still take after the end of input: for a
// conversation piped in by hand. A host that is gone is noticed by the first write.
const lastWords = 200 * time.Millisecond

// session is a plugin in conversation with its host.
type session struct {
	name       string
	manifest   json.RawMessage
	operations map[string]*Operation
	init       ConfigHook
	reload     ConfigHook
	shutdown   func(*InitContext) error
	// serial is whether calls come one at a time.
	serial bool

	lines    *lineReader
	wire     wire
	stderr   io.Writer
	opening  *opening
	traffic  *traffic
	turns    *turns
	asked    asked
	features atomic.Pointer[map[string]bool]
	logLevel atomic.Int32
	// leaving is whether a shutdown is under way.
	leaving atomic.Bool
	// life ends, by a call of end, when the conversation is over.
	life context.Context
	end  context.CancelFunc
}

// usualFeatures are those of every host of protocol version 1; describe tells the real ones.
var usualFeatures = map[string]bool{
	"host_calls": true, "host_asks": true, "progress": true, "partial": true, "log": true,
}

func newSession(p *Plugin, in io.Reader, out, stderr io.Writer) (*session, error) {
	manifest, err := p.Manifest()
	if err != nil {
		return nil, err
	}
	written, err := json.Marshal(manifest)
	if err != nil {
		return nil, err
	}
	s := &session{
		name:       p.name,
		manifest:   written,
		operations: make(map[string]*Operation, len(p.operations)),
		init:       p.init,
		reload:     p.reload,
		shutdown:   p.shutdown,
		serial:     p.concurrency == 1,
		lines:      newLineReader(in),
		stderr:     stderr,
		opening:    newOpening(p.init.run == nil),
		traffic:    newTraffic(p.concurrency),
	}
	s.life, s.end = context.WithCancel(context.Background())
	for _, operation := range p.operations {
		s.operations[operation.name] = operation
	}
	s.wire.out, s.wire.gone = out, s.end
	s.turns = newTurns(s.read)
	s.asked.waiting = make(map[uint64]chan<- hostAnswer)
	s.features.Store(&usualFeatures)
	s.logLevel.Store(int32(LevelTrace))
	return s, nil
}

// serve converses until the host is done.
func (s *session) serve() {
	go s.read()
	<-s.life.Done()
	s.asked.noMoreAnswers()
}

// read reads messages until the input ends, or another goroutine has taken over.
func (s *session) read() {
	for {
		line, err := s.lines.next()
		if errors.Is(err, errTooLong) {
			s.refuseTooLong(line)
		} else if err != nil {
			s.asked.noMoreAnswers()
			s.traffic.waitUntilQuiet(0, lastWords)
			s.end()
			return
		} else if stillReading := s.take(line); !stillReading {
			return
		}
	}
}

// readOn has somebody read on while a call runs that the reader itself runs.
func (s *session) readOn(turn uint64) {
	s.turns.takeOver(turn)
}

func (s *session) refuseTooLong(head []byte) {
	text := fmt.Sprintf("a message of more than %d bytes cannot be read", frameMax)
	s.complain(text)
	if id := idIn(head); id != nil {
		s.refuse(id, &Error{Message: text, code: codeInvalidParams})
	}
}

// take does what a line says. It tells whether the caller is still the reader.
func (s *session) take(line []byte) (stillReading bool) {
	if isBlank(line) {
		return true
	}
	if !utf8.Valid(line) {
		s.complain("skipped a line from the host that is not UTF-8")
		return true
	}
	m := new(message)
	rest, arguments := cutArguments(line)
	err := json.Unmarshal(rest, m)
	m.Params.Arguments = arguments
	var mistyped *json.UnmarshalTypeError
	switch {
	case err != nil && !errors.As(err, &mistyped):
		s.complain(fmt.Sprintf("skipped a line from the host: %v", err))
	case m.Method == "":
		s.answered(m)
	case !m.wantsAnswer():
		if m.Method == "cancel" && err == nil {
			s.traffic.cancel(m.Params.CallID)
		}
	case m.Method == "call" && err == nil:
		return s.call(m)
	default:
		if failure := s.request(m, err); failure != nil {
			s.refuse(m.ID, failure)
		}
	}
	return true
}

// request does what is asked, but for a call. It gives the failure where there is one already.
func (s *session) request(m *message, misread error) *Error {
	do := map[string]func(*message) *Error{
		"describe": s.onDescribe, "ping": s.onPing, "call": nil, "init": s.onInit, "shutdown": s.onShutdown,
	}
	if s.reload.run != nil {
		do["reload"] = s.onReload
	}
	method, known := do[m.Method]
	switch {
	case !known:
		return &Error{Message: fmt.Sprintf("%s does not know the method %q", s.name, m.Method), code: codeNoMethod}
	case misread != nil:
		text := fmt.Sprintf("the params of %s: %s", m.Method, misfit(misread))
		return &Error{Message: text, code: codeInvalidParams}
	default:
		return method(m)
	}
}

// operationNames lists the operations.
func (s *session) operationNames() string {
	if len(s.operations) == 0 {
		return "none"
	}
	names := make([]string, 0, len(s.operations))
	for name := range s.operations {
		names = append(names, name)
	}
	sort.Strings(names)
	return strings.Join(names, ", ")
}

// call starts a call: here, where they come one at a time, and otherwise beside the reading.
func (s *session) call(m *message) (stillReading bool) {
	operation, known := s.operations[m.Params.Operation]
	if !known {
		text := fmt.Sprintf("%s has no operation %q; it has %s", s.name, m.Params.Operation, s.operationNames())
		s.refuse(m.ID, &Error{Message: text, code: codeNoMethod})
		return true
	}
	c := &call{id: m.ID, arguments: m.Params.Arguments, operation: operation}
	c.begin(s, &m.Params.Context)
	if s.serial {
		c.turn = s.turns.next()
	}
	switch s.traffic.enter(c) {
	case turnedAway:
		s.refuse(m.ID, &Error{Name: "overloaded", Message: "too many calls at once", Retryable: true})
	case queued:
	case admitted:
		if s.serial {
			return s.runHere(c)
		}
		// Handed on rather than handed over: this goroutine runs at once.
		go s.read()
		c.start()
		return false
	}
	return true
}

// runHere runs a call on the reader's own goroutine.
func (s *session) runHere(c *call) (stillReading bool) {
	returned := false
	defer func() {
		// The handler has ended this goroutine (runtime.Goexit): somebody must read on.
		if !returned && s.turns.end(c.turn) {
			go s.read()
		}
	}()
	s.turns.begin(c.turn)
	c.start()
	returned = true
	return s.turns.end(c.turn)
}

func (s *session) refuse(id json.RawMessage, failure *Error) {
	f := newFrame()
	f.refusal(id, failure)
	s.wire.send(f)
}

func (s *session) accept(id json.RawMessage) {
	s.answer(id, json.RawMessage("{}"))
}

func (s *session) answer(id, result json.RawMessage) {
	f := newFrame()
	f.rawResult(id, result)
	s.wire.send(f)
}

// notify tells the host something. It fails where that is no JSON, or too much.
func (s *session) notify(method string, params any) error {
	f := newFrame()
	if err := f.notification(method, params); err != nil {
		f.done()
		return err
	}
	if f.tooLong() {
		defer f.done()
		return tooLarge("too_large", method, f.Len())
	}
	s.wire.send(f)
	return nil
}

// complain says on stderr what is for the author alone.
func (s *session) complain(text string) {
	// On a line of its own, whatever was printed last. Where even stderr is gone, nobody is left to be told.
	_, _ = fmt.Fprintf(s.stderr, "\n%s\n", text)
}

// offers says whether the host has a feature.
func (s *session) offers(feature string) bool {
	return (*s.features.Load())[feature]
}

func isBlank(line []byte) bool {
	for _, b := range line {
		if b != ' ' && b != '\t' && b != '\r' {
			return false
		}
	}
	return true
}
