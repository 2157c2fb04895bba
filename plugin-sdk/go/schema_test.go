package plugd

import (
	"encoding/json"
	"math/big"
	"net/netip"
	"reflect"
	"strings"
	"testing"
	"time"
)

type place struct {
	City  string  `json:"city" desc:"The city." min:"1" example:"Ada|北京" pattern:"^.+$"`
	Unit  *string `json:"unit" enum:"celsius|fahrenheit"`
	Days  uint16  `json:"days,omitempty" max:"14"`
	Plain bool
	Kept  string    `json:"-"`
	Dash  int       `json:"-,"`
	Since time.Time `json:"since"`
	Big   *big.Int  `json:"big,omitempty"`
	hidden
	*Extra
}

type hidden struct {
	Share  float64 `json:"share" min:"0" max:"0.5"`
	Secret string  `json:"secret" sensitive:"true" format:"password"`
	City   int     `json:"city"` // hidden by the outer one
}

type Extra struct {
	More []string `json:"more" min:"1" max:"3" enum:"a|b"`
}

type tree struct {
	Name     string          `json:"name"`
	Children []tree          `json:"children,omitempty"`
	ByName   map[string]tree `json:"by_name,omitempty"`
}

type colour string

func (colour) JSONSchema() json.RawMessage {
	return json.RawMessage(`{"type":"string","enum":["red","green"]}`)
}

type own struct{ text string }

func (o *own) UnmarshalJSON(raw []byte) error { return json.Unmarshal(raw, &o.text) }
func (o own) MarshalJSON() ([]byte, error)    { return json.Marshal(o.text) }

type kinds struct {
	Any     any              `json:"any"`
	Raw     json.RawMessage  `json:"raw"`
	Number  json.Number      `json:"number"`
	Bytes   []byte           `json:"bytes"`
	Pair    [2]int8          `json:"pair"`
	Counts  map[string]int   `json:"counts" min:"1"`
	ByDay   map[int]bool     `json:"by_day"`
	Address netip.Addr       `json:"address"`
	Own     own              `json:"own"`
	Colour  colour           `json:"colour" desc:"Which one."`
	Quoted  int64            `json:"quoted,string"`
	Nested  struct{ X uint } `json:"nested"`
	Took    time.Duration    `json:"took"`
}

func TestTypesBecomePlainSchemas(t *testing.T) {
	check(t, input[struct{}](t), `{"type":"object","properties":{},"additionalProperties":false}`)
	check(t, input[place](t), `{"type":"object","properties":{
		"city":{"type":"string","description":"The city.","minLength":1,"pattern":"^.+$","examples":["Ada","北京"]},
		"unit":{"type":"string","enum":["celsius","fahrenheit"]},
		"days":{"type":"integer","minimum":0,"maximum":14},
		"Plain":{"type":"boolean"},
		"-":{"type":"integer"},
		"since":{"type":"string","format":"date-time"},
		"big":{"type":"integer"},
		"share":{"type":"number","minimum":0,"maximum":0.5},
		"secret":{"type":"string","format":"password","x-sensitive":true},
		"more":{"type":"array","minItems":1,"maxItems":3,"items":{"type":"string","enum":["a","b"]}}
	},"required":["city","Plain","-","since","share","secret"]}`)
	check(t, input[kinds](t), `{"type":"object","properties":{
		"any":{},"raw":{},"number":{"type":"number"},
		"bytes":{"type":"string","contentEncoding":"base64"},
		"pair":{"type":"array","minItems":2,"maxItems":2,"items":{"type":"integer","minimum":-128,"maximum":127}},
		"counts":{"type":"object","minProperties":1,"additionalProperties":{"type":"integer"}},
		"by_day":{"type":"object","additionalProperties":{"type":"boolean"}},
		"address":{"type":"string"},"own":{},
		"colour":{"type":"string","enum":["red","green"],"description":"Which one."},
		"quoted":{"type":"string"},
		"nested":{"type":"object","properties":{"X":{"type":"integer","minimum":0}},"required":["X"]},
		"took":{"type":"integer"}
	},"required":["any","raw","number","bytes","pair","counts","by_day","address","own","colour","quoted","nested","took"]}`)
	check(t, input[map[string]any](t), `{"type":"object","additionalProperties":{}}`)
	check(t, input[*hidden](t), string(input[hidden](t)))
}

func TestTagsThatWouldBePassedOverAreFaults(t *testing.T) {
	type args struct {
		Days  int    `json:"days" descr:"How many." defualt:"3" minimum:"1" Max:"9"`
		City  string `json:"city" exampel:"Ada" patern:"^T"`
		Where string `json:"where" sensitve:"true" formats:"email"`
		Fine  string `json:"fine" form:"fine" env:"FINE" yaml:"fine" bson:"fine" db:"f" validate:"required"`
		Both  string `json:"both" desc:"Two." description:"Another package reads it."`
		Doc   string `jsn:"a" deflt:"b" emun:"c|d" doc:"Which." regex:"^T" required:"true"`
		More  string `josn:"more" json:"more,omitempy" xml:"more" env:"MORE" required:"true"`
		Again string `Json:"again"`
		Once  string `jason:"once" json:"once,omitzero,string"`
		town  string `desc:"Where."`
		plain string `yaml:"plain"`
		none  string `json:"-"`
	}
	operation := Op("o", func(*Context, args) (any, error) { return nil, nil })
	_, err := New("p", "1.0.0").Operation(operation).Manifest()
	if err == nil {
		t.Fatal("nothing is wrong with it")
	}
	told := err.Error()
	for _, fault := range []string{
		"o: days: there is no tag descr: did you mean desc?",
		"o: days: there is no tag defualt: did you mean default?",
		"o: days: there is no tag minimum: did you mean min?",
		"o: days: there is no tag Max: did you mean max?",
		"o: city: there is no tag exampel: did you mean example?",
		"o: city: there is no tag patern: did you mean pattern?",
		"o: where: there is no tag sensitve: did you mean sensitive?",
		"o: where: there is no tag formats: did you mean format?",
		"o: Doc: there is no tag jsn: did you mean json?",
		"o: Doc: there is no tag deflt: did you mean default?",
		"o: Doc: there is no tag emun: did you mean enum?",
		"o: Doc: there is no tag doc: did you mean desc?",
		"o: Doc: there is no tag regex: did you mean pattern?",
		"o: Doc: there is no tag required: every field is, but for a pointer and one with a default or omitempty",
		"o: more: json has no option omitempy: did you mean omitempty?",
		"o: Again: there is no tag Json: did you mean json?",
		"o: town is not exported, and would be passed over: call it Town",
	} {
		if !strings.Contains(told, fault) {
			t.Errorf("%q is not in %s", fault, told)
		}
	}
	if strings.Contains(told, "fine") || strings.Contains(told, "both") ||
		strings.Contains(told, "plain") || strings.Contains(told, "none") || strings.Contains(told, "omitzero") ||
		strings.Contains(told, "more: there is no tag") {
		t.Errorf("too much is refused: %s", told)
	}
}

func TestATagThatIsWrittenWronglyIsAFault(t *testing.T) {
	for tag, rest := range map[reflect.StructTag]string{
		`json:"words" desc: "Which."`: `desc: "Which."`,
		`json:"words" desc:Which`:     `desc:Which`,
		`json:"words" desc:"Which`:    `desc:"Which`,
	} {
		b := newSchemaBuilder(false)
		b.checkTags(field{tag: tag})
		told := "the tag ends in " + rest + `, which is not of the form key:"value"`
		if len(b.faults) != 1 || b.faults[0] != told {
			t.Errorf("%s: %q", tag, b.faults)
		}
	}
}

func TestATypeThatHoldsItselfEnds(t *testing.T) {
	definition := `{"type":"object","properties":{"name":{"type":"string"},
		"children":{"type":"array","items":{"$ref":"#/$defs/tree"}},
		"by_name":{"type":"object","additionalProperties":{"$ref":"#/$defs/tree"}}},"required":["name"]`
	check(t, input[tree](t), definition+`,"$defs":{"tree":`+definition+`}}}`)
	check(t, input[struct {
		Left, Right tree
	}](t), `{"type":"object","properties":{"Left":{"$ref":"#/$defs/tree"},"Right":{"$ref":"#/$defs/tree"}},
		"required":["Left","Right"],"$defs":{"tree":`+definition+`}}}`)
	type list []list
	check(t, output[list](t), `{"type":"array","items":{"$ref":"#/$defs/list"},
		"$defs":{"list":{"type":["array","null"],"items":{"$ref":"#/$defs/list"}}}}`)
}

func TestResultsDeclareWhatIsWritten(t *testing.T) {
	check(t, output[string](t), `{"type":"string"}`)
	check(t, output[[]string](t), `{"type":"array","items":{"type":"string"}}`)
	check(t, output[struct {
		Names []string `json:"names"`
		Left  []string `json:"left,omitempty"`
		Place *Extra   `json:"place"`
		Tree  *tree    `json:"tree"`
		Times int      `json:"times" default:"1"`
	}](t), `{"type":"object","properties":{
		"names":{"type":["array","null"],"items":{"type":"string"}},
		"left":{"type":"array","items":{"type":"string"}},
		"place":{"type":["object","null"],"properties":{
			"more":{"type":["array","null"],"minItems":1,"maxItems":3,"items":{"type":"string","enum":["a","b"]}}},
			"required":["more"]},
		"tree":{"anyOf":[{"$ref":"#/$defs/tree"},{"type":"null"}]},
		"times":{"type":"integer"}
	},"required":["names","place","tree","times"],
	"$defs":{"tree":{"type":"object","properties":{"name":{"type":"string"},
		"children":{"type":"array","items":{"$ref":"#/$defs/tree"}},
		"by_name":{"type":"object","additionalProperties":{"$ref":"#/$defs/tree"}}},"required":["name"]}}}`)
	for _, nothing := range []json.RawMessage{output[any](t), output[json.RawMessage](t), output[own](t)} {
		if nothing != nil {
			t.Errorf("declared %s", nothing)
		}
	}
}

func TestPropertiesStandInTheirOrder(t *testing.T) {
	wanted := `{"type":"object","properties":{"share":{"type":"number","minimum":0,"maximum":0.5},` +
		`"secret":{"type":"string","format":"password","x-sensitive":true},"city":{"type":"integer"}},` +
		`"required":["share","secret","city"]}`
	if got := string(input[hidden](t)); got != wanted {
		t.Errorf("expected %s\n     got %s", wanted, got)
	}
}

func input[T any](t *testing.T) json.RawMessage {
	t.Helper()
	decoder := newDecoder[T]("the arguments")
	if len(decoder.faults) > 0 {
		t.Fatal(decoder.faults)
	}
	return decoder.schema
}

func output[T any](t *testing.T) json.RawMessage {
	t.Helper()
	schema, faults := outputSchema(typeOf[T]())
	if len(faults) > 0 {
		t.Fatal(faults)
	}
	return schema
}

func check(t *testing.T, got json.RawMessage, wanted string) {
	t.Helper()
	if canonical(t, got) != canonical(t, json.RawMessage(wanted)) {
		t.Errorf("expected %s\n     got %s", canonical(t, json.RawMessage(wanted)), canonical(t, got))
	}
}

func canonical(t *testing.T, raw json.RawMessage) string {
	t.Helper()
	var tree any
	if err := readJSON(raw, &tree, true); err != nil {
		t.Fatalf("%s: %v", raw, err)
	}
	written, err := json.Marshal(tree)
	if err != nil {
		t.Fatal(err)
	}
	return string(written)
}
