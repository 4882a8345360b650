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
