//go:build !linux

// Standard input and output, taken away from the rest of the program.

package plugd

import "os"

// takeStreams keeps both streams for the protocol. It is for building and testing where plugd does not run:
// the descriptors themselves stay where they are.
func takeStreams() (in, out *os.File, err error) {
	in, out = os.Stdin, os.Stdout
	os.Stdout = os.Stderr
	os.Stdin, err = os.Open(os.DevNull)
	return in, out, err
}
