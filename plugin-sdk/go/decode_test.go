package plugd

import (
	"encoding/json"
	"reflect"
	"strings"
	"testing"
	"time"
)

type shallow struct {
	Word  string    `json:"word" default:"hello"`
	Times int       `json:"times" default:"2"`
	Loud  bool      `json:"loud" default:"true"`
	Since time.Time `json:"since" default:"2024-12-15T08:00:00Z"`
	Inner struct {
		Share float64 `json:"share" default:"0.5"`
	} `json:"inner,omitempty"`
}

type deep struct {
	Word   string         `json:"word" default:"hello"`
	Names  []string       `json:"names" default:"[\"Ada\"]"`
	Counts map[string]int `json:"counts" default:"{\"a\":1}"`
	Limit  *int           `json:"limit" default:"7"`
	Quoted int            `json:"quoted,string" default:"5"`
	Parts  []struct {
		Size int `json:"size" default:"3"`
	} `json:"parts,omitempty"`
	More map[string]shallow `json:"more,omitempty"`
	Next *deep              `json:"next,omitempty"`
}

func TestDefaultsAreFilledIn(t *testing.T) {
	decoder := newDecoder[shallow]("the arguments")
	if decoder.root != nil {
		t.Error("plain defaults need no second reading")
	}
	decodes(t, decoder, ``, `{"word":"hello","times":2,"loud":true,"since":"2024-12-15T08:00:00Z","inner":{"share":0.5}}`)
	decodes(t, decoder, `{"word":"","times":0,"loud":false,"since":"2025-01-01T00:00:00Z","inner":{}}`,
		`{"word":"","times":0,"loud":false,"since":"2025-01-01T00:00:00Z","inner":{"share":0.5}}`)
}

func TestDefaultsInListsAndMapsAreFilledInAndNotShared(t *testing.T) {
	decoder := newDecoder[deep]("the arguments")
	all := `{"word":"hello","names":["Ada"],"counts":{"a":1},"limit":7,"quoted":"5"}`
	first := decodes(t, decoder, `{}`, all)
	first.Names[0], first.Counts["a"], *first.Limit = "Bob", 9, 9
	decodes(t, decoder, `{}`, all)
	decodes(t, decoder, `{"names":[],"counts":{"b":2},"number":2512292042121000001,"parts":[{},{"size":4}],"next":{"word":"hi"}}`,
		`{"word":"hello","names":[],"counts":{"b":2},"limit":7,"quoted":"5","number":2512292042121000001,"parts":[{"size":3},{"size":4}],
		"next":{"word":"hi","names":["Ada"],"counts":{"a":1},"limit":7,"quoted":"5"}}`)
	more := decodes(t, decoder, `{"more":{"x":{}}}`, "")
	if more.More["x"].Times != 2 {
		t.Errorf("decoded %+v", more)
	}
}

func TestArgumentsThatDoNotFitAreNamed(t *testing.T) {
	decoder := newDecoder[deep]("the arguments")
	for raw, said := range map[string]string{
		`[]`:                       "array",
		`{"word":7}`:               "word: expected string, found number",
		`{"parts":[{"size":1.5}]}`: "parts.size: expected int, found number 1.5",
		`{"word":"x"`:              "unexpected",
	} {
		_, err := decoder.decode(json.RawMessage(raw))
		failure, isError := err.(*Error)
		if !isError || failure.Code() != codeInvalidParams || !strings.Contains(failure.Message, said) {
			t.Errorf("%s: %v", raw, err)
		}
	}
}

// decodes reads JSON and compares what comes, where wanted says it.
func decodes[T any](t *testing.T, decoder *decoder[T], raw, wanted string) T {
	t.Helper()
	if len(decoder.faults) > 0 {
		t.Fatal(decoder.faults)
	}
	got, err := decoder.decode(json.RawMessage(raw))
	if err != nil {
		t.Fatal(err)
	}
	if wanted == "" {
		return got
	}
	var expected T
	if err := json.Unmarshal([]byte(wanted), &expected); err != nil {
		t.Fatal(err)
	}
	if !reflect.DeepEqual(got, expected) {
		t.Errorf("%s: expected %+v\n     got %+v", raw, expected, got)
	}
	return got
}

func TestTheArgumentsOfACallAreCutOutOfItsLine(t *testing.T) {
	for line, arguments := range map[string]string{
		`{"id":1,"params":{"arguments":{"a":"}\"]"},"context":{}}}`:      `{"a":"}\"]"}`,
		`{"params" : { "operation":"x" , "arguments" :	[1,{"b":2}] } }`:  `[1,{"b":2}] `,
		`{"params":{"arguments":7}}`:                                     `7`,
		`{"params":{"arguments":"a,}"}}`:                                 `"a,}"`,
		`{"params":{"arguments":null}}`:                                  `null`,
		`{"params":{"x":{"arguments":1},"y":"arguments","arguments":2}}`: `2`,
		`{"x":{"arguments":1},"params":{"arguments":{"arguments":3}}}`:   `{"arguments":3}`,
		`{"params":{"context":{"arguments":1}}}`:                         ``,
		`{"arguments":{"a":1}}`:                                          ``,
		`{"result":{"arguments":{"a":1}}}`:                               ``,
		`{"params":{"k\\\"":1,"arguments":{"\\\\":"\\"}}}`:               `{"\\\\":"\\"}`,
		`{"params":{"arguments":`:                                        ``,
		`{"params":{"arguments":{"a":"`:                                  `{"a":"`,
		`"arguments":{}}`:                                                ``,
		`{"params":{"arguments`:                                          ``,
		`\`:                                                              ``,
		`"\`:                                                             ``,
		`"`:                                                              ``,
	} {
		rest, cut := cutArguments([]byte(line))
		if string(cut) != arguments {
			t.Errorf("%s: cut out %q", line, cut)
		}
		if whole := strings.Replace(line, arguments, "null", 1); arguments != "" && string(rest) != whole {
			t.Errorf("%s: left %q", line, rest)
		}
	}
}

// What is cut out is what encoding/json reads there.
func FuzzCutArguments(f *testing.F) {
	f.Add(`{"jsonrpc":"2.0","id":3,"method":"call","params":{"operation":"x","arguments":{"a":["\\",{}]},"context":{}}}`)
	f.Add(`{"params":{"arguments":"\"","arguments":1}}`)
	f.Fuzz(func(t *testing.T, line string) {
		rest, cut := cutArguments([]byte(line))
		var whole struct {
			Params map[string]json.RawMessage `json:"params"`
		}
		if json.Unmarshal([]byte(line), &whole) != nil || cut == nil {
			return
		}
		if !json.Valid(rest) || !json.Valid(cut) {
			t.Errorf("%q was cut into %q and %q", line, rest, cut)
		}
	})
}
