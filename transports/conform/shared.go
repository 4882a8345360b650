package conform

import (
	"fmt"

	"github.com/rdmaperf/rdmaperf/transports/rdma"
)

// sharedQueue is an SRQ and the IDs that are outstanding on it. Which QP takes
// which receive is open, so only "each once" can be required.
type sharedQueue struct {
	e    *Env
	srq  rdma.SRQ
	open map[uint64]bool
}

// newSRQ makes an SRQ of device b.
func (e *Env) newSRQ(pd rdma.PD, depth int) *sharedQueue {
	srq, err := e.B.NewSRQ(rdma.SRQConfig{PD: pd, Depth: depth})
	e.must(fmt.Sprintf("create srq of %d", depth), err)
	e.onClose(rankCQ, e.B, "srq", srq.Close)
	return &sharedQueue{e: e, srq: srq, open: map[uint64]bool{}}
}

// post hands receives to the SRQ; all of them have to be taken.
func (s *sharedQueue) post(wrs ...rdma.RecvWR) {
	if n, err := s.tryPost(wrs...); err != nil {
		s.e.failf(fmt.Sprintf("srq: post of %d receives taken", len(wrs)), "%d taken, then %v", n, err)
	}
}

// tryPost checks that count and error agree, and tracks what was taken.
func (s *sharedQueue) tryPost(wrs ...rdma.RecvWR) (int, error) {
	for i := range wrs {
		s.open[wrs[i].ID] = true
	}
	n, err := s.srq.PostRecv(wrs)
	s.e.checkCount("srq post recv", n, len(wrs), err)
	for i := n; i < len(wrs); i++ {
		delete(s.open, wrs[i].ID)
	}
	return n, err
}

// postEmpty posts n receives without elements.
func (s *sharedQueue) postEmpty(n int) {
	for i := range n {
		s.post(recv(i))
	}
}
