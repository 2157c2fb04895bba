package plugdtest_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"plugd"
	"plugd/plugdtest"
)

type config struct {
	Word string `json:"word" default:"hello"`
}

type state struct {
	word   string
	closed bool
}

type helloArgs struct {
	Name  string `json:"name"`
	Times int    `json:"times" default:"1"`
}

type tripForm struct {
	City     string  `json:"city" desc:"Which city?"`
	Days     int     `json:"days" desc:"For how many days?" min:"1" default:"3"`
	Password string  `json:"password" desc:"Your password?" sensitive:"true"`
	Note     *string `json:"note"`
}

func newPlugin(s *state) *plugd.Plugin {
	op := func(name string, handler func(*plugd.Context, struct{}) (any, error)) *plugd.Operation {
		return plugd.Op(name, handler)
	}
	return plugd.New("greet", "1.0.0").
		Requires("weather", "1").
		Init(plugd.WithConfig(func(cx *plugd.InitContext, config config) error {
			if config.Word == "bad" {
				return plugd.Errorf("bad_word", "the word is bad")
			}
			s.word = config.Word
			cx.Debugf("opened with %s", config.Word)
			return nil
		})).
		Reload(plugd.WithConfig(func(_ *plugd.InitContext, config config) error {
			if config.Word == "crash" {
				panic("it crashed")
			}
			s.word = config.Word
			return nil
		})).
		Shutdown(func(*plugd.InitContext) error {
			s.closed = true
			return errors.New("it did not want to")
		}).
		Operation(
			plugd.Op("hello", func(cx *plugd.Context, args helloArgs) (plugd.Reply[string], error) {
				cx.Warnf("greeting %s", args.Name)
				cx.Progress(1, 2, "half")
				if err := cx.Partial(args); err != nil {
					return plugd.Reply[string]{}, err
				}
				line := strings.Repeat(s.word+" "+args.Name+".", args.Times)
				return plugd.Reply[string]{Data: line, Summary: "greeted", NextActions: []plugd.NextAction{
					{Operation: "greet.hello", Arguments: map[string]any{"name": "Bob"}},
				}}, nil
			}),
			op("who", func(cx *plugd.Context, _ struct{}) (any, error) {
				return []string{cx.Caller(), cx.SessionID(), cx.IdempotencyKey()}, nil
			}),
			op("none", func(*plugd.Context, struct{}) (any, error) { return nil, nil }),
			plugd.Op("empty", func(*plugd.Context, struct{}) ([]string, error) { return nil, nil }),
			op("wait", func(cx *plugd.Context, _ struct{}) (any, error) {
				cx.Progress(1, 0, "")
				<-cx.Done()
				return nil, cx.Err()
			}),
			op("relay", func(cx *plugd.Context, _ struct{}) (any, error) {
				found, err := plugd.Call[struct{ Temp int64 }](cx, "weather.get", map[string]any{"city": "北京"})
				return found.Data.Temp, err
			}),
			op("any", func(cx *plugd.Context, _ struct{}) (any, error) {
				found, err := plugd.Call[any](cx, "weather.get", nil)
				return found.Data, err
			}),
			op("ask", func(cx *plugd.Context, _ struct{}) (any, error) {
				choice, err := plugd.Ask[string](cx, "Which?", plugd.OneOf("a", "b"))
				if err != nil {
					return nil, fmt.Errorf("asking: %w", err)
				}
				secret, err := plugd.AskSecret(cx, "Password?", plugd.Named("password"))
				return choice + secret, err
			}),
			op("form", func(cx *plugd.Context, _ struct{}) (any, error) { return plugd.AskMany[tripForm](cx) }),
			op("wrong_form", func(cx *plugd.Context, _ struct{}) (any, error) { return plugd.AskMany[string](cx) }),
			op("vars", func(cx *plugd.Context, _ struct{}) (any, error) { return nil, cx.Vars().Set("n", 1) }),
			op("emit", func(cx *plugd.Context, _ struct{}) (any, error) { return nil, cx.Emit("happened", 1) }),
		)
}

func TestTheWholePluginIsThere(t *testing.T) {
	s := new(state)
	host := plugdtest.New(t, newPlugin(s), plugdtest.Config(map[string]any{"word": "hi"}))
	reply := host.Call("hello", map[string]any{"name": "Ada", "times": 2})
	if got := plugdtest.Data[string](reply); got != "hi Ada.hi Ada." {
		t.Errorf("greeted with %q", got)
	}
	if reply.Summary != "greeted" || len(reply.NextActions) != 1 || reply.NextActions[0].Arguments["name"] != "Bob" {
		t.Errorf("said %q and %v", reply.Summary, reply.NextActions)
	}
	if len(reply.Logs) != 1 || reply.Logs[0] != (plugdtest.Log{Level: "warn", Message: "greeting Ada"}) {
		t.Errorf("logged %v", reply.Logs)
	}
	if len(reply.Progress) != 1 || reply.Progress[0] != (plugdtest.Progress{Done: 1, Total: 2, Message: "half"}) {
		t.Errorf("was at %v", reply.Progress)
	}
	if len(reply.Partials) != 1 || string(reply.Partials[0]) != `{"name":"Ada","times":2}` {
		t.Errorf("sent %s", reply.Partials)
	}
	if logs := host.Logs(); len(logs) != 1 || logs[0].Message != "opened with hi" {
		t.Errorf("logged %v", logs)
	}
	if manifest := host.Manifest(); manifest.Name != "greet" || !manifest.Features.Reload || len(manifest.Operations) < 9 {
		t.Errorf("declares %+v", manifest)
	}
}

func TestArgumentsMayBeAStruct(t *testing.T) {
	host := plugdtest.New(t, newPlugin(new(state)))
	if got := plugdtest.Data[string](host.Call("hello", helloArgs{Name: "Ada", Times: 1})); got != "hello Ada." {
		t.Errorf("greeted with %q", got)
	}
}

func TestNothingIsGivenAsItIsDeclared(t *testing.T) {
	host := plugdtest.New(t, newPlugin(new(state)))
	if got := host.Call("none", nil).Data; string(got) != "null" {
		t.Errorf("got %s", got)
	}
	if got := host.Call("empty", nil).Data; string(got) != "[]" {
		t.Errorf("got %s", got)
	}
}

func TestKeysThatNobodyDeclaredAreRefused(t *testing.T) {
	host := plugdtest.New(t, newPlugin(new(state)))
	for operation, told := range map[string]string{
		"none":  "the arguments do not fit none: nmae: expected no arguments",
		"hello": "the arguments do not fit hello: nmae: expected only the keys name, times",
	} {
		failure := plugdtest.Failure(host.Call(operation, map[string]any{"nmae": "Ada"}))
		if failure.Code() != 2001 || failure.Name != "invalid_arguments" || failure.Message != told {
			t.Errorf("it failed with %d %s: %s", failure.Code(), failure.Name, failure.Message)
		}
	}
	if reply := host.Call("none", nil); reply.Err != nil {
		t.Errorf("it failed with %v", reply.Err)
	}
}

func TestHooks(t *testing.T) {
	s := new(state)
	host := plugdtest.New(t, newPlugin(s))
	if err := host.Start(); err != nil {
		t.Fatal(err)
	}
	var failure *plugd.Error
	if err := host.Reload(map[string]any{"word": "crash"}); !errors.As(err, &failure) || failure.Code() != 2 {
		t.Errorf("a hook that panics: %v", err)
	}
	if err := host.Reload(map[string]any{"word": "hey"}); err != nil {
		t.Error(err)
	}
	if got := plugdtest.Data[string](host.Call("hello", helloArgs{Name: "Ada", Times: 1})); got != "hey Ada." {
		t.Errorf("greeted with %q", got)
	}
	if err := host.Shutdown(); err == nil || err.Error() != "it did not want to" || !s.closed {
		t.Errorf("shut down with %v", err)
	}
}

func TestAPluginThatDoesNotStartSaysWhy(t *testing.T) {
	host := plugdtest.New(t, newPlugin(new(state)), plugdtest.Config(config{Word: "bad"}))
	var failure *plugd.Error
	if err := host.Start(); !errors.As(err, &failure) || failure.Name != "bad_word" {
		t.Errorf("started with %v", err)
	}
}

func TestCallsAreToldWhatTheTestSays(t *testing.T) {
	host := plugdtest.New(t, newPlugin(new(state)),
		plugdtest.Tell(map[string]any{"caller": "ada", "session_id": "s-7", "idempotency_key": "k"}))
	if got := plugdtest.Data[[]string](host.Call("who", nil)); fmt.Sprint(got) != "[ada s-7 k]" {
		t.Errorf("told %v", got)
	}
}

func TestACallUnderWayCanBeCancelledAndTimesOut(t *testing.T) {
	host := plugdtest.New(t, newPlugin(new(state)))
	running := host.Begin("wait", nil)
	running.WaitForProgress(1)
	running.Cancel()
	if failure := plugdtest.Failure(running.Wait()); failure.Code() != -32800 {
		t.Errorf("ended with %+v", failure)
	}
	hasty := plugdtest.New(t, newPlugin(new(state)), plugdtest.Deadline(time.Millisecond))
	if failure := plugdtest.Failure(hasty.Call("wait", nil)); failure.Code() != -32800 {
		t.Errorf("ended with %+v", failure)
	}
}

func TestOtherPluginsArePlayed(t *testing.T) {
	host := plugdtest.New(t, newPlugin(new(state)),
		plugdtest.Play("weather.get", func(arguments json.RawMessage) (any, error) {
			return json.RawMessage(`{"Temp":2512292042121000001}`), nil
		}))
	if got := plugdtest.Data[int64](host.Call("relay", nil)); got != 2512292042121000001 {
		t.Errorf("got %d", got)
	}
	if got := host.Call("any", nil).Data; string(got) != `{"Temp":2512292042121000001}` {
		t.Errorf("got %s", got)
	}
	failing := plugdtest.New(t, newPlugin(new(state)),
		plugdtest.Play("weather.get", func(json.RawMessage) (any, error) {
			return nil, plugd.Errorf("stopped", "weather is down").WithHint("start it")
		}))
	failure := plugdtest.Failure(failing.Call("relay", nil))
	if failure.Code() != 3 || failure.Name != "stopped" || failure.Hint != "start it" {
		t.Errorf("failed with %+v", failure)
	}
	odd := plugdtest.New(t, newPlugin(new(state)),
		plugdtest.Play("weather.get", func(json.RawMessage) (any, error) { return "hot", nil }))
	if failure := plugdtest.Failure(odd.Call("relay", nil)); failure.Name != "unexpected_reply" {
		t.Errorf("failed with %+v", failure)
	}
	nobody := plugdtest.New(t, newPlugin(new(state)))
	if failure := plugdtest.Failure(nobody.Call("relay", nil)); !strings.Contains(failure.Message, "plugdtest.Play") {
		t.Errorf("failed with %+v", failure)
	}
}

// Nobody reads while a quick handler runs; one that waits for the host must not wait for that.
func TestCallsOfOtherPluginsAreAnsweredAtOnce(t *testing.T) {
	host := plugdtest.New(t, newPlugin(new(state)),
		plugdtest.Play("weather.get", func(json.RawMessage) (any, error) { return json.RawMessage(`{"Temp":1}`), nil }))
	host.Call("relay", nil)
	begin := time.Now()
	for i := 0; i < 200; i++ {
		plugdtest.Data[int64](host.Call("relay", nil))
	}
	if took := time.Since(begin); took > 1500*time.Millisecond {
		t.Errorf("200 of them took %v", took)
	}
}

func TestThePersonIsPlayed(t *testing.T) {
	var asked []plugdtest.Question
	answer := func(question plugdtest.Question) (any, error) {
		asked = append(asked, question)
		return map[string]any{"answer": "b", "password": "xyz", "city": "北京", "days": 2, "note": nil}[question.Name], nil
	}
	host := plugdtest.New(t, newPlugin(new(state)), plugdtest.Person(answer))
	if got := plugdtest.Data[string](host.Call("ask", nil)); got != "bxyz" {
		t.Errorf("got %q", got)
	}
	if string(asked[0].Schema) != `{"type":"string","enum":["a","b"]}` || asked[0].Prompt != "Which?" || !asked[1].Sensitive {
		t.Errorf("asked %+v", asked)
	}
	asked = nil
	form := plugdtest.Data[tripForm](host.Call("form", nil))
	if form.City != "北京" || form.Days != 2 || form.Password != "xyz" || form.Note != nil {
		t.Errorf("got %+v", form)
	}
	if len(asked) != 4 || asked[1].Prompt != "For how many days?" || !asked[2].Sensitive || asked[3].Prompt != "note?" ||
		string(asked[1].Schema) != `{"type":"integer","minimum":1,"default":3}` || string(asked[2].Schema) != `{"type":"string"}` {
		t.Errorf("asked %+v", asked)
	}
	if failure := plugdtest.Failure(host.Call("wrong_form", nil)); failure.Code() != 2 {
		t.Errorf("failed with %+v", failure)
	}
	shy := plugdtest.New(t, newPlugin(new(state)))
	failure := plugdtest.Failure(shy.Call("ask", nil))
	if failure.Code() != 4 || failure.Name != "nobody_to_ask" || !strings.HasPrefix(failure.Message, "asking: ") {
		t.Errorf("failed with %+v", failure)
	}
}

func TestASecretThatDoesNotFitIsNotQuoted(t *testing.T) {
	host := plugdtest.New(t, newPlugin(new(state)), plugdtest.Person(func(q plugdtest.Question) (any, error) {
		return []string{"opensesame"}, nil
	}))
	failure := plugdtest.Failure(host.Call("form", nil))
	if failure.Name != "unexpected_reply" || strings.Contains(failure.Message, "opensesame") {
		t.Errorf("failed with %+v", failure)
	}
}

func TestWhatAHostLacksIsSaid(t *testing.T) {
	host := plugdtest.New(t, newPlugin(new(state)), plugdtest.Without("host_calls", "host_asks", "progress", "partial"))
	for operation, said := range map[string]string{
		"relay": "no calls of other plugins", "ask": "no questions", "vars": "no session variables", "emit": "no events",
	} {
		failure := plugdtest.Failure(host.Call(operation, nil))
		if failure.Name != "not_offered" || !strings.Contains(failure.Message, "this host offers "+said) || failure.Hint == "" {
			t.Errorf("%s: %+v", operation, failure)
		}
	}
	reply := host.Call("hello", helloArgs{Name: "Ada", Times: 1})
	if len(reply.Progress) != 0 || len(reply.Partials) != 0 || reply.Err != nil {
		t.Errorf("sent %+v", reply)
	}
}
