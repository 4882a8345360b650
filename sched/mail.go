package sched

import (
	"encoding/binary"
	"errors"
	"sync/atomic"
	"unsafe"

	"github.com/rdmaperf/rdmaperf/transports/rdma"
)

// A mailbox is the memory of one end of a connection that the tier at the other
// end writes. Nothing else is in it, so that a peer that breaks the rules spoils
// what it sent itself and no more.
//
//	0     freed, as below       8   from the receiver: how many cut sends it has taken
//	8     shortest, as below    8   and the shortest receive it has posted
//	64    slips, 16 bytes each      from the sender: one for each cut send, in turn
//	4096  ring                      from the sender: bytes of cut sends
//
// A cut send goes as writes of all but its beginning into the ring, a slip, and
// then a send of the beginning, which takes the receive, the immediate, the key to
// invalidate and the solicited event with it. Writes are in place before a send
// behind them is delivered (IBTA 9.5, RFC 5040 §5.5), so who polls that receive
// finds the slip and the rest.

const (
	mailHead = 4096
	slipAt   = 64
	slipLen  = 16
	slips    = 64 // most cut sends under way

	minRoom     = 8 << 10
	maxRoom     = 64 << 20
	defaultRoom = 4 << 20
)

// slip says that a message is the beginning of a longer one.
type slip struct {
	turn uint32 // 1, 2 … of the cut sends of this direction
	msg  uint32 // of all that take a receive, how many went before
	size uint32 // of the whole message
	at   uint32 // of the ring, where the rest begins
}

func (s *slip) put(b []byte) {
	binary.BigEndian.PutUint32(b, s.turn)
	binary.BigEndian.PutUint32(b[4:], s.msg)
	binary.BigEndian.PutUint32(b[8:], s.size)
	binary.BigEndian.PutUint32(b[12:], s.at)
}

func readSlip(b []byte) slip {
	return slip{
		turn: binary.BigEndian.Uint32(b), msg: binary.BigEndian.Uint32(b[4:]),
		size: binary.BigEndian.Uint32(b[8:]), at: binary.BigEndian.Uint32(b[12:]),
	}
}

// sound tells whether the slip can be that of a message that begins with so many
// bytes, of a peer that knows the ring.
func (s *slip) sound(beginning uint32, room int) bool {
	return s.size > beginning && int(s.size-beginning) <= room && int(s.at) < room
}

// slipOffset is where the slip of a turn is in the mailbox.
func slipOffset(turn uint32) int { return slipAt + int(turn%slips)*slipLen }

// double is a number that cannot be read half written.
func double(n uint32) uint64 { return uint64(n)<<32 | uint64(^n) }

// readDouble reads one that a device may be writing; false: it is, or nothing ever was there.
func readDouble(b []byte) (uint32, bool) {
	v := atomic.LoadUint64((*uint64)(unsafe.Pointer(&b[:8][0])))
	v = binary.BigEndian.Uint64((*[8]byte)(unsafe.Pointer(&v))[:])
	return uint32(v >> 32), uint32(v>>32) == ^uint32(v)
}

// mail is what a QP needs to cut sends and to take cut ones.
type mail struct {
	box  rdma.Buffer
	mr   rdma.MR
	room int         // of the ring in box
	desk rdma.Buffer // our own slips and notice, until they are posted: they go inline
	out  outbox
	in   inbox
}

// offer makes the mailbox, once, and says where it is.
func (m *mail) offer(q *qp) (offer, error) {
	if m.mr == nil {
		box, err := rdma.Alloc(mailHead + m.room)
		if err != nil {
			return offer{}, err
		}
		mr, err := q.dev.below.RegMR(q.pd, box, rdma.LocalWrite|rdma.RemoteWrite)
		if err != nil {
			return offer{}, errors.Join(err, box.Free())
		}
		if m.desk, err = rdma.Alloc(mailHead); err != nil {
			return offer{}, errors.Join(err, mr.Close(), box.Free())
		}
		m.box, m.mr = box, mr
	}
	return offer{addr: m.box.Addr(), rkey: m.mr.RKey(), room: uint32(m.room), shortest: m.in.tell()}, nil
}

// close gives the memory back; the QP below is closed.
func (m *mail) close() error {
	if m == nil || m.mr == nil {
		return nil
	}
	if err := m.mr.Close(); err != nil {
		return err
	}
	m.mr = nil
	return errors.Join(m.box.Free(), m.desk.Free())
}

// noticeLen is what a receiver writes at the beginning of the sender's mailbox.
const noticeLen = 16

func putDouble(b []byte, n uint32) { binary.BigEndian.PutUint64(b, double(n)) }

// on tells whether both ends agreed.
func (m *mail) on() bool { return m.out.agreed }
