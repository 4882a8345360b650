package lite

import (
	"bytes"
	"errors"
	"sync"
	"sync/atomic"
	"unsafe"

	"github.com/rdmaperf/rdmaperf/transports/lite/wire"
	"github.com/rdmaperf/rdmaperf/transports/rdma"
)

const (
	pollBatch  = 32
	backlogMax = 1024 // messages of the node that wait for room in one queue pair; more are an error of the peer
)

// A work request ID encodes what its completion means.
//
//	63..60 kind | 59..44 entries it frees | 43..28 client | 27..0 operation
//	63..60 kind | 59..44 entries it frees | 43..0 extent of the arena, in units of 64 bytes
const (
	idUnsignaled = uint64(iota) // nothing waits for it
	idOp                        // a client's operation
	idFree                      // an extent goes back to the arena
	idRun                       // a client's operation, and those in front without a completion
)

const (
	idKindShift   = 60
	idCoverShift  = 44
	idClientShift = 28
	idOpMask      = 1<<idClientShift - 1
)

// errNoCredit: the peer has no receive for another message yet.
var errNoCredit = errors.New("no receive at the peer")

// link is one queue pair to a peer. mu guards posts, pollMu completions of the send queue, and the node's arrivals.
type link struct {
	node  *Node
	peer  *peer
	index int // among the links to the peer
	place int // in node.links
	qp    rdma.QP
	cq    rdma.CQ

	mu         sync.Mutex
	depth      int
	inUse      atomic.Int32
	unsignaled int    // unsignalled requests since the last signalled one
	seq        uint64 // requests posted
	messages   uint64 // messages posted, each of which takes a receive
	stage      uint64 // arena offset of depth places of stageLen
	lkey       uint32
	backlog    []deferred
	wrs        [2]rdma.SendWR
	broken     atomic.Bool

	pollMu sync.Mutex
	wcs    [pollBatch]rdma.WC
	waitMu sync.Mutex // held by the client that sleeps on cq

	// Under node.pollMu.
	recvBufs  uint64 // arena offset of depth receives of 8 bytes
	reposts   []rdma.RecvWR
	reposted  uint64 // receives posted again
	announced uint64 // of them, as written to the peer
}

// deferred is a message of the node itself that waits for room.
type deferred struct {
	remote uint64
	imm    uint32
	notify bool
	data   []byte
}

// post queues wr, whose operation, flags and elements are set; l.mu is held. rdma.ErrQueueFull changes nothing.
func (l *link) post(wr *rdma.SendWR, id uint64) error {
	if l.broken.Load() {
		return ErrPeerDead
	}
	if int(l.inUse.Load()) >= l.depth {
		return rdma.ErrQueueFull
	}
	if wr.Flags&rdma.Signaled == 0 && l.unsignaled+1 >= l.depth/4 {
		// A queue of nothing but unsignalled requests never frees a place (IBTA 10.7.3.1).
		wr.Flags |= rdma.Signaled
	}
	wr.ID = id | uint64(l.unsignaled+1)<<idCoverShift
	wr.RKey = l.peer.rkey
	n, err := l.qp.PostSend(unsafe.Slice(wr, 1))
	if n == 0 {
		if err != nil && !errors.Is(err, rdma.ErrQueueFull) {
			err = ErrPeerDead
		}
		return err
	}
	l.seq++
	l.inUse.Add(1)
	if l.unsignaled++; wr.Flags&rdma.Signaled != 0 {
		l.unsignaled = 0
	}
	return nil
}

// staged is the memory beside the next place of the queue; l.mu is held. Without a place the request that had it is
// under way still, and may not have been read.
func (l *link) staged() (mem []byte, addr uint64, ok bool) {
	if int(l.inUse.Load()) >= l.depth {
		return nil, 0, false
	}
	off := l.stage + l.seq%uint64(l.depth)*stageLen
	return l.node.bytes(off, stageLen), l.node.base + off, true
}

// credit is true while the peer has a receive for one more message.
func (l *link) credit() bool {
	back, ok := l.node.word(creditOf(l.peer.id, l.index))
	if !ok {
		return false
	}
	// A peer that claims more gains nothing: one message without a receive ends its connection.
	return l.messages-back < uint64(l.depth) || back > l.messages
}

// message writes head and body to remote, and notifies the peer with imm; l.mu is held. What is longer than stageLen
// has a body in the arena, the device's until the completion with id. rdma.ErrQueueFull and errNoCredit change nothing.
func (l *link) message(remote uint64, imm uint32, head, body []byte, flags rdma.SendFlags, id uint64) error {
	if !l.credit() {
		return errNoCredit
	}
	mem, addr, ok := l.staged()
	if !ok {
		return rdma.ErrQueueFull
	}
	wr := &l.wrs[0]
	*wr = rdma.SendWR{Op: rdma.OpWriteImm, Flags: flags, RemoteAddr: remote, Imm: imm, NumSGE: 1}
	n := copy(mem, head)
	if len(head)+len(body) <= stageLen {
		n += copy(mem[n:], body)
	} else {
		off, ok := l.node.inside(body)
		if !ok {
			return ErrMemory
		}
		wr.NumSGE = 2
		wr.SGE[1] = rdma.SGE{Addr: l.node.base + off, Len: uint32(len(body)), LKey: l.lkey}
	}
	wr.SGE[0] = rdma.SGE{Addr: addr, Len: uint32(n), LKey: l.lkey}
	// first, so that an answered message is counted
	l.node.counts.messages.Add(1)
	var err error
	if l.node.cfg.Sends {
		err = l.twoPosts(wr, imm, id)
	} else {
		err = l.post(wr, id)
	}
	if err != nil {
		l.node.counts.messages.Add(^uint64(0))
		return err
	}
	l.messages++
	return nil
}

// twoPosts is a message without immediate data: a send is delivered when the write before it is placed (RFC 5040 §5.5).
func (l *link) twoPosts(wr *rdma.SendWR, imm uint32, id uint64) error {
	if int(l.inUse.Load())+2 > l.depth {
		return rdma.ErrQueueFull
	}
	wr.Op = rdma.OpWrite
	if err := l.post(wr, id); err != nil {
		return err
	}
	mem, addr, _ := l.staged() // there are two entries, as checked above
	mem[0], mem[1], mem[2], mem[3] = byte(imm>>24), byte(imm>>16), byte(imm>>8), byte(imm)
	note := &l.wrs[1]
	*note = rdma.SendWR{Op: rdma.OpSend, NumSGE: 1}
	note.SGE[0] = rdma.SGE{Addr: addr, Len: 4, LKey: l.lkey}
	if err := l.post(note, 0); err != nil {
		// Without the send, the peer would wait forever for the write.
		l.broken.Store(true)
		return ErrPeerDead
	}
	return nil
}

// write writes at most stageLen bytes to remote; l.mu is held.
func (l *link) write(remote uint64, b []byte) error {
	mem, addr, ok := l.staged()
	if !ok {
		return rdma.ErrQueueFull
	}
	wr := &l.wrs[0]
	*wr = rdma.SendWR{Op: rdma.OpWrite, RemoteAddr: remote, NumSGE: 1}
	wr.SGE[0] = rdma.SGE{Addr: addr, Len: uint32(copy(mem, b)), LKey: l.lkey}
	return l.post(wr, 0)
}

// sendWord writes a checked word to remote and never waits: what finds no room is posted later.
func (l *link) sendWord(remote, v uint64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	var b [wire.WordLen]byte
	wire.PutWord(b[:], v)
	if len(l.backlog) > 0 || l.write(remote, b[:]) != nil {
		l.deferWrite(deferred{remote: remote, data: bytes.Clone(b[:])})
	}
}

// deferWrite keeps h for later; l.mu is held.
func (l *link) deferWrite(h deferred) {
	if l.broken.Load() {
		return
	}
	if len(l.backlog) >= backlogMax {
		l.broken.Store(true)
		return
	}
	if len(l.backlog) == 0 {
		l.node.deferred.Add(1)
		l.node.wake()
	}
	l.backlog = append(l.backlog, h)
}

func (l *link) flush() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.backlog) == 0 {
		return
	}
	k := 0
	for ; k < len(l.backlog) && !l.broken.Load(); k++ {
		if l.postDeferred(&l.backlog[k]) != nil {
			break
		}
	}
	if l.broken.Load() {
		k = len(l.backlog)
	}
	l.backlog = append(l.backlog[:0], l.backlog[k:]...)
	if len(l.backlog) == 0 {
		l.node.deferred.Add(-1)
	}
}

func (l *link) postDeferred(h *deferred) error {
	switch {
	case !h.notify:
		return l.write(h.remote, h.data)
	case len(h.data) <= stageLen:
		return l.message(h.remote, h.imm, h.data, nil, 0, 0)
	}
	return l.copied(h.remote, h.imm, nil, h.data)
}
