package lite

import (
	"fmt"
	"slices"
	"testing"
	"time"
)

// BenchmarkLookup is the whole cost of the indirection: from a handle to what it stands
// for, with life, permission and bounds checked, and held against being freed.
func BenchmarkLookup(b *testing.B) {
	for _, regions := range []int{1, 10_000} {
		b.Run(fmt.Sprintf("regions=%d", regions), func(b *testing.B) {
			var t handleTable
			t.init()
			hs := make([]Handle, regions)
			for i := range hs {
				h, err := t.add(newEntry(uint64(i+1), 4096, PermRead|PermWrite, []piece{{Node: 0, Off: 0, Len: 4096}}))
				if err != nil {
					b.Fatal(err)
				}
				hs[i] = h
			}
			b.ReportAllocs()
			sum := uint64(0)
			for i, at := 0, 0; b.Loop(); i++ {
				e, err := t.enter(hs[at], PermWrite, 64, 64)
				if err != nil {
					b.Fatal(err)
				}
				p, in := e.find(64)
				sum += p.Off + in
				e.leave()
				// A step that is no divisor of the number of regions reaches all of them.
				if at += 7919; at >= regions {
					at %= regions
				}
			}
			if sum == 0 {
				b.Fatal("nothing was found")
			}
		})
	}
}

// BenchmarkRead is a read of 64 bytes of another node, a whole round trip, where the
// completion of a write may be local: of one region, and of one of 10,000 by turns. Both take
// turns in one process, as the one is no tenth of the other and processes differ by more.
func BenchmarkRead(b *testing.B) {
	for _, on := range []struct {
		name string
		make func(testing.TB, int, Config) *cluster
	}{{"mem", onMem}, {"iwarp", onIWARP}} {
		b.Run(on.name, func(b *testing.B) {
			one, many := newReader(b, on.make, 1), newReader(b, on.make, 10_000)
			for b.Loop() {
				one.turn()
				many.turn()
			}
			b.ReportMetric(one.median(), "ns/one")
			b.ReportMetric(many.median(), "ns/many")
		})
	}
}

const (
	turnOf = 500 // reads
	warmUp = 100 // of them, which nobody times: the far end sleeps while it is the other's turn
)

// reader reads regions of another node in turn.
type reader struct {
	b   *testing.B
	cl  *Client
	hs  []Handle
	mem []byte
	at  int
	ns  []float64 // of a read, by turn
}

func newReader(b *testing.B, on func(testing.TB, int, Config) *cluster, regions int) *reader {
	r := &reader{b: b, cl: on(b, 2, Config{}).client(1, ClientConfig{Wait: WaitPoll}), hs: make([]Handle, regions),
		ns: make([]float64, 0, 1<<16)}
	for i := range r.hs {
		r.hs[i] = must(r.cl.Malloc(RegionConfig{Name: fmt.Sprint("r", i), Size: 64, Nodes: []int{0}}))(b)
	}
	r.mem = must(r.cl.Alloc(64))(b)
	return r
}

func (r *reader) turn() {
	var begin time.Time
	for i := range turnOf {
		if i == warmUp {
			begin = time.Now()
		}
		if err := r.cl.Read(r.hs[r.at], 0, r.mem); err != nil {
			r.b.Fatal(err)
		}
		// A step that is no divisor of the number of regions reaches all of them.
		r.at = (r.at + 7919) % len(r.hs)
	}
	r.ns = append(r.ns, float64(time.Since(begin))/(turnOf-warmUp))
}

func (r *reader) median() float64 {
	slices.Sort(r.ns)
	return r.ns[len(r.ns)/2]
}
