package iwarp

import (
	"fmt"

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
	if c.Extensions == ExtNone || !peer.made {
		return private
	}
	return rdmap.AppendOffer(private, rdmap.ExtAll)
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
