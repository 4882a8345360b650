package drive

import (
	"errors"
	"runtime"
	"testing"
	"time"

	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/engine"
	"github.com/rdmaperf/rdmaperf/reports"
)

// Threads share a rate: at constant intervals they follow one another, by chance each has a seed of its own.
func TestThreadsShareARate(t *testing.T) {
	for _, arrivals := range []string{engine.ArrivalsConstant, engine.ArrivalsPoisson} {
		sh := &engine.Shape{Point: engine.Point{Rate: 3000}, Arrivals: arrivals, Seed: 7}
		chance := arrivals == engine.ArrivalsPoisson
		for i := range 3 {
			w := &engine.Worker{}
			Paced(w, sh, i, 3)
			sharesARate(t, i, w.Pace, w.PaceShift, chance)
		}
	}
}

const everyTen = 10_000 // ns between two that are due

// Latency begins when an operation was due, service time when it began; what fails, and was due, counts.
func TestPacedOperations(t *testing.T) {
	broken := errors.New("broken")
	for _, c := range []struct {
		name             string
		shift            int64
		lim              engine.Limits
		slow, fails      int // the operation that takes four intervals, and breaks; none: -1
		ops, late, end   int64
		unsent, unlikely int64
		mean, service    float64
		samples          int64
	}{
		{"three", 5000, engine.Limits{Ops: 3}, -1, -1, 3, 0, 27_500, 0, 0, 1250, 1250, 3},
		{"a window", 0, engine.Limits{Dur: 5 * everyTen}, -1, -1, 5, 1, 50_000, 0, 0, 1250, 1250, 5},
		{"a window that ends before the next is due", 0, engine.Limits{Dur: 45_000}, -1, -1, 5, 1, 45_000, 0, 0, 1250,
			1250, 5},
		// Half of a round trip; the wait has no two ways.
		{"a stall", 0, engine.Limits{Dur: 5 * everyTen}, 1, -1, 2, 1, 50_000, 3, 0,
			(1250 + 20_000 + 30_000 + 20_000 + 10_000) / 5., (1250 + 20_000) / 2., 5},
		// None is skipped: those that were due in the stall begin one after the other, 2500 ns apart.
		{"a stall of so many", 0, engine.Limits{Ops: 5}, 1, -1, 5, 4, 57_500, 0, 0,
			(1250 + 20_000 + 31_250 + 23_750 + 16_250) / 5., (4*1250 + 20_000) / 5., 5},
		{"a break", 0, engine.Limits{Dur: 5 * everyTen}, 2, 2, 2, 1, 60_000, 2, 1,
			(1250 + 1250 + 40_000 + 20_000 + 10_000) / 5., 1250, 5},
		{"a break within", 0, engine.Limits{Ops: 9}, 2, 2, 2, 1, 60_000, 3, 1,
			(1250 + 1250 + 40_000 + 30_000 + 20_000 + 10_000) / 6., 1250, 6},
	} {
		bubble(t, func(t *testing.T) {
			p, w, _ := pingPongOn(t, "read", engine.SideClient, engine.ArrivalCompletion)
			p.onPoll = func(int) { time.Sleep(2500) }
			w.Lim, w.Pace, w.PaceShift, w.Service = c.lim, engine.NewPacer(everyTen, false, 1), c.shift,
				reports.NewRecorder()
			n := -1
			err := w.paced(2, func(*pingPongWorker, *pingPongLane) (t0, t1 int64, err error) {
				n++
				t0 = engine.Now()
				time.Sleep(2500)
				if n == c.slow {
					time.Sleep(4*everyTen - 2500)
				}
				if n == c.fails {
					return 0, 0, broken
				}
				return t0, engine.Now(), nil
			})
			l, s := w.Rec.Snapshot(), w.Service.Snapshot()
			if (err != nil) != (c.fails >= 0) || w.Ops != c.ops || w.Late != c.late || w.End != c.end ||
				w.Unsent != c.unsent || w.Unanswered != c.unlikely {
				t.Errorf("%s: %v, %d operations, %d late, %d unsent, %d unanswered, until %d", c.name, err, w.Ops,
					w.Late, w.Unsent, w.Unanswered, w.End)
			}
			if l.Mean != c.mean || l.Count != c.samples || l.Unfinished != c.unsent+c.unlikely || s.Mean != c.service ||
				s.Count != c.ops {
				t.Errorf("%s: latency %v of %d, %d bounds, service %v of %d, want %v of %d and %v", c.name, l.Mean,
					l.Count, l.Unfinished, s.Mean, s.Count, c.mean, c.samples, c.service)
			}
		})
	}
}

// Whose start is near watches the clock alone: no poll is to delay it.
func TestANearStartIsNotDelayedByAPoll(t *testing.T) {
	for left, polls := range map[int64]int{pollUntil / 2: 0, pollUntil: 0, pollUntil + 1: 1} {
		bubble(t, func(t *testing.T) {
			p, w, l := pingPongOn(t, "read", engine.SideClient, engine.ArrivalCompletion)
			time.Sleep(time.Second)
			p.onPoll = func(int) { time.Sleep(time.Duration(left)) }
			if polls == 0 { // whoever is awake pauses in a bubble, until it is stopped
				go func() {
					for range 1000 {
						runtime.Gosched()
					}
					w.Stop.Store(engine.StopSoon)
				}()
			}
			if _, late, err := w.awaitStart(l, engine.Now()+left); late || p.polls != polls ||
				(err == nil) != (polls > 0) {
				t.Errorf("%d ns ahead: %d polls, %v, want %d", left, p.polls, err, polls)
			}
		})
	}
}

// sharesARate holds the i-th pacer of three, which share 3000 a second by seed 7, against what it should be.
func sharesARate(t *testing.T, i int, pace *engine.Pacer, later int64, chance bool) {
	t.Helper()
	shift := int64(i) * 1e9 / 3000
	if chance {
		shift = 0
	}
	want := engine.NewPacer(1e6, chance, 7+uint64(i))
	want.Start(0)
	pace.Start(0)
	for range 5 {
		if pace.Due() != want.Due() || later != shift {
			t.Fatalf("by chance %v, the %dth: due at %d and %d later, want %d and %d", chance, i, pace.Due(), later,
				want.Due(), shift)
		}
		want.Next()
		pace.Next()
	}
}
