package iwarp

import (
	"testing"

	"github.com/rdmaperf/rdmaperf/transports/rdma"
)

// A connection for small messages has small buffers. One that carries more at once gets long ones, and no octet is lost
// where they take the place of the others.
func TestBuffersAreLongWhereMuchComesAtOnce(t *testing.T) {
	const burst, depth = 200, 256 // twice leastBuf in messages of 64 octets
	for name, more := range map[string]func(t *testing.T, a, b *end){
		"one long segment": func(t *testing.T, a, b *end) {
			a.fill(1, 0, 60_000)
			b.postRecv(2, b.sge(0, 60_000))
			a.post(rdma.SendWR{ID: 2, Op: rdma.OpSend, NumSGE: 1, SGE: [4]rdma.SGE{a.sge(0, 60_000)}})
			b.want(a, rdma.WCRecv, 2, rdma.StatusSuccess)
			a.want(b, rdma.WCSend, 2, rdma.StatusSuccess)
			equal(t, "segment", b.bytes(0, 60_000), a.bytes(0, 60_000))
		},
		"many small ones": func(t *testing.T, a, b *end) {
			a.fill(1, 0, burst*64)
			list := make([]rdma.SendWR, burst)
			for i := range list {
				b.postRecv(uint64(i), b.sge(i*64, 64))
				list[i] = rdma.SendWR{ID: uint64(i), Op: rdma.OpSend, NumSGE: 1, SGE: [4]rdma.SGE{a.sge(i*64, 64)}}
			}
			if n, err := a.qp.PostSend(list); n != burst || err != nil {
				t.Fatal(n, err)
			}
			for i := range list {
				b.want(a, rdma.WCRecv, uint64(i), rdma.StatusSuccess)
			}
			equal(t, "messages", b.bytes(0, burst*64), a.bytes(0, burst*64))
		},
	} {
		t.Run(name, func(t *testing.T) {
			a, b := pair(t, Config{}, rdma.QPConfig{SendDepth: depth, RecvDepth: depth})
			sender, receiver := a.qp.(*qp), b.qp.(*qp)
			lengths := func() (tx, rx int) {
				sender.mu.Lock()
				tx = len(sender.tx.buf)
				sender.mu.Unlock()
				receiver.mu.Lock()
				defer receiver.mu.Unlock()
				return tx, len(receiver.rx.buf)
			}
			for i := range 100 {
				b.postRecv(1, b.sge(0, 64))
				a.post(rdma.SendWR{ID: 1, Op: rdma.OpSend, NumSGE: 1, SGE: [4]rdma.SGE{a.sge(0, 64)}})
				b.want(a, rdma.WCRecv, 1, rdma.StatusSuccess)
				a.want(b, rdma.WCSend, 1, rdma.StatusSuccess)
				if tx, rx := lengths(); tx != leastBuf || rx != leastBuf {
					t.Fatalf("message %d: buffers of %d and %d octets", i, tx, rx)
				}
			}
			more(t, a, b)
			if tx, rx := lengths(); rx != mostBuf || name == "many small ones" && tx != mostBuf {
				t.Errorf("buffers of %d and %d octets", tx, rx)
			}
		})
	}
}
