package ddp

import "math"

// Segment is one piece of a message.
type Segment struct {
	Offset uint32 // octets of the message before this segment
	Len    uint32 // payload octets
	Last   bool
}

// Segmenter cuts a message into DDP segments (RFC 5041 §5.2): all but the last
// are as long as the LLP allows. It is a value without pointers; copy it to
// remember a place in a message.
type Segmenter struct {
	size uint32
	off  uint32
	max  uint32
	done bool
}

// NewSegmenter cuts a message of size octets into segments whose header of
// headerLen octets (TaggedLen or UntaggedLen) and payload fit mulpdu octets. A
// mulpdu that leaves no room for payload is raised to one octet of payload, so
// that the cut always ends; MPA never offers less than 128.
func NewSegmenter(size uint32, mulpdu, headerLen int) Segmenter {
	room := uint64(max(mulpdu-headerLen, 1))
	return Segmenter{size: size, max: uint32(min(room, math.MaxUint32))}
}

// Next returns the next segment, and ok=false after the last one. A message
// without payload is exactly one segment (RFC 5041 §5.2).
func (s *Segmenter) Next() (seg Segment, ok bool) {
	if s.done {
		return Segment{}, false
	}
	seg = Segment{Offset: s.off, Len: min(s.size-s.off, s.max)}
	s.off += seg.Len
	seg.Last = s.off == s.size
	s.done = seg.Last
	return seg, true
}

// Done reports whether the last segment was returned.
func (s *Segmenter) Done() bool { return s.done }
