package tcp

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/rdmaperf/rdmaperf/transports"
	"github.com/rdmaperf/rdmaperf/transports/rdma"
)

const (
	testWindow = 64 << 10
	testRecvs  = 4
	testIRD    = 3
)

// machine has four receives of 100 bytes at 1000 and on, and two reads under
// way, of 8 bytes to 2000 and of 20000 to 3000.
func machine() *inbound {
	in := newInbound(make([]byte, testWindow), testRecvs, 2, testIRD)
	for i := range testRecvs {
		*in.recvs.push() = recvOp{local: 1000 + 100*uint64(i), len: 100, slot: uint32(i)}
	}
	for i, op := range []transports.Op{{Kind: transports.KindRead, Local: 2000, Len: 8},
		{Kind: transports.KindRead, Local: 3000, Len: 20000}} {
		*in.reads.push() = &outOp{Op: op, tag: uint32(i + 1)}
	}
	return &in
}

// feed moves the stream b through the machine in pieces of at most cut() bytes,
// as a socket would, with room for one Done in every other call.
func feed(in *inbound, b []byte, cut func() int) (dones []transports.Done, rest int, err error) {
	done := make([]transports.Done, 1)
	for i := 0; ; i++ {
		n, err := in.parse(done[:i%2])
		dones = append(dones, done[:n]...)
		if err != nil {
			return dones, len(b), err
		}
		if in.phase == wantRoom || in.end-in.pos >= headerLen && in.phase == wantHeader {
			continue
		}
		if in.stuck() || len(b) == 0 {
			if i%2 == 0 {
				continue // the last word belongs to a call with room
			}
			return dones, len(b), nil
		}
		r0, r1 := in.room()
		if len(r0)+len(r1) == 0 {
			panic("no room though bytes are wanted")
		}
		k := min(max(cut(), 1), len(b))
		n = copy(r0, b[:k])
		n += copy(r1, b[n:k])
		in.took(n)
		b = b[n:]
	}
}

func whole() int { return 1 << 30 }

func msg(h header, v byte) []byte {
	b := make([]byte, headerLen)
	h.put(b)
	if h.kind == wireReadReq {
		return b
	}
	return append(b, bytes.Repeat([]byte{v}, int(h.len))...)
}

func TestAPeerThatBreaksTheProtocolIsNamed(t *testing.T) {
	for _, c := range []struct {
		what string
		b    []byte
		want error
	}{
		{"zeros", make([]byte, headerLen), errKind},
		{"a kind from the future", msg(header{kind: numWireKinds}, 0), errKind},
		{"a send with an offset", msg(header{kind: wireSend, off: 1}, 0), errReserved},
		{"a send with a tag", msg(header{kind: wireSend, tag: 1}, 0), errReserved},
		{"a write with a tag", msg(header{kind: wireWrite, tag: 1}, 0), errReserved},
		{"a send longer than the receive", msg(header{kind: wireSend, len: 101}, 0), errTooLong},
		{"a write past the end", msg(header{kind: wireWrite, off: testWindow, len: 1}, 0), errBounds},
		{"a write across the end", msg(header{kind: wireWrite, off: testWindow - 7, len: 8}, 0), errBounds},
		{"a write from the highest offset", msg(header{kind: wireWrite, off: 1<<56 - 1, len: 1}, 0), errBounds},
		{"a write_imm past the end", msg(header{kind: wireWriteImm, off: 1, len: testWindow}, 0), errBounds},
		{"a read past the end", msg(header{kind: wireReadReq, off: 1, len: 1<<32 - 1}, 0), errBounds},
		{"one read too many", bytes.Repeat(msg(header{kind: wireReadReq, len: 1}, 0), testIRD+1), errReadFull},
		{"an answer of another length", msg(header{kind: wireReadResp, tag: 1, len: 9}, 0), errReadOdd},
		{"an answer out of order", msg(header{kind: wireReadResp, tag: 2, len: 8}, 0), errReadOdd},
		{"an answer with an offset", msg(header{kind: wireReadResp, off: 1, tag: 1, len: 8}, 0), errReadOdd},
		{"an answer too many", append(append(msg(header{kind: wireReadResp, tag: 1, len: 8}, 1),
			msg(header{kind: wireReadResp, tag: 2, len: 20000}, 1)...), msg(header{kind: wireReadResp}, 1)...),
			errNoRead},
	} {
		in := machine()
		dones, _, err := feed(in, c.b, whole)
		if !errors.Is(err, c.want) || !errors.Is(err, rdma.ErrProtocol) {
			t.Errorf("%s: error %v, want %v", c.what, err, c.want)
		}
		if in.phase != phaseBroken {
			t.Errorf("%s: phase %v, want %v", c.what, in.phase, phaseBroken)
		}
		if n, err := in.parse(make([]transports.Done, 8)); n != 0 || err != nil {
			t.Errorf("%s: the broken machine said %d, %v", c.what, n, err)
		}
		if tooLong := c.want == errTooLong; tooLong != (len(dones) == 1) ||
			tooLong && dones[0].Status != rdma.StatusLocLenErr {
			t.Errorf("%s: dones %v", c.what, dones)
		}
		if !bytes.Equal(in.win[:1000], make([]byte, 1000)) ||
			!bytes.Equal(in.win[1000+100*testRecvs:2000], make([]byte, 1000-100*testRecvs)) {
			t.Errorf("%s: bytes outside every legal target changed", c.what)
		}
	}
}

func TestAMessageWithoutReceiveStopsTheReading(t *testing.T) {
	in := machine()
	stream := bytes.Repeat(msg(header{kind: wireSend, len: 50}, 7), 10_000)
	dones, rest, err := feed(in, stream, whole)
	if err != nil || len(dones) != testRecvs || in.phase != wantRecv {
		t.Fatalf("dones %v, error %v, phase %v", dones, err, in.phase)
	}
	if took := len(stream) - rest; took > recvStage {
		t.Errorf("took %d bytes, more than the stage of %d", took, recvStage)
	}
	*in.recvs.push() = recvOp{local: 0, len: 50, slot: 77}
	if dones, _, err = feed(in, nil, whole); err != nil || len(dones) != 1 || dones[0].Slot != 77 || in.win[49] != 7 {
		t.Errorf("after one more receive: dones %v, error %v", dones, err)
	}
}

// After a large message the next call asks for little behind it, so that its
// successor goes straight to the window; after a small one it asks for much.
func TestTheLookAheadFollowsTheTraffic(t *testing.T) {
	in := machine()
	large := header{kind: wireWrite, len: largeMsg}
	if _, _, err := feed(in, msg(large, 1)[:headerLen+100], whole); err != nil {
		t.Fatal(err)
	}
	a, b := in.room()
	if len(a) != largeMsg-100 || len(b) != smallAhead {
		t.Errorf("inside a large message: room for %d and %d, want %d and %d", len(a), len(b), largeMsg-100, smallAhead)
	}
	in.took(copy(a, msg(large, 1)[headerLen+100:]))
	in.parse(nil)
	if a, b = in.room(); len(a) != 0 || len(b) != smallAhead {
		t.Errorf("behind a large message: room for %d and %d, want 0 and %d", len(a), len(b), smallAhead)
	}
	if _, _, err := feed(in, msg(header{kind: wireWrite, len: 8}, 1), whole); err != nil {
		t.Fatal(err)
	}
	if a, b = in.room(); len(a) != 0 || len(b) != recvStage {
		t.Errorf("behind a small message: room for %d and %d, want 0 and %d", len(a), len(b), recvStage)
	}
}

func TestAPayloadLongerThanOneCallIsPlacedWhole(t *testing.T) {
	in := newInbound(make([]byte, 4<<20), 1, 1, 1)
	want := make([]byte, 4<<20)
	h := header{kind: wireWrite, off: 5, len: 2*maxRecv + 777}
	b := msg(h, 0)
	for i := range b[headerLen:] {
		b[headerLen+i] = byte(i * 11 / 7)
	}
	copy(want[5:], b[headerLen:])
	if _, rest, err := feed(&in, append(b, msg(header{kind: wireWrite, len: 5}, 9)...), whole); rest != 0 ||
		err != nil {
		t.Fatalf("%d bytes left, %v", rest, err)
	}
	copy(want, []byte{9, 9, 9, 9, 9})
	if !bytes.Equal(in.win, want) {
		t.Error("the window differs")
	}
}

// FuzzInbound: however the stream is cut, the machine does the same, keeps its
// bounds and never panics (an illegal step of its phases would).
func FuzzInbound(f *testing.F) {
	all := append(msg(header{kind: wireSend, len: 100}, 1), msg(header{kind: wireWrite, off: 100, len: 300}, 2)...)
	all = append(all, msg(header{kind: wireWriteImm, off: 5, len: 3, tag: 9}, 3)...)
	all = append(all, msg(header{kind: wireReadReq, off: 9, len: 1000, tag: 4}, 0)...)
	all = append(all, msg(header{kind: wireReadResp, len: 8, tag: 1}, 4)...)
	f.Add(uint64(1), all)
	f.Add(uint64(2), append(all[:len(all):len(all)], msg(header{kind: wireWrite, len: 20000}, 5)[:400]...))
	f.Add(uint64(3), msg(header{kind: wireSend, len: 101}, 1))
	f.Add(uint64(4), bytes.Repeat(msg(header{kind: wireSend}, 0), 6))
	f.Add(uint64(5), make([]byte, 40))
	f.Fuzz(func(t *testing.T, seed uint64, b []byte) {
		r := rand.New(rand.NewPCG(seed, seed))
		one, many := machine(), machine()
		d1, _, e1 := feed(one, b, whole)
		d2, _, e2 := feed(many, b, func() int { return 1 + r.IntN(1+r.IntN(300)) })
		if fmt.Sprint(d1, e1, one.phase) != fmt.Sprint(d2, e2, many.phase) {
			t.Fatalf("in one piece: %v, %v, %v; in many: %v, %v, %v", d1, e1, one.phase, d2, e2, many.phase)
		}
		if !bytes.Equal(one.win, many.win) {
			t.Fatal("the windows differ")
		}
		for _, in := range []*inbound{one, many} {
			if in.resps.len() > testIRD || in.recvs.len()+len(d1) != testRecvs || len(in.win) != testWindow ||
				in.end > recvStage {
				t.Fatalf("bounds: %d answers, %d receives, %d dones, %d staged", in.resps.len(), in.recvs.len(),
					len(d1), in.end)
			}
			for ; !in.resps.empty(); in.resps.pop() {
				if r := in.resps.front(); r.off+uint64(r.len) > testWindow {
					t.Fatalf("answer %+v leaves the window", r)
				}
			}
		}
	})
}
