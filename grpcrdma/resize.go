package grpcrdma

import (
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/rdmaperf/rdmaperf/internal/onepeer"
	"github.com/rdmaperf/rdmaperf/transports/rdma"
)

// A connection begins with a small ring and send buffer on either side. A writer that had to wait for room says so in
// its next record, and the reader offers a large ring by a control record of its own. The writer ends the ring in use
// by a control record, goes on in the other one, and takes a larger send buffer. A reader through whose large ring
// little went for a while offers the first one in the same way, and both sides free what was large.

// peerRing is where the peer's reader looks for records.
type peerRing struct {
	size uint64
	addr uint64
	rkey uint32
	base uint64 // position of its first byte
}

// free is how many bytes it takes. A unit stays free for the end of the stream, or of this ring.
func (p *peerRing) free(sent, consumed uint64) uint64 {
	return p.size - unit - (sent - max(p.base, consumed))
}

// sendBuffer is the registered copy of what is on its way.
type sendBuffer struct {
	b    []byte
	addr uint64
	key  uint32
}

func newSendBuffer(p *piece, from int) *sendBuffer {
	return &sendBuffer{b: p.buf.Bytes()[from:], addr: p.buf.Addr() + uint64(from), key: p.region.LKey()}
}

// moves are a writer's, from ring to ring.
type moves struct {
	offer   atomic.Pointer[[offerLen]byte] // of this side's reader, to be sent
	offered atomic.Pointer[peerRing]       // by the peer, to be moved to
	to      atomic.Pointer[sendBuffer]     // in use once nothing sent is under way; nothing is sent before
}

// resize is a reader's large ring. mu is held for moments.
type resize struct {
	mu      sync.Mutex
	large   *piece // in use; nil while the first ring is
	offered *offered
	mark    uint64 // position at the last tidy
}

// offered is a ring of which the peer knows, and to which it has not moved yet.
type offered struct {
	b     []byte
	piece *piece // nil for the first ring
}

// control sends what is due about rings, as far as there is room. The caller holds tx.mu.
func (c *Conn) control() error {
	w := &c.tx
	m := &w.moves
	if to := m.to.Load(); to != nil && w.bufFreed.Load() == w.bufHead.Load() {
		if to == w.first {
			if err := c.putExtra(w.large); err != nil {
				return err
			}
			w.large = nil
		}
		w.buf.Store(to)
		m.to.Store(nil)
	}
	if o := m.offer.Load(); o != nil && w.room() >= uint64(recordLen(offerLen)) {
		m.offer.Store(nil)
		if err := c.sendRecord(nil, o[:], ctlFlag); err != nil {
			return err
		}
	}
	to := m.offered.Load()
	if to == nil || w.room() < unit {
		return nil
	}
	m.offered.Store(nil)
	if err := c.sendRecord(nil, nil, ctlFlag); err != nil {
		return err
	}
	to.base = w.sent.Load()
	w.peer.Store(to)
	buf := w.first
	if to.size > firstRing {
		if buf = w.buf.Load(); w.large == nil && c.net.cfg.SendBuffer+sendSlack > len(w.first.b) {
			// Without memory for it the first send buffer does.
			if p, err := c.getExtra(c.net.cfg.SendBuffer+sendSlack, rdma.LocalWrite); err == nil {
				w.large, buf = p, newSendBuffer(p, 0)
			}
		}
	}
	if buf != w.buf.Load() {
		m.to.Store(buf)
	}
	return nil
}

// tryControl is control where no Write is in progress; one that is does it itself, or leaves it to the next.
func (c *Conn) tryControl() {
	m := &c.tx.moves
	if m.offer.Load() == nil && m.offered.Load() == nil && m.to.Load() == nil || !c.tx.mu.TryLock() {
		return
	}
	defer c.tx.mu.Unlock()
	if c.err.Load() != nil || c.closed.Load() {
		return
	}
	if err := c.control(); err != nil {
		c.fail(err)
	}
}

// noteShort notes that a writer has to wait for the ring or the send buffer. The caller holds tx.mu.
func (w *writer) noteShort() {
	peer := w.peer.Load()
	w.short = w.short || peer != nil && w.moves.to.Load() == nil &&
		(w.bufRoom() == 0 || peer.free(w.sent.Load(), w.consumed.Load()) < unit)
}

// takeShort is the flag of the next record. The caller holds tx.mu.
func (w *writer) takeShort() uint32 {
	if !w.short {
		return 0
	}
	w.short = false
	return shortFlag
}

// takeControl handles the control record at pos. The caller holds rx.mu.
func (c *Conn) takeControl(pos uint64, rec record) error {
	r := &c.rx
	off := r.offset(pos)
	b := r.ring[off : off+rec.total]
	end := pos + uint64(rec.total)
	if rec.payload == 0 {
		return c.moved(end)
	}
	to, err := parseOffer(b[headerLen:])
	if err != nil {
		return err
	}
	if !c.tx.moves.offered.CompareAndSwap(nil, to) {
		return errOffer
	}
	if r.watched {
		clear(b)
	}
	r.pos.Store(end)
	c.returnCredit(false)
	return nil
}

// moved goes on in the ring that was offered, from position pos. The caller holds rx.mu.
func (c *Conn) moved(pos uint64) error {
	r := &c.rx
	l := &r.large
	l.mu.Lock()
	defer l.mu.Unlock()
	to, old := l.offered, l.large
	if to == nil {
		return errOffer
	}
	l.offered, l.large = nil, to.piece
	r.use(to.b, pos)
	r.pos.Store(pos)
	r.span.Store(uint64(len(to.b)))
	c.returnCredit(false)
	return c.putExtra(old)
}

// grow offers a large ring. A ring that is watched is never exchanged: who looks at it takes no lock.
func (c *Conn) grow() {
	l := &c.rx.large
	l.mu.Lock()
	defer l.mu.Unlock()
	if !c.net.cfg.grows() || l.large != nil || l.offered != nil {
		return
	}
	p, err := c.getExtra(c.net.cfg.Ring, rdma.LocalWrite|rdma.RemoteWrite)
	if err != nil {
		return // without memory for it the first ring does
	}
	c.offer(offered{p.buf.Bytes(), p}, p.region.RKey(), p.buf.Addr())
}

// shrink offers the first ring where less than it holds came since the last call.
func (c *Conn) shrink() {
	l := &c.rx.large
	l.mu.Lock()
	defer l.mu.Unlock()
	pos := c.rx.pos.Load()
	if l.large != nil && l.offered == nil && pos-l.mark < firstRing {
		m := c.mem.remote
		c.offer(offered{b: m.buf.Bytes()[ringOffset:]}, m.region.RKey(), m.buf.Addr()+ringOffset)
	}
	l.mark = pos
}

// offer makes a ring known to the peer. The caller holds rx.large.mu.
func (c *Conn) offer(o offered, rkey uint32, addr uint64) {
	c.rx.large.offered = &o
	c.rx.span.Add(uint64(len(o.b)))
	b := putOffer(rkey, uint32(len(o.b)), addr)
	c.tx.moves.offer.Store(&b)
}

// close frees the large ring of a connection that is over.
func (l *resize) close(c *Conn) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	p := l.large
	if o := l.offered; o != nil && o.piece != nil {
		p = o.piece
	}
	l.large, l.offered = nil, nil
	return c.putExtra(p)
}

func (c *Conn) getExtra(size int, access rdma.Access) (*piece, error) {
	p, err := c.net.getPiece(size, access)
	if err == nil {
		c.extra.Add(int64(p.buf.Len()))
	}
	return p, err
}

func (c *Conn) putExtra(p *piece) error {
	if p == nil {
		return nil
	}
	c.extra.Add(int64(-p.buf.Len()))
	return c.net.putPiece(p)
}

// tidyEvery is how long a large ring through which little goes stays at least. Arbitrary: to grow again takes one
// record of either side.
const tidyEvery = 2 * time.Second

// tidyUp ends when no connection is left. A look at a connection costs one at its socket.
func (n *Net) tidyUp() {
	t := time.NewTicker(tidyEvery)
	defer t.Stop()
	for {
		select {
		case <-t.C:
		case <-n.ctx.Done():
			return
		}
		if !n.tidy() {
			return
		}
	}
}

// tidy takes offers, and takes large rings back that little goes through, also where nobody reads. It is false, and
// the next connection starts it again, where there are none.
func (n *Net) tidy() bool {
	n.mu.Lock()
	conns := slices.Collect(maps.Keys(n.conns))
	n.tidying = len(conns) > 0
	n.mu.Unlock()
	for _, c := range conns {
		c.tidy()
	}
	return len(conns) > 0
}

func (c *Conn) tidy() {
	defer onepeer.Recover(c.cutOff)
	c.lane.drive()
	if err := c.takeControls(); err != nil {
		c.cutOff(err)
	}
	c.shrink()
	c.tryControl()
}

// takeControls handles the control records that nothing of the user's lies before, unless a Read does.
func (c *Conn) takeControls() error {
	r := &c.rx
	if !r.mu.TryLock() {
		return nil
	}
	defer r.mu.Unlock()
	for !c.closed.Load() && r.left.Load() == 0 {
		pos := r.pos.Load()
		rec, ok, err := r.next(pos)
		if err != nil || !ok || rec.flags != ctlFlag {
			return err
		}
		if err := c.takeControl(pos, rec); err != nil {
			return err
		}
	}
	return nil
}
