// The same echo with the SDK.
package main

import "plugd"

type echoArgs struct {
	Payload string `json:"payload" desc:"What to give back."`
}

func echo(_ *plugd.Context, args echoArgs) (string, error) {
	return args.Payload, nil
}

func main() {
	plugd.New("echo", "1.0.0").
		Operation(plugd.Op("echo", echo, plugd.Description("Gives its text back."), plugd.ReadOnly())).
		Serve()
}
