// The hooks of a plugin's life: init, reload and shutdown.

package plugd

import (
	"context"
	"encoding/json"
	"fmt"
	"runtime/debug"
	"time"
)

// InitContext is what Init, Reload and Shutdown know besides the configuration.
//
// It is a [context.Context] that ends with the plugin; in Shutdown, when the host's grace is over.
type InitContext struct {
	context.Context
	reporter
	dataDir string
	locale  string
}

// InitContextForTest is a plugin's start without a host, for tests of hooks as plain functions.
func InitContextForTest(dataDir string) *InitContext {
	return &InitContext{Context: context.Background(), dataDir: dataDir, locale: "en"}
}

// DataDir is a folder of the plugin's own that outlives its runs.
func (h *InitContext) DataDir() string { return h.dataDir }

// Locale is the language to speak, a BCP 47 tag.
func (h *InitContext) Locale() string { return h.locale }

// ConfigHook is a hook that takes the plugin's configuration; [WithConfig] makes one.
type ConfigHook struct {
	run    func(*InitContext, json.RawMessage) error
	schema json.RawMessage
	faults []string
}

// WithConfig makes a hook of a function that takes the configuration as a C, for [Plugin.Init] and
// [Plugin.Reload].
//
// C is a struct, whose schema becomes the manifest's config schema, or struct{} for a plugin that has
// nothing to configure. The package's page tells how types become schemas.
func WithConfig[C any](hook func(cx *InitContext, config C) error) ConfigHook {
	decoder := newDecoder[C]("the configuration")
	schema := decoder.schema
	if decoder.takesNothing {
		schema = nil
	}
	run := func(cx *InitContext, raw json.RawMessage) error {
		config, err := decoder.decode(raw)
		if err != nil {
			return err
		}
		return hook(cx, config)
	}
	return ConfigHook{run: run, schema: schema, faults: decoder.faults}
}

func (s *session) onInit(m *message) *Error {
	s.logLevel.Store(int32(levelOf(m.Params.LogLevel)))
	if s.init.run == nil {
		s.accept(m.ID)
		return nil
	}
	s.opening.begins()
	s.beside(m.ID, "init", func(cx *InitContext) error {
		cx.dataDir, cx.locale = m.Params.DataDir, m.Params.Locale
		return s.init.run(cx, m.Params.Config)
	}, func(failure *Error) { s.opening.ends(failure == nil) })
	return nil
}

func (s *session) onReload(m *message) *Error {
	r := &reloading{session: s, message: m}
	if !s.serial {
		go r.start()
		return nil
	}
	// Where calls come one at a time, nothing runs beside a handler.
	switch s.traffic.enter(r) {
	case admitted:
		go r.start()
	case turnedAway:
		return &Error{Name: "overloaded", Message: "too many calls at once", Retryable: true}
	case queued:
	}
	return nil
}

// reloading is a reload that waits for a lane, or has one.
type reloading struct {
	session *session
	message *message
}

func (r *reloading) cancelCall(string) {}

func (r *reloading) start() {
	s, m := r.session, r.message
	cx := s.hookContext(s.life)
	failure := s.guard("reload", func() error {
		if failure := s.opening.wait(); failure != nil {
			return failure
		}
		return s.reload.run(cx, m.Params.Config)
	})
	s.finish(m.ID, failure)
	s.traffic.leave(r)
}

func (s *session) onShutdown(m *message) *Error {
	if !s.leaving.CompareAndSwap(false, true) {
		return shuttingDown()
	}
	grace := time.Duration(m.Params.GraceMS) * time.Millisecond
	if m.Params.GraceMS == 0 || m.Params.GraceMS > uint64(timeLeftMax.Milliseconds()) {
		grace = lastWords
	}
	s.traffic.hookBegins()
	go func() {
		defer s.traffic.hookEnds()
		// Half of it for the calls, half for the release; this hook is the one that goes on.
		s.traffic.waitUntilQuiet(1, grace/2)
		wasOpen := s.opening.closes()
		limited, cancel := context.WithTimeout(s.life, grace/2)
		defer cancel()
		cx := s.hookContext(limited)
		failure := s.guard("shutdown", func() error {
			if s.shutdown == nil || !wasOpen {
				return nil
			}
			return s.shutdown(cx)
		})
		s.finish(m.ID, failure)
		s.end()
	}()
	return nil
}

// beside runs a hook on a goroutine of its own, so that the reading goes on, and answers.
func (s *session) beside(id json.RawMessage, name string, hook func(*InitContext) error, then func(*Error)) {
	s.traffic.hookBegins()
	go func() {
		defer s.traffic.hookEnds()
		cx := s.hookContext(s.life)
		failure := s.guard(name, func() error { return hook(cx) })
		then(failure)
		s.finish(id, failure)
	}()
}

func (s *session) hookContext(base context.Context) *InitContext {
	return &InitContext{Context: base, reporter: reporter{session: s}}
}

// guard runs code of the plugin's author: what it panics with fails this one request.
func (s *session) guard(what string, run func() error) (failure *Error) {
	ended := false
	defer func() {
		if !ended {
			value := recover()
			s.tellFault(fmt.Sprintf("%s panicked: %v\n%s", what, value, debug.Stack()), "", "")
			failure = panicked(what, value)
		}
	}()
	if err := run(); err != nil {
		var bad *badName
		if failure, bad = failureOf(err, nil); bad != nil {
			s.tellFault(fmt.Sprintf("%s returned an error of a wrong name: %v", what, bad), "", "")
		}
	}
	ended = true
	return failure
}

// finish answers a request with nothing or a failure.
func (s *session) finish(id json.RawMessage, failure *Error) {
	if failure != nil {
		s.refuse(id, failure)
		return
	}
	s.accept(id)
}
