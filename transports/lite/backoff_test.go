package lite

import (
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/rdmaperf/rdmaperf/internal/expect"
)

// The polling goroutine leaves arrivals to callers that poll. So one that waits for an end of
// its own, or for room, takes what arrives meanwhile.
func TestACallerThatPollsTakesOthersArrivals(t *testing.T) {
	for what, wait := range map[string]func(w *waiter, c *Client) bool{
		"an end": func(w *waiter, c *Client) bool { return w.wait(c, false, 1<<1) },
		"room":   func(w *waiter, c *Client) bool { return w.waitPolling(c) },
	} {
		t.Run(what, func(t *testing.T) {
			c := onMem(t, 2, Config{})
			var taken atomic.Int64
			expect.Get(c.nodes[0].Serve(7, PortConfig{Handle: func(r *Request) {
				stack := make([]byte, 16<<10)
				if strings.Contains(string(stack[:runtime.Stack(stack, false)]), "lite.(*waiter).") {
					taken.Add(1)
				}
				_ = r.Reply(r.Payload)
			}}))(t)
			own, other := c.client(0, ClientConfig{Wait: WaitPoll}), c.client(1, ClientConfig{})
			var over atomic.Bool
			var waiting sync.WaitGroup
			waiting.Go(func() {
				for w := (waiter{}); !over.Load(); {
					if !wait(&w, own) {
						t.Error("it gave up")
						return
					}
				}
			})
			calls := 0
			for end := time.Now().Add(5 * time.Second); taken.Load() == 0 && time.Now().Before(end); calls++ {
				expect.Get(other.Call(0, 7, []byte("hello")))(t)
			}
			over.Store(true)
			waiting.Wait()
			if taken.Load() == 0 {
				t.Errorf("of %d calls who waits took none", calls)
			}
		})
	}
}

// A caller that looks once in a millisecond or two, as one does who posts long messages, attends to
// what arrives: the polling goroutine does not sleep in the device meanwhile, where it wakes for
// each packet of that caller's.
func TestSparsePollsKeepThePollLoopBackedOff(t *testing.T) {
	const looks, each = 200, 1500 * time.Microsecond
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

// Pauses grow while callers look, and end where none does.
func TestThePollLoopBacksOffForCallersThatPoll(t *testing.T) {
	const ms = time.Millisecond
	type step struct {
		polls uint64 // since the last one
		kick  bool   // somebody went to sleep in the pause before
		held  bool
		want  time.Duration // 0: the goroutine sleeps
	}
	for name, c := range map[string]struct {
		blind bool // the device wakes nobody
		steps []step
	}{
		"nobody": {steps: []step{{}, {}}},
		"one who goes on": {steps: []step{{polls: 9, want: ms}, {polls: 9, want: 2 * ms},
			{polls: 9, want: 4 * ms}, {polls: 9, want: 8 * ms}, {polls: 9, want: 8 * ms}}},
		"two looks in 8 ms": {steps: []step{{polls: 1, want: ms}, {polls: 1, want: 2 * ms},
			{polls: 1, want: 4 * ms}, {polls: 1, want: 8 * ms}, {polls: 2, want: 8 * ms}}},
		"one look in 8 ms": {steps: []step{{polls: 9, want: ms}, {polls: 9, want: 2 * ms},
			{polls: 9, want: 4 * ms}, {polls: 9, want: 8 * ms}, {polls: 1}}},
		"away for 3 ms": {steps: []step{{polls: 1, want: ms}, {want: 2 * ms}, {want: ms},
			{polls: 1, want: ms}, {polls: 1, want: 2 * ms}}},
		"gone":          {steps: []step{{polls: 1, want: ms}, {want: 2 * ms}, {want: ms}, {}, {}}},
		"gone and back": {steps: []step{{}, {polls: wakeEvery, want: ms}, {polls: 1, want: 2 * ms}}},
		"gone to sleep": {steps: []step{{polls: 9, want: ms}, {polls: 9, kick: true}}},
		"gone to sleep, not all": {steps: []step{{polls: 9, want: ms}, {polls: 9, want: 2 * ms},
			{polls: 9, kick: true}, {polls: 9, want: ms}}},
		"something is held": {steps: []step{{held: true, want: ms}, {held: true, want: ms},
			{polls: 9, held: true, want: ms}, {want: ms}}},
		"something is held behind": {steps: []step{{polls: 9, want: ms}, {polls: 9, want: 2 * ms},
			{polls: 9, held: true, want: ms}, {polls: 9, held: true, want: ms}, {polls: 9, want: ms}}},
		"asleep, and none wakes": {blind: true, steps: []step{{polls: 9, want: ms}, {polls: 9, want: 2 * ms},
			{polls: 9, kick: true, want: ms}, {want: ms}}},
		"a device that wakes none": {blind: true, steps: []step{{want: ms}, {want: ms}, {polls: 9, want: ms},
			{polls: 9, want: 2 * ms}}},
	} {
		a, looks := pollBackoff{slept: pollPause, rest: pollPause, idle: maxIdle}, uint64(100)
		a.seen = looks
		for i, s := range c.steps {
			looks += s.polls
			if s.kick {
				a.reset(looks)
			}
			if got := a.next(looks, s.held, !c.blind); got != s.want {
				t.Fatalf("%s, step %d: left alone for %v, want %v", name, i, got, s.want)
			}
		}
	}
}
