// The plugin PLUGIN_NAME greets people.
package main

import (
	"strings"

	"plugd"
)

func main() {
	newPlugin().Serve()
}

func newPlugin() *plugd.Plugin {
	return plugd.New("PLUGIN_NAME", "0.1.0").
		Description("Greets people.").
		Operation(
			plugd.Op("hello", hello,
				plugd.Description("Greets somebody by name. Gives one friendly line back."),
				plugd.WhenToUse("Somebody is to be greeted, or it is to be seen that the plugin works."),
				plugd.Examples("say hello to Ada"),
				plugd.ReadOnly(),
				plugd.Idempotent()),
		)
}

type helloArgs struct {
	Name string `json:"name" desc:"Who is greeted." example:"Ada"`
}

func hello(cx *plugd.Context, args helloArgs) (string, error) {
	who := strings.TrimSpace(args.Name)
	if who == "" {
		return "", &plugd.Error{
			Name:    "nobody_to_greet",
			Message: "the name is empty",
			Hint:    "give a name, such as name=Ada",
		}
	}
	cx.Info("greeting " + who)
	return "Hello, " + who + "!", nil
}
