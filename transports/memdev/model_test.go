package memdev

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/rdmaperf/rdmaperf/transports/rdma"
)

const modelSize = 256

type model struct{ mem [2][modelSize]byte }
type piece []struct{ off, n int }

func (m *model) gather(side int, p piece) (out []byte) {
	for _, r := range p {
		out = append(out, m.mem[side][r.off:r.off+r.n]...)
	}
	return out
}

func (m *model) scatter(side int, p piece, data []byte) {
	for _, r := range p {
		data = data[copy(m.mem[side][r.off:r.off+r.n], data):]
	}
}

func drawPiece(t *rapid.T, label string, limit int) piece {
	p := make(piece, rapid.IntRange(0, rdma.MaxSGE).Draw(t, label+" elements"))
	for i := range p {
		p[i].n = rapid.IntRange(0, limit).Draw(t, label+" length")
		p[i].off = rapid.IntRange(0, modelSize-p[i].n).Draw(t, label+" offset")
	}
	return p
}

func (p piece) len() (n int) {
	for _, r := range p {
		n += r.n
	}
	return n
}

func (e *side) sges(p piece) (out []rdma.SGE) {
	for _, r := range p {
		out = append(out, e.sge(r.off, r.n))
	}
	return out
}

// Whatever two QPs do to each other, memory is what the model says, and every request completes once, in order.
func TestMemoryMatchesTheModel(t *testing.T) {
	for _, delay := range []time.Duration{0, time.Millisecond} {
		t.Run(fmt.Sprint("read delay ", delay), func(t *testing.T) {
			clock := newManual()
			a, b, _ := newPair(t, Config{ReadDelay: delay, Now: clock.Now}, func(a, b *setup) {
				a.size, b.size = modelSize, modelSize
				a.qp.MaxInline, b.qp.MaxInline = 512, 512
			})
			sides := [2]*side{a, b}
			var m model
			var id uint64
			rapid.Check(t, func(rt *rapid.T) {
				for range rapid.IntRange(1, 20).Draw(rt, "operations") {
					me := rapid.IntRange(0, 1).Draw(rt, "side")
					id++
					m.operation(rt, sides, me, id)
					clock.advance(delay)
					if got := outcomes(t, sides[me].sq); !slices.Equal(got, good(id)) {
						rt.Fatalf("operation %d completed as %v", id, got)
					}
					for i, s := range sides {
						if !bytes.Equal(s.buf.Bytes(), m.mem[i][:]) {
							rt.Fatalf("memory of side %d differs:\n got %x\nwant %x", i, s.buf.Bytes(), m.mem[i])
						}
					}
				}
			})
		})
	}
}

func (m *model) operation(t *rapid.T, sides [2]*side, me int, id uint64) {
	x, y := sides[me], sides[1-me]
	for i := range x.buf.Bytes() { // fresh contents now and then, else all bytes turn equal
		if i%61 == int(id%61) {
			m.mem[me][i] = byte(id)
			x.buf.Bytes()[i] = byte(id)
		}
	}
	local := drawPiece(t, "local", 50)
	n := local.len()
	far := rapid.IntRange(0, modelSize-n).Draw(t, "remote offset")
	op := rapid.SampledFrom([]rdma.Opcode{rdma.OpSend, rdma.OpSendImm, rdma.OpWrite, rdma.OpWriteImm, rdma.OpRead,
		rdma.OpFetchAdd, rdma.OpCmpSwap}).Draw(t, "op")
	remote := piece{{far, n}}
	w := y.at(far, wr(op, id, x.sges(local)...))
	w.Imm = uint32(id)
	if inlineOps.Has(op) && rapid.Bool().Draw(t, "inline") {
		w.Flags |= rdma.Inline
	}
	if rapid.Bool().Draw(t, "fence") {
		w.Flags |= rdma.Fence
	}
	var expect []rdma.WC
	switch op {
	case rdma.OpSend, rdma.OpSendImm:
		into := drawPiece(t, "receive", 64)
		for into.len() < n {
			into = append(into[:min(len(into), 3)], struct{ off, n int }{0, n})
		}
		y.recv(id, y.sges(into)...)
		m.scatter(1-me, into, m.gather(me, local))
		expect = []rdma.WC{{ID: id, ByteLen: uint32(n), Opcode: rdma.WCRecv}}
	case rdma.OpWriteImm:
		y.recv(id)
		m.scatter(1-me, remote, m.gather(me, local))
		expect = []rdma.WC{{ID: id, ByteLen: uint32(n), Opcode: rdma.WCRecvWriteImm}}
	case rdma.OpWrite:
		m.scatter(1-me, remote, m.gather(me, local))
	case rdma.OpRead:
		m.scatter(me, local, m.gather(1-me, remote))
	default:
		m.atomic(t, &w, sides, me)
	}
	if op == rdma.OpSendImm || op == rdma.OpWriteImm {
		expect[0].Imm, expect[0].Flags = uint32(id), rdma.WithImm
	}
	x.post(w)
	for i := range expect {
		expect[i].QPNum = y.qp.Num()
	}
	if got := drain(y.t, y.rq); !slices.Equal(got, expect) {
		t.Fatalf("%v %d arrived as %+v, want %+v", op, id, got, expect)
	}
}

func (m *model) atomic(t *rapid.T, w *rdma.SendWR, sides [2]*side, me int) {
	far := 8 * rapid.IntRange(0, modelSize/8-1).Draw(t, "word")
	sink := rapid.IntRange(0, modelSize-8).Draw(t, "sink")
	word := m.mem[1-me][far : far+8]
	old := binary.NativeEndian.Uint64(word)
	w.CompareAdd = rapid.Uint64Range(0, math.MaxUint64).Draw(t, "operand")
	w.Swap = rapid.Uint64().Draw(t, "swap")
	if rapid.Bool().Draw(t, "equal") {
		w.CompareAdd = old
	}
	w.RemoteAddr = sides[1-me].mr.Addr() + uint64(far)
	w.NumSGE, w.SGE[0] = 1, sides[me].sge(sink, 8)
	switch {
	case w.Op == rdma.OpFetchAdd:
		binary.NativeEndian.PutUint64(word, old+w.CompareAdd)
	case old == w.CompareAdd:
		binary.NativeEndian.PutUint64(word, w.Swap)
	}
	binary.NativeEndian.PutUint64(m.mem[me][sink:], old)
}

// Wherever a request points, bytes outside the target's registration never move and a refusal moves none at all.
func TestNoAddressEscapesItsRegistration(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		f := NewFabric(Config{})
		s := ordinary()
		s.size = 128
		a, b := newSide(t, f, "a", s), newSide(t, f, "b", s)
		canary := must(rdma.Alloc(128))(t)
		t.Cleanup(func() { canary.Free() })
		connect(t, a, b)
		fill(a, 'a')
		off := rapid.OneOf(rapid.IntRange(-300, 300), rapid.IntRange(math.MinInt, math.MaxInt)).Draw(rt, "offset")
		n := rapid.IntRange(1, 128).Draw(rt, "length")
		op := rapid.SampledFrom([]rdma.Opcode{rdma.OpWrite, rdma.OpRead}).Draw(rt, "op")
		a.post(b.at(off, wr(op, 1, a.sge(0, n))))
		want := good(1)
		if off < 0 || off > 128-n {
			want = all(rdma.StatusRemAccessErr, 1)
			if bytes.Count(b.buf.Bytes(), []byte{0}) != 128 || bytes.Count(a.buf.Bytes(), []byte{'a'}) != 128 {
				rt.Fatal("a refused request moved bytes")
			}
		}
		if got := outcomes(t, a.sq); !slices.Equal(got, want) {
			rt.Fatalf("%v of %d bytes at %d = %v, want %v", op, n, off, got, want)
		}
		if bytes.Count(canary.Bytes(), []byte{0}) != 128 {
			rt.Fatal("another buffer changed")
		}
	})
}
