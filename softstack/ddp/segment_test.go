package ddp

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestSegmenter(t *testing.T) {
	const top = 1<<32 - 1
	for _, c := range []struct {
		name           string
		size           uint32
		mulpdu, header int
		want           []Segment
	}{
		{"RFC 5041 §5.2 untagged", 2048, 1500, UntaggedLen, []Segment{{0, 1482, false}, {1482, 566, true}}},
		{"RFC 5041 §5.2 tagged", 2048, 1500, TaggedLen, []Segment{{0, 1486, false}, {1486, 562, true}}},
		{"zero length is one segment", 0, 1500, TaggedLen, []Segment{{0, 0, true}}},
		{"exactly one segment", 1486, 1500, TaggedLen, []Segment{{0, 1486, true}}},
		{"exactly two segments", 2972, 1500, TaggedLen, []Segment{{0, 1486, false}, {1486, 1486, true}}},
		{"one octet over", 1487, 1500, TaggedLen, []Segment{{0, 1486, false}, {1486, 1, true}}},
		{"no room for payload", 2, 14, TaggedLen, []Segment{{0, 1, false}, {1, 1, true}}},
		{"more room than a message can have", 7, 1<<32 + TaggedLen, TaggedLen, []Segment{{0, 7, true}}},
		{"largest message", top, 1<<31 + 14, TaggedLen, []Segment{{0, 1 << 31, false}, {1 << 31, 1<<31 - 1, true}}},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := NewSegmenter(c.size, c.mulpdu, c.header)
			var got []Segment
			for seg, ok := s.Next(); ok; seg, ok = s.Next() {
				if s.Done() != seg.Last {
					t.Errorf("done %t after last %t", s.Done(), seg.Last)
				}
				got = append(got, seg)
			}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("segments (-want +got):\n%s", diff)
			}
			if seg, ok := s.Next(); ok {
				t.Errorf("a segment behind the last: %+v", seg)
			}
		})
	}
	// The TO of the RFC's second tagged segment.
	s := NewSegmenter(2048, 1500, TaggedLen)
	s.Next()
	if seg, _ := s.Next(); 16384+uint64(seg.Offset) != 17870 {
		t.Errorf("second segment at TO %d, want 17870", 16384+seg.Offset)
	}
}
