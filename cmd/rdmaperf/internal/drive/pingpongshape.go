package drive

import (
	"fmt"

	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/engine"
	"github.com/rdmaperf/rdmaperf/transports"
)

// LatencyShape is that of a ping-pong: one operation under way.
func LatencyShape(sh *engine.Shape, p *engine.Plan, ab engine.Abilities) {
	sh.Depth, sh.Moderation, sh.Slots = 1, 1, LatencySlotsFor(sh.Size)
	sh.RecvDepth = sh.Slots
	switch sh.Arrives(ab); {
	case sh.Kind() != transports.KindWrite:
	case ab.Both.LastByteLast && sh.Polling != engine.PollingEvent:
		sh.Arrival = engine.ArrivalMemory
	default:
		sh.Arrival = engine.ArrivalNotify // nothing to sleep on in memory, or no order in it
	}
	sh.Loop = engine.LoopPlain
	if p.Loop != engine.LoopPlain && ab.Both.PingPong && sh.Polling != engine.PollingEvent &&
		sh.Arrival != engine.ArrivalNotify {
		sh.Loop = engine.LoopProvider
	}
}

func CheckLatency(sh *engine.Shape) error {
	if sh.Slots != LatencySlotsFor(sh.Size) || sh.RecvDepth != sh.Slots {
		return fmt.Errorf("slots %d is out of range", sh.Slots)
	}
	return nil
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

// Shift is from one source offset to the next. Messages that are prepared together
// have bytes of their own.
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
