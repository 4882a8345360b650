package mpa

import (
	"hash/crc32"
	"math/rand/v2"
	"testing"
)

// TestCRCAgreesWithTheLibrary covers every length around the folding blocks,
// every alignment of the first octet, and any state to start from.
func TestCRCAgreesWithTheLibrary(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	b := make([]byte, 70000)
	for i := range b {
		b[i] = byte(r.Uint32())
	}
	check := func(state uint32, p []byte) {
		t.Helper()
		if got, want := CRC(state, p), crc32.Update(state, castagnoli, p); got != want {
			t.Fatalf("CRC(%08x, %d octets) = %08x, want %08x", state, len(p), got, want)
		}
	}
	for n := range 2200 {
		check(r.Uint32(), b[n%64:n%64+n])
	}
	for range 500 {
		off := r.IntN(64)
		check(r.Uint32(), b[off:off+r.IntN(len(b)-off)])
	}
	whole := CRC(0, b)
	for range 100 {
		cut := r.IntN(len(b))
		if got := CRC(CRC(0, b[:cut]), b[cut:]); got != whole {
			t.Fatalf("cut at %d: %08x, want %08x", cut, got, whole)
		}
	}
	check(0, make([]byte, 65536))
	check(^uint32(0), make([]byte, 65536))
}

func FuzzCRC(f *testing.F) {
	f.Add(uint32(0), []byte("123456789"), uint16(0))
	f.Add(uint32(5), []byte{1}, uint16(3000))
	f.Fuzz(func(t *testing.T, state uint32, b []byte, repeat uint16) {
		for len(b) > 0 && len(b) < int(repeat) {
			b = append(b, b...)
		}
		if got, want := CRC(state, b), crc32.Update(state, castagnoli, b); got != want {
			t.Fatalf("CRC(%08x, %d octets) = %08x, want %08x", state, len(b), got, want)
		}
	})
}

func BenchmarkCRC(b *testing.B) {
	buf := make([]byte, 16<<20)
	for _, c := range []struct {
		name string
		n    int
	}{{"80", 80}, {"1500", 1500}, {"64K", 64 << 10}, {"16M", 16 << 20}} {
		b.Run(c.name, func(b *testing.B) {
			b.SetBytes(int64(c.n))
			for range b.N {
				CRC(0, buf[:c.n])
			}
		})
		b.Run(c.name+"/library", func(b *testing.B) {
			b.SetBytes(int64(c.n))
			for range b.N {
				crc32.Update(0, castagnoli, buf[:c.n])
			}
		})
	}
}
