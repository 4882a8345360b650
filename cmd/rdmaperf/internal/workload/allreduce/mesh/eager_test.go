package mesh

import (
	"strings"
	"testing"
	"time"

	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/arms"
	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/workload/allreduce/steps"
	"github.com/rdmaperf/rdmaperf/transports/memdev"
	"github.com/rdmaperf/rdmaperf/transports/rdma"
)

// sentWRs keeps what is posted.
type sentWRs struct {
	rdma.QP
	got []rdma.SendWR
}

func (s *sentWRs) PostSend(wrs []rdma.SendWR) (int, error) {
	s.got = append(s.got, wrs...)
	return len(wrs), nil
}

// TestKeptMemoryIsSentFromWhereItLies: of a message without a rendezvous the bytes are gathered
// from the user's memory where its registration is kept and a copy would cost more, and the
// sum is not told before that memory is the user's again.
func TestKeptMemoryIsSentFromWhereItLies(t *testing.T) {
	const n = 4 * lendFrom / elem // elements: a half is twice as long as needed
	for _, c := range []struct {
		arm   string
		n     int
		loans bool
	}{{arms.None, n, false}, {arms.Cache, n, true}, {arms.Prereg, n, true}, {arms.Lazy, n, true},
		{arms.Cache, 2*lendFrom/elem - 2, false}, {arms.Cache, 2 * lendFrom / elem, true}} {
		t.Run(c.arm, func(t *testing.T) {
			dev, err := memdev.NewFabric(memdev.Config{}).Open("a")
			if err != nil {
				t.Fatal(err)
			}
			defer dev.Close()
			m, err := Open(dev, "a:0", Config{Size: 2, Eager: 64 << 10, Segment: 4096, Timeout: 20 * time.Millisecond})
			if err != nil {
				t.Fatal(err)
			}
			defer m.Close()
			arm, err := arms.New(c.arm, arms.Settings{Reg: dev, Access: rdma.LocalWrite | rdma.RemoteWrite,
				Pages: rdma.PagesBase, Piece: 1 << 20, Deferred: 1 << 20})
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { // behind the memory, with nothing held
				if err := arm.Close(); err != nil {
					t.Error(err)
				}
			})
			in, out := take(t, arm, c.n, 1), take(t, arm, c.n, 0)
			qp := &sentWRs{}
			p := &peer{rank: 1, qp: qp, headBase: 64 << 10}
			m.peers[1] = p
			defer func() { m.peers[1] = nil }()

			list, err := steps.Of("halving", 0, 2, c.n)
			if err != nil {
				t.Fatal(err)
			}
			v := &vector{in: in, out: out}
			bytes := c.n * elem / 2
			for i := range 2 {
				if err := m.exchange(t.Context(), list[0], v, arm).sendShort(); err != nil {
					t.Fatal(err)
				}
				wr := qp.got[i]
				want, sges := headLen, uint8(2)
				if !c.loans {
					want, sges = headLen+bytes, 1
				}
				if wr.NumSGE != sges || int(wr.SGE[0].Len) != want || wr.ID != id(1, whatEager, i) ||
					wr.Len() != uint64(headLen+bytes) {
					t.Errorf("message %d: %d pieces, the first of %d bytes, %d in all, id %x", i, wr.NumSGE,
						wr.SGE[0].Len, wr.Len(), wr.ID)
				}
				if c.loans && wr.SGE[1].Addr != in.Addr()+uint64(list[0].Send.Off*elem) {
					t.Errorf("message %d is not gathered from the vector", i)
				}
			}
			if !c.loans {
				if err := m.returned(t.Context()); err != nil {
					t.Errorf("copied bytes are the user's at once: %v", err)
				}
				return
			}
			for i := range 2 {
				if err := m.returned(t.Context()); err == nil ||
					!strings.HasPrefix(err.Error(), "send to rank 1: nothing for") {
					t.Errorf("%d of 2 messages are done: %v", i, err)
				}
				if err := m.take(&rdma.WC{ID: id(1, whatEager, i)}); err != nil {
					t.Fatal(err)
				}
			}
			if err := m.returned(t.Context()); err != nil || p.eager != 0 {
				t.Errorf("all are done, and %d under way: %v", p.eager, err)
			}
			// A sum that fails gives back what it left, else the arm does not close.
			if err := m.Reduce(t.Context(), list, in, out, arm); err == nil ||
				err.Error() != "receive from rank 1: nothing for 20ms" || p.lent != 0 {
				t.Errorf("beside a silent rank %d are lent: %v", p.lent, err)
			}
		})
	}
}
