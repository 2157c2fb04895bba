// The fields of structs, as encoding/json sees them, and the tags that describe them.

package plugd

import (
	"encoding/json"
	"fmt"
	"math/big"
	"reflect"
	"regexp"
	"sort"
	"strconv"
	"strings"
)

// field is a field of a struct with its name in JSON.
type field struct {
	name string
	// index leads to it through embedded structs.
	index []int
	typ   reflect.Type
	tag   reflect.StructTag
	// omitted is whether an empty value is left out, quoted whether a number is written as a string.
	omitted, quoted bool
	// named is whether a tag gave the name.
	named bool
	// behindPointer is whether an embedded pointer leads to it.
	behindPointer bool
}

// fieldsOf lists the fields of a struct in their order: those of embedded structs too, and of several with
// one name the one that encoding/json takes.
func fieldsOf(t reflect.Type) []field {
	var all []field
	collect(t, nil, false, map[reflect.Type]bool{t: true}, &all)
	byName := make(map[string][]field)
	for _, f := range all {
		byName[f.name] = append(byName[f.name], f)
	}
	var fields []field
	for _, f := range all {
		if dominant, ok := dominantOf(byName[f.name]); ok && reflect.DeepEqual(dominant.index, f.index) {
			fields = append(fields, f)
		}
	}
	return fields
}

func collect(t reflect.Type, index []int, behindPointer bool, within map[reflect.Type]bool, all *[]field) {
	for i := 0; i < t.NumField(); i++ {
		member := t.Field(i)
		name, options, _ := strings.Cut(member.Tag.Get("json"), ",")
		if name == "-" && options == "" && !strings.HasSuffix(member.Tag.Get("json"), ",") {
			continue
		}
		f := field{
			name:          name,
			index:         append(append([]int(nil), index...), i),
			typ:           member.Type,
			tag:           member.Tag,
			omitted:       hasWord(options, "omitempty"),
			quoted:        hasWord(options, "string"),
			named:         name != "",
			behindPointer: behindPointer,
		}
		inner, isPointer := member.Type, member.Type.Kind() == reflect.Pointer
		if isPointer {
			inner = inner.Elem()
		}
		if member.Anonymous && name == "" && inner.Kind() == reflect.Struct {
			if !within[inner] {
				within[inner] = true
				collect(inner, f.index, behindPointer || isPointer, within, all)
				delete(within, inner)
			}
			continue
		}
		if !member.IsExported() {
			continue
		}
		if name == "" {
			f.name = member.Name
		}
		*all = append(*all, f)
	}
}

// dominantOf picks the field that encoding/json takes of several with one name: none where it cannot tell.
func dominantOf(fields []field) (field, bool) {
	sorted := append([]field(nil), fields...)
	sort.SliceStable(sorted, func(i, j int) bool {
		if len(sorted[i].index) != len(sorted[j].index) {
			return len(sorted[i].index) < len(sorted[j].index)
		}
		return sorted[i].named && !sorted[j].named
	})
	if len(sorted) > 1 && len(sorted[0].index) == len(sorted[1].index) && sorted[0].named == sorted[1].named {
		return field{}, false
	}
	return sorted[0], true
}

func hasWord(options, word string) bool {
	for _, option := range strings.Split(options, ",") {
		if option == word {
			return true
		}
	}
	return false
}

// object makes the schema of a struct.
func (b *schemaBuilder) object(t reflect.Type, index []int) *schema {
	s := &schema{Type: "object", Properties: &properties{}}
	b.checkExported(t)
	for _, f := range fieldsOf(t) {
		b.at = append(b.at, f.name)
		*s.Properties = append(*s.Properties, property{name: f.name, schema: b.field(f, index)})
		b.at = b.at[:len(b.at)-1]
		if b.isRequired(f) {
			s.Required = append(s.Required, f.name)
		}
	}
	if len(*s.Properties) == 0 && !b.output {
		// A host takes any key where no property is listed.
		s.AdditionalProperties = &schema{never: true}
	}
	return s
}

func (b *schemaBuilder) isRequired(f field) bool {
	if b.output {
		return !f.omitted && !f.behindPointer
	}
	_, hasDefault := f.tag.Lookup("default")
	return !f.omitted && !hasDefault && !f.behindPointer && f.typ.Kind() != reflect.Pointer
}

// field makes the schema of a field: that of its type, with what its tags say.
func (b *schemaBuilder) field(f field, index []int) *schema {
	var within []int
	if index != nil && !f.behindPointer {
		within = append(append([]int{}, index...), f.index...)
	}
	_, hasDefault := f.tag.Lookup("default")
	inner := within
	if hasDefault {
		inner = nil // a default of the whole stands above those of its parts
	}
	b.checkTags(f)
	s := b.build(f.typ, inner)
	if b.output && f.omitted {
		s = notNull(s)
	}
	t := f.typ
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	if f.quoted && (standsAlone(t) && t != timeType) {
		s = &schema{Type: "string"} // encoding/json quotes plain values only
	}
	b.describe(s, t, f.tag)
	if hasDefault && !b.output {
		b.takeDefault(s, t, f, within)
	}
	return s
}

// notNull is for a field that is left out where it is nil.
func notNull(s *schema) *schema {
	if types, isList := s.Type.([]string); isList {
		s.Type = types[0]
	}
	if len(s.AnyOf) == 2 {
		return s.AnyOf[0]
	}
	return s
}

// describe adds what the tags of a field say, but for its default.
func (b *schemaBuilder) describe(s *schema, t reflect.Type, tag reflect.StructTag) {
	s.Description = tag.Get("desc")
	if text, ok := tag.Lookup("sensitive"); ok {
		sensitive, err := strconv.ParseBool(text)
		if err != nil {
			b.fault("sensitive:%q: expected true or false", text)
		}
		s.Sensitive = sensitive
	}
	if text, ok := tag.Lookup("format"); ok {
		s.Format = text
		b.onlyOn(t, reflect.String, "format", text)
	}
	if text, ok := tag.Lookup("pattern"); ok {
		s.Pattern = text
		b.onlyOn(t, reflect.String, "pattern", text)
		if _, err := regexp.Compile(text); err != nil {
			b.fault("pattern:%q is no regular expression: %v", text, err)
		}
	}
	if text, ok := tag.Lookup("enum"); ok {
		of, kind := s, t
		if t.Kind() == reflect.Slice && s.Items != nil {
			of, kind = s.Items, t.Elem()
		}
		of.Enum = b.values("enum", text, kind)
	}
	if text, ok := tag.Lookup("example"); ok {
		s.Examples = b.values("example", text, t)
	}
	b.bound(s, t, "min", tag)
	b.bound(s, t, "max", tag)
}

func (b *schemaBuilder) onlyOn(t reflect.Type, kind reflect.Kind, name, text string) {
	if t.Kind() != kind {
		b.fault("%s:%q stands on a %s: only a %s has one", name, text, t, kind)
	}
}

// bound reads min or max: of a number, or of the length of a text, list or map.
func (b *schemaBuilder) bound(s *schema, t reflect.Type, name string, tag reflect.StructTag) {
	text, ok := tag.Lookup(name)
	if !ok {
		return
	}
	lower := name == "min"
	pick := func(least, most *json.Number) *json.Number {
		if lower {
			return least
		}
		return most
	}
	var bound *json.Number
	_, err := strconv.ParseUint(text, 10, 31)
	switch typeName(s) {
	case "integer":
		bound = pick(&s.Minimum, &s.Maximum)
		if _, isInteger := new(big.Int).SetString(text, 10); isInteger {
			err = nil
		}
	case "number":
		bound = pick(&s.Minimum, &s.Maximum)
		_, err = strconv.ParseFloat(text, 64)
	case "string":
		bound = pick(&s.MinLength, &s.MaxLength)
	case "array":
		bound = pick(&s.MinItems, &s.MaxItems)
	case "object":
		bound = pick(&s.MinProperties, &s.MaxProperties)
	default:
		b.fault("%s:%q stands on a %s, which has no size", name, text, t)
		return
	}
	if err != nil || !json.Valid([]byte(text)) {
		b.fault("%s:%q: expected a number", name, text)
		return
	}
	*bound = json.Number(text)
}

func typeName(s *schema) string {
	switch kind := s.Type.(type) {
	case string:
		return kind
	case []string:
		return kind[0]
	default:
		return ""
	}
}

// values reads several values, separated by bars.
func (b *schemaBuilder) values(name, text string, t reflect.Type) []json.RawMessage {
	var values []json.RawMessage
	for _, part := range strings.Split(text, "|") {
		value, err := valueOf(part, t)
		if err != nil {
			b.fault("%s:%q: %v", name, text, err)
			return nil
		}
		values = append(values, value)
	}
	return values
}

// valueOf reads the text of a tag as a value of a type: text stands for itself, all else is JSON.
func valueOf(text string, t reflect.Type) (json.RawMessage, error) {
	candidates := []json.RawMessage{json.RawMessage(text)}
	if quoted, err := json.Marshal(text); err == nil {
		if t.Kind() == reflect.String {
			candidates = []json.RawMessage{quoted}
		} else {
			candidates = append(candidates, quoted) // a time, or another type that is written as text
		}
	}
	for _, candidate := range candidates {
		if json.Unmarshal(candidate, reflect.New(t).Interface()) == nil {
			return candidate, nil
		}
	}
	return nil, fmt.Errorf("expected a value of the type %s", t)
}
