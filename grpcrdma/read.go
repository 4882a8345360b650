package grpcrdma

import (
	"encoding/binary"
	"io"
	"net"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"github.com/rdmaperf/rdmaperf/grpcrdma/bpev"
	"github.com/rdmaperf/rdmaperf/internal/onepeer"
	"github.com/rdmaperf/rdmaperf/transports/rdma"
)

// reader is the receiving half. mu is held by the one Read in progress; what others read is atomic.
type reader struct {
	mu       sync.Mutex
	deadline deadline
	watched  bool
	ring     []byte        // where the peer writes; mu's
	base     uint64        // position of its first byte; mu's
	size     atomic.Uint64 // its length
	span     atomic.Uint64 // most that the peer may have written and not been read: size, and that of an offered ring
	large    resize
	recvs    []byte // notice receives
	recvAddr uint64
	recvKey  uint32
	wr       [1]rdma.RecvWR // scratch: what an interface is given would escape

	pos   atomic.Uint64 // bytes of whole records consumed: where the next one begins
	left  atomic.Int64  // payload left of the record at pos; 0 when it was not begun
	limit atomic.Uint64 // bytes that notices cover

	// Of the record at pos, once begun.
	rec   record
	done  int  // payload bytes read
	short bool // a writer had to wait
	eof   bool
}

func (r *reader) init(cfg *Config, m memory) {
	r.watched = cfg.Arrival == ArrivalWatch
	r.use(m.remote.buf.Bytes()[ringOffset:], 0)
	r.span.Store(r.size.Load())
	r.recvs = m.local.buf.Bytes()[:recvArea]
	r.recvAddr, r.recvKey = m.local.buf.Addr(), m.local.region.LKey()
}

func (r *reader) use(ring []byte, base uint64) {
	r.ring, r.base = ring, base
	r.size.Store(uint64(len(ring)))
}

func (r *reader) offset(pos uint64) int { return int((pos - r.base) & uint64(len(r.ring)-1)) }

// next looks for the record at pos. The caller holds mu, or the ring is watched.
func (r *reader) next(pos uint64) (record, bool, error) {
	return look(r.ring, r.offset(pos), r.watched, r.limit.Load()-pos)
}

// readiness is bpev.In when Read would not wait, but for a record that is not the user's.
func (r *reader) readiness() bpev.Ready {
	pos := r.pos.Load()
	if r.left.Load() > 0 || r.limit.Load() > pos {
		return bpev.In
	}
	if !r.watched {
		return 0
	}
	if _, ok, err := r.next(pos); ok || err != nil {
		return bpev.In
	}
	return 0
}

// take copies what is there into p. The caller holds mu.
func (c *Conn) take(p []byte) (n int, err error) {
	r := &c.rx
	for n < len(p) && !r.eof {
		pos := r.pos.Load()
		off := r.offset(pos)
		if r.left.Load() == 0 {
			rec, ok, err := r.next(pos)
			if err != nil || !ok {
				return n, err
			}
			switch {
			case rec.flags == finFlag:
				r.eof = true
				return n, nil
			case rec.flags == ctlFlag:
				if err := c.takeControl(pos, rec); err != nil {
					return n, err
				}
				continue
			case rec.flags == shortFlag:
				r.short = true
			}
			r.rec, r.done = rec, 0
		}
		start := off + headerLen + r.done
		k := copy(p[n:], r.ring[start:off+headerLen+r.rec.payload])
		if r.watched {
			clear(r.ring[start : start+k]) // while it is in the cache
		}
		n += k
		r.done += k
		if r.done < r.rec.payload {
			r.left.Store(int64(r.rec.payload - r.done))
			return n, nil
		}
		if r.watched {
			clear(r.ring[off : off+headerLen])
			clear(r.ring[start+k : off+r.rec.total])
		}
		r.left.Store(0)
		r.pos.Store(pos + uint64(r.rec.total))
	}
	return n, nil
}

// Read takes what has arrived, at most len(p) bytes, and waits only when that is
// nothing. io.EOF when the peer closed in order.
func (c *Conn) Read(p []byte) (int, error) {
	n, err := c.read(p)
	if err != nil {
		return n, c.opError("read", err)
	}
	return n, nil
}

func (c *Conn) read(p []byte) (got int, fails error) {
	defer onepeer.Recover(func(fault error) { c.cutOff(fault); fails = fault })
	r := &c.rx
	r.mu.Lock()
	defer r.mu.Unlock()
	for {
		if c.closed.Load() {
			return 0, net.ErrClosed
		}
		if r.deadline.passed() {
			return 0, os.ErrDeadlineExceeded
		}
		if len(p) == 0 {
			return 0, nil
		}
		ended := c.err.Load() // before the look: what arrived before the end counts
		n, err := c.take(p)
		if err != nil {
			c.cutOff(err)
			return n, err
		}
		if n > 0 {
			c.returnCredit(false)
			if r.short {
				r.short = false
				c.grow()
			}
			c.tryControl()
			return n, nil
		}
		if r.eof {
			return 0, io.EOF
		}
		if ended != nil {
			return 0, *ended
		}
		if err := c.awaitInput(); err != nil {
			return 0, err
		}
	}
}

// awaitInput waits until the reader should poll again. That poll handles a deadline that passed,
// unless it was moved meanwhile.
func (c *Conn) awaitInput() error {
	until := c.rx.deadline.get()
	probes := c.net.probes
	if probes > 0 {
		if at := time.Now().Add(probes); until.IsZero() || at.Before(until) {
			until = at
		}
	}
	err := c.handle.Wait(bpev.In, until)
	if err != os.ErrDeadlineExceeded {
		return err
	}
	if probes > 0 && !c.rx.deadline.passed() {
		c.probe()
	}
	return nil
}

// recvID marks the work request IDs of receives; the rest is the slot.
const recvID = 1 << 63

// postRecv posts the notice receive of a slot: before the connection is made, then
// by the lane's poller.
func (c *Conn) postRecv(slot uint64) error {
	wr := &c.rx.wr[0]
	wr.ID, wr.NumSGE = recvID|slot, 1
	wr.SGE[0] = rdma.SGE{Addr: c.rx.recvAddr + slot*recvSlot, Len: noticeLen, LKey: c.rx.recvKey}
	_, err := c.qp.PostRecv(c.rx.wr[:])
	return err
}

func (c *Conn) completeRecv(wc *rdma.WC) {
	if wc.Status != rdma.StatusSuccess {
		c.failWC(wc)
		return
	}
	r := &c.rx
	slot := wc.ID &^ recvID
	var word uint32
	switch {
	case r.watched || slot >= noticeDepth+noticeSpare:
		c.cutOff(errNotice)
		return
	case wc.Flags&rdma.WithImm != 0:
		word = wc.Imm
	case wc.ByteLen == noticeLen:
		word = binary.LittleEndian.Uint32(r.recvs[slot*recvSlot:])
	default:
		c.cutOff(errNotice)
		return
	}
	if err := c.postRecv(slot); err != nil {
		c.fail(err)
		return
	}
	if word == noticeCredit {
		c.takeCredit()
		return
	}
	span := r.span.Load() // before the position: a ring that is left adds its last record to what the next one holds
	limit, err := noticed(word, r.limit.Load(), r.pos.Load(), span)
	if err != nil {
		c.cutOff(err)
		return
	}
	r.limit.Store(limit)
	c.tx.noticesTaken.Add(1)
	c.returnCredit(false)
}
