package mixed

import (
	"slices"
	"strings"
	"testing"
)

func TestSplitsAreReadAsFioDoes(t *testing.T) {
	for s, want := range map[string]string{
		"4K":                        "4K",
		"4k/70:64k/30":              "4K/70:64K/30",
		"4K/50:64K:1M":              "4K/50:64K/25:1M/25",
		"4K:8K:16K":                 "4K/33:8K/33:16K/34",
		"4K/70:64K/30,8K":           "4K/70:64K/30,8K",
		"512/10: 4K/90,512/1:1K/99": "512/10:4K/90,512/1:1K/99",
		"4K,4K":                     "4K",
	} {
		r, w, err := parseSplits(s)
		o := Options{ReadPercent: 70, Reads: r, Writes: w, Span: 16 << 20}
		if err != nil || o.blocks() != want || o.check() != nil {
			t.Errorf("%q: %q, %v, want %q", s, o.blocks(), err, want)
		}
	}
	for s, want := range map[string]string{
		"":             "size",
		"4K/70:64K/20": "add up to 90",
		"4K/70:64K/40": "add up to 110",
		"4K/0:64K":     "from 1 to 100",
		"4K/x":         "from 1 to 100",
		"4K/50:4096":   "given twice",
		"0":            "start at 1 byte",
		"4K/100:8K":    "leaves 0 % for 1",
		"4K,":          "size",
	} {
		if _, _, err := parseSplits(s); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %q", s, err, want)
		}
	}
}

func TestMixesAreWholePercents(t *testing.T) {
	if got, err := parseMix("0, 70,100"); err != nil || !slices.Equal(got, []int{0, 70, 100}) {
		t.Errorf("%v, %v", got, err)
	}
	for _, s := range []string{"", "101", "-1", "70.5", "70%", "1,1", "x"} {
		if got, err := parseMix(s); err == nil {
			t.Errorf("%q: %v, want an error", s, got)
		}
	}
}

// What is read can be written and read again, and is whole.
func FuzzSplits(f *testing.F) {
	for _, s := range []string{"4K", "4K/70:64K/30", "4K/50:64K:1M,8K", "1:2:3:4/97", "4K/:8K/1"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		r, w, err := parseSplits(s)
		if err != nil {
			return
		}
		o := Options{Reads: r, Writes: w, Span: 16 << 20}
		if o.largest() > o.Span {
			return
		}
		if err := o.check(); err != nil {
			t.Fatalf("%q was read and is none: %v", s, err)
		}
		r2, w2, err := parseSplits(o.blocks())
		if err != nil || !slices.Equal(r, r2) || !slices.Equal(w, w2) {
			t.Errorf("%q, written %q: %v %v, %v", s, o.blocks(), r2, w2, err)
		}
	})
}
