// How far the plugin is with its init.

package plugd

import "sync"

// opening holds calls back until the plugin is open, and once it is closed.
type opening struct {
	mu      sync.Mutex
	changed sync.Cond
	state   openState
}

type openState int

const (
	unopened openState = iota
	opens
	isOpen
	closed
)

func newOpening(needsNoInit bool) *opening {
	o := new(opening)
	o.changed.L = &o.mu
	if needsNoInit {
		o.state = isOpen
	}
	return o
}

func (o *opening) begins() { o.set(opens) }

func (o *opening) ends(well bool) {
	if well {
		o.set(isOpen)
	} else {
		o.set(unopened)
	}
}

// closes says that no call is to begin any more; whether the plugin was open.
func (o *opening) closes() bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	was := o.state
	o.state = closed
	o.changed.Broadcast()
	return was == isOpen
}

func (o *opening) set(state openState) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.state != closed {
		o.state = state
	}
	o.changed.Broadcast()
}

// wait waits for the end of an init that is under way. It fails where the plugin is not open then.
func (o *opening) wait() *Error {
	o.mu.Lock()
	defer o.mu.Unlock()
	for o.state == opens {
		o.changed.Wait()
	}
	switch o.state {
	case closed:
		return shuttingDown()
	case unopened:
		return &Error{Name: "not_initialised", Message: "the plugin has not been initialised: send init first"}
	default:
		return nil
	}
}

// shuttingDown is what fails because the plugin is about to leave.
func shuttingDown() *Error {
	return &Error{Name: "shutting_down", Message: "the plugin is shutting down", Retryable: true}
}
