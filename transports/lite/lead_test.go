package lite

import (
	"sync"
	"testing"
	"time"

	"github.com/rdmaperf/rdmaperf/internal/expect"
)

// Of callers that poll one leads and the others sleep; when it has its answer, another
// leads, and everybody gets an answer.
func TestOneCallerPollsForAll(t *testing.T) {
	everywhere(t, 2, Config{Timeout: 20 * time.Second}, func(t *testing.T, c *cluster) {
		p := expect.Get(c.nodes[0].Serve(1, PortConfig{}))(t)
		const callers = 8
		var wg sync.WaitGroup
		for range callers {
			cl := c.client(1, ClientConfig{Wait: WaitPoll})
			wg.Go(func() {
				for i := range 20 {
					if _, err := cl.Call(0, 1, []byte{byte(i)}); err != nil {
						t.Errorf("call %d: %v", i, err)
						return
					}
				}
			})
		}
		var open []Request
		for len(open) < callers {
			open = append(open, expect.Get(p.Recv(10*time.Second, WaitAdaptive))(t))
		}
		n := c.nodes[1]
		eventually(t, "all but one sleep", func() bool {
			return n.leader.Load() != nil && n.followers.Load() >= callers-2
		})
		for _, r := range open {
			expect.OK(t, r.Reply(nil))
		}
		for range callers * 19 {
			r := expect.Get(p.Recv(10*time.Second, WaitAdaptive))(t)
			expect.OK(t, r.Reply(nil))
		}
		wg.Wait()
		if n.leader.Load() != nil || n.followers.Load() != 0 {
			t.Errorf("leader %v and %d followers behind the last answer", n.leader.Load() != nil, n.followers.Load())
		}
	})
}
