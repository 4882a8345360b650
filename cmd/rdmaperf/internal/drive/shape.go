package drive

import (
	"cmp"
	"errors"
	"fmt"
	"time"

	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/engine"
	"github.com/rdmaperf/rdmaperf/reports"
	"github.com/rdmaperf/rdmaperf/transports"
)

// PingPongShape is that of a ping-pong: one operation under way.
func PingPongShape(s *engine.Setup) (*engine.Shape, error) {
	sh, err := s.NewShape()
	if err != nil {
		return nil, err
	}
	both := s.Caps.Both
	sh.Slots = LatencySlotsFor(sh.Size)
	sh.RecvDepth = sh.Slots
	switch sh.Arrives(s.Caps); {
	case sh.Kind() != transports.KindWrite:
	case both.LastByteLast && sh.Polling != engine.PollingEvent:
		sh.Arrival = engine.ArrivalMemory
	default:
		sh.Arrival = engine.ArrivalNotify // nothing to sleep on in memory, or no order in it
	}
	sh.Loop = engine.LoopPlain
	if s.Plan.Loop != engine.LoopPlain && both.PingPong && sh.Polling != engine.PollingEvent &&
		sh.Arrival != engine.ArrivalNotify {
		sh.Loop = engine.LoopProvider
	}
	sh.Layout = PingPongLayout(sh)
	sh.Config = sh.SessionConfig()
	OneOperation(sh, &sh.Config)
	return sh, nil
}

// PingPongNeeds are those of a ping-pong with this operation: notifications of writes.
func PingPongNeeds(op, polling string) engine.Needs {
	n := engine.Needs{PingPong: op != transports.KindCall.String()}
	if op == transports.KindWrite.String() {
		n.Kinds, n.Why, n.Ordered = transports.Kinds(transports.KindSend), "which proves that data arrived",
			polling != engine.PollingEvent
	}
	return n
}

func LatencySlotsFor(size int) int {
	switch {
	case size > engine.LargeMessage:
		return 2
	case size > engine.MediumMessage:
		return 4
	}
	return engine.LatencySlots
}

// BatchSteps is how many steps of a ping-pong one call takes at most.
func BatchSteps(sh *engine.Shape) int {
	if sh.Size > engine.MediumMessage {
		return 1
	}
	return LatencySlotsFor(sh.Size) / 2
}

// Shift is from one source offset to the next. Messages that are prepared together have bytes of their own.
func Shift(sh *engine.Shape) int {
	if BatchSteps(sh) > 1 {
		return sh.Stride()
	}
	return engine.ShiftStep
}

// PingPongLayout has one source, and room to begin at any of LatencyShifts offsets.
func PingPongLayout(sh *engine.Shape) engine.Layout {
	return sh.Behind(sh.Stride() + (engine.LatencyShifts-1)*Shift(sh))
}

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

// CallShape is that of every workload of calls: a goroutine for each outstanding call of a connection, depth by
// default.
func CallShape(s *engine.Setup, depth int) (*engine.Shape, error) {
	sh, err := s.NewShape()
	if err != nil {
		return nil, err
	}
	if sh.Polling == engine.PollingEvent {
		return nil, engine.Failed("check point",
			errors.New("how a carrier of calls waits is its layer's mode, as in grpc(fused,event)+iwarp"))
	}
	sh.Threads, sh.Inline = 1, 0
	if sh.Depth = cmp.Or(sh.Outstanding, s.Plan.Depth, depth); sh.Depth*sh.QPs > maxCallers {
		return nil, engine.Refused(fmt.Errorf("%d calls outstanding on each of %d connections are above the limit of %d",
			sh.Depth, sh.QPs, maxCallers))
	}
	sh.Arrives(s.Caps)
	sh.Layout.Window = (sh.Size + sh.Response) * sh.Depth // what is under way
	return sh, nil
}

// maxCallers bounds the goroutines of one point.
const maxCallers = 1 << 16

// CallConfig is what both sides of a point expect of its calls. each is how many callers belong to one outstanding
// call.
func CallConfig(sh *engine.Shape, each int) transports.CallConfig {
	return transports.CallConfig{MaxRequest: sh.Size, MaxResponse: sh.Response, Callers: sh.Depth * each, Conns: sh.QPs}
}

// CallFailed classifies the error of a call. One that was cancelled lost its server: who interrupts calls does not ask.
func CallFailed(of fmt.Stringer, err error) error {
	if _, ok := errors.AsType[*reports.ExitError](err); ok {
		return err
	}
	e := transports.AsCallError(err)
	cause := fmt.Errorf("call failed: %w", e)
	switch e.Code {
	case transports.CallDeadlineExceeded:
		return engine.PeerError(of.String(), cause, "the server's log, or a longer --timeout")
	case transports.CallUnavailable, transports.CallDataLoss, transports.CallCanceled:
		return engine.PeerError(of.String(), cause, "the server's log, then the same command again")
	}
	return engine.Failed(of.String(), cause)
}

// IdleWindow is how long both sides are watched doing nothing: some hundred pauses of a background poller.
var IdleWindow = 250 * time.Millisecond
