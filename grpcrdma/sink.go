package grpcrdma

import (
	"errors"
	"fmt"
	"math"
	"net"
	"sync"

	"github.com/rdmaperf/rdmaperf/regcache"
	"github.com/rdmaperf/rdmaperf/transports/rdma"
)

// A sink is registered memory of one side into which the other writes a long message, past the
// ring, so that the receiver copies nothing (the Data Sink of RFC 5040; MPI and UCX call it
// rendezvous). A record carries its key and address to the peer, and another one that it is filled.
// What was written before a record is placed when the record is: a notice follows all writes before
// it (RFC 5040 §5.5, IBTA 10.8.3.3), and a device whose ring may be watched places writes in the
// order of their bytes.
type sink struct {
	buf    rdma.Buffer
	region *regcache.Region
}

// sinks are those of a connection. Memory that comes back serves the same connection again and no
// other: a peer that claims to have written what it did not can read only its own bytes.
type sinks struct {
	store *regcache.Store

	mu      sync.Mutex
	closed  bool
	granted map[uint32]sink // by key
	bytes   int             // granted
}

const (
	sinkStep = 64 << 10 // lengths are multiples, so that similar messages share memory
	// keptSinks are the bytes kept for the next grants of a connection, beside the last that came
	// back.
	keptSinks = 8 << 20
)

var errSink = fmt.Errorf("%w: sink that was not granted", rdma.ErrProtocol)

const (
	// Measured over iWARP, calls a second by sink by those by the ring: 0.8 with 32 KiB, 1.1 and
	// 1.3 with 64 KiB, 1.3 with 128 KiB.
	sinkFrom = 64 << 10
	// sinkFromSlow is for devices on which registering is a system call. Measured on rxe of Linux
	// 6.1 in an emulated guest: calls of 128 KiB and 256 KiB take 1.19 times as long by sink as by
	// the ring, those of 1 MiB and 4 MiB 0.84 and 0.78 times.
	sinkFromSlow = 512 << 10
)

// SinkFrom is the length in bytes from which sinks are faster than the ring.
func (c *Conn) SinkFrom() int {
	// Devices that work unaided are the kernel's or hardware.
	if caps := &c.net.caps; caps.Unaided && caps.Label != rdma.LabelMem {
		return sinkFromSlow
	}
	return sinkFrom
}

// Grant lets the peer write up to n bytes, with key and addr for its Place. The memory is the
// peer's until Take, or until Close.
func (c *Conn) Grant(n int) (key uint32, addr uint64, err error) {
	if n < 1 || n > math.MaxInt32 {
		return 0, 0, c.opError("grant", fmt.Errorf("%d bytes: %w", n, rdma.ErrInvalid))
	}
	g := &c.sinks
	var l sink
	l.buf, err = g.store.Alloc((n + sinkStep - 1) / sinkStep * sinkStep)
	if err == nil {
		if l.region, err = c.net.scope.Get(l.buf, rdma.LocalWrite|rdma.RemoteWrite); err != nil {
			err = errors.Join(err, g.store.Free(l.buf))
		}
	}
	if err != nil {
		return 0, 0, c.opError("grant", err)
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.closed {
		return 0, 0, c.opError("grant", errors.Join(net.ErrClosed, g.end(l)))
	}
	if g.granted == nil {
		g.granted = map[uint32]sink{}
	}
	g.granted[l.region.RKey()] = l
	g.bytes += l.buf.Len()
	return l.region.RKey(), l.buf.Addr(), nil
}

// end ends registration and memory. What a device does not release stays mapped.
func (g *sinks) end(l sink) error { return errors.Join(l.region.Revoke(), g.store.Free(l.buf)) }

// Take ends a grant: the peer's writes there are refused, and the bytes are the caller's until
// free, which it calls once; also after Close.
func (c *Conn) Take(key uint32) (b []byte, free func(), err error) {
	g := &c.sinks
	g.mu.Lock()
	l, ok := g.granted[key]
	delete(g.granted, key)
	if ok {
		g.bytes -= l.buf.Len()
	}
	g.mu.Unlock()
	if !ok {
		return nil, nil, c.opError("take", errSink)
	}
	// A later write of the peer is refused and ends the connection.
	if err := l.region.Revoke(); err != nil {
		return nil, nil, c.opError("take", errors.Join(err, g.store.Free(l.buf)))
	}
	return l.buf.Bytes(), func() { g.store.Free(l.buf) }, nil
}

// close frees what was not taken. The QP is closed.
func (g *sinks) close() (errs []error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.closed = true
	for _, l := range g.granted {
		errs = append(errs, g.end(l))
	}
	g.granted, g.bytes = nil, 0
	return append(errs, g.store.Close())
}

func (g *sinks) held() int {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.bytes
}

// placeRuns is how many runs of the send buffer one post takes, half of the buffer: a system call
// of a software device pays for both, and the other half is copied while it works.
const placeRuns = 2

// placeRun is what longer runs are multiples of: a software device cuts a write into segments of
// TCP, on loopback of 32741 bytes, so one of 32 KiB would take two.
const placeRun = 32<<10 - 64

// Place writes p to addr in the sink that the peer granted with key. It waits as Write does, and
// what is written later is read later. The peer's device checks the bounds: it ends the connection.
func (c *Conn) Place(key uint32, addr uint64, p []byte) (n int, err error) {
	for n < len(p) && err == nil {
		var k int
		k, err = c.placeSome(key, addr+uint64(n), p[n:])
		n += k
	}
	if err != nil {
		return n, c.opError("place", err)
	}
	return n, nil
}

// placeSome writes as much as one post takes, so that other writers get their turn.
func (c *Conn) placeSome(key uint32, addr uint64, p []byte) (n int, err error) {
	w := &c.tx
	w.mu.Lock()
	defer w.mu.Unlock()
	c.lane.drive() // what is over makes room for both runs
	if _, err := c.awaitRoom(); err != nil {
		return 0, err
	}
	var runs [placeRuns]rdma.SGE
	buf := w.buf.Load()
	k := 0
	for ; k < placeRuns && n < len(p); k++ {
		most := w.bufRoom()
		if most == 0 {
			break
		}
		run := min(len(p)-n, int(most))
		if run > placeRun {
			run -= run % placeRun
		}
		off := w.alloc(uint64(run+unit-1) &^ (unit - 1))
		copy(buf.b[off:], p[n:n+run])
		runs[k] = rdma.SGE{Addr: buf.addr + off, Len: uint32(run), LKey: buf.key}
		n += run
	}
	w.post.Lock()
	defer w.post.Unlock()
	to := addr
	for i := range runs[:k] {
		w.wrs[i] = rdma.SendWR{Op: rdma.OpWrite, RKey: key, RemoteAddr: to, NumSGE: 1}
		w.wrs[i].SGE[0] = runs[i]
		to += uint64(runs[i].Len)
	}
	w.posted = w.bufHead.Load()
	if err := w.send(c.qp, k, false); err != nil {
		c.fail(err)
		return 0, err
	}
	return n, nil
}
