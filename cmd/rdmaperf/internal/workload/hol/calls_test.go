package hol

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/engine"
	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/engine/enginetest"
	holresults "github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/workload/hol/results"
	"github.com/rdmaperf/rdmaperf/reports"
	"github.com/rdmaperf/rdmaperf/transports"
)

func callPoint(variant string, size int) engine.Point {
	return NewPoint("call", size, variant, Options{})
}

// Calls have the same two views as messages: the exact number of probes alone and beside
// the bulk, and bulk in both; every byte is compared. The interval makes the window of the
// probes 72 ms: in one of 2 ms on a busy machine, no bulk call of 30,000 bytes need end.
func TestHeadOfLineByCalls(t *testing.T) {
	for _, name := range []string{"bufconn", "dropin iwarp", "fused iwarp", "fused mem"} {
		for _, variant := range CallVariants() {
			t.Run(name+" "+variant, func(t *testing.T) {
				plan := enginetest.QuickPlan(NewPoint("call", 30_000, variant,
					Options{BulkDepth: 4, ProbeInterval: 3 * time.Millisecond, ProbeOne: true}))
				plan.Iterations, plan.WarmupIterations = 25, 3
				r, err := enginetest.First(enginetest.RunPoints(t, enginetest.CarriersUnderTest()[name], plan))
				if err != nil {
					t.Fatal(err)
				}
				h := holresults.Of(&r)
				switch {
				case h == nil || !r.Verified || r.Errors != 0 || r.RoundTrip != reports.RoundTripFull:
					t.Fatalf("%+v, want a verified full round trip", r)
				case h.ProbeAlone.Count != 25 || h.ProbeLoaded.Count != 25 || h.Probes != 25:
					t.Errorf("%d probes alone and %d loaded, want 25", h.ProbeAlone.Count, h.ProbeLoaded.Count)
				case h.BulkAloneBytesPerSecond <= 0 || h.BulkLoadedBytesPerSecond <= 0 || r.Operations == 0 ||
					r.DurationNs == 0:
					t.Errorf("bulk %v alone, %v loaded, %d operations", h.BulkAloneBytesPerSecond,
						h.BulkLoadedBytesPerSecond, r.Operations)
				case r.QPs != connections(variant) || r.Depth != 4 || h.Arm != variant || h.ProbeGapNs != 3_000_000 ||
					h.ProbeIntervalNs != 0 || h.LoadedLoop != nil:
					t.Errorf("%d connections, depth %d, %+v", r.QPs, r.Depth, h)
				case r.Verification.Whole != 2*(r.Operations+25) || r.Verification.Mode != reports.VerifyAll:
					t.Errorf("%+v, want all of both ways", r.Verification)
				case r.Latency != nil || r.Throughput != nil:
					t.Error("latency or throughput beside those of the probes and the bulk")
				}
			})
		}
	}
}

// One probe at a time leaves its interval between two: the window of so many is as long as that.
func TestProbesOfCallsKeepTheirInterval(t *testing.T) {
	const probes, interval = 10, 3 * time.Millisecond
	plan := enginetest.QuickPlan(NewPoint("call", 1000, SameQP,
		Options{BulkDepth: 1, ProbeInterval: interval, ProbeOne: true}))
	plan.Iterations, plan.WarmupIterations = probes, 1
	r, err := enginetest.First(enginetest.RunPoints(t, enginetest.CarriersUnderTest()["bufconn"], plan))
	if err != nil {
		t.Fatal(err)
	}
	if least := (probes - 1) * interval; holresults.Of(&r).ProbeLoaded.Count != probes ||
		time.Duration(r.DurationNs) < least {
		t.Errorf("%d probes in %v, want %d in %v at least", holresults.Of(&r).ProbeLoaded.Count,
			time.Duration(r.DurationNs), probes, least)
	}
}

// Probes at an interval that the path does not sustain are counted as due, and the point
// says that it is saturated.
func TestSaturatedProbesOfCallsSaySo(t *testing.T) {
	plan := enginetest.QuickPlan(NewPoint("call", 20_000, SameQP,
		Options{BulkDepth: 2, ProbeInterval: 2 * time.Microsecond}))
	plan.Iterations, plan.Duration = 0, 100*time.Millisecond
	r, err := enginetest.First(enginetest.RunPoints(t, enginetest.CarriersUnderTest()["bufconn"], plan))
	if err != nil {
		t.Fatal(err)
	}
	if h := holresults.Of(&r); h.LoadedLoop == nil || !h.LoadedLoop.Saturated || h.LoadedLoop.Due < 49_000 ||
		h.ProbeLoaded.Unfinished == 0 {
		t.Errorf("loop %+v of %d probes, %d unfinished; want 50000 due in 100 ms, and saturated", h.LoadedLoop,
			h.ProbeLoaded.Count, h.ProbeLoaded.Unfinished)
	}
}

// One changed bit is found in the answers of probes and of bulk calls.
func TestHeadOfLineByCallsFindsChangedBytes(t *testing.T) {
	for method, want := range map[uint8]string{methodProbe: "answer to a probe: byte 3",
		methodBulk: "answer to a bulk call: byte 3"} {
		fault := enginetest.CallFault{Serve: func(_ int64, s *transports.Served,
			answer func(*transports.Served) error) error {
			err := answer(s)
			if err == nil && s.Method == method {
				s.Response = enginetest.Flipped(s.Response, 3, 0x20)
			}
			return err
		}}
		plan := enginetest.QuickPlan(NewPoint("call", 5000, SameQP, Options{BulkDepth: 2}))
		plan.Iterations = 20
		_, err := enginetest.RunPoints(t, fault.Ends(enginetest.CarriersUnderTest()["fused mem"]), plan)
		if reports.Code(err) != reports.ExitCorruption || !strings.Contains(fmt.Sprint(err), want) {
			t.Errorf("%v (exit %d), want %q and %d", err, reports.Code(err), want, reports.ExitCorruption)
		}
	}
}

// What calls cannot be is refused by name.
func TestHeadOfLineByCallsRefuses(t *testing.T) {
	sliced := callPoint(AppSlicing, 5000)
	short := callPoint(SameQP, 5000)
	short.Response = 9
	small := callPoint(SameQP, 64)
	for want, pt := range map[string]engine.Point{"app-slicing is of write": sliced, "answer of 8 bytes": short,
		"probe size 64": small} {
		if err := checkCalls(pt); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
}

// Messages, too, have one probe at a time, and none sooner than asked.
func TestProbesOneAtATime(t *testing.T) {
	plan := enginetest.QuickPlan(NewPoint("write", 5000, SameQP,
		Options{ProbeInterval: 2 * time.Millisecond, ProbeOne: true}))
	plan.Iterations = 20
	client, server := enginetest.Pair(t, enginetest.MemEnds, plan, shape, sides)
	d := client.Side.(*holClient)
	d.parts = parts{probes: true}
	out := enginetest.Once(t, client, server, 1, engine.Limits{Ops: 20})
	if d.pace != nil || out.Unsent != 0 || out.Rec.Count() != 20 || out.Window < 38*time.Millisecond {
		t.Errorf("%d probes in %v, %d unsent; want 20 in 38 ms at least and none due", out.Rec.Count(), out.Window,
			out.Unsent)
	}
}
