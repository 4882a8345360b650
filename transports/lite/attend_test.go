package lite

import (
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// The polling goroutine leaves arrivals to callers that poll. So one that waits for an end of
// its own, or for room, takes what arrives meanwhile.
func TestWhoWaitsForHisOwnAttendsToOthers(t *testing.T) {
	for what, wait := range map[string]func(w *waiter, c *Client) bool{
		"an end": func(w *waiter, c *Client) bool { return w.again(c, false, 1<<1) },
		"room":   func(w *waiter, c *Client) bool { return w.look(c) },
	} {
		t.Run(what, func(t *testing.T) {
			c := onMem(t, 2, Config{})
			var taken atomic.Int64
			must(c.nodes[0].Serve(7, PortConfig{Handle: func(r *Request) {
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
				must(other.Call(0, 7, []byte("hello")))(t)
			}
			over.Store(true)
			waiting.Wait()
			if taken.Load() == 0 {
				t.Errorf("of %d calls who waits took none", calls)
			}
		})
	}
}

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
