// JSON from the host, read into the types of handlers and hooks; defaults filled in.

package plugd

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/big"
	"reflect"
)

// prefill is a default that stands in a value before JSON is read into it.
type prefill struct {
	index []int
	value json.RawMessage
}

// decoder reads JSON objects as values of a type.
type decoder[T any] struct {
	// what is read, for messages: the arguments.
	what   string
	schema json.RawMessage
	faults []string
	// takesNothing is whether the type has no fields, so that there is nothing to read.
	takesNothing bool
	// empty is a value that has the defaults in it.
	empty T
	// root is the schema where defaults stand so deep that the JSON itself has to be filled in.
	root *schema
	// exactly is whether numbers are read into values of any type, which must keep their digits.
	exactly bool
}

func newDecoder[T any](what string) *decoder[T] {
	d := &decoder[T]{what: what}
	t := typeOf[T]()
	b := newSchemaBuilder(false)
	root := b.inputSchema(t, what)
	d.faults, d.exactly = b.faults, b.hasAny
	d.takesNothing = t.Kind() == reflect.Struct && len(fieldsOf(t)) == 0 && root.given == nil
	if b.deep {
		d.root = root
	} else {
		value := reflect.ValueOf(&d.empty).Elem()
		for _, fill := range b.prefills {
			into := value.FieldByIndex(fill.index).Addr().Interface()
			if err := json.Unmarshal(fill.value, into); err != nil {
				d.faults = append(d.faults, err.Error())
			}
		}
	}
	written, err := json.Marshal(root)
	if err != nil {
		d.faults = append(d.faults, err.Error())
	}
	d.schema = written
	return d
}

// decode reads an object; an absent one has no members.
func (d *decoder[T]) decode(raw json.RawMessage) (T, error) {
	value := d.empty
	if d.takesNothing {
		return value, nil
	}
	if len(raw) == 0 {
		raw = json.RawMessage("{}")
	}
	var err error
	if d.root != nil {
		raw, err = filled(raw, d.root)
	}
	if err == nil {
		err = readJSON(raw, &value, d.exactly)
	}
	if err != nil {
		text := fmt.Sprintf("%s do not fit: %s", d.what, misfit(err))
		return value, &Error{Message: text, code: codeInvalidParams}
	}
	return value, nil
}

// readJSON reads one value. Where exactly is set, numbers of any type keep their digits, as json.Number.
func readJSON(raw json.RawMessage, into any, exactly bool) error {
	if !exactly {
		return json.Unmarshal(raw, into)
	}
	decoder := json.NewDecoder(bytes.NewReader(raw))
	decoder.UseNumber()
	if err := decoder.Decode(into); err != nil {
		return err
	}
	if _, err := decoder.Token(); err != io.EOF {
		return errors.New("there is more than one value")
	}
	return nil
}

// readAs reads a value of a type that is known to the caller only.
func readAs[T any](raw json.RawMessage) (T, error) {
	var value T
	b := newSchemaBuilder(false)
	b.build(typeOf[T](), nil)
	err := readJSON(raw, &value, b.hasAny)
	return value, err
}

// takeDefault notes the default of a field, in its schema and for reading.
func (b *schemaBuilder) takeDefault(s *schema, t reflect.Type, f field, index []int) {
	text := f.tag.Get("default")
	value, err := valueOf(text, t)
	if f.quoted && err == nil && t.Kind() != reflect.String {
		value, err = json.Marshal(text)
	}
	if err != nil {
		b.fault("default:%q: %v", text, err)
		return
	}
	s.Default = value
	if len(s.Enum) > 0 && !contains(s.Enum, value) {
		b.fault("default:%q is none of the values of enum", text)
	}
	if isBelow(value, s.Minimum) || isBelow(json.RawMessage(s.Maximum), json.Number(value)) {
		b.fault("default:%q is not between min and max", text)
	}
	if index != nil && !f.quoted && standsAlone(f.typ) {
		b.prefills = append(b.prefills, prefill{index, value})
	} else {
		b.deep = true
	}
}

// standsAlone is whether a copy of a value shares nothing with it.
func standsAlone(t reflect.Type) bool {
	switch t.Kind() {
	case reflect.Bool, reflect.String, reflect.Float32, reflect.Float64,
		reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64,
		reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64, reflect.Uintptr:
		return true
	default:
		return t == timeType
	}
}

// isBelow compares two numbers; what is none is below nothing.
func isBelow(value json.RawMessage, bound json.Number) bool {
	a, okA := new(big.Rat).SetString(string(value))
	c, okC := new(big.Rat).SetString(string(bound))
	return okA && okC && a.Cmp(c) < 0
}

func contains(values []json.RawMessage, wanted json.RawMessage) bool {
	for _, value := range values {
		if bytes.Equal(value, wanted) {
			return true
		}
	}
	return false
}

// filled gives JSON with the defaults of a schema in it.
func filled(raw json.RawMessage, root *schema) (json.RawMessage, error) {
	var tree any
	if err := readJSON(raw, &tree, true); err != nil {
		return nil, err
	}
	fill(tree, root, root.Defs)
	return json.Marshal(tree)
}

func fill(value any, s *schema, defs *properties) {
	s = s.definition(defs)
	switch value := value.(type) {
	case map[string]any:
		if s.Properties != nil {
			for _, property := range *s.Properties {
				member, isThere := value[property.name]
				if isThere {
					fill(member, property.schema, defs)
				} else if property.schema.Default != nil {
					value[property.name] = property.schema.Default
				}
			}
		}
		if s.AdditionalProperties != nil {
			for _, member := range value {
				fill(member, s.AdditionalProperties, defs)
			}
		}
	case []any:
		if s.Items != nil {
			for _, item := range value {
				fill(item, s.Items, defs)
			}
		}
	}
}
