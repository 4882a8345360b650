package netstack

import (
	"testing"
	"time"
)

// TestDelayedFramesKeepTheirOrder: with jitter each waits at least the delay, at most both,
// and none overtakes another.
func TestDelayedFramesKeepTheirOrder(t *testing.T) {
	cfg := Config{Delay: time.Millisecond, Jitter: time.Millisecond, Seed: 7}
	i := newImpairment(&cfg, 0)
	last := time.Duration(0)
	for k := range 1000 {
		now := time.Duration(k) * 10 * time.Microsecond
		at := i.arrival(now)
		if at < last || at < now+cfg.Delay || at > now+cfg.Delay+cfg.Jitter {
			t.Fatalf("frame %d came at %v and is handed on at %v, the one before at %v", k, now, at, last)
		}
		last = at
	}
}
