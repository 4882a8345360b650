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

// Who polls hears what the peer has given back, and posts what waited for it, whatever else there is to poll.
func TestAPollFindsWhatThePeerGaveBack(t *testing.T) {
	r := waitingSend(t)
	before := len(r.seen)
	if r.poll(); len(r.seen) != before {
		t.Fatal("the second send does not wait")
	}
	copy(sched.Mailbox(r.qp), sched.Notice(1, 8*kib))
	if r.poll(); len(r.seen) == before {
		t.Error("the second send still waits")
	}
	r.end()
}

// A poll that takes the end of a cut send tells the peer that there is room again.
func TestAPollTellsThePeer(t *testing.T) {
	dev := newScript(false)
	dev.apart = true
	r, key := loopRigOn(t, dev, cutConfig)
	r.receive(101, 0, 8*kib, key)
	r.end()
	r.post(r.wr(1, rdma.OpSend, 0, 5*kib))
	r.end()
	before := len(r.seen)
	var wcs [4]rdma.WC
	if n, err := r.in.Poll(wcs[:]); n != 1 || err != nil || wcs[0].ByteLen != 5*kib {
		t.Fatalf("%d completions, %v: %+v", n, err, wcs[0])
	}
	if fresh := r.seen[before:]; len(fresh) != 1 || fresh[0].Op != rdma.OpWrite || fresh[0].Len() != 16 {
		t.Errorf("behind it the device got %+v, want a notice", fresh)
	}
	r.end()
}
