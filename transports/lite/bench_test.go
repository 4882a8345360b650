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
