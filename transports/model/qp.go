package model

import (
	"fmt"
	"math/bits"

	"github.com/rdmaperf/rdmaperf/transports/rdma"
)

// qp is one end of a connection. world's lock guards everything but QP.
type qp struct {
	rdma.QP
	dev  *device
	id   uint32 // to the peer
	num  uint32 // below
	ctx  uint64 // of the cache of contexts
	send *cq
	recv *cq
	own  bool // receives are its own, not of a shared queue
	peer *qp

	ring   []sent // requests that were posted and not polled, by their number
	posted uint64
	freed  uint64
	depth  uint64
	done   int64 // when the newest request is
	sink   int64 // when the newest message or write of the peer is here

	// Messages that are on their way here, in order, that take a receive.
	arrivals []int64
	first    int

	recvDepth, recvs int // receives posted and not polled
	batch            [64]rdma.SendWR
	list             [rdma.MaxSGE]needs
}

type sent struct {
	id uint64 // the user's
	at int64  // when it is done
}

func (d *device) NewQP(cfg rdma.QPConfig) (rdma.QP, error) {
	send, ok1 := cfg.SendCQ.(*cq)
	recv, ok2 := cfg.RecvCQ.(*cq)
	if !ok1 || !ok2 || send.dev != d || recv.dev != d {
		return nil, &rdma.OpError{Op: "create qp", Object: d.Name(), Err: fmt.Errorf("no cq of this device: %w",
			rdma.ErrInvalid)}
	}
	cfg.SendCQ, cfg.RecvCQ = send.below, recv.below
	below, err := d.Device.NewQP(cfg)
	if err != nil {
		return nil, err
	}
	depth := max(cfg.SendDepth, 1)
	q := &qp{QP: below, dev: d, num: below.Num(), send: send, recv: recv, own: cfg.SRQ == nil, depth: uint64(depth),
		recvDepth: max(cfg.RecvDepth, 1), ring: make([]sent, 1<<bits.Len(uint(depth)))}
	world.Lock()
	defer world.Unlock()
	if world.qps == nil {
		world.qps = map[uint32]*qp{}
	}
	for world.last++; world.last == 0 || world.qps[world.last] != nil; world.last++ {
	}
	q.id = world.last
	world.qps[q.id] = q
	d.lastQP++
	q.ctx = d.lastQP
	d.qps[q.num] = q
	return q, nil
}

// PostSend takes work, which the device below does at once, and says when it is done.
func (q *qp) PostSend(wrs []rdma.SendWR) (n int, err error) {
	world.Lock()
	defer world.Unlock()
	return q.post(wrs)
}

func (q *qp) post(wrs []rdma.SendWR) (n int, err error) {
	d := q.dev
	at := d.clock.Now() + int64(d.cfg.Doorbell)
	for n < len(wrs) {
		part := wrs[n:min(len(wrs), n+len(q.batch))]
		room := int(q.depth - (q.posted - q.freed))
		if room == 0 && q.QP.State() != rdma.QPErr {
			// What the queue below has given back, the user has not polled.
			if s := q.QP.State(); !s.CanPostSend() {
				return n, rdma.ErrState
			}
			return n, rdma.ErrQueueFull
		}
		k := min(len(part), max(room, 1))
		copy(q.batch[:k], part[:k])
		for i := range q.batch[:k] {
			q.batch[i].ID = d.ids + q.posted + uint64(i)
		}
		// In ERR everything is flushed at once, so that its numbers must stand first.
		for i := range part[:k] {
			q.ring[(q.posted+uint64(i))&uint64(len(q.ring)-1)] = sent{id: part[i].ID, at: max(at, q.done)}
		}
		did, err := q.QP.PostSend(q.batch[:k])
		for i := range did {
			q.ring[q.posted&uint64(len(q.ring)-1)].at = q.time(&part[i], at)
			q.posted++
		}
		n += did
		if err != nil {
			return n, err
		}
		if did == 0 {
			return n, rdma.ErrQueueFull
		}
	}
	return n, nil
}

func (q *qp) time(wr *rdma.SendWR, at int64) int64 {
	d, size := q.dev, wr.Len()
	list := q.list[:0]
	if wr.Flags&rdma.Inline == 0 {
		for i := range wr.SGE[:min(int(wr.NumSGE), rdma.MaxSGE)] {
			if s := &wr.SGE[i]; s.Len > 0 {
				list = append(list, d.lkeys[s.LKey].touched(s.Addr, uint64(s.Len)))
			}
		}
	}
	t := d.nic.stage(at, q.ctx, list)
	far := q.peer
	if wr.Op == rdma.OpLocalInv || far == nil {
		q.done = max(q.done, t)
		return q.done
	}
	out := size
	if wr.Op.Responds() {
		out = 0
	}
	t = d.nic.send(t, out) + int64(d.cfg.Wire)
	list = q.list[:0]
	message := false
	switch wr.Op {
	case rdma.OpSend, rdma.OpSendInv, rdma.OpSendImm:
		message = true
	case rdma.OpWriteImm:
		message = true
		fallthrough
	default:
		if size > 0 {
			list = append(list, far.dev.rkeys[wr.RKey].touched(wr.RemoteAddr, size))
		}
	}
	t = far.dev.nic.stage(t, far.ctx, list)
	far.sink = max(far.sink, t)
	if message {
		far.arrive(far.sink)
	}
	if wr.Op.Responds() {
		t = far.dev.nic.send(t, size)
	}
	q.done = max(q.done, t+int64(d.cfg.Wire))
	return q.done
}

func (q *qp) arrive(at int64) {
	if q.first > 64 && q.first*2 > len(q.arrivals) {
		q.arrivals = q.arrivals[:copy(q.arrivals, q.arrivals[q.first:])]
		q.first = 0
	}
	q.arrivals = append(q.arrivals, at)
}

func (q *qp) arrived() int64 {
	if q.first == len(q.arrivals) {
		return q.sink
	}
	q.first++
	return q.arrivals[q.first-1]
}

func (q *qp) PostRecv(wrs []rdma.RecvWR) (int, error) {
	world.Lock()
	defer world.Unlock()
	room := q.recvDepth - q.recvs
	if q.own && len(wrs) > room {
		n, err := q.QP.PostRecv(wrs[:max(room, 0)])
		q.recvs += n
		if err == nil {
			err = rdma.ErrQueueFull
		}
		return n, err
	}
	n, err := q.QP.PostRecv(wrs)
	q.recvs += n
	return n, err
}

// Close destroys the queue pair; what it completed stays to be polled.
func (q *qp) Close() error {
	err := q.QP.Close()
	world.Lock()
	defer world.Unlock()
	if err != nil {
		return err
	}
	q.send.drain()
	q.recv.drain()
	delete(q.dev.qps, q.num)
	if world.qps[q.id] == q {
		delete(world.qps, q.id)
	}
	return nil
}

// PingPong takes steps of a ping-pong, timed by the device's clock.
func (q *qp) PingPong(steps []rdma.PingPongStep, dst []rdma.WC) (n int, err error) {
	if q.send != q.recv || !q.own || len(dst) == 0 {
		return 0, rdma.ErrInvalid
	}
	return rdma.Steps(q, q.send, steps, dst, q.dev.clock.Now, q.byteSeen)
}

// byteSeen moves the clock to when the peer's write came, whose byte is there at once.
func (q *qp) byteSeen() {
	world.Lock()
	defer world.Unlock()
	q.dev.clock.Set(max(q.dev.clock.Now(), q.sink))
}
