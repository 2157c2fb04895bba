// The plugin as a process: its arguments, its terminal, its end.

package plugd

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"strings"
)

const (
	// exitByHand is for whoever starts a plugin on a terminal.
	exitByHand = 2
	// exitPermanent means that starting again would not help.
	exitPermanent = 125
)

// Serve speaks the protocol over standard input and output until the host is done, and ends the process.
//
// It is the last thing that main does, and does not return: what is to be released belongs in [Plugin.Shutdown].
// Before any hook or handler runs, standard output is turned to standard error, and standard input to nothing,
// so that neither prints nor child programs touch the protocol; what the log package writes goes to the
// plugin's log.
//
// Run by hand on a terminal it says what it is and exits with 2. --describe prints the manifest; --help and
// --version do what they do elsewhere. A declaration that is wrong ends it with 125: starting it again would
// not help.
func (p *Plugin) Serve() {
	os.Exit(p.run(os.Args))
}

func (p *Plugin) run(args []string) (status int) {
	manifest, err := p.Manifest()
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return exitPermanent
	}
	asked := ""
	if len(args) > 1 {
		asked = args[1]
	}
	switch {
	case asked == "--describe":
		return printed(os.Stdout, indented(manifest))
	case asked == "--version" || asked == "-V":
		return printed(os.Stdout, manifest.Name+" "+manifest.Version)
	case asked == "--help" || asked == "-h":
		return printed(os.Stdout, usage(manifest, args[0]))
	case isTerminal(os.Stdin):
		printed(os.Stderr, usage(manifest, args[0]))
		return exitByHand
	}
	in, out, err := takeStreams()
	if err != nil {
		fmt.Fprintf(os.Stderr, "cannot set up the streams: %v\n", err)
		return 1
	}
	session, err := newSession(p, in, out, os.Stderr)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return exitPermanent
	}
	takeLog(session, os.Stderr)
	session.serve()
	return 0
}

// printed prints what is for people.
func printed(to io.Writer, text string) (status int) {
	if _, err := fmt.Fprintln(to, strings.TrimRight(text, "\n")); err != nil {
		return 1
	}
	return 0
}

// indented writes JSON for people.
func indented(value any) string {
	l := new(strings.Builder)
	encoder := json.NewEncoder(l)
	encoder.SetEscapeHTML(false)
	encoder.SetIndent("", "  ")
	if err := encoder.Encode(value); err != nil {
		return err.Error()
	}
	return l.String()
}

// isTerminal says whether somebody sits at the other end.
func isTerminal(file *os.File) bool {
	info, err := file.Stat()
	if err != nil || info.Mode()&os.ModeCharDevice == 0 {
		return false
	}
	nothing, err := os.Stat(os.DevNull)
	return err != nil || !os.SameFile(info, nothing)
}

// usage says what it is and how to use it, for someone who started it by hand.
func usage(manifest *Manifest, program string) string {
	var text strings.Builder
	fmt.Fprintf(&text, "%s %s, a plugd plugin\n", manifest.Name, manifest.Version)
	if manifest.Description != "" {
		fmt.Fprintln(&text, manifest.Description)
	}
	width := 0
	for _, operation := range manifest.Operations {
		if len(operation.Name) > width {
			width = len(operation.Name)
		}
	}
	text.WriteString("\nOperations:\n")
	for _, operation := range manifest.Operations {
		fmt.Fprintf(&text, "  %-*s  %s\n", width, operation.Name, firstSentence(operation.Description))
	}
	fmt.Fprintf(&text, "\nIt speaks JSON-RPC over stdin and stdout, one message a line, and is started by plugd.\n"+
		"Add it to plugd.toml:\n\n  [plugins.%s]\n  command = [%q]\n\nOr try it:\n\n  %s --describe\n",
		manifest.Name, program, program)
	if len(manifest.Operations) > 0 {
		first := manifest.Operations[0]
		fmt.Fprintf(&text, "  plugd call %s %s%s\n", program, first.Name, sampleArguments(first.InputSchema))
	}
	return text.String()
}

func firstSentence(description string) string {
	if description == "" {
		return "(no description)"
	}
	sentence, _, more := strings.Cut(onOneLine(description), ". ")
	if more {
		sentence += "."
	}
	return sentence
}

// sampleArguments are arguments to try an operation with: what is required, by its first example.
func sampleArguments(schema json.RawMessage) string {
	var input struct {
		Properties map[string]struct {
			Examples []json.RawMessage `json:"examples"`
			Enum     []json.RawMessage `json:"enum"`
			Minimum  json.RawMessage   `json:"minimum"`
		} `json:"properties"`
		Required []string `json:"required"`
	}
	if json.Unmarshal(schema, &input) != nil {
		return ""
	}
	var text strings.Builder
	for _, name := range input.Required {
		argument := input.Properties[name]
		candidates := append(append(argument.Examples, argument.Enum...), argument.Minimum, json.RawMessage("…"))
		for _, candidate := range candidates {
			if len(candidate) > 0 {
				fmt.Fprintf(&text, " %s=%s", name, strings.Trim(string(candidate), `"`))
				break
			}
		}
	}
	return text.String()
}
