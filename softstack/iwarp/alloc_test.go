package iwarp

import (
	"testing"

	"github.com/rdmaperf/rdmaperf/transports/rdma"
)

// TestDataPathAllocatesNothing: a round trip of posts and polls on both sides.
func TestDataPathAllocatesNothing(t *testing.T) {
	for name, cfg := range map[string]Config{"crc": {}, "nocrc": {NoCRC: true}, "checked": {StoreAndForward: true}} {
		for _, size := range []int{64, 64 << 10} {
			a, b := pair(t, cfg, rdma.QPConfig{})
			wcs := make([]rdma.WC, 8)
			type side struct {
				*end
				send  []rdma.SendWR
				recv  []rdma.RecvWR
				reads []rdma.SendWR // a write, and a read behind it
			}
			newSide := func(e, peer *end) *side {
				return &side{e,
					[]rdma.SendWR{{Op: rdma.OpSend, Flags: rdma.Signaled, NumSGE: 1, SGE: [4]rdma.SGE{e.sge(0, size)}}},
					[]rdma.RecvWR{{NumSGE: 1, SGE: [4]rdma.SGE{e.sge(1<<20, size)}}},
					[]rdma.SendWR{
						{Op: rdma.OpWrite, NumSGE: 1, SGE: [4]rdma.SGE{e.sge(0, size)}, RKey: peer.mr.RKey(),
							RemoteAddr: peer.mr.Addr()},
						{Op: rdma.OpRead, Flags: rdma.Signaled, NumSGE: 1, SGE: [4]rdma.SGE{e.sge(2<<20, size)},
							RKey: peer.mr.RKey(), RemoteAddr: peer.mr.Addr()},
					}}
			}
			x, y := newSide(a, b), newSide(b, a)
			// collect polls s, and the other side for its progress, for n completions.
			collect := func(s, other *side, n int) {
				for spins := 0; n > 0; spins++ {
					k, err := s.cq.Poll(wcs)
					for _, wc := range wcs[:k] {
						if wc.Status != rdma.StatusSuccess {
							t.Fatal(wc.Status)
						}
					}
					if err != nil || spins > 10_000_000 {
						t.Fatalf("%d completions missing: %v", n, err)
					}
					n -= k
					other.qp.(*qp).poll()
				}
			}
			trip := func() {
				y.qp.PostRecv(y.recv)
				x.qp.PostRecv(x.recv)
				x.qp.PostSend(x.send)
				collect(y, x, 1)
				y.qp.PostSend(y.send)
				collect(x, y, 2)
				collect(y, x, 1)
				x.qp.PostSend(x.reads)
				collect(x, y, 1)
			}
			for range 100 {
				trip()
			}
			if n := testing.AllocsPerRun(200, trip); n != 0 {
				t.Errorf("%s, %d octets: %v allocations a round trip", name, size, n)
			}
			if n := testing.AllocsPerRun(1000, func() { x.cq.Poll(wcs) }); n != 0 {
				t.Errorf("%s: %v allocations an empty poll", name, n)
			}
		}
	}
}
