package reports

import (
	"math"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/rdmaperf/rdmaperf/reports/view"
)

func TestParseSize(t *testing.T) {
	for s, want := range map[string]int64{
		"0": 0, "64": 64, "64B": 64, "007": 7,
		"1.5K": 1536, "0.5M": 512 << 10, "2.5KB": 2500, "1.0": 1,
		"64K": 65536, "64k": 65536, "64KiB": 65536, "64KB": 64000, "64kB": 64000,
		"8M": 8388608, "8m": 8388608, "8MiB": 8388608, "8MB": 8000000,
		"1G": 1 << 30, "1g": 1 << 30, "1GiB": 1 << 30, "1GB": 1e9,
		"8589934591G": 8589934591 << 30, "9223372036854775807": math.MaxInt64,
	} {
		if got, err := ParseSize(s); got != want || err != nil {
			t.Errorf("ParseSize(%q) = %d, %v, want %d", s, got, err, want)
		}
	}
}

func TestParseSizeRefuses(t *testing.T) {
	for s, reason := range map[string]string{
		"":                       "whole number",
		"K":                      "whole number",
		"-1":                     "whole number",
		"+1":                     "whole number",
		" 1":                     "whole number",
		"0x10":                   `unknown unit "x10"`,
		"1.5":                    "whole number",
		"1.0001K":                "whole number",
		"1.5.5K":                 "no number",
		".5K":                    "whole number",
		strings.Repeat("1", 200): "longer than",
		"1 K":                    `unknown unit " K"`,
		"64Q":                    `unknown unit "Q"`,
		"1Gb":                    `unknown unit "Gb"`, // a gigabit, not a size
		"1_000":                  "unknown unit",
		"9223372036854775808":    "too large",
		"8589934592G":            "too large",
		"9223372036854776K":      "too large",
	} {
		got, err := ParseSize(s)
		if err == nil {
			t.Errorf("ParseSize(%q) = %d, want an error", s, got)
			continue
		}
		if !strings.Contains(err.Error(), reason) || strings.Contains(err.Error(), "\n") {
			t.Errorf("ParseSize(%q): %q, want one line with %q", s, err, reason)
		}
	}
}

func TestFormatSize(t *testing.T) {
	for n, want := range map[int64]string{
		0: "0", 64: "64", 1000: "1000", 1024: "1K", 1025: "1025", 1536: "1536",
		65536: "64K", 1 << 20: "1M", 3 << 29: "1536M", 1 << 40: "1024G", -1024: "-1024",
	} {
		if got := FormatSize(n); got != want {
			t.Errorf("FormatSize(%d) = %q, want %q", n, got, want)
		}
	}
}

func TestSizeRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		shift := rapid.IntRange(0, 62).Draw(t, "shift")
		n := rapid.Int64Range(0, math.MaxInt64>>shift).Draw(t, "n") << shift
		if got, err := ParseSize(FormatSize(n)); got != n || err != nil {
			t.Errorf("ParseSize(FormatSize(%d)) = %d, %v", n, got, err)
		}
	})
}

func TestLabelsSayTheUnit(t *testing.T) {
	for want, got := range map[string]string{
		"850 ns": view.NsLabel(850), "3.57 µs": view.NsLabel(3566), "1 µs": view.NsLabel(999.7),
		"64.8 ms": view.NsLabel(64_836_570), "2 s": view.NsLabel(2e9), "-": view.NsLabel(math.NaN()),
		"64 B": SizeLabel(64), "1 KiB": SizeLabel(1024), "1000 B": SizeLabel(1000), "16 MiB": SizeLabel(16 << 20),
		"0 B":        SizeLabel(0),
		"1.5 M op/s": view.RateLabel(1.5e6), "20 k op/s": view.RateLabel(20_000), "500 op/s": view.RateLabel(500),
		"953 MiB/s": view.BandwidthLabel(999_292_928),
	} {
		if got != want {
			t.Errorf("label %q, want %q", got, want)
		}
	}
}

func FuzzParseSize(f *testing.F) {
	for _, s := range []string{"64", "64K", "8MiB", "1GB", "9223372036854775808", "1.5M", "", "٣K", "1K\n"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		n, err := ParseSize(s)
		if err != nil {
			if strings.Contains(err.Error(), "\n") {
				t.Errorf("ParseSize(%q): the error has more than one line: %q", s, err)
			}
			return
		}
		if again, err := ParseSize(FormatSize(n)); n < 0 || again != n || err != nil {
			t.Errorf("ParseSize(%q) = %d, formatted and parsed again %d, %v", s, n, again, err)
		}
	})
}

func TestPercentilesAreKnownByTheirNames(t *testing.T) {
	for name, want := range map[string]bool{"p50": true, "p5": true, "loaded.p99": true, "p": false, "loaded.p": false,
		"peak": false, "mean": false, "p9x": false, "": false} {
		if isPercentile(name) != want {
			t.Errorf("%q: %v", name, !want)
		}
	}
}

// Units change where a thousand of them, or 1024, are one of the next.
func TestQuantitiesAtTheirUnits(t *testing.T) {
	for _, c := range []struct {
		q    Quantity
		v    float64
		want string
	}{
		{QuantityTime, 999, "999ns"}, {QuantityTime, 1000, "1.000us"}, {QuantityTime, 1e6, "1.000ms"},
		{QuantityTime, -1e9, "-1.000s"},
		{QuantityRate, 999, "999.000/s"}, {QuantityRate, 1000, "1.000k/s"}, {QuantityBytes, 1024, "1.000KiB/s"},
		{QuantityBytes, 1023, "1023.000B/s"},
	} {
		if got := FormatQuantity(c.q, c.v); got != c.want {
			t.Errorf("%v: %q, want %q", c.v, got, c.want)
		}
	}
}

// Of equals, neither is further beyond the limit: the first stays the worst.
func TestEqualsAreNotWorse(t *testing.T) {
	for _, above := range []bool{true, false} {
		th := Threshold{more: above}
		if th.worse(5, 5) || th.worse(6, 5) != above || th.worse(4, 5) == above || !th.worse(math.NaN(), 5) {
			t.Errorf("above %v", above)
		}
	}
}
