package memdev

import (
	"bytes"
	"encoding/binary"
	"math"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/rdmaperf/rdmaperf/transports/rdma"
)

// same fails with the difference.
func same[T any](t testing.TB, what string, got, want T) {
	t.Helper()
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("%s (-want +got):\n%s", what, diff)
	}
}

func TestSendWriteReadMoveBytes(t *testing.T) {
	a, b, _ := newPair(t, Config{})
	copy(a.buf.Bytes(), "hello")
	b.recv(7, b.sge(100, 16))
	a.post(wr(rdma.OpSend, 1, a.sge(0, 5)),
		b.at(200, wr(rdma.OpWrite, 2, a.sge(0, 5))),
		b.at(200, wr(rdma.OpRead, 3, a.sge(300, 5))))
	same(t, "requester", drain(t, a.sq), []rdma.WC{
		{ID: 1, QPNum: a.qp.Num(), Opcode: rdma.WCSend},
		{ID: 2, QPNum: a.qp.Num(), Opcode: rdma.WCWrite},
		{ID: 3, QPNum: a.qp.Num(), Opcode: rdma.WCRead, ByteLen: 5}})
	same(t, "responder", drain(t, b.rq), []rdma.WC{{ID: 7, QPNum: b.qp.Num(), ByteLen: 5, Opcode: rdma.WCRecv}})
	for name, got := range map[string][]byte{"send": b.buf.Bytes()[100:106], "write": b.buf.Bytes()[200:206],
		"read": a.buf.Bytes()[300:306]} {
		if string(got) != "hello\x00" {
			t.Errorf("%s delivered %q, want hello and nothing behind it", name, got)
		}
	}
	same(t, "completions of one-sided work at the target", drain(t, b.sq), nil)
}

func TestImmediateAndInvalidateReachTheReceiver(t *testing.T) {
	tests := []struct {
		name string
		req  func(a, b *side) rdma.SendWR
		want func(b *side) rdma.WC
	}{
		{"send carries no immediate", func(a, b *side) rdma.SendWR {
			w := wr(rdma.OpSend, 1, a.sge(0, 8))
			w.Imm, w.InvKey = 5, b.mr.RKey()
			return w
		}, func(b *side) rdma.WC { return rdma.WC{ByteLen: 8, Opcode: rdma.WCRecv} }},
		{"send_imm delivers the number", func(a, b *side) rdma.SendWR {
			w := wr(rdma.OpSendImm, 1, a.sge(0, 8))
			w.Imm = 0x01020304
			return w
		}, func(b *side) rdma.WC {
			return rdma.WC{ByteLen: 8, Opcode: rdma.WCRecv, Imm: 0x01020304, Flags: rdma.WithImm}
		}},
		{"immediate 0 of an empty send is flagged", func(a, b *side) rdma.SendWR { return wr(rdma.OpSendImm, 1) },
			func(b *side) rdma.WC { return rdma.WC{Opcode: rdma.WCRecv, Flags: rdma.WithImm} }},
		{"write_imm reports the bytes written", func(a, b *side) rdma.SendWR {
			w := b.at(1000, wr(rdma.OpWriteImm, 1, a.sge(0, 8)))
			w.Imm = 9
			return w
		}, func(b *side) rdma.WC {
			return rdma.WC{ByteLen: 8, Opcode: rdma.WCRecvWriteImm, Imm: 9, Flags: rdma.WithImm}
		}},
		{"send_inv names the key it revoked", func(a, b *side) rdma.SendWR {
			w := wr(rdma.OpSendInv, 1)
			w.InvKey = b.mr.RKey()
			return w
		}, func(b *side) rdma.WC {
			return rdma.WC{Opcode: rdma.WCRecv, InvKey: b.mr.RKey(), Flags: rdma.WithInv}
		}},
	}
	for _, tc := range tests {
		t.Run(tc.name, func(t *testing.T) {
			a, b, _ := newPair(t, Config{})
			copy(a.buf.Bytes(), "12345678")
			b.recv(3, b.sge(0, 64))
			req := tc.req(a, b)
			a.post(req)
			want := tc.want(b)
			want.ID, want.QPNum = 3, b.qp.Num()
			same(t, "receiver", drain(t, b.rq), []rdma.WC{want})
			same(t, "sender", outcomes(t, a.sq), good(1))
			if req.Op == rdma.OpWriteImm && (b.buf.Bytes()[0] != 0 || string(b.buf.Bytes()[1000:1008]) != "12345678") {
				t.Error("write_imm must fill its target and leave the receive's memory alone")
			}
		})
	}
}

func TestGatherAndScatterConcatenateOneToFourElements(t *testing.T) {
	for n := 1; n <= rdma.MaxSGE; n++ {
		a, b, _ := newPair(t, Config{})
		var out, in []rdma.SGE
		var want []byte
		for i := range n {
			size := 7 + 2*i
			for j := range size {
				a.buf.Bytes()[500*i+j] = byte(10*i + j + 1)
			}
			want = append(want, a.buf.Bytes()[500*i:500*i+size]...)
			out = append(out, a.sge(500*i, size))
			in = append(in, b.sge(300*(n-i), 20-5*i))
		}
		pick := func(e *side, list []rdma.SGE) (got []byte) {
			for _, s := range list {
				off := s.Addr - e.mr.Addr()
				got = append(got, e.buf.Bytes()[off:off+uint64(s.Len)]...)
			}
			return got[:len(want)]
		}
		b.recv(1, in...)
		a.post(wr(rdma.OpSend, 1, out...), b.at(2000, wr(rdma.OpWrite, 2, out...)))
		same(t, "scattered receive", pick(b, in), want)
		same(t, "gathered write", b.buf.Bytes()[2000:2000+len(want)], want)
		for i := range out {
			out[i].Addr += 2000
		}
		a.post(b.at(2000, wr(rdma.OpRead, 3, out...)))
		same(t, "scattered read", pick(a, out), want)
		same(t, "statuses", outcomes(t, a.sq), good(1, 2, 3))
	}
}

func TestEmptyOperationsCheckNoKey(t *testing.T) {
	wild := rdma.SGE{Addr: 12345, LKey: 99}
	for _, op := range []rdma.Opcode{rdma.OpSend, rdma.OpSendImm, rdma.OpWrite, rdma.OpWriteImm, rdma.OpRead} {
		for _, sges := range [][]rdma.SGE{nil, {wild}, {wild, wild, wild, wild}} {
			a, b, _ := newPair(t, Config{}, func(_, b *setup) { b.mr = 0; b.qp.Access = rdma.RemoteRead })
			b.recv(5, wild)
			w := wr(op, 1, sges...)
			w.RKey, w.RemoteAddr = 0, math.MaxUint64
			a.post(w)
			same(t, op.String(), outcomes(t, a.sq), good(1))
			same(t, "events", b.events(), nil)
		}
	}
}

func TestInlineDataIsCopiedByThePost(t *testing.T) {
	a, b, _ := newPair(t, Config{}, func(a, _ *setup) { a.param.RNRRetry = rnrForever })
	data := a.buf.Bytes()
	copy(data, "abcdefgh")
	w := wr(rdma.OpSend, 1, rdma.SGE{Addr: a.mr.Addr(), Len: 4, LKey: 1},
		rdma.SGE{Addr: a.mr.Addr() + 4, Len: 4, LKey: 2})
	w.Flags |= rdma.Inline
	a.post(w) // waits: no receive yet
	copy(data, "XXXXXXXX")
	b.recv(2, b.sge(0, 8))
	same(t, "status with unchecked keys", outcomes(t, a.sq), good(1))
	same(t, "delivered", string(b.buf.Bytes()[:8]), "abcdefgh")
}

func TestAtomics(t *testing.T) {
	tests := []struct {
		name           string
		op             rdma.Opcode
		mem, cmp, swap uint64
		want           uint64
	}{
		{"fetch_add adds", rdma.OpFetchAdd, 5, 3, 0, 8},
		{"fetch_add of 0 reads", rdma.OpFetchAdd, 5, 0, 0, 5},
		{"fetch_add wraps", rdma.OpFetchAdd, math.MaxUint64, 2, 0, 1},
		{"cmp_swap stores when equal", rdma.OpCmpSwap, 5, 5, 77, 77},
		{"cmp_swap keeps when different", rdma.OpCmpSwap, 5, 6, 77, 5},
	}
	for _, tc := range tests {
		t.Run(tc.name, func(t *testing.T) {
			a, b, _ := newPair(t, Config{})
			word := b.buf.Bytes()[64:72]
			binary.NativeEndian.PutUint64(word, tc.mem)
			w := b.at(64, wr(tc.op, 1, a.sge(13, 8))) // the sink need not be aligned
			w.CompareAdd, w.Swap = tc.cmp, tc.swap
			a.post(w)
			same(t, "completion", drain(t, a.sq),
				[]rdma.WC{{ID: 1, QPNum: a.qp.Num(), Opcode: tc.op.Completes(), ByteLen: 8}})
			if got := binary.NativeEndian.Uint64(a.buf.Bytes()[13:]); got != tc.mem {
				t.Errorf("returned %d, want the old value %d", got, tc.mem)
			}
			if got := binary.NativeEndian.Uint64(word); got != tc.want {
				t.Errorf("memory = %d, want %d", got, tc.want)
			}
		})
	}
}

func TestLocalInvalidateRevokesBothKeys(t *testing.T) {
	for _, byRKey := range []bool{true, false} {
		a, b, _ := newPair(t, Config{})
		w := wr(rdma.OpLocalInv, 1)
		if w.InvKey = b.mr.LKey(); byRKey {
			w.InvKey = b.mr.RKey()
		}
		b.post(w)
		same(t, "local_inv", drain(t, b.sq), []rdma.WC{{ID: 1, QPNum: b.qp.Num(), Opcode: rdma.WCLocalInv}})
		a.post(b.at(0, wr(rdma.OpWrite, 2, a.sge(0, 4))))
		same(t, "write afterwards", outcomes(t, a.sq), all(rdma.StatusRemAccessErr, 2))
	}
}

func TestEmptyAndWholeBufferSizesAreExact(t *testing.T) {
	const size = 1 << 17
	a, b, _ := newPair(t, Config{}, func(a, b *setup) { a.size, b.size = size, size })
	for i := range a.buf.Bytes() {
		a.buf.Bytes()[i] = byte(i*7 + i>>8)
	}
	for i, n := range []int{0, 1, 3, 4, 5, 63, 64, 4095, 4096, 65535, 65536, 65537, size} {
		clear(b.buf.Bytes())
		a.post(b.at(0, wr(rdma.OpWrite, uint64(i), a.sge(0, n))))
		same(t, "write", outcomes(t, a.sq), good(uint64(i)))
		if !bytes.Equal(b.buf.Bytes()[:n], a.buf.Bytes()[:n]) ||
			bytes.IndexFunc(b.buf.Bytes()[n:], func(r rune) bool { return r != 0 }) >= 0 {
			t.Errorf("write of %d bytes is not exactly those bytes", n)
		}
		clear(b.buf.Bytes())
		b.recv(uint64(i), b.sge(0, size))
		a.post(wr(rdma.OpSend, uint64(i), a.sge(0, n)))
		same(t, "send", outcomes(t, a.sq), good(uint64(i)))
		if wcs := drain(t, b.rq); len(wcs) != 1 || wcs[0].ByteLen != uint32(n) ||
			!bytes.Equal(b.buf.Bytes()[:n], a.buf.Bytes()[:n]) {
			t.Errorf("send of %d bytes arrived as %+v", n, wcs)
		}
	}
}

func TestWordNeighboursSurviveTheLastByte(t *testing.T) {
	b := must(rdma.Alloc(64))(t)
	defer b.Free()
	for i := range b.Bytes() {
		b.Bytes()[i] = 0xee
	}
	for i := range 8 {
		storeByte(&b.Bytes()[8+i], byte(i))
		if got := rdma.LoadByte(b.Bytes(), 8+i); got != byte(i) {
			t.Errorf("byte %d = %#x, want %#x", i, got, i)
		}
	}
	if b.Bytes()[7] != 0xee || b.Bytes()[16] != 0xee {
		t.Error("a neighbour changed")
	}
}
