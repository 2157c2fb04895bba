package plugd

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"testing"
	"time"
)

const traceparent = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"

func TestAContextForTestsHasTimeAndNoHost(t *testing.T) {
	cx := ContextForTest()
	if left := cx.TimeLeft(); left <= 0 || left > timeForTest || cx.Err() != nil || cx.Attempt() != 1 {
		t.Errorf("%v left, %v, attempt %d", left, cx.Err(), cx.Attempt())
	}
	cx.Info("lost")
	cx.Infof("%s", "lost")
	cx.Progress(1, 2, "lost")
	if err := cx.Partial(1); err != nil {
		t.Error(err)
	}
	var failure *Error
	if _, err := Call[any](cx, "weather.get_weather", nil); !errors.As(err, &failure) || failure.Name != "no_host" {
		t.Errorf("a call: %v", err)
	}
	if _, err := Ask[bool](cx, "Sure?"); !errors.As(err, &failure) || failure.Name != "no_host" {
		t.Errorf("a question: %v", err)
	}
	hook := InitContextForTest("data")
	hook.Info("lost")
	if hook.DataDir() != "data" || hook.Locale() != "en" || hook.Err() != nil {
		t.Error("a start without a host")
	}
}

func TestACancelWakesWhoWaits(t *testing.T) {
	cx := ContextForTest()
	derived, stop := context.WithCancel(cx)
	defer stop()
	go cx.cancel(context.Canceled)
	<-derived.Done()
	<-cx.Done()
	if !errors.Is(cx.Err(), context.Canceled) || cancelled().Unwrap() != context.Canceled {
		t.Error(cx.Err())
	}
	cx.cancel(context.DeadlineExceeded)
	if !errors.Is(cx.Err(), context.Canceled) {
		t.Error("a call ends once")
	}
}

func TestADeadlineIsNoticedByWhoLooksAndByWhoWaits(t *testing.T) {
	for _, look := range []func(*Context){
		func(cx *Context) {
			for cx.Err() == nil {
			}
		},
		func(cx *Context) { <-cx.Done() },
	} {
		cx := new(Context)
		cx.begin(nil, &callContext{DeadlineMS: 5})
		look(cx)
		if !errors.Is(cx.Err(), context.DeadlineExceeded) || cx.TimeLeft() != 0 {
			t.Errorf("%v with %v left", cx.Err(), cx.TimeLeft())
		}
	}
	cx := new(Context)
	cx.begin(nil, &callContext{DeadlineMS: math.MaxUint64})
	if left := cx.TimeLeft(); left < time.Hour || left > timeLeftMax {
		t.Errorf("%v left", left)
	}
}

func TestTheClockStandsStillWhilePeopleAreAsked(t *testing.T) {
	cx := new(Context)
	cx.begin(nil, &callContext{DeadlineMS: 20})
	done := cx.Done()
	before, _ := cx.Deadline()
	_, err := cx.whilePeopleAreAsked(func() (json.RawMessage, error) {
		// Longer than the call has.
		time.Sleep(60 * time.Millisecond)
		return nil, cx.Err()
	})
	after, _ := cx.Deadline()
	if err != nil || after.Sub(before) < 60*time.Millisecond {
		t.Errorf("%v, moved by %v", err, after.Sub(before))
	}
	<-done
	if !errors.Is(cx.Err(), context.DeadlineExceeded) || time.Now().Before(after) {
		t.Errorf("it ended %v before its deadline: %v", time.Until(after), cx.Err())
	}
}

func TestTheTraceIsNamedByItsDigits(t *testing.T) {
	for given, wanted := range map[string]string{
		traceparent: "4bf92f3577b34da6a3ce929d0e0e4736", "": "", "00-4bf9-1-01": "", "nonsense": "",
	} {
		if got := traceID(given); got != wanted {
			t.Errorf("%q: %q", given, got)
		}
	}
}

func TestAnErrorGoesThroughTheWireWhole(t *testing.T) {
	sent := Errorf("stopped", "%s is down", "weather").WithHint("start it").WithRetry()
	sent.Cause = json.RawMessage(`{"operation":"weather.get_weather","call_id":"c-2","error":{"code":6003}}`)
	written, err := json.Marshal(sent)
	if err != nil {
		t.Fatal(err)
	}
	read := new(Error)
	if err := json.Unmarshal(written, read); err != nil {
		t.Fatal(err)
	}
	if read.Code() != 1 || read.Name != sent.Name || read.Message != "weather is down" || read.Hint != sent.Hint ||
		!read.Retryable || string(read.Cause) != string(sent.Cause) {
		t.Errorf("%+v became %s, became %+v", sent, written, read)
	}
	if wrapping := Errorf("late", "too late: %w", context.DeadlineExceeded); !errors.Is(wrapping, context.DeadlineExceeded) {
		t.Errorf("%v wraps nothing", wrapping)
	}
}

func TestANameThatIsNoneIsRefusedWhereItIsGiven(t *testing.T) {
	const caller = `it is not there; a fault in the plugin: "NotThere" is not a failure's name`
	const told = `"NotThere" is not a failure's name: expected 1 to 64 of a-z, 0-9 and '_'; did you mean "not_there"?`
	func() {
		defer func() {
			value := recover()
			if fmt.Sprint(value) != told {
				t.Errorf("it panicked with %v", value)
			}
			if failure := panicked("o", value); failure.Code() != codeHandlerFailed || failure.Message != caller {
				t.Errorf("it is answered with %d %s", failure.Code(), failure.Message)
			}
		}()
		_ = Errorf("NotThere", "it is not there")
	}()
	literal := fmt.Errorf("looking: %w", &Error{Name: "NotThere", Message: "it is not there"})
	failure, bad := failureOf(literal, nil)
	if failure.Code() != codeHandlerFailed || failure.Message != "looking: "+caller || bad.Error() != told {
		t.Errorf("it is answered with %d %s", failure.Code(), failure.Message)
	}
	var hosts Error
	if err := json.Unmarshal([]byte(`{"code":3,"message":"m","data":{"name":"As It Came"}}`), &hosts); err != nil {
		t.Fatal(err)
	}
	if failure, _ := failureOf(&hosts, nil); failure.Name != "As It Came" {
		t.Errorf("a host's name became %v", failure)
	}
}

func TestTextIsCutOffBetweenCharacters(t *testing.T) {
	if got := clip("北京abc", 3); got != "北京a…" {
		t.Errorf("%q", got)
	}
	if got := onOneLine("a\n  b\r\nc"); got != "a b c" {
		t.Errorf("%q", got)
	}
}
