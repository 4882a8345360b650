package sched_test

import (
	"bytes"
	"slices"
	"testing"

	"github.com/rdmaperf/rdmaperf/sched"
	"github.com/rdmaperf/rdmaperf/transports/rdma"
)

// Descriptors lie one behind the other, 64 of them, between the notice and the ring.
func TestDescriptorsLieOneBehindTheOther(t *testing.T) {
	for turn := range uint32(200) {
		b, at := sched.Descriptor(turn, 0, 0, 0)
		if want := 64 + int(turn)%64*16; at != want || len(b) != 16 {
			t.Errorf("turn %d: %d bytes at %d, want 16 at %d", turn, len(b), at, want)
		}
	}
}

// A short send that need not wait takes a receive as well: the cut one behind it is found.
func TestAShortSendBeforeACutOne(t *testing.T) {
	r, key := loopRig(t, cutConfig)
	for i := range 3 {
		r.receive(101+i, i*8*kib, 8*kib, key)
	}
	r.end()
	r.post(r.wr(1, rdma.OpSend, 0, 64))
	r.end()
	r.post(r.wr(2, rdma.OpWrite, 0, 64)) // which takes none
	r.end()
	const size = 5*kib + 3
	r.post(r.wr(3, rdma.OpSend, 0, size))
	got := r.end()
	if len(got) != 2 || got[0] != (rdma.WC{ID: 102, QPNum: 1, Opcode: rdma.WCRecv, ByteLen: size}) {
		t.Errorf("completions %+v, want %d bytes in 102", got, size)
	}
	if m := r.mem.Bytes(); !bytes.Equal(m[home+8*kib:][:size], m[:size]) {
		t.Error("data differ")
	}
	if ids, _ := told(got); !slices.Contains(ids, 3) {
		t.Errorf("completions %v, want that of the send", ids)
	}
}
