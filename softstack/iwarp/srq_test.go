package iwarp

import (
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
	h.srq = need(h.dev.NewSRQ(rdma.SRQConfig{Depth: depth}))(t)
	t.Cleanup(func() {
		for _, q := range h.qps {
			q.Close()
		}
		must(t, h.srq.Close())
	})
	for range n {
		q := need(h.dev.NewQP(rdma.QPConfig{SendCQ: h.cq, RecvCQ: h.cq, SRQ: h.srq, SendDepth: 8}))(t)
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
		need(h.srq.PostRecv([]rdma.RecvWR{{ID: uint64(from + i), NumSGE: 1,
			SGE: [4]rdma.SGE{h.sge((from+i)*size, size)}}}))(h.t)
	}
}

// TestSRQFeedsSeveralQPs: receives are taken in order, each by one message, and the completion names the QP it came by.
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
	need(e.qp.PostSend([]rdma.SendWR{{ID: 77, Op: rdma.OpWrite}}))(e.t)
	return e.want(nil, 0, 77, rdma.StatusWRFlushErr).VendorErr
}

// TestSRQKeepsReceivesOfDeadQPs: only the receive of a message under way is flushed with its QP.
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
