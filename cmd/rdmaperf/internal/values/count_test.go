package values

import "testing"

func TestCountsAreReadAsPeopleWriteThem(t *testing.T) {
	for s, want := range map[string]int64{"1000": 1000, "10k": 10_000, "10K": 10_000, "2M": 2_000_000,
		"1g": 1_000_000_000, "1e3": 1000, "2.5e3": 2500, "0": 0, "-5": -5} {
		var c Count
		if err := c.Set(s); err != nil || int64(c) != want {
			t.Errorf("%q: %d, %v, want %d", s, c, err, want)
		}
	}
	for _, s := range []string{"", "k", "10q", "1.5", "1e-3", "1e300", "0x10", "10 k", "9223372036854775807k", "NaN",
		"Infe"} {
		var c Count
		if err := c.Set(s); err == nil {
			t.Errorf("%q is read as %d", s, c)
		}
	}
}
