package sched

import (
	"encoding/binary"
	"errors"
	"sync/atomic"
	"unsafe"

	"github.com/rdmaperf/rdmaperf/transports/rdma"
)

// A mailbox is the memory of one end of a connection that the tier at the other end writes. Nothing else is in it, so
// that a peer that breaks the rules spoils what it sent itself and no more.
//
//	0     freed, as below       8   from the receiver: how many cut sends it has taken
//	8     shortest, as below    8   and the shortest receive it has posted
//	64    descriptors, 16 bytes each    from the sender: one for each cut send, in turn
//	4096  ring                      from the sender: bytes of cut sends
//
// A cut send goes as writes of all but its beginning into the ring, a descriptor, and then a send of the beginning,
// which takes the receive, the immediate, the key to invalidate and the solicited event with it. Writes are in place
// before a send behind them is delivered (IBTA 9.5, RFC 5040 §5.5), so who polls that receive finds the descriptor and
// the rest.

const (
	mailboxHead   = 4096
	descriptorsAt = 64
	descriptorLen = 16
	maxCutSends   = 64 // most cut sends under way

	minRoom     = 8 << 10
	maxRoom     = 64 << 20
	defaultRoom = 4 << 20
)

// descriptor says that a message is the beginning of a longer one.
type descriptor struct {
	turn uint32 // 1, 2 … of the cut sends of this direction
	msg  uint32 // of all that take a receive, how many went before
	size uint32 // of the whole message
	at   uint32 // of the ring, where the rest begins
}

func (s *descriptor) put(b []byte) {
	binary.BigEndian.PutUint32(b, s.turn)
	binary.BigEndian.PutUint32(b[4:], s.msg)
	binary.BigEndian.PutUint32(b[8:], s.size)
	binary.BigEndian.PutUint32(b[12:], s.at)
}

func readDescriptor(b []byte) descriptor {
	return descriptor{
		turn: binary.BigEndian.Uint32(b), msg: binary.BigEndian.Uint32(b[4:]),
		size: binary.BigEndian.Uint32(b[8:]), at: binary.BigEndian.Uint32(b[12:]),
	}
}

// sound reports whether a peer that knows the ring can mean a message that begins with so many bytes.
func (s *descriptor) sound(beginning uint32, room int) bool {
	return s.size > beginning && int(s.size-beginning) <= room && int(s.at) < room
}

func descriptorOffset(turn uint32) int { return descriptorsAt + int(turn%maxCutSends)*descriptorLen }

// double is a number that cannot be read half written.
func double(n uint32) uint64 { return uint64(n)<<32 | uint64(^n) }

// readDouble reads one that a device may be writing; false: it is, or nothing ever was there.
func readDouble(b []byte) (uint32, bool) {
	v := atomic.LoadUint64((*uint64)(unsafe.Pointer(&b[:8][0])))
	v = binary.BigEndian.Uint64((*[8]byte)(unsafe.Pointer(&v))[:])
	return uint32(v >> 32), uint32(v>>32) == ^uint32(v)
}

// mailbox is what a QP needs to cut sends and to take cut ones.
type mailbox struct {
	box  rdma.Buffer
	mr   rdma.MR
	room int         // of the ring in box
	desk rdma.Buffer // our own descriptors and notice, until they are posted: they go inline
	out  segmenter
	in   reassembler
}

// offer makes the mailbox, once, and says where it is.
func (m *mailbox) offer(q *qp) (offer, error) {
	if m.mr == nil {
		box, err := rdma.Alloc(mailboxHead + m.room)
		if err != nil {
			return offer{}, err
		}
		mr, err := q.dev.below.RegMR(q.pd, box, rdma.LocalWrite|rdma.RemoteWrite)
		if err != nil {
			return offer{}, errors.Join(err, box.Free())
		}
		if m.desk, err = rdma.Alloc(mailboxHead); err != nil {
			return offer{}, errors.Join(err, mr.Close(), box.Free())
		}
		m.box, m.mr = box, mr
	}
	return offer{addr: m.box.Addr(), rkey: m.mr.RKey(), room: uint32(m.room), shortest: m.in.advertise()}, nil
}

// close gives the memory back; the QP below is closed.
func (m *mailbox) close() error {
	if m == nil || m.mr == nil {
		return nil
	}
	if err := m.mr.Close(); err != nil {
		return err
	}
	m.mr = nil
	return errors.Join(m.box.Free(), m.desk.Free())
}

// creditsLen is what a receiver writes at the beginning of the sender's mailbox.
const creditsLen = 16

func putDouble(b []byte, n uint32) { binary.BigEndian.PutUint64(b, double(n)) }
