package qos

import (
	"context"
	"fmt"
	"math"
	"runtime"
	"testing"
	"time"

	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/curves"
	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/drive"
	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/engine"
	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/engine/enginetest"
	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/pairs"
	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/pairs/pairstest"
	"github.com/rdmaperf/rdmaperf/internal/leaktest"
	"github.com/rdmaperf/rdmaperf/reports"
	"github.com/rdmaperf/rdmaperf/transports/rdma"
)

func TestMain(m *testing.M) { leaktest.Main(m) }

const (
	each, trip, read, slow = 500, 1000, 500, 1000
	part                   = 10_000 // ns of one bin
)

// take has high read in 500 ns, or each 19th time in 1500; bend changes what its n-th read returns.
func take(t *testing.T, l *pairstest.Link, bend func(n int, b []byte)) ([]reports.Result, error) {
	t.Helper()
	n := 0
	high := func(record int, b []byte) error {
		time.Sleep(read)
		if n++; n%19 == 0 {
			time.Sleep(slow)
		}
		drive.FillSender(b, highSender)
		drive.PutNumber(b, uint64(record))
		bend(n, b)
		return nil
	}
	return enginetest.MeasureAlone(t, thePoint, 1, true,
		func(ctx context.Context, r *engine.Run) ([]reports.Result, error) {
			return measure(ctx, r, bins*part, l, high)
		})
}

var thePoint = engine.Point{Workload: Name, Op: op, Size: small, Options: engine.PackOptions(options{bins * part})}

func near(a, b float64) bool { return math.Abs(a-b) <= 1e-12*math.Abs(b) }

func newLink() *pairstest.Link {
	l := pairstest.New(depth, bulk, 1, depth*bulk)
	l.Each, l.Trip = each, func(int) time.Duration { return trip }
	return l
}

// Low has the link of its own for two thirds of the time, less one way at its begin; high reads
// one after the other in its two thirds.
func TestScriptedClasses(t *testing.T) {
	results, err := take(t, newLink(), func(int, []byte) {})
	if err != nil || len(results) != bins {
		t.Fatalf("%d results, %v", len(results), err)
	}
	const full = part / each
	reads, whole := int64(0), int64(0)
	for i, r := range results {
		v, at := curves.Of(&r).Values, curves.Of(&r).X
		low := 0
		switch {
		case i == 0:
			low = full - 1 - trip/each // the first ends behind its way, and the last behind the bin
		case i < bins*2/3:
			low = full
		case i == bins*2/3:
			low = depth // those under way
		}
		if want := float64(low*bulk) * 1e9 / part; !near(v["low_bytes"], want) || r.DurationNs != part ||
			!near(at, (float64(i)+0.5)*part/1e9) {
			t.Errorf("bin %d at %v: low has %v a second in %d ns, want %v", i, at, v["low_bytes"], r.DurationNs, want)
		}
		n := r.Operations - int64(low)
		reads += n
		if !near(v["high_rate"], float64(n)*1e9/part) || (i < bins/3) != (n == 0) ||
			n > 0 && (v["high_p50_ns"] != read || v["high_p99_ns"] != read+slow && (v["high_p99_ns"] != read ||
				n > 18)) {
			t.Errorf("bin %d: %d reads, %v", i, n, v)
		}
		c := r.Verification
		if whole += c.Whole; c.Messages != r.Operations || c.Whole != c.Messages || c.Bytes != n*small+int64(low)*bulk {
			t.Errorf("bin %d: compared %+v", i, c)
		}
	}
	// 18 reads of 500 ns and one of 1500, over and over, until one begins at the end.
	if want := int64(19 * (bins * 2 / 3 * part) / (18*read + read + slow)); reads < want || reads > want+19 {
		t.Errorf("%d reads, want about %d", reads, want)
	}
}

// Each part says what was used in it, a quarter of a CPU here, and nobody who polls waits for a processor of Go's.
func TestPartsSayWhatWasUsed(t *testing.T) {
	fewest := math.MaxInt
	results, err := take(t, newLink(), func(int, []byte) { fewest = min(fewest, runtime.GOMAXPROCS(0)) })
	if err != nil {
		t.Fatal(err)
	}
	for i, r := range results {
		if r.CPU == nil || math.Abs(r.CPU.ClientSeconds-part/4e9) > 1e-12 {
			t.Errorf("part %d: %+v", i, r.CPU)
		}
	}
	if fewest <= busy {
		t.Errorf("%d processors for %d who poll", fewest, busy)
	}
	p := &parts{}
	p.used[3].seen.Store(true)
	if p.cpu(2) != nil || p.cpu(3) != nil {
		t.Error("a part whose begin or end nobody saw says what was used")
	}
}

// What either class moves has numbers.
func TestBothClassesAreNumbered(t *testing.T) {
	none := func(int, []byte) {}
	for what, bend := range map[string]func(b []byte) []byte{
		"lost":           func([]byte) []byte { return nil },
		"changed":        func(b []byte) []byte { b[bulk/2] ^= 4; return b },
		"the one before": func(b []byte) []byte { b[0]--; return b },
	} {
		l := newLink()
		l.Bend = func(n int, b []byte) []byte {
			if n == 100 {
				return bend(b)
			}
			return b
		}
		if _, err := take(t, l, none); reports.Code(err) != reports.ExitCorruption {
			t.Errorf("a write that was %s: %v", what, err)
		}
	}
	for what, bend := range map[string]func(b []byte){
		"changed":        func(b []byte) { b[small-1] ^= 4 },
		"the one before": func(b []byte) { b[0]-- },
	} {
		once := func(n int, b []byte) {
			if n == 100 {
				bend(b)
			}
		}
		_, err := take(t, newLink(), once)
		w := newWire()
		w.bend = once
		_, inTurns := takeTurns(t, w)
		if reports.Code(err) != reports.ExitCorruption || reports.Code(inTurns) != reports.ExitCorruption {
			t.Errorf("a read that was %s: %v, by turns %v", what, err, inTurns)
		}
	}
}

// wire is two classes by one clock, which a poll moves to what ends next, if that is the poller's.
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

func takeTurns(t *testing.T, w *wire) ([]reports.Result, error) {
	t.Helper()
	return enginetest.MeasureAlone(t, thePoint, 1, true,
		func(ctx context.Context, r *engine.Run) ([]reports.Result, error) {
			return byTurns(ctx, r, bins*part, w, aClass{w}, &w.clock)
		})
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
