// Who reads: the goroutine that runs a call, and who takes over from it.

package plugd

import (
	"sync/atomic"
	"time"
)

// takeOverAfter is how long a call may keep its reader from reading; at most twice as long passes. Short
// enough for a host that hangs up or cancels, long enough that quick calls never pay for a second goroutine.
const takeOverAfter = 10 * time.Millisecond

// turns hands the reading of the host's messages from one goroutine to another.
//
// Where calls come one at a time, the goroutine that has read a call runs it: handing it to another would
// cost more than most handlers do. Meanwhile nobody reads. Once the handler wants to hear of the host, or
// takes its time, a second goroutine takes over the reading for good, and the first one ends with its call.
type turns struct {
	// now is the number of the call that the reader runs, and 0 while it reads.
	now  atomic.Uint64
	last atomic.Uint64
	// read reads on, as the new reader.
	read func()
	// watched is whether the clock is set; seen is the call that it found the last time.
	watched atomic.Bool
	seen    atomic.Uint64
	clock   *time.Timer
}

func newTurns(read func()) *turns {
	t := &turns{read: read}
	t.clock = time.AfterFunc(time.Hour, t.look)
	t.clock.Stop()
	return t
}

// next gives the number of a turn that is about to begin.
func (t *turns) next() uint64 {
	return t.last.Add(1)
}

// begin says that the reader now runs a call.
func (t *turns) begin(turn uint64) {
	t.now.Store(turn)
	t.watch()
}

// end says that the call is over; whether the caller is still the reader.
func (t *turns) end(turn uint64) bool {
	return t.now.CompareAndSwap(turn, 0)
}

// takeOver has another goroutine read on while that call runs, unless one does.
func (t *turns) takeOver(turn uint64) {
	if turn != 0 && t.now.CompareAndSwap(turn, 0) {
		go t.read()
	}
}

func (t *turns) watch() {
	if t.watched.CompareAndSwap(false, true) {
		t.clock.Reset(takeOverAfter)
	}
}

// look takes over from a call that ran already the last time. The clock goes on only while calls come.
func (t *turns) look() {
	t.watched.Store(false)
	turn := t.now.Load()
	if turn == 0 {
		return
	}
	if t.seen.Swap(turn) == turn {
		t.takeOver(turn)
		return
	}
	t.watch()
}
