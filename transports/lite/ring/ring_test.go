package ring

import (
	"errors"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/rdmaperf/rdmaperf/internal/expect"
)

func TestARecordNeverCrossesTheEndAndNeverStalls(t *testing.T) {
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	rng := rand.New(rand.NewPCG(seed, 0))
	for range 50 {
		size := uint64(MinSize) << rng.IntN(6)
		s := expect.Get(NewSender(size))(t)
		r := expect.Get(NewReceiver(size))(t)
		type rec struct {
			sp Span
			n  uint64
		}
		var flying, open []rec
		told := 0
		for i := 0; i < 4000; i++ {
			n := 1 + rng.Uint64N(MaxRecord(size))
			if rng.IntN(3) > 0 {
				n = 1 + rng.Uint64N(200)
			}
			n = min(n, MaxRecord(size))
			if sp, ok := s.Reserve(n); ok {
				if uint64(sp.Off)+n > size {
					t.Fatalf("record of %d at %d crosses the end of %d", n, sp.Off, size)
				}
				for _, o := range append(flying, open...) {
					if uint64(sp.Off) < uint64(o.sp.Off)+o.n && uint64(o.sp.Off) < uint64(sp.Off)+n {
						t.Fatalf("record at %d+%d over unacknowledged one at %d+%d", sp.Off, n, o.sp.Off, o.n)
					}
				}
				flying = append(flying, rec{sp, n})
			} else if len(flying)+len(open) == 0 {
				t.Fatalf("size %d: no room for %d bytes although everything was released (in use %d)", size, n,
					s.tail-s.head)
			}
			for len(flying) > 0 && rng.IntN(2) == 0 { // arrives in any order
				k := rng.IntN(len(flying))
				expect.OK(t, r.Arrived(flying[k].sp.Start, flying[k].sp.Off, flying[k].n))
				open = append(open, flying[k])
				flying = append(flying[:k], flying[k+1:]...)
			}
			for len(open) > 0 && rng.IntN(2) == 0 { // is released in any order
				k := rng.IntN(len(open))
				if r.Release(open[k].sp.Start) {
					told++
					expect.OK(t, s.Head(r.Head()))
				}
				if r.Release(open[k].sp.Start) {
					t.Fatal("a second release counted")
				}
				open = append(open[:k], open[k+1:]...)
			}
		}
		if most := int(s.tail / (size / 4)); told > most {
			t.Errorf("%d heads told for %d bytes of a ring of %d, at most one a quarter", told, s.tail, size)
		}
	}
}

func TestTheReceiverRefusesWhatNoSenderSends(t *testing.T) {
	r := expect.Get(NewReceiver(1024))(t)
	expect.OK(t, r.Arrived(0, 0, 100))
	for _, c := range []struct {
		why   string
		start uint64
		off   uint32
		n     uint64
	}{
		{"twice", 0, 0, 100},
		{"unaligned", 65, 65, 10},
		{"empty", 128, 128, 0},
		{"too long", 128, 128, MaxRecord(1024) + 1},
		{"behind the end", 1024, 0, 64},
		{"offset of another position", 128, 192, 64},
		{"skip that was not needed", 128, 0, 64},
		{"over the end", 960, 960, 128},
		{"far away", 1 << 62, 0, 64},
		{"skip before what fits to the end", 960, 0, 64},
	} {
		expect.Is(t, c.why, r.Arrived(c.start, c.off, c.n), ErrPeer)
	}
	s, _ := NewSender(1024)
	expect.Is(t, "a head beyond the tail", s.Head(64), ErrPeer)
}

func FuzzReceiver(f *testing.F) {
	f.Add(uint64(0), uint32(0), uint64(64), uint64(0))
	f.Add(uint64(960), uint32(0), uint64(128), uint64(960))
	f.Fuzz(func(t *testing.T, start uint64, off uint32, n, release uint64) {
		r, _ := NewReceiver(1024)
		r.Arrived(960, 0, 128)
		if r.Arrived(start, off, n) == nil && uint64(off)+n > 1024 {
			t.Fatalf("accepted %d bytes at %d of a ring of 1024", n, off)
		}
		r.Release(release)
		r.Release(start)
		if r.Head() > 2048 {
			t.Fatalf("head %d", r.Head())
		}
	})
}

// The limits themselves are taken, and one beyond is not.
func TestSizesAreExact(t *testing.T) {
	for size, ok := range map[uint64]bool{MinSize / 2: false, MinSize: true, MinSize + Granule: false, MaxSize: true,
		2 * MaxSize: false} {
		if _, err := NewSender(size); (err == nil) != ok {
			t.Errorf("ring of %d bytes: %v", size, err)
		}
	}
	// Less than 3/8, in whole granules.
	if got := MaxRecord(1024); got != 320 {
		t.Errorf("records of 1 KiB have at most %d bytes", got)
	}
	for n, want := range map[uint64]uint64{1: 64, 64: 64, 65: 128, 128: 128} {
		if got := Round(n); got != want {
			t.Errorf("%d bytes are rounded to %d, want %d", n, got, want)
		}
	}
	for n, want := range map[uint64]uint64{1: 1024, 320: 1024, 321: 2048} {
		if got, err := SizeFor(n); err != nil || got != want {
			t.Errorf("records of %d bytes need %d, %v, want %d", n, got, err, want)
		}
	}
	expect.Get(SizeFor(MaxRecord(MaxSize)))(t)
	if _, err := SizeFor(MaxRecord(MaxSize) + 1); err == nil {
		t.Error("a record that fits no ring")
	}
}

// A ring can be filled to its last byte; a head of a quarter is told, less is not; and old news
// moves nothing.
func TestARingIsFilledAndFreedByQuarters(t *testing.T) {
	s, _ := NewSender(1024)
	r, _ := NewReceiver(1024)
	var all []Span
	for range 4 {
		sp, ok := s.Reserve(256)
		if !ok {
			t.Fatalf("no room with %d of 1024 in use", s.tail-s.head)
		}
		expect.OK(t, r.Arrived(sp.Start, sp.Off, 256))
		all = append(all, sp)
	}
	if _, ok := s.Reserve(1); ok || s.tail-s.head != 1024 || r.Open() != 4 {
		t.Errorf("%d bytes in use, %d open", s.tail-s.head, r.Open())
	}
	for i, sp := range all {
		if !r.Release(sp.Start) || r.Head() != uint64(256*(i+1)) || r.Open() != 3-i {
			t.Errorf("after %d: head %d, %d open", i+1, r.Head(), r.Open())
		}
	}
	for _, c := range []struct{ head, inUse uint64 }{{512, 512}, {256, 512}, {512, 512}, {1024, 0}} {
		if err := s.Head(c.head); err != nil || s.tail-s.head != c.inUse {
			t.Errorf("head %d: %d in use, %v", c.head, s.tail-s.head, err)
		}
	}
	sp, _ := s.Reserve(64)
	expect.OK(t, r.Arrived(sp.Start, sp.Off, 64))
	if r.Release(sp.Start) {
		t.Error("a head was told of a sixteenth")
	}
}

// What was skipped counts as part of the record: it has to be free, and to be needed.
func TestSkippedBytesAreFreeAndNeeded(t *testing.T) {
	r, _ := NewReceiver(1024)
	if err := r.Arrived(960, 0, 128); !errors.Is(err, ErrPeer) || !strings.Contains(err.Error(), "outside 0 to 1024") {
		t.Errorf("a record whose end is not free: %v", err)
	}
	for _, start := range []uint64{0, 256} {
		expect.OK(t, r.Arrived(start, uint32(start), 256))
		r.Release(start)
	}
	expect.Is(t, "a skip before what fits to the end", r.Arrived(960, 0, 64), ErrPeer)
	if err := r.Arrived(960, 0, 128); err != nil {
		t.Errorf("a skip that is needed, with room: %v", err)
	}
}
