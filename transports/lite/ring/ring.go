package ring

import (
	"errors"
	"fmt"
)

const (
	// Granule is the unit of positions and record sizes in bytes: a cache line.
	Granule = 64
	// MinSize and MaxSize bound a ring in bytes. 24 bits of offset make the upper one.
	MinSize = 16 * Granule
	MaxSize = 1 << 24
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

// Sender reserves spans of a ring in the peer's memory. The zero value is not
// usable: see [NewSender].
type Sender struct {
	size, tail, head uint64
}

// NewSender is the sending side of an empty ring.
func NewSender(size uint64) (Sender, error) { return Sender{size: size}, CheckSize(size) }

// Reserve takes room for a record of n bytes. It is false when the ring has no
// room until the peer's head moves on, and for a record that never fits.
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

// Head takes the head that the peer wrote. One that goes back is old; one beyond the tail is
// ErrPeer.
func (s *Sender) Head(head uint64) error {
	switch {
	case head > s.tail || head%Granule != 0:
		return fmt.Errorf("%w: head %d of a tail at %d", ErrPeer, head, s.tail)
	case head > s.head:
		s.head = head
	}
	return nil
}
