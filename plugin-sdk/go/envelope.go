// A call's line, taken apart without reading its arguments twice.

package plugd

import (
	"bytes"
	"encoding/json"
)

// cutArguments takes the arguments of a call out of its line: they are read once, by who knows their type.
//
// It gives the line with null in their place, and a copy of them. It finds where they begin and end and checks
// nothing: what it cuts and what it leaves are both read as JSON afterwards. Of any line in which it finds none
// it gives the line itself.
func cutArguments(line []byte) (rest []byte, arguments json.RawMessage) {
	from, to := argumentsIn(line)
	if from == to {
		return line, nil
	}
	rest = make([]byte, 0, len(line)-(to-from)+len("null"))
	rest = append(append(append(rest, line[:from]...), "null"...), line[to:]...)
	return rest, append(json.RawMessage(nil), line[from:to]...)
}

// argumentsIn finds the value of arguments in params.
func argumentsIn(line []byte) (from, to int) {
	depth, inParams := 0, false
	for at := 0; at < len(line); at++ {
		switch line[at] {
		case '{', '[':
			depth++
		case '}', ']':
			depth--
		case '"':
			end := stringEnd(line, at)
			value := afterColon(line, end)
			if value > 0 {
				key := string(line[at+1 : end-1])
				if depth == 1 {
					inParams = key == "params"
				} else if depth == 2 && inParams && key == "arguments" {
					return value, valueEnd(line, value)
				}
			}
			at = end - 1
		}
	}
	return 0, 0
}

// stringEnd gives where a string ends that begins at a quotation mark.
func stringEnd(line []byte, at int) int {
	for at++; at < len(line); at++ {
		next := bytes.IndexByte(line[at:], '"')
		if next < 0 {
			return len(line)
		}
		at += next
		escapes := 0
		for line[at-1-escapes] == '\\' {
			escapes++
		}
		if escapes%2 == 0 {
			return at + 1
		}
	}
	return len(line)
}

// afterColon gives where the value of a key begins; 0 where no colon follows.
func afterColon(line []byte, at int) int {
	at = skipBlanks(line, at)
	if at >= len(line) || line[at] != ':' {
		return 0
	}
	return skipBlanks(line, at+1)
}

func skipBlanks(line []byte, at int) int {
	for at < len(line) && (line[at] == ' ' || line[at] == '\t' || line[at] == '\r') {
		at++
	}
	return at
}

// valueEnd gives where a value ends.
func valueEnd(line []byte, at int) int {
	for depth := 0; at < len(line); at++ {
		switch line[at] {
		case '"':
			at = stringEnd(line, at) - 1
		case '{', '[':
			depth++
		case ',':
			if depth == 0 {
				return at
			}
		case '}', ']':
			if depth == 0 {
				return at
			}
			depth--
		}
	}
	return at
}
