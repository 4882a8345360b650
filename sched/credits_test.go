package sched

import (
	"testing"

	"github.com/rdmaperf/rdmaperf/transports/rdma"
)

// sink takes what is posted.
type sink struct {
	rdma.QP
	got []rdma.SendWR
}

func (s *sink) PostSend(wrs []rdma.SendWR) (int, error) {
	s.got = append(s.got, wrs...)
	return len(wrs), nil
}

// taker is a queue pair with two receives of a peer that cuts sends, and 80 places below.
func taker(t *testing.T) (*qp, *sink) {
	t.Helper()
	box, err := rdma.Alloc(mailboxHead + minRoom)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { box.Free() })
	below := &sink{}
	q := &qp{dev: &device{}, send: &cq{}, below: below, ring: make([]entry, 128), places: 80, depth: 16, free: none}
	q.mailbox = &mailbox{mr: &lentMR{}, box: box, desk: box, out: segmenter{agreed: true}}
	q.mailbox.in.posted(make([]rdma.RecvWR, 2))
	q.win.init(&Config{Slice: 1 << 10, Window: 64 << 10}, false)
	return q, below
}

// The peer is told of what was taken where the device has two places left: the last one is for the drain marker.
func TestNoticesLeaveThePlaceOfTheDrainMarker(t *testing.T) {
	for under, want := range map[uint32]int{78: 1, 79: 0, 80: 0} {
		q, below := taker(t)
		q.mailbox.in.taken = 1
		q.head, q.tail = 1000, 1000+under
		q.noticeNow()
		if len(below.got) != want || q.sendingCredits != (want > 0) {
			t.Errorf("%d of %d places taken: %d notices, want %d", under, q.places, len(below.got), want)
		}
	}
}

// A message that is not cut brings up what the peer has not yet heard of those that were.
func TestEachMessageBringsUpWhatThePeerHasNotHeard(t *testing.T) {
	for told, want := range map[uint32]bool{0: true, 1: false} {
		q, _ := taker(t)
		q.mailbox.in.taken, q.mailbox.in.advertisedTaken = 1, told
		wc := rdma.WC{Opcode: rdma.WCRecv}
		if got := q.reassemble(&wc); got != want || wc.Status != rdma.StatusSuccess {
			t.Errorf("1 taken, %d told: the peer is due to hear %v, want %v", told, got, want)
		}
	}
}

// What is nothing but posted goes below without a further look, up to the depth of the queue and
// the places that are the user's, however many went before.
func TestUsualRequestsGoBelowAsTheyAre(t *testing.T) {
	for name, c := range map[string]struct {
		head, under uint32
		used, n     int
		size, win   uint32 // bytes of each, and under way before
		ok          bool
	}{
		"the first":                        {0, 0, 0, 1, 64, 0, true},
		"behind many":                      {1000, 1, 1, 1, 64, 64, true},
		"where numbers begin anew":         {1<<32 - 5, 10, 10, 6, 64, 640, true},
		"the last of the queue":            {1000, 15, 15, 1, 64, 960, true},
		"one more than the queue has":      {1000, 15, 15, 2, 64, 960, false},
		"the last of the user's places":    {1000, 80 - spare - 2, 1, 2, 64, 0, true},
		"one more than there are":          {1000, 80 - spare - 2, 1, 3, 64, 0, false},
		"one more, of numbers that cancel": {1<<31 - 33, 66, 1, 3, 64, 0, false},
		"a slice":                          {0, 0, 0, 1, 1 << 10, 0, true},
		"a byte more":                      {0, 0, 0, 1, 1<<10 + 1, 0, false},
		"the last of the window":           {0, 4, 4, 1, 1 << 10, 63 << 10, true},
		"one byte more than it has":        {0, 4, 4, 1, 1 << 10, 63<<10 + 1, false},
	} {
		q, _ := taker(t)
		q.head, q.tail, q.posted = c.head, c.head+c.under, uint64(c.used)
		q.win.issued[0] = uint64(c.win)
		wrs := make([]rdma.SendWR, c.n)
		for i := range wrs {
			wrs[i] = rdma.SendWR{Op: rdma.OpWrite, NumSGE: 1}
			wrs[i].SGE[0].Len = c.size
		}
		if size, ok := q.simple(wrs); ok != c.ok || ok && size != uint64(c.n)*uint64(c.size) {
			t.Errorf("%s: %d bytes, %v, want %v", name, size, ok, c.ok)
		}
	}
}
