package netstack

import (
	"bytes"
	"encoding/binary"
	"testing"
)

// rings are the two sides of a direction.
func rings(frames, mtu int) (tx, rx ring) {
	mem := make([]byte, ringSize(frames, mtu)) // whole pages, and so aligned
	return newRing(mem, frames, mtu), newRing(mem, frames, mtu)
}

func TestFramesComeOutAsTheyWentIn(t *testing.T) {
	tx, rx := rings(MinRing, DefaultMTU)
	for round := range 5 * MinRing { // round and round
		frame := bytes.Repeat([]byte{byte(round)}, 1+round*17%DefaultMTU)
		k := len(frame) / 3
		if ok, err := tx.put([][]byte{frame[:k], frame[k:]}); !ok || err != nil {
			t.Fatalf("frame %d: %v, %v", round, ok, err)
		}
		if got, err := rx.next(); !bytes.Equal(got, frame) || err != nil {
			t.Fatalf("frame %d: %d octets of %d, %v", round, len(got), len(frame), err)
		}
		rx.done()
		if b, err := rx.next(); b != nil || err != nil || rx.pending() {
			t.Fatalf("there is more: %v, %v", b, err)
		}
	}
}

// TestAFullRingDropsAndCounts is F5: nothing that is there is overwritten.
func TestAFullRingDropsAndCounts(t *testing.T) {
	tx, rx := rings(MinRing, DefaultMTU)
	for i := range MinRing + 3 {
		ok, err := tx.put([][]byte{{byte(i)}})
		if ok != (i < MinRing) || err != nil {
			t.Fatalf("frame %d: %v, %v", i, ok, err)
		}
	}
	if ok, _ := tx.put([][]byte{make([]byte, DefaultMTU+1)}); ok || rx.dropped() != 4 {
		t.Errorf("%d dropped, want 3 and one that is too long", rx.dropped())
	}
	for i := range MinRing {
		b, err := rx.next()
		if err != nil || len(b) != 1 || b[0] != byte(i) {
			t.Fatalf("frame %d is %v, %v", i, b, err)
		}
		rx.done()
	}
}

func TestASleeperIsRungOnceForWhatComes(t *testing.T) {
	tx, rx := rings(MinRing, DefaultMTU)
	if tx.wanted() {
		t.Error("nobody asked for a bell")
	}
	if !rx.sleep() {
		t.Error("nothing is there")
	}
	tx.put([][]byte{{1}})
	if !tx.wanted() || tx.wanted() {
		t.Error("one bell was asked for")
	}
	if rx.sleep() {
		t.Error("slept with a frame in the ring")
	}
}

// FuzzBrokenRing: what the other side writes never leads out of the memory.
func FuzzBrokenRing(f *testing.F) {
	f.Add(uint32(1), uint32(0), uint32(1500))
	f.Add(uint32(1<<31), uint32(17), uint32(1<<31))
	f.Add(uint32(16), uint32(0), uint32(0))
	f.Add(uint32(17), uint32(0), uint32(100))
	f.Fuzz(func(t *testing.T, used, taken, size uint32) {
		tx, rx := rings(MinRing, DefaultMTU)
		binary.NativeEndian.PutUint32(rx.mem[atUsed:], used)
		binary.NativeEndian.PutUint32(rx.mem[atTaken:], taken)
		binary.NativeEndian.PutUint32(rx.mem[atSlots:], size)
		b, err := rx.next()
		if len(b) > DefaultMTU || err == nil && b == nil && used != 0 {
			t.Errorf("%d octets, %v", len(b), err)
		}
		if err == nil && used > MinRing {
			t.Errorf("a writer at %d is further ahead than the ring is long", used)
		}
		if ok, err := tx.put([][]byte{{1}}); ok && (taken != 0 && -taken > MinRing) {
			t.Errorf("a reader at %d is ahead of the writer: %v, %v", taken, ok, err)
		}
	})
}
