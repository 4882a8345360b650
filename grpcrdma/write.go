package grpcrdma

import (
	"encoding/binary"
	"net"
	"os"
	"sync"
	"sync/atomic"

	"github.com/rdmaperf/rdmaperf/grpcrdma/bpev"
	"github.com/rdmaperf/rdmaperf/transports/rdma"
)

// A work request ID of the send queue says what its completion frees:
//
//	63 zero | 62..48 places in the send queue | 47..0 end in the send buffer, low bits
//
// The places are its own and those of the unsignalled requests before it.
const (
	coverShift = 48
	endMask    = 1<<coverShift - 1
)

// writer is the sending half. mu is held by the one Write in progress, post by whatever posts to
// the send queue: the writer, and the return of credit.
type writer struct {
	mu       sync.Mutex
	deadline deadline

	cell      []byte // the peer's credit for us
	credits   []byte // credits to send
	credAddr  uint64
	credKey   uint32
	maxInline int

	first *sendBuffer
	buf   atomic.Pointer[sendBuffer] // the one in use
	large *piece                     // memory of another one in use; mu's
	short bool                       // a writer had to wait for room, which the next record says; mu's
	moves moves

	peer      atomic.Pointer[peerRing] // nil before the connection is made
	cellAddr  uint64
	cellKey   uint32
	notices   bool // the peer needs them
	imm       bool // as immediate data
	maxNotice uint64

	// Positions since the connection began. The writer moves sent and bufHead.
	sent     atomic.Uint64 // bytes of records written into the peer's ring
	noticed  atomic.Uint64 // notices of records sent
	consumed atomic.Uint64 // of them, what the peer's credit has returned
	acked    atomic.Uint64
	bufHead  atomic.Uint64 // bytes of the send buffer given out
	bufFreed atomic.Uint64 // and taken back
	used     atomic.Int32  // send queue places
	held     atomic.Bool   // nothing is sent before the peer's first credit

	post        sync.Mutex
	wrs         [2]rdma.SendWR // scratch: what an interface is given would escape
	unsignaled  int            // unsignalled requests since the last signalled one
	posted      uint64         // bufHead behind the last posted record
	signalled   uint64         // posted at the last signalled request
	creditsSent uint64

	creditDue       atomic.Bool   // a credit found no place in the send queue
	noticesTaken    atomic.Uint64 // from the peer
	returned        atomic.Uint64 // bytes in the last credit to the peer
	returnedNotices atomic.Uint64
}

func (w *writer) init(cfg *Config, m memory, inline int) {
	w.cell = m.remote.buf.Bytes()[:cellLen]
	w.credits, w.credAddr = m.local.buf.Bytes()[recvArea:sendOffset], m.local.buf.Addr()+recvArea
	w.credKey, w.maxInline = m.local.region.LKey(), inline
	w.first = newSendBuffer(m.local, sendOffset)
	w.buf.Store(w.first)
}

func (w *writer) meet(g *greeting, caps *rdma.Caps) {
	w.cellAddr, w.cellKey = g.addr, g.rkey
	w.peer.Store(&peerRing{size: uint64(g.ring), addr: g.addr + ringOffset, rkey: g.rkey})
	w.notices, w.imm, w.maxNotice = g.notices, caps.Ops.Has(rdma.OpWriteImm), uint64(g.depth)
}

// room is how long the next record may be; 0 when there is no room for one. A
// unit of the ring stays free for the end of the stream. The caller is the writer,
// or content with a guess.
func (w *writer) room() uint64 {
	sent, peer := w.sent.Load(), w.peer.Load()
	if peer == nil || w.held.Load() || w.moves.to.Load() != nil || w.used.Load() > sendDepth-sendReserve ||
		w.notices && w.noticed.Load()-w.acked.Load() >= w.maxNotice {
		return 0
	}
	return min(peer.free(sent, w.consumed.Load()), peer.size-(sent-peer.base)&(peer.size-1), w.bufRoom())
}

// noticeRoom is what a record takes of the send buffer for its notice.
func (w *writer) noticeRoom() uint64 {
	if w.notices && !w.imm {
		return unit
	}
	return 0
}

// bufRoom is the longest record the send buffer can take now: a quarter of it at
// most, so that unsignalled requests and the jump over its end never block it.
func (w *writer) bufRoom() uint64 {
	size := uint64(len(w.buf.Load().b))
	most := size/4 - w.noticeRoom()
	if size-(w.bufHead.Load()-w.bufFreed.Load()) < 2*(size/4) {
		return 0
	}
	return most &^ (unit - 1)
}

// finRoom is true when queue and send buffer take the end of the stream. The ring always does.
func (w *writer) finRoom() bool {
	return w.used.Load() <= sendDepth-2 && uint64(len(w.buf.Load().b))-(w.bufHead.Load()-w.bufFreed.Load()) >= 4*unit
}

// readiness is bpev.Out when Write would not wait.
func (w *writer) readiness() bpev.Ready {
	if w.room() >= unit || w.moves.to.Load() != nil && w.bufFreed.Load() == w.bufHead.Load() {
		return bpev.Out
	}
	return 0
}

// alloc takes n bytes of the send buffer in one run, jumping over its end.
func (w *writer) alloc(n uint64) (off uint64) {
	head, size := w.bufHead.Load(), uint64(len(w.buf.Load().b))
	off = head % size
	if off+n > size {
		head += size - off
		off = 0
	}
	w.bufHead.Store(head + n)
	return off
}

// complete takes back what a signalled request and those before it held.
func (w *writer) complete(id uint64) {
	w.used.Add(-int32(id >> coverShift))
	freed := w.bufFreed.Load()
	w.bufFreed.Store(freed + (id-freed)&endMask)
}

// Write sends p. It waits while the peer's ring is full, and returns early only
// with an error; the bytes it counts are on their way.
func (c *Conn) Write(p []byte) (int, error) { return c.WriteTwo(nil, p) }

// WriteTwo is Write for what lies in two places, a header and its payload: they
// share records, as if they had been joined before.
func (c *Conn) WriteTwo(head, p []byte) (int, error) {
	n, err := c.write(head, p)
	if err != nil {
		return n, c.opError("write", err)
	}
	return n, nil
}

func (c *Conn) write(head, p []byte) (n int, err error) {
	w := &c.tx
	w.mu.Lock()
	defer w.mu.Unlock()
	for {
		if len(head)+len(p) == 0 {
			return n, c.writable()
		}
		room, err := c.awaitRoom()
		if err != nil {
			return n, err
		}
		k := min(payloadIn(int(room)), maxPayload)
		h := min(len(head), k)
		t := min(len(p), k-h)
		if err := c.sendRecord(head[:h], p[:t], w.takeShort()); err != nil {
			c.fail(err)
			return n, err
		}
		// What was sent counts as written, whatever ends the connection behind it.
		n += h + t
		if head, p = head[h:], p[t:]; len(head)+len(p) == 0 {
			return n, nil
		}
	}
}

// writable is why nothing can be written any more; nil while something can.
func (c *Conn) writable() error {
	switch e := c.err.Load(); {
	case c.closed.Load():
		return net.ErrClosed
	case e != nil:
		return *e
	case c.tx.deadline.passed():
		return os.ErrDeadlineExceeded
	}
	return nil
}

// awaitRoom waits until there is room for a record, and returns its longest length. The caller
// holds tx.mu.
func (c *Conn) awaitRoom() (room uint64, err error) {
	w := &c.tx
	for {
		if err := c.writable(); err != nil {
			return 0, err
		}
		if err := c.control(); err != nil {
			c.fail(err)
			return 0, err
		}
		if room := w.room(); room >= unit {
			return room, nil
		}
		w.noteShort()
		if c.Poll()&bpev.Out != 0 {
			continue
		}
		if err := c.handle.Wait(bpev.Out, w.deadline.get()); err != nil && err != os.ErrDeadlineExceeded {
			return 0, err
		}
	}
}

// sendRecord writes head and p as one record, and its notice, for which there is
// room. The caller holds tx.mu.
func (c *Conn) sendRecord(head, p []byte, flags uint32) error {
	w, buf, peer := &c.tx, c.tx.buf.Load(), c.tx.peer.Load()
	payload := len(head) + len(p)
	total := uint64(recordLen(payload))
	off := w.alloc(total + w.noticeRoom())
	b := buf.b[off : off+total]
	copy(b[headerLen:], head)
	copy(b[headerLen+len(head):], p)
	putRecord(b, payload, flags)
	word := uint32(total / unit)
	pos := w.sent.Load()

	w.post.Lock()
	defer w.post.Unlock()
	n := w.write(peer.rkey, peer.addr+(pos-peer.base)&(peer.size-1),
		rdma.SGE{Addr: buf.addr + off, Len: uint32(total), LKey: buf.key})
	if w.notices {
		n = w.notice(word, buf.b[off+total:off+total+w.noticeRoom()],
			rdma.SGE{Addr: buf.addr + off + total, Len: noticeLen, LKey: buf.key})
		w.noticed.Add(1)
	}
	w.sent.Store(pos + total) // before the post: credit for it may come at once
	w.posted = w.bufHead.Load()
	return w.send(c.qp, n, payload == 0) // what waits for the end of the stream or of a ring learns of it
}

// write fills the first request of wrs. The caller holds post.
func (w *writer) write(rkey uint32, to uint64, from rdma.SGE) int {
	w.wrs[0] = rdma.SendWR{Op: rdma.OpWrite, RKey: rkey, RemoteAddr: to, NumSGE: 1}
	w.wrs[0].SGE[0] = from
	if from.Len <= uint32(w.maxInline) {
		w.wrs[0].Flags = rdma.Inline
	}
	return 1
}

// notice completes a write with its notice: immediate data, or a send behind it
// with the word as its body, which lies at from. It returns the number of requests.
func (w *writer) notice(word uint32, body []byte, from rdma.SGE) int {
	if w.imm {
		w.wrs[0].Op, w.wrs[0].Imm = rdma.OpWriteImm, word
		w.wrs[0].Flags &^= rdma.Inline // sends and writes only (ibv_post_send(3))
		return 1
	}
	binary.LittleEndian.PutUint32(body, word)
	wr := &w.wrs[1]
	*wr = rdma.SendWR{Op: rdma.OpSend, NumSGE: 1}
	wr.SGE[0] = from
	if w.maxInline >= noticeLen {
		wr.Flags = rdma.Inline
	}
	return 2
}

// send posts the first n of wrs. A completion comes for every quarter of the queue or of
// the buffer, so that both are taken back in time. The caller holds post.
func (w *writer) send(qp rdma.QP, n int, signal bool) error {
	wrs := w.wrs[:n]
	w.unsignaled += len(wrs)
	if signal || w.unsignaled >= sendDepth/4 ||
		w.posted-w.signalled >= uint64((len(w.buf.Load().b)-sendSlack)/4) {
		last := &wrs[len(wrs)-1]
		last.Flags |= rdma.Signaled
		last.ID = uint64(w.unsignaled)<<coverShift | w.posted&endMask
		w.unsignaled, w.signalled = 0, w.posted
	}
	w.used.Add(int32(len(wrs)))
	_, err := qp.PostSend(wrs)
	return err
}
