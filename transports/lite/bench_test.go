package lite

import (
	"fmt"
	"testing"
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
				h, err := t.add(&entry{region: uint64(i + 1), size: 4096, perm: PermRead | PermWrite, pieces: []piece{{Node: 0, Off: 0, Len: 4096}}})
				if err != nil {
					b.Fatal(err)
				}
				hs[i] = h
			}
			b.ReportAllocs()
			for i, at := 0, 0; b.Loop(); i++ {
				e, err := t.enter(hs[at], PermWrite, 64, 64)
				if err != nil {
					b.Fatal(err)
				}
				e.leave()
				// A step that is no divisor of the number of regions reaches all of them.
				if at += 7919; at >= regions {
					at %= regions
				}
			}
		})
	}
}

// BenchmarkRead is a read of 64 bytes of one of so many regions of another node, by
// turns: a whole round trip, where the completion of a write may be local.
func BenchmarkRead(b *testing.B) {
	for _, on := range []struct {
		name string
		make func(testing.TB, int, Config) *cluster
	}{{"mem", onMem}, {"iwarp", onIWARP}} {
		for _, regions := range []int{1, 10_000} {
			b.Run(fmt.Sprintf("%s/regions=%d", on.name, regions), func(b *testing.B) {
				c := on.make(b, 2, Config{})
				cl := c.client(1, ClientConfig{Wait: WaitPoll})
				hs := make([]Handle, regions)
				for i := range hs {
					h, err := cl.Malloc(RegionConfig{Name: fmt.Sprint("r", i), Size: 64, Nodes: []int{0}})
					if err != nil {
						b.Fatal(err)
					}
					hs[i] = h
				}
				mem, err := cl.Alloc(64)
				if err != nil {
					b.Fatal(err)
				}
				b.ReportAllocs()
				for at := 0; b.Loop(); {
					if err := cl.Read(hs[at], 0, mem); err != nil {
						b.Fatal(err)
					}
					if at += 7919; at >= regions {
						at %= regions
					}
				}
			})
		}
	}
}
