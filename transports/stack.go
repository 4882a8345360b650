package transports

import (
	"fmt"

	"github.com/rdmaperf/rdmaperf/transports/rdma"
)

// Stack is what all stacks have in common. What else one does is declared by
// Caps.Kinds: [Sessions] and [Calls] give the part that does it.
type Stack interface {
	// Name is the full stack name with parameters, outermost first.
	Name() string
	Caps() Caps
	Close() error
}

// Sessions is s as a maker of sessions. A stack whose Caps declare calls only has none: rdma.ErrNotSupported.
func Sessions(s Stack) (Transport, error) {
	if s.Caps().Kinds&^Kinds(KindCall) == 0 {
		return nil, fmt.Errorf("%s has no sessions: %w", s.Name(), rdma.ErrNotSupported)
	}
	t, ok := s.(Transport)
	if !ok {
		return nil, fmt.Errorf("%s declares sessions and makes none: %w", s.Name(), rdma.ErrNotSupported)
	}
	return t, nil
}

// Calls is s as a carrier of calls. A stack whose Caps do not declare KindCall carries none: rdma.ErrNotSupported.
func Calls(s Stack) (CallTransport, error) {
	if !s.Caps().Kinds.Has(KindCall) {
		return nil, fmt.Errorf("%s carries no calls: %w", s.Name(), rdma.ErrNotSupported)
	}
	t, ok := s.(CallTransport)
	if !ok {
		return nil, fmt.Errorf("%s declares calls and carries none: %w", s.Name(), rdma.ErrNotSupported)
	}
	return t, nil
}
