package sched

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"hash/crc32"

	"github.com/rdmaperf/rdmaperf/transports/rdma"
)

// Two tiers agree to cut sends while they connect: each puts an offer behind the application's private data, and takes
// the other's away before the application sees it. The side that connects offers; the other answers with an offer of
// its own only if it understood that one. A peer without a tier sees the offer as more bytes behind what the
// application sent, where some transports put padding.
//
//	 0  address of the mailbox   8   all fields are big-endian
//	 8  its remote key           4
//	12  bytes of its ring        4
//	16  the shortest receive     4   that is posted here
//	20  zero                     4
//	24  length of what the application sent  2
//	26  version                  1
//	27  zero                     1
//	28  CRC-32C of bytes 0 to 27 xor the letters "sSnd"  4
//
// Every version keeps the length of an offer and its last eight bytes.

const (
	offerLen     = 32
	offerVersion = 1
)

var (
	castagnoli = crc32.MakeTable(crc32.Castagnoli)
	offerMark  = binary.BigEndian.Uint32([]byte("sSnd"))
)

// offer is what a tier tells the tier at the other end.
type offer struct {
	addr     uint64
	rkey     uint32
	room     uint32 // bytes of the ring, behind the head of the mailbox
	shortest uint32 // as long as every receive that is posted; 0: none is known
}

// add writes the offer behind the application's private data.
func (o *offer) add(private []byte) []byte {
	at := len(private)
	b := append(make([]byte, 0, at+offerLen), private...)
	b = binary.BigEndian.AppendUint64(b, o.addr)
	b = binary.BigEndian.AppendUint32(b, o.rkey)
	b = binary.BigEndian.AppendUint32(b, o.room)
	b = binary.BigEndian.AppendUint32(b, o.shortest)
	b = append(b, 0, 0, 0, 0)
	b = binary.BigEndian.AppendUint16(b, uint16(at))
	b = append(b, offerVersion, 0)
	return binary.BigEndian.AppendUint32(b, offerSum(b[at:]))
}

func offerSum(b []byte) uint32 { return crc32.Checksum(b, castagnoli) ^ offerMark }

// splitOffer parts private data, which zeros may follow, into the application's and the peer's offer. One of another
// version is taken away, and is none.
func splitOffer(private []byte) (application []byte, o *offer) {
	// The sum may end in zeros itself, so the end is looked for where it can be.
	least := len(bytes.TrimRight(private, "\x00"))
	for end := min(least+3, len(private)); end >= max(least, offerLen); end-- {
		at := end - offerLen
		b := private[at:end]
		if binary.BigEndian.Uint32(b[28:]) != offerSum(b[:28]) || int(binary.BigEndian.Uint16(b[24:])) != at {
			continue
		}
		if b[26] != offerVersion {
			return private[:at], nil
		}
		o = &offer{
			addr: binary.BigEndian.Uint64(b), rkey: binary.BigEndian.Uint32(b[8:]),
			room: binary.BigEndian.Uint32(b[12:]), shortest: binary.BigEndian.Uint32(b[16:]),
		}
		if o.room < minRoom || o.room > maxRoom || o.addr+mailboxHead+uint64(o.room) < o.addr ||
			binary.BigEndian.Uint32(b[20:]) != 0 || b[27] != 0 {
			return private[:at], nil
		}
		return private[:at], o
	}
	return private, nil
}

// canCut reports whether QPs of this configuration may cut sends: with receive queues of their own and remote writes.
func (d *device) canCut(cfg *rdma.QPConfig) bool {
	return d.cutting && cfg.SRQ == nil && (cfg.Access == 0 || cfg.Access.Has(rdma.RemoteWrite))
}

// offered adds the QP's offer to what the application sends, if it has one to make.
func (q *qp) offered(p rdma.ConnParam, wanted bool) (_ rdma.ConnParam, offered bool, err error) {
	if n, limit := len(p.PrivateData), q.dev.caps.MaxPrivate; q.dev.cutting && n > limit {
		return p, false, fmt.Errorf("%d bytes of private data, limit %d: %w", n, limit, rdma.ErrInvalid)
	}
	if q.mailbox == nil || !wanted {
		return p, false, nil
	}
	o, err := q.mailbox.offer(q)
	if err != nil {
		return p, false, nil // no memory, or no registration: sends stay whole
	}
	p.PrivateData = o.add(p.PrivateData)
	return p, true, nil
}

// met takes the peer's offer out of what came.
func met(p rdma.ConnParam) (rdma.ConnParam, *offer) {
	var o *offer
	p.PrivateData, o = splitOffer(p.PrivateData)
	return p, o
}

func (q *qp) negotiated(offered bool, peer *offer) {
	if !q.dev.cutting {
		return
	}
	if !offered || peer == nil {
		q.dev.tally.alone.Add(1)
		if q.mailbox != nil {
			q.mailbox.in.mu.Lock()
			q.mailbox.in.off = true
			q.mailbox.in.mu.Unlock()
		}
		return
	}
	q.dev.tally.agreed.Add(1)
	q.mu.Lock()
	o := &q.mailbox.out
	o.agreed, o.peer, o.room = true, *peer, int(peer.room)
	q.keepUp()
	q.mu.Unlock()
	q.sendCredits() // of receives posted since the offer
}
