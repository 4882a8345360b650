package drive

import (
	"testing"

	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/engine"
)

// looked finds a pass of writes behind the first that is looked at, which those next to it are not.
func looked(sh *engine.Shape) uint64 {
	for pass := uint64(3); ; pass++ {
		if sh.LooksAt(pass) && !sh.LooksAt(pass-2) && !sh.LooksAt(pass-1) && !sh.LooksAt(pass+1) && !sh.LooksAt(pass+2) {
			return pass
		}
	}
}

// By a sample the target is asked to look behind the passes that the seed chose, and behind no other.
func TestALookIsAskedForBehindItsPass(t *testing.T) {
	p, _, w, l := streamOn("write", func(sh *engine.Shape) { sh.Verify = true })
	slots, pass := int64(l.Sh.Slots), int64(looked(l.Sh))
	for _, c := range []struct {
		posted int64
		asks   bool
	}{{(pass - 1) * slots, false}, {pass * slots, false}, {(pass + 1) * slots, true}, {(pass+1)*slots - 1, false}, {(pass + 2) * slots, false}, {slots, true}, {2 * slots, false}} {
		p.posted, l.asks, l.asked, l.Out, l.Posted = nil, 0, 0, 0, c.posted
		if _, err := w.own(l, 6); err != nil || (len(p.posted) == 1) != c.asks || (l.asks > 0) != c.asks {
			t.Errorf("behind %d writes, of which pass %d is looked at: %v, posted %+v", c.posted, pass, err, p.posted)
		}
	}
}
