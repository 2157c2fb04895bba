// JSON Schemas as they are written.

package plugd

import (
	"bytes"
	"encoding/json"
)

// SchemaProvider is a type that brings its own JSON Schema: an object, as JSON.
//
// It is asked of the type's zero value, or of a pointer to it. A type with its own JSON form and no schema of
// its own declares nothing.
type SchemaProvider interface {
	JSONSchema() json.RawMessage
}

// schema is a JSON Schema, its keywords in the order in which people read them.
type schema struct {
	Ref                  string            `json:"$ref,omitempty"`
	Type                 any               `json:"type,omitempty"`
	AnyOf                []*schema         `json:"anyOf,omitempty"`
	Format               string            `json:"format,omitempty"`
	ContentEncoding      string            `json:"contentEncoding,omitempty"`
	Enum                 []json.RawMessage `json:"enum,omitempty"`
	Description          string            `json:"description,omitempty"`
	Minimum              json.Number       `json:"minimum,omitempty"`
	Maximum              json.Number       `json:"maximum,omitempty"`
	MinLength            json.Number       `json:"minLength,omitempty"`
	MaxLength            json.Number       `json:"maxLength,omitempty"`
	MinItems             json.Number       `json:"minItems,omitempty"`
	MaxItems             json.Number       `json:"maxItems,omitempty"`
	MinProperties        json.Number       `json:"minProperties,omitempty"`
	MaxProperties        json.Number       `json:"maxProperties,omitempty"`
	Pattern              string            `json:"pattern,omitempty"`
	Default              json.RawMessage   `json:"default,omitempty"`
	Examples             []json.RawMessage `json:"examples,omitempty"`
	Sensitive            bool              `json:"x-sensitive,omitempty"`
	Items                *schema           `json:"items,omitempty"`
	Properties           *properties       `json:"properties,omitempty"`
	AdditionalProperties *schema           `json:"additionalProperties,omitempty"`
	Required             []string          `json:"required,omitempty"`
	Defs                 *properties       `json:"$defs,omitempty"`

	// never is whether no value fits.
	never bool
	// given are the members of a schema that the type brings along.
	given map[string]json.RawMessage
}

// properties are named schemas in the order of their declaration.
type properties []property

type property struct {
	name   string
	schema *schema
}

// MarshalJSON writes an object in the order of the list.
func (p properties) MarshalJSON() ([]byte, error) {
	var out bytes.Buffer
	out.WriteByte('{')
	for at, property := range p {
		if at > 0 {
			out.WriteByte(',')
		}
		name, err := json.Marshal(property.name)
		if err != nil {
			return nil, err
		}
		value, err := json.Marshal(property.schema)
		if err != nil {
			return nil, err
		}
		out.Write(name)
		out.WriteByte(':')
		out.Write(value)
	}
	out.WriteByte('}')
	return out.Bytes(), nil
}

// plainSchema is a schema without its MarshalJSON.
type plainSchema schema

// MarshalJSON adds what a type brought along to what its field says.
func (s *schema) MarshalJSON() ([]byte, error) {
	if s.never {
		return []byte("false"), nil
	}
	plain, err := json.Marshal((*plainSchema)(s))
	if err != nil || s.given == nil {
		return plain, err
	}
	merged := make(map[string]json.RawMessage, len(s.given))
	for keyword, value := range s.given {
		merged[keyword] = value
	}
	if err := json.Unmarshal(plain, &merged); err != nil {
		return nil, err
	}
	return json.Marshal(merged)
}

// saysNothing is whether every value fits.
func (s *schema) saysNothing() bool {
	written, err := json.Marshal(s)
	return err == nil && string(written) == "{}"
}

// definition is the schema that a $ref leads to, and any other schema itself.
func (s *schema) definition(defs *properties) *schema {
	if s.Ref == "" || defs == nil {
		return s
	}
	for _, def := range *defs {
		if refTo(def.name) == s.Ref {
			return def.schema
		}
	}
	return s
}

func refTo(name string) string {
	return "#/$defs/" + name
}
