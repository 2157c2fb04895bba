// Package plugd is for writing plugd plugins: one typed function is a whole plugin.
//
//	package main
//
//	import (
//		"strings"
//
//		"plugd"
//	)
//
//	type helloArgs struct {
//		Name  string `json:"name" desc:"Who is greeted, a first name." example:"Ada" min:"1"`
//		Times int    `json:"times" desc:"How often." min:"1" max:"10" default:"1"`
//	}
//
//	func hello(cx *plugd.Context, args helloArgs) (string, error) {
//		cx.Infof("greeting %s", args.Name)
//		return strings.Repeat("Hello, "+args.Name+"! ", args.Times), nil
//	}
//
//	func main() {
//		plugd.New("greet", "1.0.0").
//			Operation(plugd.Op("hello", hello,
//				plugd.Description("Greets somebody by name. Gives one friendly line back."),
//				plugd.WhenToUse("Someone should be greeted."),
//				plugd.ReadOnly())).
//			Serve()
//	}
//
// The schemas of arguments, results and configuration come from the types and their tags. The host validates
// arguments and fills in defaults before a handler sees them.
//
// # What else there is
//
//   - State: handlers are methods of a type of yours; [Plugin.Init] opens what they need, from a typed
//     configuration, and [Plugin.Reload] takes a changed one without a new process.
//   - The call: a [Context] is a [context.Context] with the deadline and the cancellation, log and progress.
//     [Call] uses another plugin, [Ask] asks the person behind the call.
//   - Answers: any data, or a [Reply] with a summary.
//   - Failures: any error, or an [Error] with a name and a hint. [Errorf] makes one.
//   - Tests: a handler is a function to call with [ContextForTest]; the package plugdtest runs a whole plugin
//     in memory.
//
// # Types and tags
//
// Arguments, configuration and results are structs that encoding/json can read and write; their fields are
// named by the json tag. Structs are nested objects, pointers to them too, embedded ones are part of the outer
// one, and types that hold themselves work. A time.Time is a date-time, a []byte is text in base64, any and
// json.RawMessage take everything, and a type can bring its own schema: [SchemaProvider]. In any, numbers are
// json.Number, so that they keep their digits.
//
// A field has to be given, unless it is a pointer, has omitempty or has a default. These tags say more:
//
//	desc:"…"             what it means, for people and models
//	default:"1"          what it is where it is left out
//	min:"1" max:"10"     bounds: of a number, or of the length of a text, list or map
//	enum:"warm|cold"     the values there are; on a list, of its items
//	example:"Ada|Bob"    values to show
//	pattern:"^TK-"       a regular expression for a text
//	format:"email"       a format of JSON Schema for a text
//	sensitive:"true"     a secret: shown in no message, and never kept
//
// Values in tags that are not text are written as JSON. A tag that does not fit its field is told when the
// plugin starts.
//
// # What is taken care of
//
// A panic fails that call only, and is told in the log, at error, with its stack. Prints go to stderr, lines of the log
// package to the plugin's log, and child programs get an empty stdin, so that nothing disturbs the protocol.
// A cancel, a ping or the host's end is noticed while a handler runs. The plugin leaves when its host does, a
// quarter of a second later at most.
//
// Calls come one at a time, and run on the goroutine that reads them; [Plugin.Concurrency] allows more.
package plugd
