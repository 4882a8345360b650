package lite

import (
	"testing"
	"time"
)

// A caller that looks a few times in a millisecond, as one does who posts long messages, attends to
// what arrives: the polling goroutine does not sleep in the device meanwhile, where it wakes for
// each packet of that caller's.
func TestWhoLooksNowAndThenIsLeftAlone(t *testing.T) {
	const looks, each = 1000, 200 * time.Microsecond
	everywhere(t, 2, Config{}, func(t *testing.T, c *cluster) {
		n := c.nodes[0]
		asleep := 0
		for i := range looks {
			for start := time.Now(); time.Since(start) < each; { // a post
			}
			n.Progress()
			if i >= looks/4 && n.sleeping.Load() != nil {
				asleep++
			}
		}
		if asleep > looks*3/8 { // half of them, on a machine that is too busy to look so often
			t.Errorf("of %d looks %d found the polling goroutine asleep", looks*3/4, asleep)
		}
	})
}

// A caller attends who looks once for each millisecond of a pause.
func TestWhoAttends(t *testing.T) {
	n := onMem(t, 1, Config{Polling: PollSpin}).nodes[0] // its own goroutine never rests
	for _, c := range []struct {
		slept time.Duration
		looks uint64
		want  bool
	}{{pollPause, 0, false}, {pollPause, 1, true}, {64 * pollPause, 63, false}, {64 * pollPause, 64, true}} {
		before := n.activity.Load()
		n.activity.Add(c.looks)
		if r := (resting{seen: before, slept: c.slept}); r.attended(n) != c.want {
			t.Errorf("%d looks in %v: attended %v", c.looks, c.slept, !c.want)
		}
	}
}

// Where nobody attends, who cannot sleep in the device rests for the shortest pause, once; where
// somebody does, for longer ones, until nobody does.
func TestPausesGrowWhileCallersAttend(t *testing.T) {
	n := onMem(t, 1, Config{Polling: PollSpin}).nodes[0]
	r := resting{slept: 8 * pollPause}
	if n.leave(&r, false); r.slept != pollPause {
		t.Errorf("unattended it rests for %v, want %v", r.slept, pollPause)
	}
	over := time.AfterFunc(100*time.Millisecond, func() { signal(n.kick) }) // it would go on for ever
	defer over.Stop()
	looks := time.NewTicker(50 * time.Microsecond)
	defer looks.Stop()
	done := make(chan struct{})
	go func() {
		defer close(done)
		n.leave(&r, true)
	}()
	for {
		n.activity.Add(64)
		select {
		case <-looks.C:
			continue
		case <-done:
		}
		break
	}
	if r.slept < 4*pollPause || r.slept > mostPollPause {
		t.Errorf("behind 0.1 s of attention a pause is %v", r.slept)
	}
}
