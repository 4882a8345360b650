package payload

import (
	"testing"

	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/engine"
	"github.com/rdmaperf/rdmaperf/transports"
)

// No two messages of a sequence begin alike, and those of the other direction are others.
func TestMessagesAreToldByTheirFirstBytes(t *testing.T) {
	for _, n := range []int{1, 2, 7, 8, 9, 255, 5000} {
		want, head := int64(Numbers), 8
		if n < 8 {
			want, head = shortNumbers, 1
		}
		p, other := NewSequence(7, engine.GenMeasure, ToServer, n), NewSequence(7, engine.GenMeasure, ToClient, n)
		seen, same := map[string]bool{}, 0
		for i := range want {
			m := p.Cut(i)
			if len(m) != n || seen[string(m[:head])] || p.Of(i) != i || p.Of(i+want) != i {
				t.Fatalf("message %d of %d bytes: length %d, head %x seen", i, n, len(m), m[:head])
			}
			seen[string(m[:head])] = true
			for _, parts := range []transports.Parts{{m}, {m[:n/2], m[n/2:]}, {nil, m[:1], m[1:]}} {
				if got := p.Number(parts); got != i {
					t.Fatalf("message %d of %d bytes is found as %d", i, n, got)
				}
			}
			if string(m) == string(other.Cut(i)) {
				same++
			}
		}
		if same > 8 {
			t.Errorf("%d of %d messages of %d bytes are the same both ways", same, want, n)
		}
	}
	if m := NewSequence(7, 1, ToClient, 0).Cut(3); len(m) != 0 {
		t.Errorf("%d bytes of a message without any", len(m))
	}
}

// Callers that are about as far as each other send other messages: with 64 of them, each may be 16 ahead or behind.
func TestCallersSendDifferentMessages(t *testing.T) {
	for a := range 64 {
		for b := range a {
			d := (Offset(a) - Offset(b)) & (Numbers - 1)
			if min(d, Numbers-d) < 17 {
				t.Errorf("callers %d and %d are %d apart", a, b, d)
			}
		}
	}
}
