// What is under way at once: calls in their lanes, those that wait for one, and hooks.

package plugd

import (
	"sync"
	"time"
)

// waitingMax is how many pieces of work may wait for a lane. A host sends no more calls than there are
// lanes, so this only bounds what a broken one can pile up.
const waitingMax = 1024

// work is something that takes a lane.
type work interface {
	// start does it and then frees the lane.
	start()
	// cancelCall tells it that a call is cancelled, which may be another one.
	cancelCall(callID string)
}

// traffic has the work that is under way or waits.
type traffic struct {
	mu      sync.Mutex
	changed sync.Cond
	lanes   int
	running []work
	waiting []work
	// hooks is how many hooks run beside the lanes.
	hooks int
}

func newTraffic(lanes int) *traffic {
	t := &traffic{lanes: lanes}
	t.changed.L = &t.mu
	return t
}

// admission says what becomes of work that wants a lane.
type admission int

const (
	// admitted: it has a lane and is to be started.
	admitted admission = iota
	// queued: whoever frees a lane starts it.
	queued
	// turnedAway: too much waits already.
	turnedAway
)

func (t *traffic) enter(w work) admission {
	t.mu.Lock()
	defer t.mu.Unlock()
	switch {
	case len(t.running) < t.lanes:
		t.running = append(t.running, w)
		return admitted
	case len(t.waiting) < waitingMax:
		t.waiting = append(t.waiting, w)
		return queued
	default:
		return turnedAway
	}
}

// leave frees the lane of work that has ended, and starts what waits for it.
func (t *traffic) leave(w work) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for at, running := range t.running {
		if running == w {
			last := len(t.running) - 1
			t.running[at], t.running[last] = t.running[last], nil
			t.running = t.running[:last]
			break
		}
	}
	if len(t.waiting) > 0 {
		next := t.waiting[0]
		t.waiting = t.waiting[1:]
		t.running = append(t.running, next)
		go next.start()
	}
	t.changed.Broadcast()
}

// cancel tells all work that a call is cancelled.
func (t *traffic) cancel(callID string) {
	t.mu.Lock()
	all := append(append([]work(nil), t.running...), t.waiting...)
	t.mu.Unlock()
	for _, w := range all {
		w.cancelCall(callID)
	}
}

func (t *traffic) hookBegins() {
	t.mu.Lock()
	t.hooks++
	t.mu.Unlock()
}

func (t *traffic) hookEnds() {
	t.mu.Lock()
	t.hooks--
	t.changed.Broadcast()
	t.mu.Unlock()
}

// waitUntilQuiet waits until no more than so many hooks and no calls are under way, but not for ever.
func (t *traffic) waitUntilQuiet(hooks int, patience time.Duration) {
	end := time.Now().Add(patience)
	alarm := time.AfterFunc(patience, func() {
		t.mu.Lock()
		t.changed.Broadcast()
		t.mu.Unlock()
	})
	defer alarm.Stop()
	t.mu.Lock()
	defer t.mu.Unlock()
	for (t.hooks > hooks || len(t.running) > 0) && time.Now().Before(end) {
		t.changed.Wait()
	}
}
