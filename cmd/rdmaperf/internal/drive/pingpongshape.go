package drive

import (
	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/engine"
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
