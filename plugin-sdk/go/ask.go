// Questions to the person behind a call, and the answers.

package plugd

import (
	"encoding/json"
	"fmt"
	"reflect"
	"strings"
)

// questionsMax is how many questions may be asked at once.
const questionsMax = 16

// question is one question as the host takes it.
type question struct {
	Name      string  `json:"name"`
	Schema    *schema `json:"schema,omitempty"`
	Prompt    string  `json:"prompt"`
	Sensitive bool    `json:"sensitive,omitempty"`
}

// AskOption says more about a question.
type AskOption func(*question)

// Named is the name under which the answer comes back, for hosts and tests; answer unless said.
func Named(name string) AskOption {
	return func(q *question) { q.Name = name }
}

// OneOf lets the answer be one of these texts only.
func OneOf(choices ...string) AskOption {
	return func(q *question) {
		for _, choice := range choices {
			// A text is always JSON.
			value, _ := json.Marshal(choice)
			q.Schema.Enum = append(q.Schema.Enum, value)
		}
	}
}

// Ask asks the person behind the call, and waits for the answer: text, a number, yes or no (a bool), or
// anything else that has a JSON Schema. The host takes no answer that is no T.
//
//	sure, err := plugd.Ask[bool](cx, "Really delete all of it?")
//
// The call's clock stands still meanwhile, and its deadline moves. It fails with the name nobody_to_ask where
// a program calls that cannot be asked, declined, or expired, and when the call is cancelled.
func Ask[T any](cx *Context, prompt string, options ...AskOption) (T, error) {
	var answer T
	b := newSchemaBuilder(false)
	q := question{Name: "answer", Schema: b.whole(typeOf[T](), nil), Prompt: prompt}
	if len(b.faults) > 0 {
		return answer, wrongQuestion(b.faults)
	}
	for _, option := range options {
		option(&q)
	}
	answers, err := cx.askAll([]question{q})
	if err != nil {
		return answer, err
	}
	err = take(answers, q.Name, &answer, b.hasAny)
	return answer, err
}

// AskSecret is [Ask] for a secret: it is not shown while it is typed, and never logged.
func AskSecret(cx *Context, prompt string, options ...AskOption) (string, error) {
	options = append(append([]AskOption(nil), options...), func(q *question) { q.Sensitive = true })
	return Ask[string](cx, prompt, options...)
}

// AskMany asks several things at once, at most 16: a question for each field of the struct T.
//
//	type Trip struct {
//		City     string `json:"city" desc:"Which city?"`
//		Days     int    `json:"days" desc:"For how many days?" min:"1" default:"3"`
//		Password string `json:"password" desc:"Your password?" sensitive:"true"`
//	}
//	trip, err := plugd.AskMany[Trip](cx)
//
// The tag desc is the question, sensitive marks a secret, default stands for an answer that is left out, and
// the other tags are those of arguments. It fails as [Ask] does.
func AskMany[T any](cx *Context) (T, error) {
	var answers T
	questions, exactly, err := questionsOf(typeOf[T]())
	if err != nil {
		return answers, err
	}
	all, err := cx.askAll(questions)
	if err != nil {
		return answers, err
	}
	for _, f := range fieldsOf(typeOf[T]()) {
		into := reflect.ValueOf(&answers).Elem().FieldByIndex(f.index).Addr().Interface()
		if _, isThere := all[f.name]; !isThere && f.typ.Kind() == reflect.Pointer {
			continue
		}
		if err := take(all, f.name, into, exactly); err != nil {
			return answers, err
		}
	}
	return answers, nil
}

// questionsOf makes a question of each field.
func questionsOf(t reflect.Type) (questions []question, exactly bool, err error) {
	if t.Kind() != reflect.Struct {
		return nil, false, wrongQuestion([]string{fmt.Sprintf("a %s: expected a struct with a field for each", t)})
	}
	b := newSchemaBuilder(false)
	for _, f := range fieldsOf(t) {
		b.at = []string{f.name}
		if f.behindPointer {
			b.fault("is behind an embedded pointer: embed the struct itself")
		}
		s := b.field(f, nil)
		q := question{Name: f.name, Schema: s, Prompt: s.Description, Sensitive: s.Sensitive}
		if q.Prompt == "" {
			q.Prompt = f.name + "?"
		}
		s.Description, s.Sensitive = "", false
		questions = append(questions, q)
	}
	if len(b.defs) > 0 {
		b.fault("a type that holds itself cannot be asked for")
	}
	if len(questions) == 0 || len(questions) > questionsMax {
		b.fault("%d questions: expected 1 to %d", len(questions), questionsMax)
	}
	if len(b.faults) > 0 {
		return nil, false, wrongQuestion(b.faults)
	}
	return questions, b.hasAny, nil
}

func wrongQuestion(faults []string) *Error {
	text := "cannot be asked: " + strings.Join(faults, "; ")
	return &Error{Message: text, code: codeHandlerFailed}
}

// take reads one answer. Its errors quote nothing: there may be secrets among the answers.
func take(answers map[string]json.RawMessage, name string, into any, exactly bool) error {
	raw, isThere := answers[name]
	if !isThere || readJSON(raw, into, exactly) != nil {
		text := fmt.Sprintf("the answer to %s is not of the expected form", name)
		return &Error{Name: "unexpected_reply", Message: text}
	}
	return nil
}

// askAll asks, and waits as long as people take.
func (c *Context) askAll(questions []question) (map[string]json.RawMessage, error) {
	params := struct {
		CallID    string     `json:"call_id"`
		Questions []question `json:"questions"`
	}{c.CallID(), questions}
	raw, err := c.whilePeopleAreAsked(func() (json.RawMessage, error) {
		return c.request("host/ask", "host_asks", params)
	})
	if err != nil {
		return nil, err
	}
	var whole struct {
		Answers map[string]json.RawMessage `json:"answers"`
	}
	if json.Unmarshal(raw, &whole) != nil {
		return nil, &Error{Name: "unexpected_reply", Message: "the host answered in a form not expected here"}
	}
	return whole.Answers, nil
}
