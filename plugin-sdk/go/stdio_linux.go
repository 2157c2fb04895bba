// Standard input and output, taken away from everyone but the protocol.

package plugd

import (
	"fmt"
	"os"
	"syscall"
)

// firstFree is the first descriptor behind the standard three.
const firstFree = 3

// takeStreams moves both protocol streams to descriptors of their own, which child programs do not inherit.
//
// Afterwards what anything prints goes to stderr, and a child program that reads its stdin finds it empty.
func takeStreams() (in, out *os.File, err error) {
	nothing, err := os.Open(os.DevNull)
	if err != nil {
		return nil, nil, err
	}
	defer nothing.Close()
	if in, err = private(os.Stdin, "host's requests"); err != nil {
		return nil, nil, err
	}
	if out, err = private(os.Stdout, "host's answers"); err != nil {
		return nil, nil, err
	}
	if err = syscall.Dup3(int(nothing.Fd()), syscall.Stdin, 0); err != nil {
		return nil, nil, fmt.Errorf("dup3 of stdin: %w", err)
	}
	if err = syscall.Dup3(syscall.Stderr, syscall.Stdout, 0); err != nil {
		return nil, nil, fmt.Errorf("dup3 of stdout: %w", err)
	}
	return in, out, nil
}

// private makes a copy of a stream that is closed in child programs.
func private(file *os.File, name string) (*os.File, error) {
	fd, _, errno := syscall.Syscall(syscall.SYS_FCNTL, file.Fd(), syscall.F_DUPFD_CLOEXEC, firstFree)
	if errno != 0 {
		return nil, fmt.Errorf("fcntl of %s: %w", file.Name(), errno)
	}
	return os.NewFile(fd, name), nil
}
