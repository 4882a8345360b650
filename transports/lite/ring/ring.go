// Package ring is the arithmetic of a message ring in remote memory: the sender owns the tail, the receiver the head,
// and neither does I/O.
//
// A [Sender] reserves spans in order. A [Receiver] takes and releases records in any order, and moves its head over
// what is released without a gap. A new head is due at the sender once a quarter of the ring was passed (LITE, SOSP'17,
// §5.1 and IMM_ACK_PORTION of its code). A record never runs over the end: the sender skips to offset 0, and the
// skipped bytes belong to it. So one record takes at most 3/8 of the ring ([MaxRecord]): the last quarter may be
// released without the sender having the head, and record and skip must fit into the other three.
//
// A Sender and a Receiver belong to one goroutine each. What is wrong of the peer is an error and changes nothing.
// Positions are 64-bit and never wrap; an offset travels in 24 bits of immediate data.
package ring

import (
	"errors"
	"fmt"
)

const (
	Granule = 64           // bytes: the unit of positions and record sizes, a cache line
	MinSize = 16 * Granule // bytes of a ring
	MaxSize = 1 << 24      // likewise, by 24 bits of offset
)

// ErrPeer wraps every refusal of what a peer sent.
var ErrPeer = errors.New("the peer broke the rules of the ring")

// CheckSize fails for sizes that a ring cannot have.
func CheckSize(size uint64) error {
	if size < MinSize || size > MaxSize || size&(size-1) != 0 {
		return fmt.Errorf("ring of %d bytes, want a power of two from %d to %d", size, MinSize, MaxSize)
	}
	return nil
}

// MaxRecord is the longest record of a ring of size bytes.
func MaxRecord(size uint64) uint64 { return (size/8*3 - 1) / Granule * Granule }

// SizeFor is the smallest ring that takes records of n bytes, or an error.
func SizeFor(n uint64) (uint64, error) {
	for size := uint64(MinSize); size <= MaxSize; size <<= 1 {
		if n <= MaxRecord(size) {
			return size, nil
		}
	}
	return 0, fmt.Errorf("records of %d bytes, at most %d", n, MaxRecord(MaxSize))
}

// Round is n in whole granules.
func Round(n uint64) uint64 { return (n + Granule - 1) &^ (Granule - 1) }

// Span is where a record goes.
type Span struct {
	Start uint64 // position, with what was skipped to reach Off
	Off   uint32 // of the record in the ring, bytes
}

// Sender reserves spans of a ring in the peer's memory; see [NewSender].
type Sender struct {
	size, tail, head uint64
}

// NewSender is the sending side of an empty ring.
func NewSender(size uint64) (Sender, error) { return Sender{size: size}, CheckSize(size) }

// Reserve takes room for a record of n bytes. It is false until the peer's head moves on, or for what never fits.
func (s *Sender) Reserve(n uint64) (Span, bool) {
	if n == 0 || n > MaxRecord(s.size) {
		return Span{}, false
	}
	n = Round(n)
	off := s.tail & (s.size - 1)
	skip := uint64(0)
	if off+n > s.size {
		skip, off = s.size-off, 0
	}
	if s.tail+skip+n-s.head > s.size {
		return Span{}, false
	}
	sp := Span{Start: s.tail, Off: uint32(off)}
	s.tail += skip + n
	return sp, true
}

// Undo gives the newest span back, when its record was not sent after all.
func (s *Sender) Undo(sp Span) { s.tail = sp.Start }

// Head takes the head that the peer wrote. One that goes back is old; one beyond the tail is ErrPeer.
func (s *Sender) Head(head uint64) error {
	switch {
	case head > s.tail || head%Granule != 0:
		return fmt.Errorf("%w: head %d of a tail at %d", ErrPeer, head, s.tail)
	case head > s.head:
		s.head = head
	}
	return nil
}

// released marks a place in Receiver.at beside the granules of the span that starts there.
const released = 1 << 31

// Receiver keeps the books of a ring in own memory.
type Receiver struct {
	size, head, announced uint64
	at                    []uint32 // one a granule
	open                  int      // records that are not released
}

// NewReceiver is the receiving side of an empty ring.
func NewReceiver(size uint64) (*Receiver, error) {
	if err := CheckSize(size); err != nil {
		return nil, err
	}
	return &Receiver{size: size, at: make([]uint32, size/Granule)}, nil
}

// Arrived takes a record of n bytes at offset off whose span starts at position start. It fails for everything that a
// sender with the same rules cannot have sent.
func (r *Receiver) Arrived(start uint64, off uint32, n uint64) error {
	pos := start & (r.size - 1)
	skip := uint64(0)
	if uint64(off) != pos {
		skip = r.size - pos
	}
	switch {
	case start%Granule != 0 || n == 0 || n > MaxRecord(r.size):
		return fmt.Errorf("%w: record of %d bytes at %d", ErrPeer, n, start)
	case skip > 0 && (off != 0 || pos+Round(n) <= r.size), skip == 0 && pos+Round(n) > r.size:
		return fmt.Errorf("%w: record of %d bytes at %d lies at offset %d", ErrPeer, n, start, off)
	case start < r.head || start+skip+Round(n) > r.head+r.size:
		return fmt.Errorf("%w: record at %d outside %d to %d", ErrPeer, start, r.head, r.head+r.size)
	case r.at[pos/Granule] != 0:
		return fmt.Errorf("%w: a second record at %d", ErrPeer, start)
	}
	r.at[pos/Granule] = uint32((skip + Round(n)) / Granule)
	r.open++
	return nil
}

// Release frees the record whose span starts at start, once, and reports whether the new [Receiver.Head] is due.
func (r *Receiver) Release(start uint64) bool {
	i := (start & (r.size - 1)) / Granule
	if r.at[i] == 0 || r.at[i]&released != 0 {
		return false
	}
	r.at[i] |= released
	r.open--
	for {
		i := (r.head & (r.size - 1)) / Granule
		n := r.at[i]
		if n&released == 0 {
			break
		}
		r.at[i] = 0
		r.head += uint64(n&^released) * Granule
	}
	if r.head-r.announced < r.size/4 {
		return false
	}
	r.announced = r.head
	return true
}

// Head is the position up to which everything is free.
func (r *Receiver) Head() uint64 { return r.head }

// Open is how many records wait to be released.
func (r *Receiver) Open() int { return r.open }
