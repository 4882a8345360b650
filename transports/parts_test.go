package transports

import (
	"bytes"
	"os/exec"
	"testing"
	"time"

	"pgregory.net/rapid"
)

func cut(t *rapid.T, b []byte) Parts {
	var p Parts
	for len(b) > 0 {
		n := rapid.IntRange(0, len(b)).Draw(t, "piece")
		p = append(p, b[:n])
		b = b[n:]
	}
	return p
}

func TestPartsCompareAsTheirBytesDo(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		b := rapid.SliceOfN(rapid.ByteRange(0, 3), 0, 20).Draw(t, "bytes")
		want := rapid.SliceOfN(rapid.ByteRange(0, 3), 0, 20).Draw(t, "want")
		if rapid.Bool().Draw(t, "alike") {
			want = append(bytes.Clone(b), want[:min(len(want), 2)]...)
			want = want[:rapid.IntRange(0, len(want)).Draw(t, "long")]
		}
		p := cut(t, b)
		if p.Len() != len(b) || !bytes.Equal(p.AppendTo(nil), b) {
			t.Fatalf("%v of %v", p, b)
		}
		at := 0
		for at < min(len(b), len(want)) && b[at] == want[at] {
			at++
		}
		if at == len(b) && at == len(want) {
			at = -1
		}
		if got, _ := p.Differs(want); got != at {
			t.Fatalf("%v differs from %v at %d, want %d", p, want, got, at)
		}
		offset := rapid.IntRange(0, len(b)).Draw(t, "offset")
		at = 0
		for at < len(want) && offset+at < len(b) && b[offset+at] == want[at] {
			at++
		}
		if at == len(want) {
			at = -1
		}
		if got, _ := p.DiffersAt(offset, want); got != at {
			t.Fatalf("%v from %d differs from %v at %d, want %d", p, offset, want, got, at)
		}
		if first, ok := p.First(); ok != (len(b) > 0) || ok && first != b[0] {
			t.Fatalf("first of %v: %d, %v", p, first, ok)
		}
	})
}

func TestHelpersCount(t *testing.T) {
	cmd := exec.Command("sh", "-c", "i=0; while [ $i -lt 20000 ]; do i=$((i+1)); done; read x")
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	remove := AddHelper(cmd.Process.Pid)
	for end := time.Now().Add(20 * time.Second); HelperCPU() < time.Millisecond; time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("the helper used %v", HelperCPU())
		}
	}
	remove()
	if d := HelperCPU(); d != 0 {
		t.Errorf("%v without a helper", d)
	}
	in.Close()
	cmd.Wait()
}
