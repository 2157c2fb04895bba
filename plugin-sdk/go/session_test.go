package plugd_test

import (
	"fmt"
	"strings"
	"testing"

	"plugd"
	"plugd/internal/wiretest"
)

// talk talks to a plugin in memory.
func talk(t *testing.T, plugin *plugd.Plugin) *wiretest.Peer {
	return wiretest.Memory(t, plugin.ServeOn)
}

func result(id int, data string) string {
	return fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"result":{"data":%s}}`, id, data)
}

func cancelOf(id int) string {
	return fmt.Sprintf(`{"jsonrpc":"2.0","method":"cancel","params":{"call_id":"c-%d"}}`, id)
}

const cancelledAnswer = `{"jsonrpc":"2.0","id":1,"error":{"code":-32800,"message":"the call was cancelled"}}`

func TestACancelReachesAHandlerThatWaitsOrLooks(t *testing.T) {
	for _, operation := range []string{"attentive", "polling"} {
		t.Run(operation, func(t *testing.T) {
			plugin := talk(t, newRough(1))
			plugin.SendCall(1, operation, "{}")
			plugin.Expect(`{"jsonrpc":"2.0","method":"progress","params":{"call_id":"c-1","done":1}}`)
			plugin.Send(cancelOf(7) + "\n" + cancelOf(1))
			plugin.Expect(cancelledAnswer)
			plugin.Send(cancelOf(1)) // crossed the answer
			plugin.SendCall(2, "echo", `{"text":"next"}`)
			plugin.Expect(result(2, `"next"`))
		})
	}
}

func TestACallThatIsOverAsksTheHostForNothing(t *testing.T) {
	plugin := talk(t, plugd.New("late", "1.0.0").Operation(
		plugd.Op("relay", func(cx *plugd.Context, _ struct{}) (any, error) {
			cx.Progress(1, 0, "")
			<-cx.Done()
			_, err := plugd.Call[any](cx, "other.lookup", nil)
			return nil, err
		})))
	plugin.SendCall(1, "relay", "{}")
	plugin.Line()
	plugin.Send(cancelOf(1))
	plugin.Expect(cancelledAnswer)
}

func TestADeadlineEndsAContext(t *testing.T) {
	plugin := talk(t, newRough(1))
	for _, operation := range []string{"attentive", "polling"} {
		plugin.Send(strings.Replace(wiretest.Call(1, operation, "{}"), "30000", "1", 1))
		plugin.Line() // its progress
		plugin.Expect(cancelledAnswer)
	}
}

// While a handler works that never looks at its context, others of the host's messages are heard.
func TestTheHostIsHeardWhileAHandlerRuns(t *testing.T) {
	plugin := start(t, "rough")
	plugin.SendCall(1, "spin", "{}")
	plugin.Send(`{"jsonrpc":"2.0","id":2,"method":"ping","params":{}}`)
	plugin.Expect(`{"jsonrpc":"2.0","id":2,"result":{}}`)
	plugin.Send(`{"jsonrpc":"2.0","id":3,"method":"describe","params":{}}`)
	if line := plugin.Line(); !strings.Contains(line, `"name":"rough"`) {
		t.Errorf("described as %s", line)
	}
}

func TestCallsComeOneAtATimeUnlessMoreAreAskedFor(t *testing.T) {
	plugin := talk(t, newRough(1))
	plugin.Send(wiretest.Call(1, "alone", "{}") + "\n" + wiretest.Call(2, "alone", "{}") + "\n" +
		wiretest.Call(3, "alone", "{}"))
	// Nor does a reload run beside them.
	plugin.Send(`{"jsonrpc":"2.0","id":4,"method":"reload","params":{"config":{}}}`)
	for id := 1; id <= 3; id++ {
		plugin.Expect(result(id, "1"))
	}
	plugin.Expect(`{"jsonrpc":"2.0","id":4,"result":{}}`)
}

func TestAsManyCallsRunAtOnceAsAreDeclared(t *testing.T) {
	plugin := talk(t, newRough(8))
	for id := 1; id <= 8; id++ {
		plugin.SendCall(id, "meet", `{"calls":8}`)
	}
	seen := map[string]bool{}
	for id := 1; id <= 8; id++ {
		line := plugin.Line()
		if !strings.Contains(line, `"data":true`) || seen[line] {
			t.Errorf("answered %s", line)
		}
		seen[line] = true
	}
}

func TestACallThatWaitsForALaneCanBeCancelled(t *testing.T) {
	plugin := talk(t, newRough(1))
	plugin.SendCall(1, "attentive", "{}")
	plugin.Line()
	plugin.SendCall(2, "attentive", "{}")
	plugin.Send(cancelOf(2) + "\n" + cancelOf(1))
	plugin.Expect(cancelledAnswer)
	plugin.Line() // the progress of the second
	plugin.Expect(strings.Replace(cancelledAnswer, `"id":1`, `"id":2`, 1))
}

func TestNumbersKeepEveryDigit(t *testing.T) {
	plugin := talk(t, newRough(1))
	numbers := `{"signed":-9223372036854775808,"unsigned":18446744073709551615,` +
		`"any":{"n":2512292042121000001},"raw":[1.50,2512292042121000001]}`
	plugin.SendCall(1, "numbers", numbers)
	if line := plugin.Line(); line != `{"jsonrpc":"2.0","id":1,"result":{"data":`+numbers+"}}\n" {
		t.Errorf("got %s", line)
	}
}

func TestAnIdComesBackAsItWas(t *testing.T) {
	plugin := talk(t, newRough(1))
	for _, id := range []string{`0`, `"3"`, `18446744073709551615`, `"\u00e9"`} {
		plugin.Send(`{"jsonrpc":"2.0","id":` + id + `,"method":"ping","params":{}}`)
		if line := plugin.Line(); line != `{"jsonrpc":"2.0","id":`+id+`,"result":{}}`+"\n" {
			t.Errorf("got %s", line)
		}
	}
}

func TestAResultThatIsNoJSONFailsItsCallAndIsNamed(t *testing.T) {
	plugin := talk(t, newRough(1))
	for what, said := range map[string]string{
		"nan": "NaN", "cycle": "cycle", "function": "func()",
	} {
		plugin.SendCall(1, "give", `{"what":"`+what+`"}`)
		fault(t, plugin, "c-1")
		line := plugin.Line()
		if !strings.Contains(line, `"code":2`) || !strings.Contains(line, "the result of give is no JSON") ||
			!strings.Contains(line, said) {
			t.Errorf("%s: %s", what, line)
		}
	}
}

func TestAnErrorKeepsItsWords(t *testing.T) {
	plugin := talk(t, newRough(1))
	plugin.SendCall(1, "give", `{"what":"wrapped"}`)
	plugin.Expect(`{"jsonrpc":"2.0","id":1,"error":{"code":1,"message":"looking it up: no ticket",
		"data":{"name":"no_ticket","hint":"look again","retryable":true}}}`)
	plugin.SendCall(1, "give", `{"what":"nothing"}`)
	plugin.Expect(`{"jsonrpc":"2.0","id":1,"error":{"code":1,"message":"nothing\nto give"}}`)
	// A nil that is no nil is a fault of the plugin.
	plugin.SendCall(1, "give", `{"what":"null"}`)
	fault(t, plugin, "c-1")
	if line := plugin.Line(); !strings.Contains(line, `"code":2`) {
		t.Errorf("got %s", line)
	}
}

func TestAnAnswerThatTheHostWouldNotReadFailsItsCall(t *testing.T) {
	plugin := talk(t, newRough(1))
	plugin.SendCall(1, "large", "{}")
	line := plugin.Line()
	if !strings.Contains(line, `"name":"too_large"`) || !strings.Contains(line, "16777216") {
		t.Errorf("got %.300s", line)
	}
}

func TestLinesAreReadUpToTheLimit(t *testing.T) {
	plugin := talk(t, newRough(1))
	around := wiretest.Call(1, "echo", `{"text":""}`)
	text := func(length int) string {
		return strings.Replace(around, `"text":""`, `"text":"`+strings.Repeat("x", length-len(around))+`"`, 1)
	}
	plugin.Send(text(16 << 20))
	if line := plugin.Line(); len(line) < 16<<20-300 {
		t.Errorf("got %.300s", line)
	}
	plugin.Send(text(16<<20 + 1))
	if line := plugin.Line(); !strings.Contains(line, `"id":1`) || !strings.Contains(line, "-32602") {
		t.Errorf("got %.300s", line)
	}
	plugin.Send(strings.Repeat("x", 17<<20)) // without an id nobody can be told
	plugin.SendCall(2, "echo", `{"text":"next"}`)
	plugin.Expect(result(2, `"next"`))
}

func TestWhatIsNoMessageIsPassedOver(t *testing.T) {
	plugin := talk(t, newRough(1))
	for _, line := range []string{
		"", " \t\r", "[", "7", "null", `"text"`, `{"id":1}`, `{"jsonrpc":"2.0","id":null,"method":"ping"}`,
		`{"jsonrpc":"2.0","id":9,"method":"ping","params":{"text":"` + "\xff" + `"}}`,
		`{"jsonrpc":"2.0","method":"cancel","params":{"call_id":7}}`, `{"jsonrpc":"2.0","id":5,"result":{}}`,
	} {
		plugin.Send(line)
	}
	plugin.Send(wiretest.Call(2, "echo", `{"text":"next"}`) + "\r")
	plugin.Expect(result(2, `"next"`))
}

func TestParamsOfAnotherFormAreRefused(t *testing.T) {
	plugin := talk(t, newRough(1))
	for sent, said := range map[string]string{
		`{"jsonrpc":"2.0","id":1,"method":"call","params":{"operation":7}}`:                             "params.operation: expected string, found number",
		`{"jsonrpc":"2.0","id":1,"method":"call","params":{"operation":"echo","arguments":[]}}`:         "the arguments do not fit: expected plugd_test.textArgs, found array",
		`{"jsonrpc":"2.0","id":1,"method":"call","params":{"operation":"echo","arguments":{"text":1}}}`: "the arguments do not fit: text: expected string, found number",
		`{"jsonrpc":"2.0","id":1,"method":"to_come","params":{"operation":7}}`:                          "-32601",
		`{"jsonrpc":"2.0","id":1,"method":"to_come","params":7}`:                                        "-32601",
		`{"jsonrpc":"2.0","id":1,"method":"describe","params":{"protocol":{"versions":[2,3]}}}`:         "upgrade the plugin",
		`{"jsonrpc":"2.0","id":1,"method":"describe","params":{"protocol":{"versions":[0]}}}`:           "upgrade plugd",
		`{"jsonrpc":"2.0","id":1,"method":"call","params":{"operation":"ech","arguments":{}}}`:          "it has alone, attentive",
	} {
		plugin.Send(sent)
		if line := plugin.Line(); !strings.Contains(line, said) || !strings.Contains(line, `"error"`) {
			t.Errorf("expected %q, got %s", said, line)
		}
	}
}

func TestLonelySurrogatesDoNoHarm(t *testing.T) {
	plugin := talk(t, newRough(1))
	plugin.SendCall(1, "numbers", `{"raw":"\ud800"}`)
	plugin.Expect(result(1, `{"raw":"\ud800"}`))
	plugin.SendCall(2, "echo", `{"text":"\ud800 <&>"}`)
	if line := plugin.Line(); !strings.Contains(line, "\ufffd <&>") {
		t.Errorf("got %s", line)
	}
}

func TestALastLineWithoutAnEndCounts(t *testing.T) {
	var out strings.Builder
	lines := wiretest.Call(1, "echo", `{"text":"one"}`) + "\n" + wiretest.Call(2, "echo", `{"text":"two"}`)
	if err := newRough(1).ServeOn(strings.NewReader(lines), &out); err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(out.String(), `"one"`) || !strings.Contains(out.String(), `"two"`) {
		t.Errorf("got %s", out.String())
	}
}

func TestVariablesAndEventsWhereTheyAreOffered(t *testing.T) {
	plugin := talk(t, plugd.New("vars", "1.0.0").Operation(
		plugd.Op("count", func(cx *plugd.Context, _ struct{}) (any, error) {
			var count int
			found, err := cx.Vars().Get("count", &count)
			if err != nil || !found {
				return found, err
			}
			if err := cx.Vars().Set("last", count); err != nil {
				return nil, err
			}
			if swapped, err := cx.Vars().CompareAndSet("count", count, count+1); err != nil || !swapped {
				return "changed by another", err
			}
			return count + 1, cx.Emit("counted", map[string]int{"to": count + 1})
		})))
	plugin.Send(`{"jsonrpc":"2.0","id":1,"method":"describe","params":` +
		`{"protocol":{"versions":[1],"features":["host_vars","host_emit"]}}}`)
	plugin.Line()
	plugin.SendCall(2, "count", "{}")
	plugin.Expect(`{"jsonrpc":"2.0","id":1,"method":"host/vars","params":{"call_id":"c-2","get":["count"]}}`)
	plugin.Send(`{"jsonrpc":"2.0","id":1,"result":{"vars":{"count":4}}}`)
	plugin.Expect(`{"jsonrpc":"2.0","id":2,"method":"host/vars","params":{"call_id":"c-2","set":{"last":4}}}`)
	plugin.Send(`{"jsonrpc":"2.0","id":2,"result":{}}`)
	plugin.Expect(`{"jsonrpc":"2.0","id":3,"method":"host/vars","params":{"call_id":"c-2",
		"compare_and_set":{"name":"count","expected":4,"value":5}}}`)
	plugin.Send(`{"jsonrpc":"2.0","id":3,"result":{"swapped":true}}`)
	plugin.Expect(`{"jsonrpc":"2.0","id":4,"method":"host/emit","params":{"call_id":"c-2","event":"counted","data":{"to":5}}}`)
	plugin.Send(`{"jsonrpc":"2.0","id":4,"result":{}}`)
	plugin.Expect(result(2, "5"))
	plugin.SendCall(3, "count", "{}")
	plugin.Line()
	plugin.Send(`{"jsonrpc":"2.0","id":5,"result":{"vars":{}}}`)
	plugin.Expect(result(3, "false"))
}

func TestWhoWaitsForTheHostHearsThatItIsGone(t *testing.T) {
	plugin := talk(t, plugd.New("waits", "1.0.0").Requires("other", "1").Operation(
		plugd.Op("relay", func(cx *plugd.Context, _ struct{}) (any, error) {
			_, err := plugd.Call[any](cx, "other.lookup", nil)
			return nil, err
		})))
	plugin.SendCall(1, "relay", "{}")
	plugin.Expect(`{"jsonrpc":"2.0","id":1,"method":"host/call","params":{"call_id":"c-1","operation":"other.lookup","arguments":{}}}`)
	plugin.HangUp()
	if line := plugin.Line(); !strings.Contains(line, `"no_host"`) {
		t.Errorf("got %s", line)
	}
}

func TestCallsWaitForInitAndFailWithoutIt(t *testing.T) {
	release := make(chan struct{})
	plugin := talk(t, plugd.New("slow", "1.0.0").
		Init(plugd.WithConfig(func(cx *plugd.InitContext, _ struct{}) error {
			cx.Progress(1, 0, "")
			<-release
			return nil
		})).
		Operation(plugd.Op("ready", func(*plugd.Context, struct{}) (bool, error) { return true, nil })))
	plugin.SendCall(1, "ready", "{}")
	if line := plugin.Line(); !strings.Contains(line, `"not_initialised"`) {
		t.Errorf("got %s", line)
	}
	plugin.Send(`{"jsonrpc":"2.0","id":2,"method":"init","params":{"config":{}}}`)
	plugin.SendCall(3, "ready", "{}")
	plugin.Expect(`{"jsonrpc":"2.0","method":"progress","params":{"done":1}}`)
	close(release)
	plugin.Expect(`{"jsonrpc":"2.0","id":2,"result":{}}`)
	plugin.Expect(result(3, "true"))
}

func TestTheFirstShutdownIsAnsweredAndCallsMayFinish(t *testing.T) {
	left := make(chan struct{})
	released := false
	plugin := talk(t, plugd.New("slow", "1.0.0").
		Shutdown(func(*plugd.InitContext) error {
			released = true
			return nil
		}).
		Operation(plugd.Op("wait", func(cx *plugd.Context, _ struct{}) (bool, error) {
			cx.Progress(1, 0, "")
			<-left
			return released, nil
		})))
	plugin.SendCall(1, "wait", "{}")
	plugin.Line()
	shutdown := `{"jsonrpc":"2.0","id":%d,"method":"shutdown","params":{"grace_ms":5000}}`
	plugin.Send(fmt.Sprintf(shutdown, 2) + "\n" + fmt.Sprintf(shutdown, 3))
	if line := plugin.Line(); !strings.Contains(line, `"id":3`) || !strings.Contains(line, `"shutting_down"`) {
		t.Errorf("got %s", line)
	}
	close(left)
	plugin.Expect(result(1, "false"))
	plugin.Expect(`{"jsonrpc":"2.0","id":2,"result":{}}`)
	if line := plugin.Line(); line != "" || !released {
		t.Errorf("got %s after the end", line)
	}
}

func TestLinesBelowTheHostsLevelAreNotSent(t *testing.T) {
	plugin := talk(t, plugd.New("levels", "1.0.0").Operation(
		plugd.Op("say", func(cx *plugd.Context, _ struct{}) (any, error) {
			cx.Log(plugd.LevelTrace, "no")
			cx.Debugf("no %d", 1)
			cx.Info("no")
			cx.Warnf("yes %d", 1)
			cx.Error("yes")
			return nil, nil
		})))
	plugin.Send(`{"jsonrpc":"2.0","id":1,"method":"init","params":{"config":{},"log_level":"warn"}}`)
	plugin.Line()
	plugin.SendCall(2, "say", "{}")
	plugin.Expect(`{"jsonrpc":"2.0","method":"log","params":{"level":"warn","message":"yes 1","call_id":"c-2"}}`)
	plugin.Expect(`{"jsonrpc":"2.0","method":"log","params":{"level":"error","message":"yes","call_id":"c-2"}}`)
	plugin.Expect(result(2, "null"))
}
