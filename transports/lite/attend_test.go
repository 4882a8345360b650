package lite

import (
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// The polling goroutine leaves arrivals to callers that poll. So one that waits for an end of
// its own, or for room, takes what arrives meanwhile: calls of others are not late by a pause
// each.
func TestWhoWaitsForHisOwnAttendsToOthers(t *testing.T) {
	const calls, each = 24, 2 * time.Millisecond
	for what, wait := range map[string]func(w *waiter, c *Client) bool{
		"an end": func(w *waiter, c *Client) bool { return w.again(c, false, 1<<1) },
		"room":   func(w *waiter, c *Client) bool { return w.look(c) },
	} {
		t.Run(what, func(t *testing.T) {
			c := onMem(t, 2, Config{})
			must(c.nodes[0].Serve(7, PortConfig{Handle: func(r *Request) { _ = r.Reply(r.Payload) }}))(t)
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
			time.Sleep(150 * time.Millisecond) // pauses are at their longest
			var late time.Duration
			for range calls {
				time.Sleep(each)
				start := time.Now()
				must(other.Call(0, 7, []byte("hello")))(t)
				late += time.Since(start)
			}
			over.Store(true)
			waiting.Wait()
			if late > calls*mostPollPause/4 {
				t.Errorf("%d calls took %v, and a pause is %v", calls, late, mostPollPause)
			}
		})
	}
}
