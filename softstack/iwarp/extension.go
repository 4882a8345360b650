package iwarp

import (
	"fmt"

	"github.com/rdmaperf/rdmaperf/softstack/ddp"
	"github.com/rdmaperf/rdmaperf/softstack/mpa"
	"github.com/rdmaperf/rdmaperf/softstack/rdmap"
	"github.com/rdmaperf/rdmaperf/transports/rdma"
)

// What RFC 7306 adds.
const (
	immediateOps = rdma.OpSet(1<<rdma.OpSendImm | 1<<rdma.OpWriteImm)
	atomicOps    = rdma.OpSet(1<<rdma.OpFetchAdd | 1<<rdma.OpCmpSwap)
)

var errPlainPeer = fmt.Errorf("the peer does not say that it takes this operation of rfc 7306: %w",
	rdma.ErrNotSupported)

type peerOffer struct {
	made bool
	ext  rdmap.Extensions
}

// request is the private data of our Request.
func (c *Config) request(private []byte) []byte {
	if c.Extensions == ExtNone {
		return private
	}
	return rdmap.AppendOffer(private, rdmap.ExtAll)
}

// reply is the private data of our Reply: an offer answers an offer.
func (c *Config) reply(private []byte, peer peerOffer) []byte {
	if !peer.made {
		return private
	}
	return c.request(private)
}

// cutOffer takes the peer's offer out of the private data in n, without the extensions too.
func cutOffer(n *mpa.Negotiated) (o peerOffer) {
	n.PeerPrivate, o.ext, o.made = rdmap.CutOffer(n.PeerPrivate)
	return o
}

func (c *Config) opsFor(peer peerOffer) rdma.OpSet {
	ops := c.caps().Ops
	if c.Extensions == ExtAssumed {
		return ops
	}
	if peer.ext&rdmap.ExtImmediate == 0 {
		ops &^= immediateOps
	}
	if peer.ext&rdmap.ExtAtomic == 0 {
		ops &^= atomicOps
	}
	return ops
}

// refused is the reason why an operation cannot be posted on this connection.
func (q *qp) refused(op rdma.Opcode) error {
	if q.dev.caps.Ops.Has(op) {
		return errPlainPeer
	}
	return rdma.ErrNotSupported
}

// particularOps have rules of their own at the post.
const particularOps = immediateOps | atomicOps | 1<<rdma.OpRead

func checkParticular(wr *rdma.SendWR, size uint64) error {
	switch {
	case wr.Op.Responds() && wr.Flags&rdma.Inline != 0:
		return rdma.ErrInvalid // ibv_post_send(3): inline is for send and write
	case wr.Op == rdma.OpRead && wr.NumSGE > 1:
		return rdma.ErrInvalid // a Read Request names one sink (RFC 5040 §4.4)
	case wr.Op.IsAtomic() && (wr.NumSGE != 1 || size != rdmap.AtomicSize):
		return rdma.ErrInvalid
	case wr.Op == rdma.OpSendImm && size > 0:
		return errBareImmediate
	}
	return nil
}

var errBareImmediate = fmt.Errorf(
	"rfc 7306 has no message of bytes and immediate data; write_imm is the one with bytes: %w", rdma.ErrNotSupported)

// Immediate Data, RFC 7306 §6: behind an RDMA Write a write with immediate, alone a send of no bytes.

// writeTrail is what the receiver knows of the Write before an Immediate Data.
type writeTrail struct {
	size  uint32 // octets of the Write at hand, or of the last one
	open  bool   // its last segment has not come
	ended bool   // a Write is the last message that came, responses apart
}

func (w *writeTrail) add(n int, last bool) {
	if !w.open {
		w.size = 0
	}
	w.size += uint32(n)
	w.open, w.ended = !last, last
}

// frameImmediate frames the Immediate Data of the entry at sqNext; false when there is no room.
func (q *qp) frameImmediate(e *sqEntry) bool {
	t := &q.tx
	if !t.room(rdmap.ImmediateLen, false) {
		return false
	}
	op := rdmap.OpImmediate
	if e.wr.Flags&rdma.Solicited != 0 {
		op = rdmap.OpImmediateSE
	}
	v := rdmap.Immediate{Value: e.wr.Imm, Alone: e.wr.Op == rdma.OpSendImm}
	var hdr [ddp.UntaggedLen + rdmap.ImmediateLen]byte
	ddp.PutUntagged(hdr[:], &ddp.Untagged{Last: true, ULP: rdmap.Control(op), QN: ddp.QNSend, MSN: t.sendMSN})
	rdmap.PutImmediate(hdr[ddp.UntaggedLen:], v.Octets())
	t.sendMSN++
	t.frame(hdr[:], nil, 0, false)
	t.behind = false
	q.begun(e)
	return true
}

// openImmediate binds the message to a receive, whose memory is not touched.
func (q *qp) openImmediate(payload int) rdmap.TermCode {
	s := &q.rx.seg
	rq := &q.rx.sendQ
	if rq.Open() {
		return rdmap.TermOpcode // one message, one operation
	}
	if !q.curUsed && s.u.MSN == rq.MSN() {
		q.curUsed = q.takeRecv()
	}
	if _, code := rq.Check(&s.u, payload, rdmap.ImmediateLen, q.curUsed); code != 0 {
		return rdmap.FromDDP(code)
	}
	if payload != rdmap.ImmediateLen || !s.last {
		return rdmap.TermStream // RFC 7306 §6.3: exactly 8 octets
	}
	return 0
}

func (q *qp) deliverImmediate(ulpdu []byte) {
	v := rdmap.ImmediateOf(rdmap.GetImmediate(ulpdu[ddp.UntaggedLen:]))
	wc := rdma.WC{ID: q.cur.ID, QPNum: q.num, Opcode: rdma.WCRecv, Flags: rdma.WithImm, Imm: v.Value}
	if w := &q.rx.write; w.ended && !v.Alone {
		wc.Opcode, wc.ByteLen = rdma.WCRecvWriteImm, w.size
	}
	q.rx.write.ended = false
	q.curUsed = false
	q.pushRecv(&wc, q.rx.seg.op.Solicited())
}
