// How JSON Schemas are made of Go types.

package plugd

import (
	"encoding"
	"encoding/json"
	"fmt"
	"math/big"
	"reflect"
	"strconv"
	"strings"
	"time"
)

var (
	numberType          = typeOf[json.Number]()
	timeType            = typeOf[time.Time]()
	bigIntType          = typeOf[big.Int]()
	marshalerType       = typeOf[json.Marshaler]()
	unmarshalerType     = typeOf[json.Unmarshaler]()
	textMarshalerType   = typeOf[encoding.TextMarshaler]()
	textUnmarshalerType = typeOf[encoding.TextUnmarshaler]()
	providerType        = typeOf[SchemaProvider]()
	replierType         = typeOf[replier]()
)

// schemaBuilder makes the schema of one type, with all that it leads to.
//
// Types are written in place: a model reads one plain object more surely than references. Only those that
// hold themselves become definitions.
type schemaBuilder struct {
	// output is whether values are written rather than read: nil is then null.
	output bool
	// open are the types that are being built; true once one was met within itself.
	open map[reflect.Type]bool
	// defined are the names of the types under $defs.
	defined map[reflect.Type]string
	defs    properties
	faults  []string
	// at is the way from the type to where the builder is.
	at []string
	// hasAny is whether any value at all is read somewhere.
	hasAny bool
	// prefills are the defaults that stand in the value itself, deep whether there are others.
	prefills []prefill
	deep     bool
}

func newSchemaBuilder(output bool) *schemaBuilder {
	return &schemaBuilder{output: output, open: map[reflect.Type]bool{}, defined: map[reflect.Type]string{}}
}

// whole makes the schema of a type that stands for itself. index leads to it from the outermost value.
func (b *schemaBuilder) whole(t reflect.Type, index []int) *schema {
	s := b.build(t, index)
	if s.Ref != "" {
		s = s.definition(&b.defs)
	}
	if len(b.defs) > 0 {
		root := *s
		root.Defs = &b.defs
		s = &root
	}
	return s
}

// build makes the schema of a type. index is nil where the value is not part of the outermost one.
func (b *schemaBuilder) build(t reflect.Type, index []int) *schema {
	if s := b.wellKnown(t); s != nil {
		return s
	}
	if name, isDefined := b.defined[t]; isDefined {
		return &schema{Ref: refTo(name)}
	}
	if t.Name() == "" {
		return b.byKind(t, index)
	}
	if _, isOpen := b.open[t]; isOpen {
		b.open[t] = true
		return &schema{Ref: refTo(b.define(t))}
	}
	b.open[t] = false
	s := b.byKind(t, index)
	holdsItself := b.open[t]
	delete(b.open, t)
	if !holdsItself {
		return s
	}
	for at := range b.defs {
		if b.defs[at].name == b.defined[t] {
			b.defs[at].schema = s
		}
	}
	return &schema{Ref: refTo(b.defined[t])}
}

// define gives a type that holds itself a name under $defs.
func (b *schemaBuilder) define(t reflect.Type) string {
	if name, isDefined := b.defined[t]; isDefined {
		return name
	}
	letters := func(r rune) rune {
		if r == '_' || '0' <= r && r <= '9' || 'A' <= r && r <= 'Z' || 'a' <= r && r <= 'z' {
			return r
		}
		return '_'
	}
	name := strings.Map(letters, t.Name())
	for _, taken := range b.defined {
		if taken == name {
			name += strconv.Itoa(len(b.defs) + 1)
		}
	}
	b.defined[t] = name
	b.defs = append(b.defs, property{name: name})
	return name
}

// wellKnown makes the schemas of types that have a JSON form of their own; nil for others.
func (b *schemaBuilder) wellKnown(t reflect.Type) *schema {
	pointer := reflect.PointerTo(t)
	has := func(written, read reflect.Type) bool {
		if t.Kind() == reflect.Pointer || t.Kind() == reflect.Interface {
			return false
		}
		if b.output {
			return pointer.Implements(written)
		}
		return pointer.Implements(read)
	}
	switch {
	case t == timeType:
		return &schema{Type: "string", Format: "date-time"}
	case t == bigIntType:
		return &schema{Type: "integer"}
	case t == numberType:
		return &schema{Type: "number"}
	case has(providerType, providerType):
		return b.provided(t)
	case has(marshalerType, unmarshalerType):
		return &schema{}
	case has(textMarshalerType, textUnmarshalerType):
		return &schema{Type: "string"}
	default:
		return nil
	}
}

func (b *schemaBuilder) provided(t reflect.Type) *schema {
	given := reflect.New(t).Interface().(SchemaProvider).JSONSchema()
	s := new(schema)
	if err := json.Unmarshal(given, &s.given); err != nil || s.given == nil {
		b.fault("the schema that %s provides is no JSON object", t)
	}
	return s
}

func (b *schemaBuilder) byKind(t reflect.Type, index []int) *schema {
	switch t.Kind() {
	case reflect.Bool:
		return &schema{Type: "boolean"}
	case reflect.String:
		return &schema{Type: "string"}
	case reflect.Float32, reflect.Float64:
		return &schema{Type: "number"}
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64,
		reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64, reflect.Uintptr:
		return integers(t)
	case reflect.Pointer:
		return b.orNull(b.build(t.Elem(), nil))
	case reflect.Slice:
		if t.Elem().Kind() == reflect.Uint8 && b.wellKnown(t.Elem()) == nil {
			return b.orNull(&schema{Type: "string", ContentEncoding: "base64"})
		}
		return b.orNull(&schema{Type: "array", Items: b.build(t.Elem(), nil)})
	case reflect.Array:
		length := json.Number(strconv.Itoa(t.Len()))
		return &schema{Type: "array", Items: b.build(t.Elem(), nil), MinItems: length, MaxItems: length}
	case reflect.Map:
		if !isKey(t.Key()) {
			b.fault("a map with keys of the type %s has no JSON form", t.Key())
		}
		return b.orNull(&schema{Type: "object", AdditionalProperties: b.build(t.Elem(), nil)})
	case reflect.Struct:
		return b.object(t, index)
	case reflect.Interface:
		if !b.output && t.NumMethod() > 0 {
			b.fault("no JSON can be read as %s, which is an interface", t)
		}
		b.hasAny = true
		return &schema{}
	default:
		b.fault("%s has no JSON form", t)
		return &schema{}
	}
}

// orNull also lets null be written for nil.
func (b *schemaBuilder) orNull(s *schema) *schema {
	switch name, isOne := s.Type.(string); {
	case !b.output:
	case isOne:
		s.Type = []string{name, "null"}
	case s.Ref != "":
		return &schema{AnyOf: []*schema{s, {Type: "null"}}}
	}
	return s
}

// integers bounds those that are narrower than what a caller may write.
func integers(t reflect.Type) *schema {
	s := &schema{Type: "integer"}
	switch t.Kind() {
	case reflect.Int8, reflect.Int16, reflect.Int32:
		most := int64(1)<<(t.Bits()-1) - 1
		s.Minimum, s.Maximum = numberOf(-most-1), numberOf(most)
	case reflect.Uint8, reflect.Uint16, reflect.Uint32:
		s.Minimum, s.Maximum = "0", numberOf(int64(1)<<t.Bits()-1)
	case reflect.Uint, reflect.Uint64, reflect.Uintptr:
		s.Minimum = "0"
	}
	return s
}

func numberOf(n int64) json.Number {
	return json.Number(strconv.FormatInt(n, 10))
}

func isKey(t reflect.Type) bool {
	switch t.Kind() {
	case reflect.String, reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64,
		reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64, reflect.Uintptr:
		return true
	default:
		return t.Implements(textMarshalerType) || reflect.PointerTo(t).Implements(textUnmarshalerType)
	}
}

func (b *schemaBuilder) fault(format string, args ...any) {
	fault := fmt.Sprintf(format, args...)
	if len(b.at) > 0 {
		fault = strings.Join(b.at, ".") + ": " + fault
	}
	b.faults = append(b.faults, fault)
}

// inputSchema makes the schema of what is read as arguments or a configuration: always of an object.
func (b *schemaBuilder) inputSchema(t reflect.Type, what string) *schema {
	var index []int
	if t.Kind() == reflect.Struct {
		index = []int{}
	}
	s := b.whole(t, index)
	switch {
	case s.Type == "object", string(s.given["type"]) == `"object"`:
	case s.saysNothing():
		b.fault("%s are a %s, which declares nothing: give their schema, or use a struct", what, t)
	default:
		b.fault("%s are a %s, which is no object: use a struct with a field for each", what, t)
	}
	return s
}

// outputSchema makes the schema of a result's data; nil where it says nothing.
func outputSchema(t reflect.Type) (json.RawMessage, []string) {
	b := newSchemaBuilder(true)
	s := b.whole(t, nil)
	if emptyForNil(t) != nil {
		s.Type = s.Type.([]string)[0]
	}
	if s.saysNothing() || len(b.faults) > 0 {
		return nil, b.faults
	}
	written, err := json.Marshal(s)
	if err != nil {
		return nil, []string{err.Error()}
	}
	return written, nil
}
