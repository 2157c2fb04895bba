// Golden is the plugin that every SDK makes alike: protocol/wire/sdk says what it does.
package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"os/exec"
	"strings"
	"time"

	"plugd"
)

func main() {
	newGolden().Serve()
}

func newGolden() *plugd.Plugin {
	g := new(golden)
	return plugd.New("golden", "1.2.3").
		Description("What every SDK makes alike.").
		Requires("other", ">=1.0").
		Init(plugd.WithConfig(g.init)).
		Reload(plugd.WithConfig(g.reload)).
		Shutdown(g.shutdown).
		Operation(
			plugd.Op("greet", g.greet,
				plugd.Title("Greet"),
				plugd.Description("Greets somebody by name. Gives one friendly line back."),
				plugd.WhenToUse("Someone should be greeted."),
				plugd.WhenNotToUse("They said goodbye."),
				plugd.Examples("say hello to Ada", "跟小明打个招呼"),
				plugd.Category("social"),
				plugd.ReadOnly(),
				plugd.Idempotent(),
				plugd.Timeout(5*time.Second)),
			plugd.Op("fail", fail,
				plugd.Description("Fails as it is told to. For tests of failures."),
				plugd.ReadOnly()),
			plugd.Op("context", context,
				plugd.Description("Tells what a call knows of itself. For tests of contexts."),
				plugd.ReadOnly()),
			plugd.Op("speak", speak,
				plugd.Description("Logs, prints and reports how far it is. For tests of what goes beside an answer."),
				plugd.ReadOnly()),
			plugd.Op("relay", relay,
				plugd.Description("Hands a call on to another plugin. For tests of calls between plugins.")),
			plugd.Op("remove", remove,
				plugd.Description("Asks before it removes something. For tests of questions."),
				plugd.Destructive()),
			plugd.Op("child", child,
				plugd.Description("Runs a program that reads all of its standard input. For tests of inherited pipes."),
				plugd.ReadOnly()),
			plugd.Op("vars", vars,
				plugd.Description("Uses what this host does not offer. For tests of features.")),
		)
}

// golden is what the plugin keeps. It takes one call at a time, so nothing runs beside a reload.
type golden struct {
	word string
}

type config struct {
	Word string `json:"word" desc:"The word to greet with." default:"hello"`
}

func (g *golden) init(cx *plugd.InitContext, config config) error {
	if err := g.reload(cx, config); err != nil {
		return err
	}
	cx.Info("ready")
	return nil
}

func (g *golden) reload(_ *plugd.InitContext, config config) error {
	if config.Word == "bad" {
		return plugd.Errorf("bad_word", "the word is %s", config.Word)
	}
	g.word = config.Word
	return nil
}

func (g *golden) shutdown(cx *plugd.InitContext) error {
	cx.Info("bye")
	return nil
}

type greetArgs struct {
	Name  string `json:"name" desc:"Who is greeted."`
	Times int    `json:"times" desc:"How often." min:"1" max:"10" default:"1"`
	Tone  string `json:"tone" desc:"How it sounds." enum:"warm|cold" default:"warm"`
}

func (g *golden) greet(_ *plugd.Context, args greetArgs) (plugd.Reply[string], error) {
	lines := make([]string, args.Times)
	for i := range lines {
		lines[i] = g.word + " " + args.Name
	}
	line := strings.Join(lines, ", ")
	if args.Tone == "warm" {
		line += "!"
	}
	return plugd.Reply[string]{
		Data:        line,
		Summary:     "greeted " + args.Name,
		NextActions: []plugd.NextAction{{Operation: "golden.context", Description: "see who asked"}},
	}, nil
}

type failArgs struct {
	How string `json:"how" desc:"Which failure." enum:"named|fault"`
}

func fail(_ *plugd.Context, args failArgs) (any, error) {
	if args.How == "named" {
		return nil, &plugd.Error{
			Name:      "no_such_thing",
			Message:   "there is no such thing",
			Hint:      "try another",
			Retryable: true,
		}
	}
	panic(errors.New("a fault of ours"))
}

func context(cx *plugd.Context, _ struct{}) (any, error) {
	left := cx.TimeLeft()
	return map[string]any{
		"call_id":         cx.CallID(),
		"session_id":      orNull(cx.SessionID()),
		"traceparent":     orNull(cx.Traceparent()),
		"attempt":         cx.Attempt(),
		"idempotency_key": orNull(cx.IdempotencyKey()),
		"caller":          orNull(cx.Caller()),
		"locale":          orNull(cx.Locale()),
		"has_time":        left > 0 && left <= 30*time.Second,
		"cancelled":       cx.Err() != nil,
	}, nil
}

func orNull(text string) any {
	if text == "" {
		return nil
	}
	return text
}

func speak(cx *plugd.Context, _ struct{}) (any, error) {
	cx.Warn("one")
	cx.Debug("unseen")
	fmt.Println("stray")
	cx.Progress(1, 2, "half")
	return nil, cx.Partial(map[string]any{"step": 1})
}

type relayArgs struct {
	City string `json:"city" desc:"A city, handed on as it is."`
}

func relay(cx *plugd.Context, args relayArgs) (plugd.Reply[any], error) {
	found, err := plugd.Call[json.RawMessage](cx, "other.lookup", args)
	if err != nil {
		return plugd.Reply[any]{}, err
	}
	return plugd.Reply[any]{Data: found.Data, Summary: found.Summary}, nil
}

func remove(cx *plugd.Context, _ struct{}) (any, error) {
	sure, err := plugd.Ask[bool](cx, "Remove it?", plugd.Named("sure"))
	if err != nil {
		return nil, err
	}
	if !sure {
		return "kept", nil
	}
	return "removed", nil
}

func child(_ *plugd.Context, _ struct{}) (any, error) {
	said, err := exec.Command("cat").Output()
	return string(said), err
}

func vars(cx *plugd.Context, _ struct{}) (any, error) {
	var count int
	_, err := cx.Vars().Get("count", &count)
	return count, err
}
