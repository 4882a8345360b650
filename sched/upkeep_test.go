package sched

import (
	"errors"
	"sync"
	"testing"

	"github.com/rdmaperf/rdmaperf/transports/rdma"
)

// A failed completion is not that of a request behind a signalled one, which would have failed first.
func TestWhoseAFailureIs(t *testing.T) {
	q := &qp{ring: make([]entry, 8), tail: 4}
	copy(q.ring, []entry{{5, none, ePlain}, {6, none, eUser}, {7, none, ePlain}, {9, none, eSignaled | eMark}})
	check := func(when string, id uint64, want uint32, ok bool) {
		t.Helper()
		if at, found := q.failedAt(id); found != ok || ok && at != want {
			t.Errorf("%s: %d is at %d, %v, want %d, %v", when, id, at, found, want, ok)
		}
	}
	check("at first", 5, 0, true)
	check("at first", 6, 0, false)
	check("at first", 7, 0, false)
	check("at first", 9, 3, true)
	q.ring[0].flags |= eDone
	check("behind the first", 5, 0, false)
	check("behind the first", 6, 1, true)
	check("behind the first", 7, 2, true)
}

// Of what the tier looks at, only a message that failed ends a wait for solicited completions.
func TestOnlyFailedMessagesAreSolicited(t *testing.T) {
	for broken, want := range map[bool]bool{false: false, true: true} {
		c := &cq{dev: &device{}, takers: 1, armed: onSolicited}
		q := &qp{num: 3, send: c, recv: c, mailbox: &mailbox{}}
		q.mailbox.in.broken = broken
		c.qps = []*qp{q}
		wcs := []rdma.WC{{ID: 1, QPNum: 3, Opcode: rdma.WCRecv}}
		if n := c.translate(wcs, wcs); n != 1 || c.fired != want {
			t.Errorf("broken %v: %d completions, event %v, want %v", broken, n, c.fired, want)
		}
	}
}

// endless always has completions of receives.
type endless struct{ rdma.CQ }

func (endless) Poll(dst []rdma.WC) (int, error) {
	for i := range dst {
		dst[i] = rdma.WC{Opcode: rdma.WCRecv}
	}
	return len(dst), nil
}

// For who does not poll, as much is kept as a queue twice as deep would hold, and no more is taken.
func TestWhoDoesNotPollIsKeptTwiceTheDepth(t *testing.T) {
	c := &cq{dev: &device{}, below: endless{}, depth: 32, wcs: make([]completion, 33)}
	if n := c.catchUp(); n != 64 || c.backlog() != 64 {
		t.Errorf("%d completions taken, %d kept, want 64", n, c.backlog())
	}
	if n := c.catchUp(); n != 0 {
		t.Errorf("%d more taken", n)
	}
}

// lentMR is a registration that may refuse to end.
type lentMR struct {
	rdma.MR
	err error
}

func (m *lentMR) Close() error { return m.err }

// The memory of a mailbox is given back behind its registration, and kept while that is not over.
func TestAMailboxLastsAsLongAsItsRegistration(t *testing.T) {
	mr := &lentMR{err: errors.New("in use")}
	m := &mailbox{mr: mr}
	m.box, m.desk = memory(t, mailboxHead), memory(t, mailboxHead)
	if err := m.close(); err != mr.err || m.mr == nil || rdma.BufferAt(m.box.Addr(), 1) == nil {
		t.Errorf("%v, want %v, and the memory kept", err, mr.err)
	}
	box, desk := m.box.Addr(), m.desk.Addr()
	mr.err = nil
	if err := m.close(); err != nil || m.mr != nil || rdma.BufferAt(box, 1) != nil || rdma.BufferAt(desk, 1) != nil {
		t.Errorf("%v, want the memory given back", err)
	}
	if err := m.close(); err != nil {
		t.Errorf("once more: %v", err)
	}
}

// Marks leave entries of the completion queue for a drain marker, a read that fills ORD and a notice.
func TestMarksLeaveEntriesForTheOthers(t *testing.T) {
	for extras, want := range map[int][2]int{maxMarks + 2: {maxMarks, maxMarks - 1}, 7: {5, 4}, minCQExtra: {1, 1}} {
		for i, cuts := range []bool{false, true} {
			q := &qp{dev: &device{}, mu: new(sync.Mutex), send: &cq{}}
			q.send.extras = map[*qp]int{q: extras}
			if cuts {
				q.mailbox = &mailbox{out: segmenter{agreed: true}}
			}
			if q.joined(0, ""); q.win.limit != want[i] {
				t.Errorf("%d entries, sends cut %v: %d marks, want %d", extras, cuts, q.win.limit, want[i])
			}
		}
	}
}

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
	box := memory(t, mailboxHead+minRoom)
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

// What is nothing but posted goes below without a further look, up to depth, places and window.
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
