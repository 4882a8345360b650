package iwarp

import (
	"testing"
	"time"

	"github.com/rdmaperf/rdmaperf/transports/rdma"
)

// A QP whose peer's message makes its reader panic ends alone: its peer sees the end, and another QP of the device
// works.
func TestAPanicEndsOneQueuePairAlone(t *testing.T) {
	a, b := pair(t, Config{}, rdma.QPConfig{})
	c, d := newEnd(t, Config{}, rdma.QPConfig{}), newEndOn(t, b.dev, rdma.QPConfig{})
	defer d.free()
	join(t, c, d)
	q := b.qp.(*qp)
	q.mu.Lock()
	q.irq = fifo{} // without room for a read
	q.mu.Unlock()
	a.post(rdma.SendWR{ID: 2, Op: rdma.OpRead, Flags: rdma.Signaled, SGE: [4]rdma.SGE{a.sge(0, 8)}, NumSGE: 1,
		RemoteAddr: uint64(b.buf.Addr()), RKey: b.mr.RKey()})
	for end := time.Now().Add(testTimeout); q.State() != rdma.QPErr; {
		a.cq.Poll(a.wcs)
		b.cq.Poll(b.wcs)
		if time.Now().After(end) {
			t.Fatal("the QP lives")
		}
	}
	d.postRecv(3, d.sge(0, 8))
	c.post(rdma.SendWR{ID: 4, Op: rdma.OpSend, Flags: rdma.Signaled, SGE: [4]rdma.SGE{c.sge(0, 8)}, NumSGE: 1})
	d.want(c, rdma.WCRecv, 3, rdma.StatusSuccess)
}
