package grpcrdma

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"runtime"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/rdmaperf/rdmaperf/grpcrdma/bpev"
	"github.com/rdmaperf/rdmaperf/regcache"
	"github.com/rdmaperf/rdmaperf/transports/rdma"
)

// Addr is an end of a connection: "host:port" of a listener, else the device's name of the peer.
type Addr string

// Network is "rdma".
func (Addr) Network() string { return "rdma" }

// String is the address.
func (a Addr) String() string { return string(a) }

// Conn is a byte stream over one queue pair. It implements net.Conn: all methods
// are safe for concurrent use, one Read and one Write go on at a time, and
// deadlines end the ones in progress. Errors are *net.OpError, but for io.EOF.
type Conn struct {
	net           *Net
	lane          *lane
	qp            rdma.QP
	handle        *bpev.Handle
	mem           memory
	local, remote Addr

	rx    reader
	tx    writer
	sinks sinks

	extra     atomic.Int64          // bytes beyond Config.memory
	err       atomic.Pointer[error] // what ended the connection, first cause
	closed    atomic.Bool
	closeOnce sync.Once
	closeErr  error
}

var _ net.Conn = (*Conn)(nil)

// errReset: the connection ended without the end of the stream.
var errReset error = syscall.ECONNRESET

// newConn makes everything but the connection. Receives are posted: the peer may
// send as soon as it is connected.
func (n *Net) newConn() (*Conn, error) {
	c := &Conn{net: n, sinks: sinks{store: regcache.NewStore(regcache.StoreConfig{Keep: keptSinks})}}
	var err error
	if c.mem, err = n.get(); err != nil {
		return nil, err
	}
	if c.lane, err = n.newLane(); err != nil {
		n.put(c.mem)
		return nil, err
	}
	depth := 1 // watched rings take no notice; a flushed receive marks the end
	if n.cfg.Arrival == ArrivalNotice {
		depth = noticeDepth + noticeSpare
	}
	qcfg := rdma.QPConfig{SendCQ: c.lane.cq, RecvCQ: c.lane.cq, SendDepth: sendDepth, RecvDepth: depth,
		Access: rdma.RemoteWrite}
	if n.caps.Features.Has(rdma.FeatInline) {
		qcfg.MaxInline = min(n.caps.MaxInline, inlineMax)
	}
	if c.qp, err = n.dev.NewQP(qcfg); err != nil {
		c.lane.cq.Close()
		n.put(c.mem)
		return nil, err
	}
	c.rx.init(&n.cfg, c.mem)
	c.tx.init(&n.cfg, c.mem, qcfg.MaxInline)
	var src bpev.Source // what arrives in a watched ring raises no event
	if n.caps.Features.Has(rdma.FeatEvents) && !c.rx.watched {
		src = c.lane
	}
	c.handle = n.set.Add(c, src)
	c.lane.conn = c
	for i := range depth {
		if err := c.postRecv(uint64(i)); err != nil {
			c.release()
			return nil, err
		}
	}
	return c, nil
}

// greeting is this side's part of the connection's set-up.
func (c *Conn) greeting() []byte {
	g := greeting{notices: !c.rx.watched, depth: noticeDepth, rkey: c.mem.remote.region.RKey(),
		addr: c.mem.remote.buf.Addr(), ring: uint32(len(c.rx.ring))}
	return g.encode()
}

// param is what either side states in the connection set-up: no reads, no atomics.
func (c *Conn) param() rdma.ConnParam {
	p := rdma.ConnParam{PrivateData: c.greeting()}
	if c.net.caps.Features.Has(rdma.FeatRNRRetry) {
		p.RNRRetry = 7 // receives are counted, so none is ever missing for long
	}
	return p
}

// meet learns the peer's ring. Nothing is sent before it.
func (c *Conn) meet(g greeting) {
	c.tx.meet(&g, &c.net.caps)
}

// Poll handles completions and returns what the user can do now: the bpev.Pollable of the Net's
// Set.
func (c *Conn) Poll() bpev.Ready {
	c.lane.drive()
	r := c.readiness()
	if c.handle.Sleeping() != 0 {
		c.handle.Notify(r) // a polling reader finds what a sleeping writer waits for, before any poller does
	}
	return r
}

func (c *Conn) readiness() bpev.Ready {
	if c.err.Load() != nil || c.closed.Load() {
		return bpev.In | bpev.Out
	}
	if c.rx.watched {
		c.takeCredit()
	}
	return c.rx.readiness() | c.tx.readiness()
}

// complete handles one completion. The lane's poller calls it, one at a time.
func (c *Conn) complete(wc *rdma.WC) {
	if wc.ID&recvID != 0 {
		c.completeRecv(wc)
		return
	}
	if wc.Status != rdma.StatusSuccess {
		c.failWC(wc)
		return
	}
	c.tx.complete(wc.ID)
	if c.tx.creditDue.Load() {
		c.returnCredit(false)
	}
}

// failWC ends the connection for a failed completion. Flushed work has its cause
// elsewhere: the peer ended the connection, or died.
func (c *Conn) failWC(wc *rdma.WC) {
	if wc.Status == rdma.StatusWRFlushErr {
		c.fail(errReset)
		return
	}
	c.fail(&rdma.StatusError{WC: *wc})
}

// fail ends the connection with its first cause, and wakes everyone.
func (c *Conn) fail(err error) {
	if c.err.CompareAndSwap(nil, &err) {
		c.handle.Notify(bpev.In | bpev.Out)
	}
}

// cutOff ends the connection of a peer that broke the protocol.
func (c *Conn) cutOff(err error) {
	if c.err.CompareAndSwap(nil, &err) {
		c.net.cfg.Log.Warn("rdma peer cut off", "peer", string(c.remote), "cause", err)
		c.qp.Fail() // a QP that is closed already needs no end
		c.handle.Notify(bpev.In | bpev.Out)
	}
}

func (c *Conn) opError(op string, err error) error {
	if err == io.EOF {
		return err
	}
	return &net.OpError{Op: op, Net: "rdma", Source: c.local, Addr: c.remote, Err: err}
}

// closeGrace bounds the wait for a peer that takes nothing.
const closeGrace = 250 * time.Millisecond

// Close ends Read and Write, marks the end of the stream behind what was written, and frees the
// connection's memory and queues. Idempotent.
func (c *Conn) Close() error {
	c.closeOnce.Do(func() {
		c.closed.Store(true)
		c.handle.Kick(bpev.In | bpev.Out)
		c.tx.mu.Lock() // the Write in progress is out
		c.finish()
		c.tx.mu.Unlock()
		c.rx.mu.Lock()
		c.closeErr = c.release()
		c.rx.mu.Unlock()
		c.net.leave(c)
	})
	return c.closeErr
}

// finish writes the end of the stream and ends the connection behind it.
func (c *Conn) finish() {
	if c.err.Load() != nil || c.qp.State() != rdma.QPRTS {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), closeGrace)
	defer cancel()
	for !c.tx.finRoom() && ctx.Err() == nil && c.err.Load() == nil {
		c.lane.drive()
		runtime.Gosched()
	}
	// A peer that is slow or gone is no failure of Close: the QP is closed anyway.
	if c.sendRecord(nil, nil, finFlag) == nil {
		_ = c.qp.Disconnect(ctx)
	}
}

// release frees what newConn made.
func (c *Conn) release() error {
	c.handle.Remove()
	errs := []error{c.qp.Close()}
	c.lane.remove()
	errs = append(errs, c.sinks.close()...)
	errs = append(errs, c.lane.cq.Close(), c.rx.large.close(c), c.putExtra(c.tx.large), c.net.put(c.mem))
	if err := errors.Join(errs...); err != nil {
		return fmt.Errorf("close rdma connection %v: %w", c, err)
	}
	return nil
}

// LocalAddr is this end.
func (c *Conn) LocalAddr() net.Addr { return c.local }

// RemoteAddr is the peer's end.
func (c *Conn) RemoteAddr() net.Addr { return c.remote }

// Memory is the number of registered bytes of the connection: those of a new one, and a large ring and send buffer
// while bulk goes through it. What Grant registers comes on top.
func (c *Conn) Memory() int { return c.net.cfg.memory() + int(c.extra.Load()) }

// KeepProcessor declares that readers of this connection leave nothing runnable behind: Read then
// polls at once, instead of yielding to other goroutines first.
func (c *Conn) KeepProcessor() { c.handle.KeepProcessor() }

// Ended is true when the connection has failed, or the peer has closed it and everything before
// that was read. It does not wait.
func (c *Conn) Ended() bool {
	c.lane.drive()
	if c.err.Load() != nil || c.closed.Load() {
		return true
	}
	if !c.rx.mu.TryLock() {
		return false // a Read learns of it
	}
	defer c.rx.mu.Unlock()
	if c.closed.Load() || c.rx.left.Load() > 0 {
		return c.closed.Load()
	}
	rec, ok, err := c.rx.next(c.rx.pos.Load())
	return err != nil || ok && rec.flags == finFlag
}

// SetDeadline sets both deadlines; the zero time is none. It holds for the Read
// and Write in progress too.
func (c *Conn) SetDeadline(t time.Time) error {
	c.SetReadDeadline(t)
	return c.SetWriteDeadline(t)
}

// SetReadDeadline sets the deadline of Read.
func (c *Conn) SetReadDeadline(t time.Time) error { return c.setDeadline(&c.rx.deadline, t, bpev.In) }

// SetWriteDeadline sets the deadline of Write.
func (c *Conn) SetWriteDeadline(t time.Time) error {
	return c.setDeadline(&c.tx.deadline, t, bpev.Out)
}

func (c *Conn) setDeadline(d *deadline, t time.Time, dir bpev.Ready) error {
	if c.closed.Load() {
		return c.opError("set deadline", net.ErrClosed)
	}
	d.set(t)
	c.handle.Kick(dir)
	return nil
}

// deadline is a point in time that may change during a wait for it.
type deadline struct{ at atomic.Pointer[time.Time] }

func (d *deadline) set(t time.Time) {
	if t.IsZero() {
		d.at.Store(nil)
		return
	}
	d.at.Store(&t)
}

func (d *deadline) get() time.Time {
	if t := d.at.Load(); t != nil {
		return *t
	}
	return time.Time{}
}

func (d *deadline) passed() bool {
	t := d.at.Load()
	return t != nil && !time.Now().Before(*t)
}

// String names the connection in logs.
func (c *Conn) String() string { return fmt.Sprintf("%s to %s", c.local, c.remote) }
