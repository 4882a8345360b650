package results

import (
	"strings"
	"testing"
)

func TestMoreThanTheCapacityIsImpossible(t *testing.T) {
	for _, c := range []struct {
		high, low float64
		want      string
	}{{60, 42, ""}, {100, 681.7, "781.7 % of the capacity"}} {
		s := &Starvation{CapacityBytesPerSecond: 100, High: ClassShare{BytesPerSecond: c.high},
			Low: ClassShare{BytesPerSecond: c.low}}
		if got := s.Contradiction(); (got == "") != (c.want == "") || !strings.Contains(got, c.want) {
			t.Errorf("%v and %v: %q, want %q", c.high, c.low, got, c.want)
		}
	}
}
