package transports

import (
	"fmt"
	"sync"
	"time"

	"golang.org/x/sys/unix"

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

// helpers are processes that work for this one: what they use up is part of what a stack costs.
var helpers struct {
	sync.Mutex
	pids map[int]struct{}
}

// AddHelper counts the processor time of a process as this one's, until remove.
func AddHelper(pid int) (remove func()) {
	helpers.Lock()
	defer helpers.Unlock()
	if helpers.pids == nil {
		helpers.pids = map[int]struct{}{}
	}
	helpers.pids[pid] = struct{}{}
	return func() {
		helpers.Lock()
		defer helpers.Unlock()
		delete(helpers.pids, pid)
	}
}

// HelperCPU is the processor time of all helpers since each began. One that has ended counts no more.
func HelperCPU() (sum time.Duration) {
	helpers.Lock()
	defer helpers.Unlock()
	for pid := range helpers.pids {
		// The number is ~pid above three bits, of which 2 asks for scheduled time (clock_getcpuclockid(3)).
		var t unix.Timespec
		if unix.ClockGettime(int32(^pid<<3|2), &t) == nil {
			sum += time.Duration(t.Nano())
		}
	}
	return sum
}
