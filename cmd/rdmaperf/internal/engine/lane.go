package engine

import (
	"fmt"

	"github.com/rdmaperf/rdmaperf/transports"
)

// Lane is one session of a point. It belongs to one worker; between phases to the goroutine that prepares them. Loops
// have copies in types of their own: nothing here changes but Pair.
type Lane struct {
	S     transports.Session
	Sh    *Shape
	Index int
	Mem   []byte // the local window

	Kind  transports.Kind
	Flags transports.OpFlags

	Pair [2]transports.Op // operations under construction
}

// NewLane takes a session whose window has the shape's size.
func NewLane(s transports.Session, sh *Shape, index int) *Lane {
	return &Lane{S: s, Sh: sh, Index: index, Mem: s.Local(), Kind: sh.Kind(), Flags: sh.Flags()}
}

// ClearSlots empties the destinations before a phase.
func (l *Lane) ClearSlots() { clear(l.Mem[l.Sh.RxOff():l.Sh.Layout.DataEnd]) }

// PostAll posts receives before the first phase, when all queues are empty.
func (l *Lane) PostAll(ops []transports.Op) error {
	n, err := l.S.Post(ops)
	if n == len(ops) {
		return nil
	}
	return Failed("post receives", fmt.Errorf("qp %d: %d of %d: %w", l.Index, n, len(ops), err))
}
