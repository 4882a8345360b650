package engine

import (
	"sync/atomic"
	"testing"
	"time"
)

// A wait ends after the limit of time that the thread was given, and at four limits in any case.
func TestPatienceCountsTheTimeThatAThreadIsGiven(t *testing.T) {
	const limit = 5 * time.Second
	for _, c := range []struct {
		waits, used float64 // parts of the time: the thread waits for a CPU, and the process has all of them
		from, most  time.Duration
	}{{0, 0.5, limit, limit + time.Second}, {0.5, 0.2, 2*limit - 2*time.Second, 2*limit + time.Second},
		{0.7, 0, 3*limit - 2*time.Second, 3*limit + 2*time.Second}, {1, 0, 4 * limit, 4*limit + time.Second},
		{0.75, 1, limit, limit + time.Second}, // its own threads wait for each other
	} {
		var now, since int64 = 0, 100
		p := Patience{delay: func() int64 { return int64(c.waits * float64(now)) },
			used: func() int64 { return int64(c.used * float64(now)) }}
		for now = since + int64(limit) + 1; !p.Over(since, now, int64(limit)); now += int64(50 * time.Millisecond) {
			if now > int64(time.Minute) {
				t.Fatalf("%v: it does not end", c.waits)
			}
		}
		if took := time.Duration(now - since); took < c.from || took > c.most {
			t.Errorf("%v of the time without a CPU: over after %v, want %v to %v", c.waits, took, c.from, c.most)
		}
		if next := now + 1; p.Over(next, next+int64(limit)+1, int64(limit)) {
			t.Errorf("%v: the next wait is over at once", c.waits)
		}
	}
}

func TestThreadsDelayIsCounted(t *testing.T) {
	if d, u := threadDelay(), processShare(); d < 0 || d > int64(time.Hour) || u <= 0 || u > int64(time.Hour) {
		t.Errorf("%d ns, %d ns", d, u)
	}
}

// A worker whose limit has passed waits on while its thread waits for a CPU.
func TestAWorkerWaitsForWhatItsThreadIsGiven(t *testing.T) {
	w := &Worker{Stop: new(atomic.Uint32), stall: int64(time.Second), Spins: 2 * SpinCheck,
		patience: Patience{delay: Now, used: func() int64 { return 0 }}}
	w.waitStart = Now() - 2*w.stall
	if err := w.check(nil); err != nil {
		t.Errorf("the wait ended: %v", err)
	}
}
