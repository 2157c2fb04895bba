// One operation: a typed function and what is declared about it.

package plugd

import (
	"encoding/json"
	"reflect"
)

// Operation is an operation of a plugin: what it is called, does, and runs. [Op] makes one.
type Operation struct {
	name        string
	declaration Declaration
	run         func(*Context, json.RawMessage) (answer, error)
	faults      []string
}

// Op makes an operation that runs a handler.
//
// Its input schema is that of A, a struct with a field for each argument, or struct{} for none. Its output
// schema is that of R, or of T where R is a [Reply] of T; data of the type any or json.RawMessage declares
// nothing. The package's page tells how types become schemas.
//
// Declarations are read by people, and by models that choose what to call: give a [Description] of two
// sentences or more, and describe every argument.
//
// A panic of the handler fails that call only. One in a goroutine that the handler started ends the process,
// as in any Go program; the host then starts it again.
func Op[A, R any](name string, handler func(cx *Context, args A) (R, error), options ...Option) *Operation {
	decoder := newDecoder[A]("the arguments")
	o := &Operation{name: name, declaration: Declaration{Name: name}}
	for _, option := range options {
		option(o)
	}
	o.takeSchemas(decoder.schema, decoder.faults, typeOf[R]())
	orEmpty := emptyForNil(typeOf[R]())
	o.run = func(cx *Context, raw json.RawMessage) (answer, error) {
		args, err := decoder.decode(raw)
		if err != nil {
			return answer{}, err
		}
		result, err := handler(cx, args)
		if err != nil {
			return answer{}, err
		}
		given := answer{data: result}
		if reply, ok := given.data.(replier); ok {
			given = reply.answer()
		}
		if orEmpty != nil && reflect.ValueOf(given.data).IsNil() {
			given.data = orEmpty
		}
		return given, nil
	}
	return o
}

// takeSchemas declares the schemas of the handler's types, where no others are given.
func (o *Operation) takeSchemas(input json.RawMessage, inputFaults []string, result reflect.Type) {
	if o.declaration.InputSchema == nil {
		o.declaration.InputSchema = input
		o.faults = append(o.faults, inputFaults...)
	}
	if o.declaration.OutputSchema == nil {
		output, faults := outputSchema(dataType(result))
		o.declaration.OutputSchema = output
		o.faults = append(o.faults, faults...)
	}
}

// emptyForNil is the JSON that stands for nil in results of a list or map: as it declares, not null.
func emptyForNil(t reflect.Type) any {
	switch t = dataType(t); {
	case t.Implements(marshalerType) || t.Implements(textMarshalerType):
		return nil
	case t.Kind() == reflect.Slice && t.Elem().Kind() == reflect.Uint8:
		return ""
	case t.Kind() == reflect.Slice:
		return json.RawMessage("[]")
	case t.Kind() == reflect.Map:
		return json.RawMessage("{}")
	default:
		return nil
	}
}

// dataType is T of a Reply of T, and any other type itself.
func dataType(t reflect.Type) reflect.Type {
	reply := t
	if t.Kind() == reflect.Pointer {
		reply = t.Elem()
	}
	if reply.Kind() == reflect.Struct && reply.Implements(replierType) {
		return reply.Field(0).Type
	}
	return t
}

func typeOf[T any]() reflect.Type {
	return reflect.TypeOf((*T)(nil)).Elem()
}
