package mixed

import (
	"slices"
	"strings"
	"testing"

	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/engine"
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

func someOptions(mix int) Options {
	return Options{ReadPercent: mix, Reads: []Block{{1000, 70}, {4096, 30}}, Writes: []Block{{64, 1}, {3000, 99}},
		Span: 1 << 20}
}

func someOrder(o *Options, seed uint64) *order {
	return newOrder(o, &engine.Shape{Point: engine.Point{Size: o.largest()}, Slots: 9, Seed: seed}, 2, 1)
}

func TestTheMixIsExact(t *testing.T) {
	for _, mix := range []int{0, 1, 50, 70, 100} {
		o := someOptions(mix)
		r := someOrder(&o, 7)
		var count [directions]int
		var size [directions]map[int]int
		var seen [directions]int
		for n := range uint64(10_000) {
			op := r.at(n)
			count[op.dir]++
			if seen[op.dir]%hundred == 0 {
				size[op.dir] = map[int]int{}
			}
			size[op.dir][op.size]++
			if seen[op.dir]++; seen[op.dir]%hundred == 0 {
				for _, b := range [directions][]Block{o.Reads, o.Writes}[op.dir] {
					if got := size[op.dir][b.Size]; got != b.Percent {
						t.Fatalf("%d %%: %d of a hundred of direction %d have %d bytes, want %d", mix, got, op.dir,
							b.Size, b.Percent)
					}
				}
			}
			if n%hundred == hundred-1 {
				if count != [directions]int{mix, hundred - mix} {
					t.Fatalf("%d %%: %v of operations %d to %d", mix, count, n-99, n)
				}
				count = [directions]int{}
			}
		}
	}
}

func TestPlacesAreWithinTheWindow(t *testing.T) {
	o := someOptions(50)
	r := someOrder(&o, 7)
	places := map[[3]int]int{}
	for n := range uint64(20_000) {
		op := r.at(n)
		if op.cell < 0 || op.cell >= 9 || op.at%aligned(op.size) != 0 || op.at < 0 || op.at+op.size > o.largest() {
			t.Fatalf("operation %d: %+v", n, op)
		}
		places[[3]int{op.size, op.cell, op.at}]++
	}
	// 4 places of 1000 bytes (1024 apart), 1 of 4096, 64 of 64 and 1 of 3000 in each cell;
	// of 64 bytes there are a hundred operations for 576 places.
	want := map[int]int{1000: 36, 4096: 9, 3000: 9}
	got := map[int]int{}
	for at := range places {
		got[at[0]]++
	}
	for size, n := range want {
		if got[size] != n {
			t.Errorf("%d places of %d bytes, want %d", got[size], size, n)
		}
	}
	if got[64] < 60 {
		t.Errorf("%d places of 64 bytes, want some 90", got[64])
	}
}

// Operation n is the same whoever asks, in whatever order, and another with another seed.
func TestTheOrderFollowsFromTheSeed(t *testing.T) {
	o := someOptions(70)
	up, down, other := someOrder(&o, 7), someOrder(&o, 7), someOrder(&o, 8)
	const n = 1000
	var ops [n]operation
	for i := range ops {
		ops[i] = up.at(uint64(i))
	}
	differ := 0
	for i := n - 1; i >= 0; i-- {
		if got := down.at(uint64(i)); got != ops[i] {
			t.Fatalf("operation %d: %+v backwards, %+v forwards", i, got, ops[i])
		}
		if got := other.at(uint64(i)); got.dir != ops[i].dir {
			differ++
		}
	}
	if differ < n/5 { // 42 % of two independent ones
		t.Errorf("another seed: %d of %d directions differ", differ, n)
	}
}
