package procs

import (
	"testing"
	"time"
)

const slice = 4 * time.Millisecond

func TestSpinningIsTriedAgainAfterPausesThatDouble(t *testing.T) {
	var c Contention
	now := time.Now()
	c.Lost(now, mostDebt-slice)
	if !c.Spin(now) || !c.Calm() {
		t.Fatal("a few slices are contention")
	}
	pause := leastPause
	for range 12 {
		c.Lost(now, slice)
		c.Lost(now.Add(pause/2), slice) // of another thread in the same pause
		if c.Calm() || c.Spin(now.Add(pause-1)) || !c.Spin(now.Add(pause)) {
			t.Fatalf("no pause of %v", pause)
		}
		now = now.Add(pause)
		pause = min(2*pause, mostPause)
	}
	for pause = mostPause; pause >= leastPause; pause /= 2 {
		if repay(&c); c.Calm() != (pause == leastPause) {
			t.Fatalf("after a pause of %v: calm %v", pause, c.Calm())
		}
	}
	repay(&c)
	repay(&c)
	if c.Lost(now, mostDebt); !c.Calm() {
		t.Error("waits that spinning served repay nothing")
	}
	if c.Lost(now, 2*mostDebt); c.Spin(now.Add(leastPause-1)) || !c.Spin(now.Add(leastPause)) {
		t.Error("pauses do not begin anew")
	}
}

// repay are the waits that make up for a loss.
func repay(c *Contention) {
	for range mostDebt / saved {
		c.Served()
	}
}

// A process that takes a slice now and then leaves spinning the better choice.
func TestWaitsRepayWhatIsLostNowAndThen(t *testing.T) {
	var c Contention
	now := time.Now()
	for range 100 {
		c.Lost(now, slice)
		for range slice / saved {
			c.Served()
		}
		c.Lost(now, LostAfter-1) // the peer's work
	}
	if !c.Calm() {
		t.Error("contention")
	}
}

// Where there is one CPU, whoever spins keeps it from the peer that would answer.
func TestNobodySpinsOnOneCPU(t *testing.T) {
	if c := (Contention{one: true}); c.Spin(time.Now()) || c.Calm() {
		t.Error("spins")
	}
}
