// Bytes from the host, taken apart into lines.

package plugd

import (
	"bufio"
	"errors"
	"io"
)

const (
	// frameMax is how long a line may be, in bytes without its end: the protocol's own limit.
	frameMax = 16 << 20
	// readSize is how many bytes are asked for at once; a pipe holds as many.
	readSize = 64 << 10
	// headSize is how much is kept of a line that is too long: its id stands there.
	headSize = 4 << 10
)

// errTooLong comes with the beginning of a line that is longer than [frameMax].
var errTooLong = errors.New("the line is too long")

// lineReader gives lines without their ends.
type lineReader struct {
	in *bufio.Reader
	// long has the line that did not fit the reader's own buffer. Its memory is kept unless it is large.
	long []byte
}

func newLineReader(in io.Reader) *lineReader {
	return &lineReader{in: bufio.NewReaderSize(in, readSize)}
}

// next gives the next line, which holds until next is called again.
//
// A last line without an end counts. Of a line that is too long it gives the beginning, and [errTooLong].
func (r *lineReader) next() ([]byte, error) {
	if cap(r.long) > frameKept {
		r.long = nil
	}
	line, err := r.in.ReadSlice('\n')
	if err == bufio.ErrBufferFull {
		line, err = r.rest(line)
	}
	switch {
	case err == nil:
		return line[:len(line)-1], nil
	case err == io.EOF && len(line) > 0:
		return line, nil
	default:
		return line, err
	}
}

// rest reads the rest of a line after its first part.
func (r *lineReader) rest(first []byte) ([]byte, error) {
	r.long = append(r.long[:0], first...)
	tooLong := false
	for {
		part, err := r.in.ReadSlice('\n')
		if tooLong = tooLong || len(r.long)+len(part) > frameMax+1; tooLong {
			r.long = r.long[:headSize]
		} else {
			r.long = append(r.long, part...)
		}
		switch {
		case err == bufio.ErrBufferFull:
		case tooLong:
			return r.long, errTooLong
		default:
			return r.long, err
		}
	}
}
