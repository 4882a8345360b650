// Package mixed is the workload of reads and writes together, of several block sizes at random places, as fio issues
// them (its man page: rwmixread, bssplit, randrw). What operation n is follows from the seed, see [order].
//
// One half of the window is read and the other written, so no read meets a write. A block lies in a cell of the largest
// block's size, at a multiple of its own. Operations take slots in turn, so one that completes before an older one
// makes no room. What completes while data is compared is seen a little later.
package mixed

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/drive"
	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/engine"
	"github.com/rdmaperf/rdmaperf/reports"
	"github.com/rdmaperf/rdmaperf/transports"
)

// pointOp is a point's operation, for the engine: all are one-sided, and completions end them. Results have op.
const (
	pointOp = "read"
	op      = "randrw"
)

// defaultDepth is how many operations are outstanding on a queue pair. fio's default is 1.
const defaultDepth = 16

func depthOf(p *engine.Plan, o *Options) int { return cmp.Or(p.Depth, min(defaultDepth, cellsOf(o))) }

// cellsOf is how many blocks of the largest size a half of the window has.
func cellsOf(o *Options) int { return max(1, min(o.Span/aligned(o.largest()), engine.MaxDepth)) }

func posts(o *Options) int {
	if o.Flush {
		return 2
	}
	return 1
}

func (o *Options) needs(p *engine.Plan) engine.Needs {
	depth := depthOf(p, o)
	return engine.Needs{Kinds: transports.Kinds(transports.KindWrite), Why: "the other part of the mix",
		Depth:   posts(o) * depth,
		DepthOf: fmt.Sprintf("depth %d, with %d work requests for a write,", depth, posts(o))}
}

func (o *Options) checkDepth(depth int) error {
	if depth > cellsOf(o) {
		return fmt.Errorf("depth %d is above the limit of %d blocks of %d bytes in a span of %d", depth, cellsOf(o),
			o.largest(), o.Span)
	}
	return nil
}

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

func (*Workload) Client(ctx context.Context, r *engine.Run) error {
	sh, o, err := shape(&r.Setup)
	if err != nil {
		return err
	}
	m, err := r.Connect(ctx, sh, func(c *engine.Group) (engine.Side, error) { return newClient(c, o), nil })
	if err != nil {
		return err
	}
	if err = m.Warmed(ctx); err == nil {
		err = m.Measure(ctx, reports.SamplesLatency)
	}
	err = m.Close(ctx, err)
	res := m.Result()
	p := res.Parameters
	p["read_percent"], p["blocks"], p["span_bytes"], p["write_flush"] = o.ReadPercent, o.blocks(), o.Span, o.Flush
	p["barrier"] = "answer to a read behind the last operation"
	if m.Out != nil {
		result(m, o, &res, m.Out)
	}
	r.Add(res)
	return err
}

func (*Workload) Server(ctx context.Context, s *engine.Serve) error {
	sh, o, err := shape(&s.Setup)
	if err != nil {
		return err
	}
	return s.Sessions(ctx, sh, func(c *engine.Group) (engine.Side, error) {
		return drive.NewExposed(c, true, o.verify), nil
	})
}

// mostReplayed bounds the writes that are followed back, a second of work. Older ones are not compared.
const mostReplayed = 1 << 24

// written is the half that is written. Which write a byte is from is found backwards from the last operation.
type written struct {
	*drive.Proof
	depth   uint64
	covered []uint64 // a bit for each grain
	left    int      // grains that some write could still cover
	inCell  int      // grains of a cell
}

func (o *Options) verify(p *drive.Proof, sent engine.LaneCount) error {
	sh := p.L.Sh
	x := written{Proof: p, depth: uint64(sh.Depth), inCell: sh.Stride() / grain}
	x.covered = make([]uint64, (sh.Slots*x.inCell+63)/64)
	for _, b := range o.Writes {
		x.left = max(x.left, sh.Slots*min(places(sh.Size, b.Size)*aligned(b.Size)/grain, x.inCell))
	}
	order := newOrder(o, sh, p.Gen, p.L.Index)
	n := uint64(max(sent.Count, 0))
	for replayed := 0; n > 0 && x.left > 0 && o.ReadPercent < hundred; replayed++ {
		if replayed == mostReplayed {
			return nil
		}
		n--
		if op := order.at(n); op.dir == writes {
			if err := x.compare(op, n); err != nil {
				return err
			}
		}
	}
	return x.untouched()
}

func (x *written) compare(op operation, n uint64) error {
	sh := x.L.Sh
	source := sourceOf(x.Proof, int(n%x.depth))
	var stamped [headSize]byte
	stamp(stamped[:], stampOf(x.Proof, n))
	block := x.L.Mem[sh.RxSlot(op.cell)+op.at:][:op.size]
	first := op.cell*x.inCell + op.at/grain
	whole, some := true, false
	for at := 0; at < op.size; at += grain {
		i := first + at/grain
		if x.covered[i/64]&(1<<(i%64)) != 0 {
			whole = false
			continue
		}
		x.covered[i/64] |= 1 << (i % 64)
		x.left--
		some = true
		b := block[at:min(at+grain, op.size)]
		head := stamped[:min(len(b), headSize)]
		if i := engine.FirstDifference(b[:len(head)], head); i >= 0 {
			return x.W.Corrupt(x.L, fmt.Sprintf("mark of write %d", n), at+i, head[i], b[i])
		}
		if i, want := engine.MatchPatternAt(b[len(head):], source, at+len(head)); i >= 0 {
			return x.W.Corrupt(x.L, fmt.Sprintf("write %d", n), at+len(head)+i, want, b[len(head)+i])
		}
		x.W.Compared.Bytes += int64(len(b))
	}
	if some {
		x.W.Compared.Numbers++
	}
	if some && whole {
		x.W.Compared.Messages++
	}
	return nil
}

// untouched finds bytes where no write was: the window was cleared before the phase.
func (x *written) untouched() error {
	sh := x.L.Sh
	half := x.L.Mem[sh.RxOff():][:sh.Slots*sh.Stride()]
	for i := range sh.Slots * x.inCell {
		if x.covered[i/64]&(1<<(i%64)) != 0 {
			continue
		}
		if k := engine.FirstNonZero(half[i*grain:][:grain]); k >= 0 {
			return x.W.Corrupt(x.L, "bytes that no write was for", i*grain+k, 0, half[i*grain+k])
		}
	}
	return nil
}
