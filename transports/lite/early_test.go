package lite

import (
	"errors"
	"testing"

	"github.com/rdmaperf/rdmaperf/internal/expect"
)

// A peer whose links are still being made is nobody's to end but its maker's: what breaks
// meanwhile is remembered, and keeps it from being admitted.
func TestAPeerThatIsLostBeforeItIsAdmitted(t *testing.T) {
	c := onMem(t, 1, Config{})
	n := c.nodes[0]
	p := expect.Get(n.newPeer())(t)
	p.id = 5
	l := expect.Get(n.newLink(p, 0))(t)
	p.links = append(p.links, l)
	why := errors.New("made up")
	n.lose(p, why)
	if p.dead.Load() || l.broken.Load() || len(n.lost) != 0 {
		t.Errorf("it was ended: dead %v, link broken %v, %d gone", p.dead.Load(), l.broken.Load(), len(n.lost))
	}
	if err := n.admit(p); !errors.Is(err, why) || n.peers[5].Load() != nil {
		t.Errorf("admitted: %v", err)
	}
	n.drop(p)
}

// A pause ends at once for who wants it over, and says so.
func TestAPauseThatIsKicked(t *testing.T) {
	n := onMem(t, 1, Config{Polling: PollSpin}).nodes[0] // its own goroutine never pauses
	signal(n.kick)
	if !n.pause(maxPollPause) {
		t.Error("a kick was not told")
	}
	if n.pause(1) {
		t.Error("a kick was told that nobody gave")
	}
}
