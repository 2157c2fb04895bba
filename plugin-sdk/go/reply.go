// What a handler gives back.

package plugd

// Reply is data with what there is to say about it.
//
// A handler returns plain data, or a Reply where it has more to tell:
//
//	return plugd.Reply[Status]{Data: status, Summary: "TK-9 is in review"}, nil
type Reply[T any] struct {
	// Data is what was asked for.
	Data T
	// Summary is one line about it, for people and for a model's context.
	Summary string
	// NextActions are calls worth making next, at most 20.
	NextActions []NextAction
}

// NextAction is a call that may be worth making next. Each of its parts may be left out.
type NextAction struct {
	// Operation is what to call, as plugin.operation.
	Operation string `json:"operation,omitempty"`
	// Description says in words what it would do.
	Description string `json:"description,omitempty"`
	// Arguments are those to call it with.
	Arguments map[string]any `json:"arguments,omitempty"`
}

// answer is a reply with its type taken off.
type answer struct {
	data    any
	summary string
	next    []NextAction
}

// replier is a [Reply] of any type.
type replier interface {
	answer() answer
}

func (r Reply[T]) answer() answer {
	return answer{data: r.Data, summary: r.Summary, next: r.NextActions}
}
