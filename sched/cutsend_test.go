package sched_test

import (
	"bytes"
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/rdmaperf/rdmaperf/sched"
	"github.com/rdmaperf/rdmaperf/transports/rdma"
)

// cutConfig cuts sends into many slices, with room for few of them.
var cutConfig = sched.Config{Slice: kib, Window: 2 * kib, Sends: sched.CutSends, Room: 64 * kib}

// loopRig is a rig whose QP is its own peer; the peer's half of its registered memory takes what is received.
func loopRig(t testing.TB, cfg sched.Config) (*rig, uint32) {
	t.Helper()
	return loopRigOn(t, newScript(false), cfg)
}

func loopRigOn(t testing.TB, dev *scriptDevice, cfg sched.Config) (*rig, uint32) {
	t.Helper()
	dev.loop = true
	r := newRigOn(t, dev, cfg, 16, 4)
	t.Cleanup(func() { r.qp.Close() })
	return r, r.register(dev)
}

// register makes all of a rig's memory known to the device and the tier, and fills its half.
func (r *rig) register(dev *scriptDevice) (key uint32) {
	r.t.Helper()
	mr, err := dev.RegMR(0, r.mem, rdma.LocalWrite) // for the device
	must(r.t, err)
	mr, err = r.tier.RegMR(0, r.mem, rdma.LocalWrite) // and for the tier
	must(r.t, err)
	for i := range home {
		r.mem.Bytes()[i] = byte(i*7 + i>>8*13)
	}
	return mr.LKey()
}

// receive posts a receive of n bytes in two elements, at so much of the peer's half.
func (r *rig) receive(id, at, n int, key uint32) {
	r.t.Helper()
	wr := rdma.RecvWR{ID: uint64(id), NumSGE: 2}
	wr.SGE[0] = rdma.SGE{Addr: r.mem.Addr() + uint64(home+at), Len: uint32(n / 3), LKey: key}
	wr.SGE[1] = rdma.SGE{Addr: r.mem.Addr() + uint64(home+at+n/3), Len: uint32(n - n/3), LKey: key}
	need(r.qp.PostRecv([]rdma.RecvWR{wr}))(r.t)
}

// A message takes a receive when it ends: an urgent send that overtakes takes the older one.
func TestUrgentSendOvertakesInsideASend(t *testing.T) {
	r, key := loopRig(t, cutConfig)
	r.receive(101, 0, 40*kib, key)
	r.receive(102, 64*kib, 40*kib, key)
	r.end()
	long, short := r.wr(1, rdma.OpSendImm, 0, 30*kib), r.wr(2, rdma.OpSend, 7, 64)
	long.Imm, long.Flags = 77, long.Flags|rdma.Solicited
	r.post(long)
	r.far.carryOut(1)
	r.post(short)
	got := r.end()
	want := []rdma.WC{
		{ID: 101, QPNum: 1, Opcode: rdma.WCRecv, ByteLen: 64},
		{ID: 2, QPNum: 1, Opcode: rdma.WCSend},
		{ID: 102, QPNum: 1, Opcode: rdma.WCRecv, ByteLen: 30 * kib, Imm: 77, Flags: rdma.WithImm},
		{ID: 1, QPNum: 1, Opcode: rdma.WCSend},
	}
	if !slices.Equal(got, want) {
		t.Errorf("completions\n%+v, want\n%+v", got, want)
	}
	m := r.mem.Bytes()
	if !bytes.Equal(m[home:home+64], m[:64]) || !bytes.Equal(m[home+64*kib:][:30*kib], m[:30*kib]) {
		t.Error("data differ")
	}
	for i, w := range r.seen {
		if last := w.Op == rdma.OpSendImm; last != (w.Flags&rdma.Solicited != 0) || last && w.Len() != kib {
			t.Errorf("part %d: %s of %d bytes, flags %d", i, w.Op, w.Len(), w.Flags)
		}
	}
	if n := sched.Tally(r.tier)["sends_cut"]; n != 1 {
		t.Errorf("%d sends cut, want 1", n)
	}
}

// Every size around a slice and the end of the ring arrives whole, and bytes behind it stay.
func TestCutSendsOfEverySize(t *testing.T) {
	r, key := loopRig(t, sched.Config{Slice: kib, Window: 2 * kib, Sends: sched.CutSends, Room: 8 * kib})
	const longest = 9 * kib
	copy(r.mem.Bytes()[home:], bytes.Repeat([]byte{0xee}, longest)) // stays behind each message
	r.receive(1000, 0, longest, key)
	r.end()
	for i, n := range []int{0, 1, kib - 1, kib, kib + 1, 2 * kib, 2*kib + 1, 5000, 8*kib - 1, 8 * kib, 8*kib + 1,
		longest, 7000, 3000, 8 * kib} {
		r.post(r.wr(i+1, rdma.OpSend, i%3, n))
		got := r.end()
		if len(got) != 2 || got[0].ID != uint64(1000+i) || got[0].ByteLen != uint32(n) || got[0].Status != 0 ||
			got[1].ID != uint64(i+1) {
			t.Fatalf("send of %d bytes: %+v", n, got)
		}
		m := r.mem.Bytes()
		took := m[home : home+longest]
		if !bytes.Equal(took[:n], m[:n]) || len(bytes.Trim(took[n:], "\xee")) > 0 {
			t.Fatalf("send of %d bytes: they differ, or those behind them", n)
		}
		copy(took, bytes.Repeat([]byte{0xee}, longest))
		r.receive(1001+i, 0, longest, key)
	}
	// Only sends beyond a slice and within a slice and the ring are cut.
	if tally := sched.Tally(r.tier); tally["sends_cut"] != 11 || tally["sends_whole"] != 0 {
		t.Errorf("%v", tally)
	}
}

// waitingSend has a second send that waits for room, where completions are local and the first was told.
func waitingSend(t *testing.T) *rig {
	t.Helper()
	r, key := loopRigOn(t, newScript(true), sched.Config{Slice: kib, Window: 64 * kib, Sends: sched.CutSends,
		Room: 8 * kib})
	for i := range 2 {
		r.receive(101+i, i*8*kib, 8*kib, key)
	}
	r.end()
	r.post(r.wr(1, rdma.OpSend, 0, 6*kib), r.wr(2, rdma.OpSend, 0, 6*kib))
	tells(t, r.poll(), []uint64{1}, rdma.StatusSuccess)
	return r
}

// A send that waits for the ring is flushed at the end, though nothing under way fails to say so.
func TestSendThatWaitsForThePeerIsFlushed(t *testing.T) {
	r := waitingSend(t)
	must(t, r.far.Fail())
	var got []rdma.WC
	for range sched.LookEvery {
		got = append(got, r.poll()...)
	}
	tells(t, got, []uint64{2}, rdma.StatusWRFlushErr)
}

// What cannot be received whole fails as it would have in one piece.
func TestCutSendThatDoesNotFit(t *testing.T) {
	for name, c := range map[string]struct {
		second func(r *rig, key uint32) // posts receive 102
		want   rdma.Status
	}{
		"short receive": {func(r *rig, key uint32) { r.receive(102, 0, 8*kib, key) }, rdma.StatusLocLenErr},
		"foreign key":   {func(r *rig, key uint32) { r.receive(102, 0, 40*kib, key+1) }, rdma.StatusLocProtErr},
		"beyond the registration": {func(r *rig, key uint32) {
			wr := rdma.RecvWR{ID: 102, NumSGE: 2}
			wr.SGE[0] = rdma.SGE{Addr: r.mem.Addr() + home, Len: 2 * kib, LKey: key}
			wr.SGE[1] = rdma.SGE{Addr: r.mem.Addr() + 2*home - kib, Len: 40 * kib, LKey: key}
			_, _ = r.qp.PostRecv([]rdma.RecvWR{wr})
		}, rdma.StatusLocProtErr},
	} {
		t.Run(name, func(t *testing.T) {
			r, key := loopRig(t, cutConfig)
			r.receive(101, 0, 40*kib, key)
			r.end()
			// It was cut on the word that every receive is long, and takes the next one.
			r.post(r.wr(1, rdma.OpSend, 0, 30*kib))
			r.post(r.wr(2, rdma.OpSend, 7, 8))
			c.second(r, key)
			r.receive(103, 0, 40*kib, key)
			r.post(r.wr(3, rdma.OpSend, 0, 8))
			var recvs []rdma.WC
			for _, wc := range r.end() {
				if wc.ID > 100 {
					recvs = append(recvs, wc)
				}
			}
			if len(recvs) < 2 || recvs[0].Status != 0 || recvs[1].ID != 102 || recvs[1].Status != c.want {
				t.Fatalf("receives %+v, want %s", recvs, c.want)
			}
			if len(recvs) > 2 && recvs[2].Status != rdma.StatusWRFlushErr {
				t.Errorf("what came behind: %+v", recvs[2])
			}
			if s := r.qp.State(); s != rdma.QPErr {
				t.Errorf("state %s", s)
			}
		})
	}
}

// A send longer than a posted receive goes whole, and so does one that would wait for less urgent ones.
func TestSendsThatGoWhole(t *testing.T) {
	r, key := loopRig(t, sched.Config{Slice: kib, Window: 2 * kib, Sends: sched.CutSends, Room: 16 * kib})
	whole := func(what string, want int64) {
		t.Helper()
		if n := sched.Tally(r.tier)["sends_whole"]; n != want {
			t.Errorf("%s: %d sends went whole, want %d", what, n, want)
		}
	}
	r.receive(101, 0, 20*kib, key)
	r.receive(102, 0, 20*kib, key)
	r.end()
	r.post(r.wr(1, rdma.OpSend, 0, 12*kib))
	r.post(r.wr(2, rdma.OpSend, 7, 10*kib))
	whole("the ring is lent to a less urgent send", 1)
	if got := r.end(); len(got) != 4 || got[0].ByteLen != 10*kib {
		t.Fatalf("%+v", got)
	}
	r.receive(103, 0, 20*kib, key)
	r.receive(104, 0, 2*kib, key)
	r.end()
	r.post(r.wr(3, rdma.OpSend, 0, 12*kib))
	whole("one receive is too short", 2)
	if got := r.end(); len(got) != 2 || got[0].ID != 103 || got[0].ByteLen != 12*kib {
		t.Fatalf("%+v", got)
	}
	r.post(r.wr(4, rdma.OpSend, 0, 12*kib))
	if got := r.end(); len(got) == 0 || got[0].ID != 104 || got[0].Status != rdma.StatusLocLenErr {
		t.Fatalf("%+v", got)
	}
}

// A send that waits for the ring lets the one that has it go on, whatever the policy prefers.
func TestRingIsGivenBackUnderEveryPolicy(t *testing.T) {
	r, key := loopRig(t, sched.Config{Policy: sched.EDF, Slice: kib, Window: 2 * kib, Sends: sched.CutSends,
		Room:      8 * kib,
		Deadlines: [sched.Priorities]time.Duration{time.Microsecond, 1e9, 1e9, 1e9, 1e9, 1e9, 1e9, time.Hour}})
	r.receive(101, 0, 9*kib, key)
	r.receive(102, 0, 9*kib, key)
	r.end()
	r.post(r.wr(1, rdma.OpSend, 7, 8*kib))
	r.post(r.wr(2, rdma.OpSend, 0, 6*kib))
	tells(t, r.end(), []uint64{101, 1, 102, 2})
}

// Slices that fail give the send one error, and no receive is taken.
func TestSliceOfASendFails(t *testing.T) {
	r, key := loopRig(t, cutConfig)
	r.receive(101, 0, 40*kib, key)
	r.end()
	r.far.failAfter, r.far.status = 5, rdma.StatusLocProtErr
	r.post(r.wr(1, rdma.OpSend, 0, 30*kib), r.wr(2, rdma.OpSend, 0, 8))
	tells(t, r.end(), []uint64{1, 2}, rdma.StatusLocProtErr, rdma.StatusWRFlushErr)
}

// A peer that gives back too much, or whose descriptor makes no sense, loses the connection.
func TestPeerBreaksTheRules(t *testing.T) {
	for name, notice := range map[string][]byte{
		"gives back one too many": sched.Notice(1, 40*kib),
		"gives back backwards":    sched.Notice(^uint32(0), 40*kib),
	} {
		r, key := loopRig(t, cutConfig)
		r.receive(101, 0, 40*kib, key)
		r.end()
		copy(sched.Mailbox(r.qp), notice)
		r.post(r.wr(1, rdma.OpSend, 0, 30*kib))
		if got := r.end(); len(got) != 1 || got[0].Status != rdma.StatusBadRespErr {
			t.Errorf("%s: %+v", name, got)
		}
	}
	for name, s := range map[string][3]uint32{
		"no more than its beginning": {64, 0, 0}, "more than the ring": {64*kib + 65, 0, 0},
		"outside of the ring": {1000, 64 * kib, 0},
	} {
		r, key := loopRig(t, cutConfig)
		r.receive(101, 0, 200*kib, key)
		r.end()
		b, at := sched.Descriptor(1, 0, s[0], s[1])
		copy(sched.Mailbox(r.qp)[at:], b)
		r.post(r.wr(1, rdma.OpSend, 0, 64))
		if got := r.end(); len(got) == 0 || got[0].ID != 101 || got[0].Status != rdma.StatusBadRespErr {
			t.Errorf("%s: %+v", name, got)
		}
		if s := r.qp.State(); s != rdma.QPErr {
			t.Errorf("%s: state %s", name, s)
		}
	}
}

// FuzzMailbox has a peer write what it likes.
func FuzzMailbox(f *testing.F) {
	b, _ := sched.Descriptor(1, 0, 5000, 0)
	f.Add(sched.Notice(0, 40*kib), b, uint16(1024))
	b, _ = sched.Descriptor(1, 0, 64*kib, 64*kib-1)
	f.Add(sched.Notice(1, 0), b, uint16(0))
	f.Add([]byte{}, bytes.Repeat([]byte{0xff}, 16), uint16(9))
	f.Fuzz(func(t *testing.T, notice, descriptor []byte, n uint16) {
		r, key := loopRig(t, cutConfig)
		const size = 40 * kib
		r.receive(101, 0, size, key)
		r.receive(102, size, size, key)
		r.end()
		box := sched.Mailbox(r.qp)
		copy(box[:16], notice)
		copy(box[64+16:64+32], descriptor)
		m := r.mem.Bytes()
		m[home+2*size] = 0xa5
		r.post(r.wr(1, rdma.OpSend, 0, int(n)), r.wr(2, rdma.OpSend, 7, 64))
		recvs := map[uint64]int{}
		for _, wc := range r.end() {
			if recvs[wc.ID]++; recvs[wc.ID] > 1 {
				t.Errorf("%d completes twice", wc.ID)
			}
			if wc.Status == rdma.StatusSuccess && wc.Opcode == rdma.WCRecv && wc.ByteLen > size {
				t.Errorf("%d bytes in a receive of %d", wc.ByteLen, size)
			}
		}
		if m[home+2*size] != 0xa5 {
			t.Error("a byte behind the receives is written")
		}
	})
}

// A tier that cuts sends says what it needs of the device below.
func TestCutSendsNeedInline(t *testing.T) {
	for _, limit := range []func(c *rdma.Caps){
		func(c *rdma.Caps) { c.MaxInline = 8 }, func(c *rdma.Caps) { c.MaxPrivate = 20 },
	} {
		dev := newNull()
		limit(&dev.caps)
		if _, err := sched.Wrap(dev, cutConfig); !errors.Is(err, rdma.ErrNotSupported) {
			t.Errorf("a device with %d bytes inline and %d of private data: %v", dev.caps.MaxInline, dev.caps.MaxPrivate, err)
		}
	}
}

// A send longer than a slice is cut. Private data with room for the offer alone is enough.
func TestCutSendsBeginAboveASlice(t *testing.T) {
	for size, whole := range map[int]bool{kib: true, kib + 1: false} {
		r, key := loopRig(t, cutConfig)
		r.receive(101, 0, 8*kib, key)
		r.post(r.wr(1, rdma.OpWrite, 0, 4*kib), r.wr(2, rdma.OpSend, 0, size))
		r.receive(102, 16*kib, 8*kib, key)
		r.end()
		sent := 0
		for _, w := range r.far.arriving {
			if sends.Has(w.Op) {
				sent = int(w.Len())
			}
		}
		if (sent == size) != whole {
			t.Errorf("of %d bytes, %d go in the send itself", size, sent)
		}
	}
	dev := newScript(false)
	dev.caps.MaxPrivate = 32 // what the offer takes
	tier := wrapped(t, dev, cutConfig)
	if n := tier.Caps().MaxPrivate; n != 0 {
		t.Errorf("%d bytes are left, want none", n)
	}
}

// Sends longer than a slice that go whole, as the peer takes no part, are counted, and no others.
func TestSendsThatGoWholeAreCounted(t *testing.T) {
	for size, want := range map[int]int64{kib: 0, kib + 1: 1} {
		r := newRig(t, cutConfig, 8, 4)
		r.post(r.wr(1, rdma.OpWrite, 0, 8*kib), r.wr(2, rdma.OpSend, 0, size), r.wr(3, rdma.OpWrite, 0, 2*kib))
		r.end()
		if n := sched.Tally(r.tier)["sends_whole"]; n != want {
			t.Errorf("a send of %d: %d went whole, want %d", size, n, want)
		}
	}
}

// Of a fenced send the first slice alone is fenced: it waits for the reads, and the others behind it.
func TestTheFirstSliceOfASendIsFenced(t *testing.T) {
	r, key := loopRig(t, cutConfig)
	r.receive(101, 0, 8*kib, key)
	r.end()
	w := r.wr(1, rdma.OpSend, 0, 5*kib)
	w.Flags |= rdma.Fence
	r.post(w)
	r.end()
	var fenced []bool
	for _, w := range r.far.arriving {
		if w.Len() >= kib {
			fenced = append(fenced, w.Flags&rdma.Fence != 0)
		}
	}
	if !slices.Equal(fenced, []bool{true, false, false, false, false}) {
		t.Errorf("fences of slices %v, want one at the first of 5", fenced)
	}
}
