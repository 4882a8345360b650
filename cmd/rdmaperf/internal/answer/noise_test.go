package answer

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/rdmaperf/rdmaperf/reports"
)

// window is a ping-pong of 100 ms: what it measured, and what an idle machine would have.
type window struct{ measured, idle *reports.Result }

// pingPong runs one, from which the machine takes what delay says of each operation, in ns.
func pingPong(rng *rand.Rand, delay func(rng *rand.Rand, ns float64) float64) window {
	const length = float64(100 * time.Millisecond)
	measured, idle := reports.NewRecorder(), reports.NewRecorder()
	var now, taken float64
	n, switches := 0, int64(0)
	for ; now < length; n++ {
		ns := 5000 * math.Exp(0.3*rng.NormFloat64())
		late := delay(rng, ns)
		measured.Record(int64(ns + late))
		idle.Record(int64(ns))
		if now, taken = now+ns+late, taken+late; late > 0 {
			switches++
		}
	}
	of := func(rec *reports.Recorder, time float64) *reports.Result {
		l := rec.Snapshot()
		return &reports.Result{Latency: &l, Throughput: &reports.Throughput{OperationsPerSecond: float64(n) / time}}
	}
	w := window{of(measured, now), of(idle, now-taken)}
	w.measured.Disturbance = &reports.Disturbance{Taken: taken / now, Server: &reports.Noise{},
		Client: &reports.Noise{InvoluntarySwitches: switches}}
	w.measured.Polling, w.measured.Depth, w.measured.DurationNs = reports.PollingBusy, 1, int64(now)
	return w
}

// However the machine takes its part of a window, every figure of an idle machine is within the bounds.
func TestTheFigureOfAnIdleMachineIsWithinTheBounds(t *testing.T) {
	const slack = 1.002 // of the histogram
	for name, delay := range map[string]func(rng *rand.Rand, ns float64) float64{
		"nothing": func(*rand.Rand, float64) float64 { return 0 },
		"slices of a scheduler": func(rng *rand.Rand, _ float64) float64 {
			if rng.IntN(1000) > 0 {
				return 0
			}
			return 4e6
		},
		"a switch of threads now and then": func(rng *rand.Rand, _ float64) float64 {
			if rng.IntN(5) > 0 {
				return 0
			}
			return 20_000
		},
		"a part of every operation": func(_ *rand.Rand, ns float64) float64 { return ns },
	} {
		for seed := range uint64(6) {
			w := pingPong(rand.New(rand.NewPCG(seed, 0)), delay)
			for _, with := range []bool{true, false} { // the histogram
				if !with {
					w.measured.Latency.HDR = ""
				}
				for _, figure := range []string{"p50", "p90", "p99", "p999", "mean", "max", "rate"} {
					f, _ := w.measured.Find(figure)
					low, high := bounds(w.measured, f)
					if idle, _ := w.idle.Figure(figure); idle < low/slack || idle > high*slack {
						t.Errorf("%s, seed %d, histogram %v: idle %s is %v, not within %v and %v; taken %.0f %%", name,
							seed, with, figure, idle, low, high, 100*taken(w.measured))
					}
				}
			}
		}
	}
}

// Half of a window may be gone in waits of milliseconds: the median of a ping-pong is still known within a hundredth.
func TestCountedWaitsBoundAMedianClosely(t *testing.T) {
	w := pingPong(rand.New(rand.NewPCG(1, 0)), func(rng *rand.Rand, _ float64) float64 {
		if rng.IntN(1000) > 0 {
			return 0
		}
		return 5e6
	})
	f, _ := w.measured.Find("p50")
	if low, high := bounds(w.measured, f); taken(w.measured) < 0.3 || low < 0.99*high {
		t.Errorf("%.0f %% taken, p50 within %v and %v", 100*taken(w.measured), low, high)
	}
}

// shared are 30 operations of some ms on a thread that shares its CPU: it runs for a ms at a time and then waits so
// long that the part t is taken from it. The least that their median can have been, and what it is on an idle machine.
func shared(rng *rand.Rand, ms, t float64) (low, measured, idle float64) {
	with, without := reports.NewRecorder(), reports.NewRecorder()
	wait := func() float64 { return 1e6 * t / (1 - t) * rng.ExpFloat64() }
	n, next := &reports.Noise{Threads: 1}, 1e6*rng.ExpFloat64()
	var window float64
	for range 30 {
		ns := 1e6 * ms * math.Exp(0.3*rng.NormFloat64())
		late := 0.
		for left := ns; left > next; next = 1e6 * rng.ExpFloat64() {
			w := wait()
			left, late = left-next, late+w
			n.RunQueueWaitNs += int64(w)
			n.Dispatches++
		}
		with.Record(int64(ns + late))
		without.Record(int64(ns))
		window += ns + late
	}
	l, l0 := with.Snapshot(), without.Snapshot()
	r := &reports.Result{Latency: &l, Polling: reports.PollingBusy, Depth: 1, DurationNs: int64(window),
		Disturbance: &reports.Disturbance{Client: n, Server: &reports.Noise{}, Taken: float64(n.RunQueueWaitNs) / window}}
	f := reports.Figure{Name: "p50", Value: l.P50}
	low, _ = bounds(r, f)
	return low, l.P50, l0.P50
}

// Operations that last for many waits lose the same part each: the median is too high by the part of the window taken.
func TestManyWaitsInAnOperationTakeTheirPartOfIt(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	for _, part := range []float64{0.33, 0.5, 0.8} {
		var lows, ratios []float64
		for range 200 {
			low, measured, idle := shared(rng, 20, part)
			lows, ratios = append(lows, low/idle), append(ratios, measured/low)
		}
		low, ratio := Pairs(lows, slices.Repeat([]float64{1}, len(lows)), 0.95), reports.Median(ratios)
		if low.Within[0] > 1.03 {
			t.Errorf("%.0f %% taken: the bound is at %v of the idle median, want at most 1", 100*part, low)
		}
		if most := 1.15 / (1 - part); ratio > most {
			t.Errorf("%.0f %% taken: the median may be %.2f times too high, want at most %.2f", 100*part, ratio, most)
		}
	}
}

// A wait as long as an operation may have been all of it.
func TestWaitsAsLongAsAnOperationMayBeAllOfIt(t *testing.T) {
	l := reports.Latency{Count: 30, Min: 1e6, P50: 10e6, P90: 30e6, Max: 40e6}
	r := &reports.Result{Latency: &l, DurationNs: 300e6, Disturbance: &reports.Disturbance{Taken: 0.5,
		Client: &reports.Noise{Threads: 1, RunQueueWaitNs: 150e6, Dispatches: 50}}} // 3 ms each
	f := reports.Figure{Name: "p50", Value: 10e6}
	if low, _ := bounds(r, f); low != 1e6 {
		t.Errorf("waits of 3 ms, median of 10 ms: at least %v, want the least sample", low)
	}
	r.Disturbance.Client.Dispatches = 100 // 1.5 ms each
	if low, _ := bounds(r, f); low != 5e6 {
		t.Errorf("waits of 1.5 ms, median of 10 ms: at least %v, want half", low)
	}
	r.Disturbance.Client.Retransmits, r.Disturbance.Client.Segments = 30, 1000
	if low, _ := bounds(r, f); low != 1e6 {
		t.Errorf("as many segments sent again as operations: at least %v, want the least sample", low)
	}
}

// A few long waits leave the median where it is: that bound is a matter of ranks and not of time.
func TestLongWaitsLeaveTheMedianAndTakeTheTail(t *testing.T) {
	l := reports.Latency{Count: 1000, Min: 4000, P50: 5000, P90: 5500, P99: 4e6, Max: 4e6, Mean: 45000}
	r := &reports.Result{Latency: &l, Disturbance: &reports.Disturbance{Taken: 0.05}}
	f, _ := r.Find("p99")
	if low, high := bounds(r, f); low != 5500 || high != 4e6 {
		t.Errorf("p99 is within %v and %v", low, high)
	}
	f, _ = r.Find("p50")
	if low, _ := bounds(r, f); low != 4000 { // without a histogram the least sample has to do
		t.Errorf("p50 is at least %v", low)
	}
}

func TestSegmentsSentAgainAreNoise(t *testing.T) {
	r := &reports.Result{Disturbance: &reports.Disturbance{Taken: 0.1,
		Server: &reports.Noise{Segments: 1000, Retransmits: 20}}}
	if got := taken(r); math.Abs(got-0.12) > 1e-9 {
		t.Errorf("%v of the window was taken", got)
	}
	if r.Impairment = "loss=2%"; taken(r) != 0.1 {
		t.Error("loss that was asked for is noise")
	}
}

// A document of a run that nobody watched has no disturbance.
func TestBoundsWithoutADisturbance(t *testing.T) {
	r := &reports.Result{Polling: reports.PollingBusy, Depth: 1, DurationNs: 1e9, Latency: &reports.Latency{Count: 9, P50: 7}}
	if v := ValueOf(r, reports.Figure{Name: "p50", Value: 7}); v != (Value{7, 7, 7}) {
		t.Errorf("%v, want 7 alone", v)
	}
}

// An interval whose far end is ten times off says no more than its near end, on either side of 1.
func TestTheFarEndOfAnIntervalMaySayNothing(t *testing.T) {
	for _, c := range []struct {
		factor float64
		within [2]float64
		want   bool
	}{{1.3, [2]float64{1.2, 428}, true}, {1.3, [2]float64{1.2, 1.5}, false}, {0.77, [2]float64{1 / 428., 0.83}, true},
		{0.77, [2]float64{0.7, 0.83}, false}} {
		x := comparison{factor: c.factor, within: &c.within, clear: &c.within}
		if x.noisy() != c.want {
			t.Errorf("%v of %v: noisy %v", c.factor, c.within, !c.want)
		}
	}
}
