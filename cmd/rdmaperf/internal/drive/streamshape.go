package drive

import (
	"fmt"

	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/engine"
	"github.com/rdmaperf/rdmaperf/transports"
)

// ThroughputShape is that of a stream, one way or both.
func ThroughputShape(s *engine.Setup) (*engine.Shape, error) {
	sh, err := StreamShape(s)
	if err != nil {
		return nil, err
	}
	if sh.Kind() == transports.KindWrite {
		sh.Idle = s.Caps.Server.Unaided && s.Caps.Both.Events
	}
	sh.Idle = sh.Idle && !sh.Bidirectional
	// One that is asked to compare passes of several QPs cannot sleep on one of them.
	sh.Idle = sh.Idle && !(sh.Numbered() && sh.Kind() == transports.KindWrite && sh.QPs > sh.Threads)
	sh.ClientNaps, sh.ServerNaps = StreamSleeps(sh, engine.SideClient), StreamSleeps(sh, engine.SideServer)
	sh.Config = sh.SessionConfig()
	ThroughputConfig(sh, &sh.Config)
	return sh, nil
}

// StreamShape is that of streams, whose operations are counted and carry numbers.
func StreamShape(s *engine.Setup) (*engine.Shape, error) {
	sh, err := s.NewShape()
	if err != nil {
		return nil, err
	}
	sh.Counted, sh.Numbers = true, true
	StreamDepths(sh, s.Plan, s.Caps.Both)
	sh.Arrives(s.Caps)
	sh.Layout = sh.StreamLayout()
	return sh, nil
}

// StreamNeeds are those of a stream: credits and a barrier, both ways a begin and an end, and the depths asked for.
func StreamNeeds(p *engine.Plan, pt engine.Point) engine.Needs {
	var n engine.Needs
	k, _ := transports.ParseKind(pt.Op)
	if k == transports.KindCall {
		return n
	}
	if pt.Bidirectional || !engine.OneSided(k) {
		n.Kinds, n.Why = transports.Kinds(transports.KindSend), "which proves that data arrived"
	}
	n.Depth, n.DepthOf = p.Depth, fmt.Sprintf("depth %d", p.Depth)
	if p.RecvDepth > p.Depth {
		n.Depth, n.DepthOf = p.RecvDepth, fmt.Sprintf("receive depth %d", p.RecvDepth)
	}
	return n
}

// StreamDepths chooses what a stream needs. Defaults give way to the device's limit.
func StreamDepths(sh *engine.Shape, p *engine.Plan, caps transports.Caps) {
	if sh.Depth = p.StreamDepth(); sh.Point.Depth > 0 {
		sh.Depth = sh.Point.Depth
	}
	if sh.RecvDepth = p.RecvDepth; sh.RecvDepth == 0 {
		sh.RecvDepth = max(engine.DefaultRecvDepth, 2*sh.Depth)
	}
	if limit := engine.MaxUserDepth(caps); limit > 0 {
		sh.Depth = min(sh.Depth, limit)
		sh.RecvDepth = min(sh.RecvDepth, limit)
	}
	switch sh.Moderation = p.Moderation; {
	case sh.Moderation > 0:
	case sh.Size > engine.ModerationLimit:
		sh.Moderation = 1
	default:
		sh.Moderation = max(1, sh.Depth/8) // eight completions in flight keep the pipe full
	}
	sh.Moderation = min(sh.Moderation, sh.Depth)
	budget := engine.SlotBudget
	if !p.Verify {
		budget = engine.BareBudget
	}
	most := sh.Depth
	if sh.Numbered() && engine.TakesReceives(sh.Kind()) && sh.RecvDepth*sh.Stride() <= moreSlots {
		most = max(most, sh.RecvDepth)
		if sh.Bidirectional {
			most += controlReceives
		}
	}
	sh.Slots = max(1, min(most, budget/sh.Stride()))
	if sh.Numbered() { // a slot is a message's own until it was compared
		sh.Moderation = min(sh.Moderation, sh.Slots)
		if engine.TakesReceives(sh.Kind()) {
			sh.RecvDepth = min(sh.RecvDepth, ownReceives(sh))
		}
	}
}

// moreSlots bounds the bytes of slots up to which each receive has one of its own: what fits into an L2 cache.
const moreSlots = 1 << 20

// StreamSleeps: the client does, and a target that has receives for many more messages and loses nothing when late.
func StreamSleeps(sh *engine.Shape, side string) bool {
	if sh.Bidirectional {
		return false
	}
	return side == engine.SideClient || !sh.Idle && sh.Arrival == engine.ArrivalMessage &&
		sh.RecvDepth >= engine.DefaultRecvDepth
}

// OneOperation is the config of a workload that makes no other than that of the point.
func OneOperation(sh *engine.Shape, c *transports.Config) { c.NoReads = !engine.OneSided(sh.Kind()) }

// ThroughputConfig is that of a stream, one way or both, which has room for control messages.
func ThroughputConfig(sh *engine.Shape, c *transports.Config) {
	OneOperation(sh, c)
	if sh.Bidirectional {
		c.RecvDepth = sh.RecvDepth + controlReceives
	}
}

// ownReceives is how many receives for data have slots of their own until compared. Control messages take slots, too.
func ownReceives(sh *engine.Shape) int {
	if sh.Bidirectional && sh.Kind() == transports.KindSend {
		return max(sh.Slots-controlReceives, min(sh.Slots, fewReceives))
	}
	return sh.Slots
}
