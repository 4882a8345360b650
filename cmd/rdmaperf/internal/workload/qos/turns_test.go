package qos

import (
	"context"
	"fmt"
	"math"
	"testing"

	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/curves"
	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/drive"
	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/engine"
	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/engine/enginetest"
	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/engine/enginetest/scripted"
	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/pairs"
	"github.com/rdmaperf/rdmaperf/reports"
	"github.com/rdmaperf/rdmaperf/transports/rdma"
)

// wire is two classes by one clock, which a poll moves to what ends next, if that is the
// poller's: a write takes each of the wire, and a read its time.
type wire struct {
	clock rdma.Clock
	mem   []byte
	src   [depth][]byte
	under []int   // slots, in order
	ends  []int64 // of them
	came  int64   // when the read does; 0: none is under way

	record, reads int
	bend          func(n int, b []byte)
	b             [small]byte
}

func newWire() *wire {
	w := &wire{mem: make([]byte, depth*bulk), bend: func(int, []byte) {}}
	for i := range w.src {
		w.src[i] = make([]byte, bulk)
	}
	return w
}

func (w *wire) Source(slot int) []byte { return w.src[slot] }

func (w *wire) Write(slot int, at pairs.Place, size int) (bool, error) {
	copy(w.mem[at.Off:], w.src[slot][:size])
	begin := w.clock.Now()
	if n := len(w.ends); n > 0 {
		begin = w.ends[n-1]
	}
	w.under, w.ends = append(w.under, slot), append(w.ends, begin+each)
	return true, nil
}

func (w *wire) Poll(ended func(int)) (int, error) {
	if len(w.ends) == 0 || w.came != 0 && w.came < w.ends[0] {
		return 0, nil
	}
	w.clock.Set(w.ends[0])
	slot := w.under[0]
	w.under, w.ends = w.under[1:], w.ends[1:]
	ended(slot)
	return 1, nil
}

func (w *wire) Read(at pairs.Place, b []byte) error { copy(b, w.mem[at.Off:]); return nil }
func (w *wire) Drive() error                        { return nil }

// aClass is high of a wire.
type aClass struct{ *wire }

func (h aClass) post(record int) error {
	if record != h.reads%records {
		return fmt.Errorf("read %d is of record %d", h.reads, record)
	}
	h.record, h.wire.came = record, h.clock.Now()+read
	if h.reads++; h.reads%19 == 0 {
		h.wire.came += slow
	}
	return nil
}

func (h aClass) came() (bool, error) {
	if len(h.ends) > 0 && h.ends[0] <= h.wire.came {
		return false, nil
	}
	h.clock.Set(h.wire.came)
	h.wire.came = 0
	drive.FillSender(h.b[:], highSender)
	drive.PutNumber(h.b[:], uint64(h.record))
	h.bend(h.reads, h.b[:])
	return true, nil
}

func (h aClass) bytes() []byte { return h.b[:] }

func takeTurns(t *testing.T, w *wire) (results []reports.Result, failed error) {
	t.Helper()
	own := enginetest.Alone(func(ctx context.Context, r *engine.Run) ([]reports.Result, error) {
		results, failed = byTurns(ctx, r, bins*part, w, aClass{w}, &w.clock)
		return []reports.Result{r.Result()}, nil
	})
	plan := engine.Plan{Workloads: engine.Table{Name: {Runner: own}},
		Points: []engine.Point{{Workload: Name, Alone: true, Op: op, Size: small,
			Options: engine.PackOptions(options{bins * part})}}, Iterations: 1, Verify: true, VerifyAll: true}
	enginetest.Measure(t, &scripted.Fabric{}, plan, 1, 1)
	return results, failed
}

// One thread has both classes do in their thirds what two threads would, by one clock.
func TestClassesByTurns(t *testing.T) {
	w := newWire()
	w.clock.Set(12345) // a run does not begin with the clock
	results, err := takeTurns(t, w)
	if err != nil || len(results) != bins {
		t.Fatalf("%d results, %v", len(results), err)
	}
	whole := int64(0)
	for i, r := range results {
		v := curves.Of(&r).Values
		low, most := v["low_bytes"]*part/1e9/bulk, v["high_rate"]*part/1e9
		switch {
		case i < bins*2/3:
			if math.Abs(low-part/each) > 1 {
				t.Errorf("part %d: %v writes of low, want %d", i, low, part/each)
			}
		case i > bins*2/3:
			if low != 0 {
				t.Errorf("part %d: low has %v writes", i, low)
			}
		}
		if (most == 0) != (i < bins/3) || most > part/read || most > 0 && (v["high_p50_ns"] != read ||
			most < part/read*0.85) {
			t.Errorf("part %d: %v reads, %v", i, most, v)
		}
		if r.CPU != nil {
			t.Errorf("part %d: says what the host's processors did: %+v", i, r.CPU)
		}
		whole += r.Verification.Whole
	}
	if whole < 400 {
		t.Errorf("compared %d", whole)
	}
}

func TestReadsByTurnsAreNumbered(t *testing.T) {
	for what, bend := range map[string]func(b []byte){
		"changed":        func(b []byte) { b[small-1] ^= 4 },
		"the one before": func(b []byte) { b[0]-- },
	} {
		w := newWire()
		w.bend = func(n int, b []byte) {
			if n == 100 {
				bend(b)
			}
		}
		if _, err := takeTurns(t, w); reports.Code(err) != reports.ExitCorruption {
			t.Errorf("a read that was %s: %v", what, err)
		}
	}
}
