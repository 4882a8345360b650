package ring

import "fmt"

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
