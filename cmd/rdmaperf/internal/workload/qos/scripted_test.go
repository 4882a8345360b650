package qos

import (
	"context"
	"math"
	"runtime"
	"testing"
	"time"

	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/curves"
	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/drive"
	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/engine"
	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/engine/enginetest"
	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/engine/enginetest/scripted"
	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/pairs/pairstest"
	"github.com/rdmaperf/rdmaperf/internal/leaktest"
	"github.com/rdmaperf/rdmaperf/reports"
)

func TestMain(m *testing.M) { leaktest.Main(m) }

const (
	each, trip, read, slow = 500, 1000, 500, 1000
	part                   = 10_000 // ns of one bin
)

// take runs a point whose low class has a script, and whose high class reads in 500 ns, or
// each 19th time in 1500. bend changes what the n-th of its reads returns.
func take(t *testing.T, l *pairstest.Link, bend func(n int, b []byte)) (results []reports.Result, failed error) {
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
	own := enginetest.Alone(func(ctx context.Context, r *engine.Run) ([]reports.Result, error) {
		results, failed = measure(ctx, r, bins*part, l, high)
		return []reports.Result{r.Result()}, nil
	})
	plan := engine.Plan{Workloads: engine.Table{Name: {Runner: own}},
		Points: []engine.Point{{Workload: Name, Alone: true, Op: op, Size: small,
			Options: engine.PackOptions(options{bins * part})}}, Iterations: 1, Verify: true, VerifyAll: true}
	enginetest.Measure(t, &scripted.Fabric{}, plan, 1, 1)
	return results, failed
}

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
		if _, err := take(t, newLink(), func(n int, b []byte) {
			if n == 100 {
				bend(b)
			}
		}); reports.Code(err) != reports.ExitCorruption {
			t.Errorf("a read that was %s: %v", what, err)
		}
	}
}
