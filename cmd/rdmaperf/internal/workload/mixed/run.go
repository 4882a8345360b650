// Package mixed is the workload of reads and writes together, as storage has them and fio
// (its man page: rwmixread, bssplit, randrw) made them known: a share of RDMA reads, the
// rest RDMA writes, of several block sizes, at random places of the server's window.
//
// What operation n is follows from the seed alone, see [order]: of every hundred
// operations as many are reads as asked for, and of every hundred reads, or writes, as
// many have each size.
//
// One half of the window is read and the other written, so that both can be compared: no
// read meets a write. A block lies within a cell of the largest block's size, at a multiple
// of its own. Operations of a queue pair take its slots in turn, so that one that completes
// before an older one does not make room. With more than one under way, what completes
// while data is compared is seen a little later.
package mixed

import (
	"context"
	"errors"
	"fmt"

	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/drive"
	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/engine"
	"github.com/rdmaperf/rdmaperf/reports"
	"github.com/rdmaperf/rdmaperf/transports"
)

// pointOp is the operation of a point, for the engine: all of this workload's are one-sided
// and the initiator's completion ends them. A result calls them op.
const (
	pointOp = "read"
	op      = "randrw"
)

// defaultDepth is how many operations are outstanding on a queue pair. fio's default is 1.
const defaultDepth = 16

func depthOf(p *engine.Plan, o *Options) int {
	if p.Depth > 0 {
		return p.Depth
	}
	return min(defaultDepth, cellsOf(o))
}

// cellsOf is how many blocks of the largest size a half of the window has.
func cellsOf(o *Options) int { return max(1, min(o.Span/aligned(o.largest()), engine.MaxDepth)) }

// posts is how many work requests an operation has at most.
func posts(o *Options) int {
	if o.Flush {
		return 2
	}
	return 1
}

// needs are those of a point with these options.
func (o *Options) needs(p *engine.Plan) engine.Needs {
	depth := depthOf(p, o)
	return engine.Needs{Kinds: transports.Kinds(transports.KindWrite), Why: "the other part of the mix",
		Depth:   posts(o) * depth,
		DepthOf: fmt.Sprintf("depth %d, with %d work requests for a write,", depth, posts(o))}
}

// checkDepth holds a depth against the blocks of a window.
func (o *Options) checkDepth(depth int) error {
	if depth > cellsOf(o) {
		return fmt.Errorf("depth %d is above the limit of %d blocks of %d bytes in a span of %d", depth, cellsOf(o),
			o.largest(), o.Span)
	}
	return nil
}

// shape is one slot of a window for each block.
func shape(s *engine.Setup) (*engine.Shape, *Options, error) {
	o, err := engine.ReadOptions(s.Point, func(o *Options, size int) error {
		switch err := o.check(); {
		case err != nil:
			return err
		case s.Point.Op != pointOp:
			return errors.New("its operations are reads and writes: --rwmix says how many of each")
		case size != o.largest():
			return fmt.Errorf("a size of %d bytes for blocks of up to %d", size, o.largest())
		case s.Point.Rate > 0 && s.Plan.Polling == engine.PollingEvent:
			return errors.New(noEvents)
		}
		return o.checkDepth(depthOf(s.Plan, o))
	})
	if err != nil {
		return nil, nil, err
	}
	sh, err := s.NewShape()
	if err != nil {
		return nil, nil, err
	}
	sh.Depth, sh.Slots = depthOf(s.Plan, &o), cellsOf(&o)
	sh.Arrives(s.Caps)
	sh.Layout = sh.StreamLayout()
	sh.Config = sh.SessionConfig()
	sh.Config.SendDepth = posts(&o)*sh.Depth + engine.CtlSlots // of a write, the read behind it, too
	return sh, &o, nil
}

const noEvents = "an open loop is paced by spinning, so it needs busy polling"

// Client measures one point.
func (*Workload) Client(ctx context.Context, r *engine.Run) error {
	sh, o, err := shape(&r.Setup)
	if err != nil {
		return err
	}
	m, err := r.Connect(ctx, sh, newClient)
	if err != nil {
		return err
	}
	if err = m.Warmed(ctx); err == nil {
		err = m.Measure(ctx, reports.SamplesLatency)
	}
	err = m.Close(ctx, err)
	res := m.Result()
	parameters(o, res.Parameters)
	if m.Out != nil {
		result(m, o, &res, m.Out)
	}
	r.Add(res)
	return err
}

// Server has the window that is read and written.
func (*Workload) Server(ctx context.Context, s *engine.Serve) error {
	sh, _, err := shape(&s.Setup)
	if err != nil {
		return err
	}
	return s.Sessions(ctx, sh, newServer)
}

func newServer(c *engine.Group) (engine.Side, error) {
	return drive.NewExposed(c, true, verifyWrites), nil
}
