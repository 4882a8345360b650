package drive_test

import (
	"testing"

	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/drive"
	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/engine"
	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/engine/enginetest"
	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/workload/latency"
	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/workload/throughput"
	"github.com/rdmaperf/rdmaperf/transports"
)

// What is compared has a place of its own; what is not stays in the cache, as
// one buffer does.
func TestStreamsThatNobodyComparesStayInTheCache(t *testing.T) {
	memory, _ := enginetest.MemEnds(t)
	for _, c := range []struct {
		verify      bool
		size, slots int
	}{
		{true, 64 << 10, 128},
		{false, 64 << 10, 1},
		{false, 4 << 10, 16},
		{true, 64, 128},
		{false, 64, 128},
		{false, 4 << 20, 1},
	} {
		plan := enginetest.QuickPlan(engine.Point{Workload: throughput.Name, Op: transports.KindSend.String(),
			Size: c.size})
		plan.Depth, plan.Moderation, plan.Verify, plan.Polling = 128, 1, c.verify, engine.PollingBusy
		sh := enginetest.ShapeOf(t, plan, memory.Caps(), memory.Caps(), drive.ThroughputShape)
		if sh.Slots != c.slots {
			t.Errorf("%d bytes, compared %v: %d slots, want %d", c.size, c.verify, sh.Slots, c.slots)
		}
	}
}

// A slot is a message's own until it was compared, so there are no more receives than slots,
// also where there are just as many slots as operations to a completion.
func TestThereAreNoMoreReceivesThanSlots(t *testing.T) {
	memory, _ := enginetest.MemEnds(t)
	for _, moderation := range []int{1, 8, 16, 128} {
		plan := enginetest.QuickPlan(engine.Point{Workload: throughput.Name, Op: transports.KindSend.String(),
			Size: 1 << 20})
		plan.Depth, plan.Moderation, plan.Verify, plan.Polling = 128, moderation, true, engine.PollingBusy
		sh := enginetest.ShapeOf(t, plan, memory.Caps(), memory.Caps(), drive.ThroughputShape)
		if sh.Slots != 16 || sh.RecvDepth != sh.Slots {
			t.Errorf("a completion of %d: %d slots and %d receives, want 16 of both", moderation, sh.Slots,
				sh.RecvDepth)
		}
	}
}

// A message that is prepared with others has bytes and a slot of its own.
func TestTheMessagesOfABatchShareNoBytes(t *testing.T) {
	for _, size := range []int{1, engine.MediumMessage, engine.MediumMessage + 1} {
		sh := &engine.Shape{Point: engine.Point{Workload: latency.Name, Size: size}}
		steps := drive.BatchSteps(sh)
		if slots := drive.LatencySlotsFor(size); steps > 1 && slots < 2*steps {
			t.Errorf("%d bytes: %d slots for batches of %d", size, slots, steps)
		}
		if steps > engine.LatencyShifts {
			t.Errorf("%d bytes: batches of %d, %d sources", size, steps, engine.LatencyShifts)
		}
		if steps > 1 && drive.Shift(sh) < size {
			t.Errorf("%d bytes: sources are %d apart", size, drive.Shift(sh))
		}
	}
}
