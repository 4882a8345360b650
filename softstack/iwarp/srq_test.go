package iwarp

import (
	"errors"
	"testing"

	"github.com/rdmaperf/rdmaperf/transports/rdma"
)

// hub is a device with several QPs on one SRQ, each connected to a spoke.
type hub struct {
	*end
	srq    rdma.SRQ
	qps    []rdma.QP
	spokes []*end
}

func newHub(t *testing.T, n, depth int) *hub {
	t.Helper()
	h := &hub{end: newEnd(t, Config{}, rdma.QPConfig{})}
	var err error
	h.srq, err = h.dev.NewSRQ(rdma.SRQConfig{Depth: depth})
	must(t, err)
	t.Cleanup(func() {
		for _, q := range h.qps {
			q.Close()
		}
		must(t, h.srq.Close())
	})
	for range n {
		q, err := h.dev.NewQP(rdma.QPConfig{SendCQ: h.cq, RecvCQ: h.cq, SRQ: h.srq, SendDepth: 8})
		must(t, err)
		h.qps = append(h.qps, q)
		s := newEnd(t, Config{}, rdma.QPConfig{})
		join(t, s, &end{t: t, dev: h.dev, qp: q})
		h.spokes = append(h.spokes, s)
	}
	return h
}

func (h *hub) supply(from, n, size int) {
	h.t.Helper()
	for i := range n {
		_, err := h.srq.PostRecv([]rdma.RecvWR{{ID: uint64(from + i), NumSGE: 1,
			SGE: [4]rdma.SGE{h.sge((from+i)*size, size)}}})
		must(h.t, err)
	}
}

// TestSRQFeedsSeveralQPs: receives are taken in order, each by one message, and
// the completion names the QP it came by.
func TestSRQFeedsSeveralQPs(t *testing.T) {
	const spokes, rounds, size = 3, 40, 20000
	h := newHub(t, spokes, spokes*rounds)
	h.supply(0, spokes*rounds, size)
	for round := range rounds {
		for i, s := range h.spokes {
			n := 1 + (round*1777+i*5)%size
			s.fill(uint64(round*spokes+i), 0, n)
			s.post(rdma.SendWR{ID: uint64(round), Op: rdma.OpSend, NumSGE: 1, SGE: [4]rdma.SGE{s.sge(0, n)}})
			s.want(nil, rdma.WCSend, uint64(round), rdma.StatusSuccess)
			wc := h.want(nil, rdma.WCRecv, uint64(round*spokes+i), rdma.StatusSuccess)
			if wc.QPNum != h.qps[i].Num() || int(wc.ByteLen) != n {
				t.Fatalf("completion %+v, want qp %d and %d octets", wc, h.qps[i].Num(), n)
			}
			equal(t, "message", h.bytes(int(wc.ID)*size, n), s.bytes(0, n))
		}
	}
	// Nothing is left: the next message ends its own connection and no other.
	h.spokes[0].post(rdma.SendWR{ID: 1, Op: rdma.OpSend})
	h.spokes[0].want(nil, rdma.WCSend, 1, rdma.StatusSuccess)
	eventually(t, "the QP without a receive in ERR", func() bool { return h.qps[0].State() == rdma.QPErr })
	eventually(t, "its peer too", func() bool { return h.spokes[0].qp.State() == rdma.QPErr })
	if wc := flushOf(h.spokes[0]); wc != 0x1202 {
		t.Errorf("terminated with %#x, want 0x1202", wc)
	}
	h.supply(0, 1, size)
	h.spokes[1].post(rdma.SendWR{ID: 1, Op: rdma.OpSend})
	h.spokes[1].want(nil, rdma.WCSend, 1, rdma.StatusSuccess)
	h.want(nil, rdma.WCRecv, 0, rdma.StatusSuccess)
}

// flushOf is the vendor error of the first failed request of a dead QP.
func flushOf(e *end) uint32 {
	e.t.Helper()
	_, err := e.qp.PostSend([]rdma.SendWR{{ID: 77, Op: rdma.OpWrite}})
	must(e.t, err)
	return e.want(nil, 0, 77, rdma.StatusWRFlushErr).VendorErr
}

// TestSRQKeepsReceivesOfDeadQPs: only the receive of a message under way is
// flushed with its QP, and the QP says that it takes no more.
func TestSRQKeepsReceivesOfDeadQPs(t *testing.T) {
	h := newHub(t, 2, 8)
	h.supply(0, 4, 1000)
	q := h.spokes[0].qp.(*qp)
	q.mu.Lock()
	q.tx.mulpdu = 200 // several segments a message
	q.mu.Unlock()
	// A message longer than the receive fails in its last segment.
	h.spokes[0].post(rdma.SendWR{ID: 1, Op: rdma.OpSend, NumSGE: 1, SGE: [4]rdma.SGE{h.spokes[0].sge(0, 1001)}})
	wc := h.next(nil)
	if wc.ID != 0 || wc.Status != rdma.StatusLocLenErr || wc.QPNum != h.qps[0].Num() {
		t.Errorf("completion %+v, want receive 0 with a length error", wc)
	}
	last := false
	for ev, ok := h.dev.Event(); ok; ev, ok = h.dev.Event() {
		last = last || ev.Type == rdma.EventLastWQEReached && ev.QPNum == h.qps[0].Num()
	}
	if !last {
		t.Error("no event for the last receive")
	}
	must(t, h.qps[0].Close())
	for i := range 3 {
		h.spokes[1].post(rdma.SendWR{ID: uint64(i), Op: rdma.OpSend})
		h.spokes[1].want(nil, rdma.WCSend, uint64(i), rdma.StatusSuccess)
		h.want(nil, rdma.WCRecv, uint64(i+1), rdma.StatusSuccess)
	}
	if k, _ := h.cq.Poll(h.wcs); k != 0 {
		t.Errorf("too many completions: %+v", h.wcs[:k])
	}
}

// TestSRQLimit: one event when fewer receives than the limit remain.
func TestSRQLimit(t *testing.T) {
	h := newHub(t, 1, 8)
	h.supply(0, 4, 100)
	limits := func() (n int) {
		for ev, ok := h.dev.Event(); ok; ev, ok = h.dev.Event() {
			if ev.Type == rdma.EventSRQLimit {
				n++
			}
		}
		return n
	}
	must(t, h.srq.Arm(3))
	for i := range 4 {
		h.spokes[0].post(rdma.SendWR{ID: uint64(i), Op: rdma.OpSend})
		h.spokes[0].want(nil, rdma.WCSend, uint64(i), rdma.StatusSuccess)
		h.want(nil, rdma.WCRecv, uint64(i), rdma.StatusSuccess)
		want := 0
		if i == 1 { // two remain
			want = 1
		}
		if n := limits(); n != want {
			t.Errorf("%d events after message %d, want %d", n, i, want)
		}
	}
	must(t, h.srq.Arm(1))
	if n := limits(); n != 1 {
		t.Errorf("%d events for a limit that is passed already", n)
	}
	if err := h.srq.Arm(9); !errors.Is(err, rdma.ErrInvalid) {
		t.Errorf("limit above the depth: %v", err)
	}
}

// TestSRQRefusals: the limits, the domain, and objects in use.
func TestSRQRefusals(t *testing.T) {
	h := newHub(t, 1, 2)
	h.supply(0, 2, 8)
	if n, err := h.srq.PostRecv([]rdma.RecvWR{{}}); n != 0 || err != rdma.ErrQueueFull {
		t.Errorf("post to a full queue: %d, %v", n, err)
	}
	if _, err := h.qps[0].PostRecv([]rdma.RecvWR{{}}); !errors.Is(err, rdma.ErrInvalid) {
		t.Errorf("post to a QP with an SRQ: %v", err)
	}
	if err := h.srq.Close(); !errors.Is(err, rdma.ErrBusy) {
		t.Errorf("close in use: %v", err)
	}
	pd, err := h.dev.AllocPD()
	must(t, err)
	if _, err := h.dev.NewQP(rdma.QPConfig{PD: pd, SendCQ: h.cq, RecvCQ: h.cq, SRQ: h.srq}); !errors.Is(err,
		rdma.ErrInvalid) {
		t.Errorf("qp of another domain: %v", err)
	}
	if _, err := h.dev.NewSRQ(rdma.SRQConfig{Depth: maxSRQWR + 1}); !errors.Is(err, rdma.ErrInvalid) {
		t.Errorf("deep queue: %v", err)
	}
	s, err := h.dev.NewSRQ(rdma.SRQConfig{Depth: 1})
	must(t, err)
	must(t, s.Close())
	must(t, s.Close())
	if _, err := s.PostRecv([]rdma.RecvWR{{}}); !errors.Is(err, rdma.ErrClosed) {
		t.Errorf("post to a closed queue: %v", err)
	}
	if _, err := h.dev.NewQP(rdma.QPConfig{SendCQ: h.cq, RecvCQ: h.cq, SRQ: s}); !errors.Is(err, rdma.ErrClosed) {
		t.Errorf("qp on a closed queue: %v", err)
	}
}
