package mixed

import (
	"errors"
	"fmt"

	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/drive"
	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/engine"
	"github.com/rdmaperf/rdmaperf/transports"
)

// pointOp is the operation of a point, for the engine: all of this workload's are one-sided
// and the initiator's completion ends them. A result calls them op.
const (
	pointOp = "read"
	op      = "randrw"
)

// work is the row of reads and writes together.
var work = &engine.Workload{
	Name: Name, Kind: kind, Rated: true, Has: engine.Members{Options: true},
	Point: checkPoint, Planned: checkPlan, Describe: func(pt engine.Point) string {
		o, err := optionsOf(pt)
		if err != nil { // Point says what is wrong
			return Name
		}
		return Name + " " + o.String()
	},
	Needs: []engine.Need{{Kind: transports.KindWrite, Why: "the other part of the mix"}}, Limits: limits,
	Shape: shape, Check: checkShape, Layout: (*engine.Shape).StreamLayout, Config: config, Client: newClient,
	Server: func(c *engine.Group) (engine.Side, error) { return drive.NewExposed(c, true, verifyWrites), nil },
	Hint:   "fewer QPs or a smaller --span",
	Result: result, Parameters: parameters,
}

func checkPoint(pt engine.Point) error {
	o, err := optionsOf(pt)
	switch {
	case err != nil:
		return err
	case pt.Op != pointOp:
		return errors.New("its operations are reads and writes: --rwmix says how many of each")
	case pt.Size != o.largest():
		return fmt.Errorf("a size of %d bytes for blocks of up to %d", pt.Size, o.largest())
	}
	return nil
}

// checkPlan refuses what the loop does not do.
func checkPlan(p *engine.Plan, pt engine.Point) error {
	if pt.Rate > 0 && p.Polling == engine.PollingEvent {
		return errors.New("an open loop is paced by spinning, so it needs busy polling")
	}
	return nil
}

// defaultDepth is how many operations are outstanding on a queue pair.
const defaultDepth = 16

func depthOf(p *engine.Plan, o *Options) int {
	if p.Depth > 0 {
		return p.Depth
	}
	return min(defaultDepth, cellsOf(o))
}

// cellsOf is how many blocks of the largest size a half of the window has.
func cellsOf(o *Options) int { return max(1, min(o.Span/aligned(o.largest()), engine.MaxDepth)) }

func limits(p *engine.Plan, pt engine.Point, caps transports.Caps) error {
	o, err := optionsOf(pt)
	if err != nil {
		return err
	}
	depth, limit := depthOf(p, &o), engine.MaxUserDepth(caps)
	switch {
	case depth > cellsOf(&o):
		return fmt.Errorf("depth %d is above the limit of %d blocks of %d bytes in a span of %d", depth, cellsOf(&o), o.largest(), o.Span)
	case limit > 0 && posts(&o)*depth > limit:
		return fmt.Errorf("depth %d, with %d work requests for a write, is above the limit of %d", depth, posts(&o), limit)
	}
	return nil
}

// posts is how many work requests an operation has at most.
func posts(o *Options) int {
	if o.Flush {
		return 2
	}
	return 1
}

func shape(sh *engine.Shape, p *engine.Plan, ab engine.Abilities) {
	o, _ := optionsOf(sh.Point) // limits have seen it
	sh.Depth, sh.Slots = depthOf(p, &o), cellsOf(&o)
	sh.RecvDepth, sh.Moderation = 1, 1
	sh.Arrives(ab)
}

func checkShape(sh *engine.Shape) error {
	o, err := optionsOf(sh.Point)
	if err == nil && (sh.Moderation != 1 || sh.Depth > sh.Slots || sh.Slots != cellsOf(&o) || sh.Arrival != engine.ArrivalCompletion) {
		err = fmt.Errorf("depth %d of %d cells, completion every %d", sh.Depth, sh.Slots, sh.Moderation)
	}
	return err
}

// config has room for the read behind each write.
func config(sh *engine.Shape, c *transports.Config) {
	if o, _ := optionsOf(sh.Point); o.Flush {
		c.SendDepth = 2*sh.Depth + engine.CtlSlots
	}
}
