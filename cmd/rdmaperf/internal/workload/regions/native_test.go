package regions

import (
	"testing"

	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/pairs"
	"github.com/rdmaperf/rdmaperf/transports/rdma"
)

// counted is a completion queue that has nothing, and counts who asks.
type counted struct {
	rdma.CQ
	polls int
}

func (c *counted) Poll([]rdma.WC) (int, error) { c.polls++; return 0, nil }

// TestBothEndsOfNativeAreLookedAt as often: over sockets nobody else moves the far one, and
// what would wake for it is chance.
func TestBothEndsOfNativeAreLookedAt(t *testing.T) {
	near, far := &counted{}, &counted{}
	n := &native{pair: &pairs.Devices{CQs: [2]rdma.CQ{near, far}}}
	for range 10 {
		if _, err := n.Poll(func(int) { t.Error("ended") }); err != nil {
			t.Fatal(err)
		}
	}
	if near.polls != 10 || far.polls != 10 {
		t.Errorf("%d and %d looks, want 10 at each", near.polls, far.polls)
	}
	if err := n.Drive(); err != nil || far.polls != 11 || near.polls != 10 {
		t.Errorf("Drive: %v, %d and %d looks", err, near.polls, far.polls)
	}
}
