package conform

import (
	"slices"

	"github.com/rdmaperf/rdmaperf/transports/rdma"
)

// Transfers that have to succeed.

func (x *end) do(wrs ...rdma.SendWR) {
	x.post(wrs...)
	for i := range wrs {
		if wrs[i].Flags&rdma.Signaled != 0 || x.sigAll {
			x.s.expect(want{id: wrs[i].ID})
		}
	}
}

func (c *conn) message(s rdma.SendWR, r rdma.RecvWR) {
	c.b.postRecv(r)
	c.a.do(s)
	c.b.r.expect(arrival(r.ID, s))
}

func arrival(id uint64, s rdma.SendWR) want {
	w := want{id: id, op: rdma.WCRecv, bytes: uint32(s.Len())}
	switch s.Op {
	case rdma.OpSendImm:
		return w.withImm(s.Imm)
	case rdma.OpSendInv:
		return w.withInv(s.InvKey)
	case rdma.OpWriteImm:
		return w.byWrite().withImm(s.Imm)
	}
	return w
}

func (c *conn) writes(src, dst *region) {
	c.a.do(write(1, dst.at(0), src.all()))
	c.barrier()
	dst.holds(src.data())
}

func (c *conn) reads(src, sink *region) {
	c.a.do(read(1, src.at(0), sink.all()))
	sink.holds(src.data())
}

func (c *conn) sends(src, dst *region) {
	c.message(send(1, src.all()), recv(1, dst.all()))
	dst.holds(src.data())
}

const blank = 0x33 // in the bytes that a transfer has to leave alone

// blank makes the data bytes that no pattern has in a row.
func (r *region) blank() { fillByte(r.data(), blank) }

// holdsOnly requires b at an offset, and blank bytes around it.
func (r *region) holdsOnly(off int, b []byte) {
	r.e.allBytes(r.name+": bytes before", r.data()[:off], blank)
	r.e.equal(r.name, r.data()[off:off+len(b)], b)
	r.e.allBytes(r.name+": bytes behind", r.data()[off+len(b):], blank)
}

// doEach posts n requests one by one, as the queue has room, and requires the success of each.
func (x *end) doEach(n int, request func(i int) rdma.SendWR) {
	for i := range n {
		x.push(request(i))
	}
	x.s.expectOK(0, n)
}

// expectGot requires receives 0 to n-1, each with a plain message of size bytes.
func (q *workQueue) expectGot(n, size int) {
	for i := range n {
		q.expect(got(i, size))
	}
}

func (c *conn) bothWays(near, far *region) {
	near.fill(1)
	c.writes(near, far)
	far.fill(2)
	c.reads(far, near)
}

func (c *conn) wakes(wr rdma.SendWR, why string) {
	c.a.post(wr)
	c.e.expectWake(c.b.box, why)
	c.a.s.expect(want{id: wr.ID})
}

// Rights that cases use again and again.
const (
	remoteAll = rdma.LocalWrite | rdma.RemoteWrite | rdma.RemoteRead
	localOnly = rdma.LocalWrite
)

func (e *Env) sinkAccess() rdma.Access {
	if e.Caps.Features.Has(rdma.FeatSinkNeedsRemoteWrite) {
		return rdma.LocalWrite | rdma.RemoteWrite
	}
	return rdma.LocalWrite
}

// messageSizes are the lengths at which implementations break: nothing, one, the 4-byte pad of iWARP, path MTUs, the
// DDP segment sizes of an Ethernet frame, page and 64 KiB boundaries.
func (e *Env) messageSizes() []int {
	all := []int{0, 1, 2, 3, 4, 5, 7, 8, 9, 63, 64, 65, 255, 256, 257, 1023, 1024, 1025, 1447, 1448, 1449,
		1482, 1483, 1486, 1487, 2048, 4095, 4096, 4097, 8959, 65535, 65536, 65537, 1<<20 - 1, 1 << 20}
	return slices.DeleteFunc(all, func(n int) bool { return uint64(n) > e.Caps.MaxMsg })
}

// flow is a run of equal messages, with buffers reused as soon as their completion is polled.
type flow struct {
	n, size    int
	srcSlots   int // send buffers: 1 means that each message waits for the completion before it
	dstSlots   int // receives posted
	passedSend func(wr rdma.SendWR, i int) rdma.SendWR
}

// run gives every message the pattern of its number: loss, repetition, exchange and late reads show.
func (f flow) run(x, y *end) {
	e := x.e
	src := e.region(x, "messages", f.srcSlots*f.size, localOnly)
	dst := e.region(y, "receives", f.dstSlots*f.size, localOnly)
	slot := func(i int) rdma.SGE { return dst.sge(i%f.dstSlots*f.size, f.size) }
	for i := 0; i < min(f.dstSlots, f.n); i++ {
		y.recvAnywhere(recv(i, slot(i)))
	}
	sent, completed, received := 0, 0, 0
	expected := make([]byte, f.size)
	for received < f.n || completed < f.n {
		for sent < f.n && sent-received < f.dstSlots && sent-completed < f.srcSlots && len(x.s.open) < x.depth {
			at := sent % f.srcSlots * f.size
			pattern(src.data()[at:at+f.size], e.salt+uint64(sent))
			wr := send(sent, src.sge(at, f.size))
			if f.passedSend != nil {
				wr = f.passedSend(wr, sent)
			}
			x.post(wr)
			sent++
		}
		e.wait(func() string { return x.name + " to " + y.name + ": more messages" },
			func() bool { return len(x.s.done) > 0 || len(y.r.done) > 0 })
		for len(x.s.done) > 0 {
			x.s.expect(ok(completed))
			completed++
		}
		for len(y.r.done) > 0 {
			y.r.expect(got(received, f.size))
			at := received % f.dstSlots * f.size
			pattern(expected, e.salt+uint64(received))
			e.equal(dst.name+": message "+idText(sendID(received)), dst.data()[at:at+f.size], expected)
			if next := received + f.dstSlots; next < f.n {
				y.recvAnywhere(recv(next, slot(next)))
			}
			received++
		}
	}
}

// fillQueue posts requests of build one by one, without polling, until the queue is full. A device may round depths up
// (man ibv_create_qp), so "full" may come late, but it has to come, as ErrQueueFull and not before depth.
func (e *Env) fillQueue(what string, depth int, post func(i int) error) int {
	limit := 4*depth + 1024
	for i := 0; i < limit; i++ {
		err := post(i)
		if err == nil {
			continue
		}
		e.refusedWith(what+" overflow", err, rdma.ErrQueueFull)
		if i < depth {
			e.failf(what+" takes its depth", "full after %d of %d", i, depth)
		}
		return i
	}
	e.failf(what+" of depth given refuses at some point", "%d requests taken without a poll", limit)
	return 0
}
