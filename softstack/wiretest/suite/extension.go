package suite

import (
	"encoding/binary"
	"fmt"

	"github.com/rdmaperf/rdmaperf/softstack/ddp"
	"github.com/rdmaperf/rdmaperf/softstack/rdmap"
	"github.com/rdmaperf/rdmaperf/softstack/wiretest"
	"github.com/rdmaperf/rdmaperf/softstack/wiretest/target"
	"github.com/rdmaperf/rdmaperf/transports/rdma"
)

// extended is a connection to a peer that takes RFC 7306. There is no bit for it in the RFC, so the peer's offer in
// private data is what counts (package rdmap). That another peer refuses these opcodes is the matter of W-52.
func (t *trial) extended() *link {
	l := t.connect()
	if !l.extended() {
		t.Lacks("the peer does not say that it takes RFC 7306; w-52/opcode holds it to refusing those messages")
	}
	return l
}

// bad sends a segment of RFC 7306 that is wrong, and requires its Terminate, which quotes
// the DDP header and no RDMAP header (RFC 7306 §8.1).
func (l *link) bad(s *wiretest.Segment, codes ...rdmap.TermCode) {
	l.transmit(s)
	e := l.ends(s, codes...)
	if term, _ := e.FPDUs[len(e.FPDUs)-1].Terminate(); term.R {
		l.t.Fail("a Terminate that quotes an RDMAP header", "a Terminate that quotes the DDP header only")
	}
}

// badAtomic sends a fetch and add to memory that grants it, changed by bend, which has to
// end the stream with one of the reasons.
func (t *trial) badAtomic(bend func(l *link, r *rdmap.AtomicRequest), codes ...rdmap.TermCode) {
	l := t.extended().learn()
	stag, to := l.sink.SinkSTag, l.sink.SinkTO&^7
	if l.app != nil {
		r := l.app.region(target.AllRights)
		stag, to = r.STag, r.TO
	}
	r := rdmap.FetchAdd(1, stag, to, 1)
	bend(l, &r)
	l.bad(wiretest.AtomicRequest(1, r), codes...)
}

// at moves an atomic into a region of the target. An offset of regionEnd is its length.
func at(name string, off int64) func(*link, *rdmap.AtomicRequest) {
	return func(l *link, r *rdmap.AtomicRequest) {
		m := l.app.region(name)
		if off == regionEnd {
			off = int64(m.Len)
		}
		r.STag, r.TO = m.STag, m.TO+uint64(off)
	}
}

const regionEnd = 1 << 62

func (l *link) asks() rdmap.AtomicRequest {
	l.transmit(l.hello()) // a responder waits for it
	l.app.delivered(helloLen)
	id := l.app.post(target.Post{Op: rdma.OpFetchAdd, Len: rdmap.AtomicResponseLen - 4, STag: ourSTag, TO: ourTO,
		Value: 7})
	l.read = id
	f := l.receives(rdmap.OpAtomicReq, rdmap.AtomicRequestLen, "an Atomic Request")
	r := rdmap.GetAtomicRequest(f.Payload())
	if want := rdmap.FetchAdd(r.ID, ourSTag, ourTO, 7); r != want {
		l.t.Fail(fmt.Sprintf("%+v", r), fmt.Sprintf("%+v", want))
	}
	return r
}

var extensionRows = []row{
	must("w-56/immediate-length", "RFC 7306 §6.2, §6.3",
		"Immediate Data is exactly 8 octets: others end the stream, and complete no receive.", func(t *trial) {
			for _, n := range []int{0, 4, 7, 9, 16} {
				code := rdmap.TermStream
				if n > rdmap.ImmediateLen {
					code = rdmap.TermUntaggedTooLong
				}
				// RFC 7306 names no code of its own: too long for its buffer is DDP's error, too short is RDMAP's.
				t.extended().bad(wiretest.Untagged(rdmap.OpImmediate, ddp.QNSend, 1, make([]byte, n)), code,
					rdmap.TermStream)
			}
		}),
	must("w-67/atomic-target", "RFC 7306 §5.2.1, §8.2; RFC 5040 §7.2",
		"An atomic that is misaligned ends the stream with Terminate 0/2/07; outside a key, its bounds or its "+
			"rights, with the reason of a read. Memory is as it was.", func(t *trial) {
			t.extended().bad(wiretest.AtomicRequest(1, rdmap.FetchAdd(1, noSTag, ourTO&^7, 0)), rdmap.TermProtSTag)
			t.badAtomic(func(_ *link, r *rdmap.AtomicRequest) { r.TO += 1 << 40 }, rdmap.TermProtBounds)
			t.badAtomic(func(_ *link, r *rdmap.AtomicRequest) { r.TO = ^uint64(7) }, rdmap.TermProtWrap)
			if t.target == nil { // rping grants no atomics
				t.badAtomic(func(_ *link, r *rdmap.AtomicRequest) { r.TO++ }, rdmap.TermStream, rdmap.TermProtAccess)
				t.badAtomic(func(_ *link, r *rdmap.AtomicRequest) { r.Data = 0 }, rdmap.TermProtAccess)
				return
			}
			for off := int64(1); off < rdmap.AtomicSize; off++ {
				for _, op := range []rdmap.AtomicOp{rdmap.AtomicFetchAdd, rdmap.AtomicCmpSwap} {
					in := at(target.AllRights, off)
					t.badAtomic(func(l *link, r *rdmap.AtomicRequest) { in(l, r); r.Op = op }, rdmap.TermStream)
				}
			}
			for _, c := range []struct {
				region string
				off    int64
				code   rdmap.TermCode
			}{
				{target.NoRights, 0, rdmap.TermProtAccess}, {target.Readable, 0, rdmap.TermProtAccess},
				{target.Work, 0, rdmap.TermProtAccess}, {target.Freed, 0, rdmap.TermProtSTag},
				{target.OtherPD, 0, rdmap.TermProtNotAssociated}, {target.AllRights, -8, rdmap.TermProtBounds},
				{target.AllRights, regionEnd, rdmap.TermProtBounds},
			} {
				t.badAtomic(at(c.region, c.off), c.code)
			}
		}),
	must("w-68/atomic-operation", "RFC 7306 §5.2.1, §10.1",
		"An operation that is not assigned surfaces an error, and changes no memory.", func(t *trial) {
			for op := range rdmap.AtomicOp(16) {
				if !op.Assigned() {
					t.badAtomic(func(_ *link, r *rdmap.AtomicRequest) { r.Op = op }, rdmap.TermOpcode, rdmap.TermStream)
				}
			}
		}),
	must("w-69/atomic-response", "RFC 7306 §5.2.2",
		"An Atomic Response that nothing asked for, or is not the next, ends the stream.", func(t *trial) {
			t.extended().bad(wiretest.AtomicResponse(1, 1, 0), rdmap.TermUntaggedNoBuffer, rdmap.TermOpcode)
			t.extended().bad(wiretest.AtomicResponse(1, 1, 0).QN(1), rdmap.TermOpcode)
			t.extended().bad(wiretest.AtomicResponse(1, 1, 0).Shorten(ddp.UntaggedLen+11), rdmap.TermUntaggedNoBuffer,
				rdmap.TermOpcode, rdmap.TermStream)
			// a read is outstanding
			t.extended().learn().bad(wiretest.AtomicResponse(1, 1, 0), rdmap.TermOpcode, rdmap.TermUntaggedNoBuffer)
			if t.target == nil {
				return // rping asks for no atomic
			}
			asked := func() (*link, uint32) {
				l := t.extended()
				return l, l.asks().ID
			}
			l, id := asked()
			l.bad(wiretest.AtomicResponse(1, id+1, 0), rdmap.TermStream, rdmap.TermOpcode)
			l, id = asked()
			l.bad(wiretest.AtomicResponse(2, id, 0), rdmap.TermUntaggedMSN, rdmap.TermUntaggedNoBuffer)
			l, id = asked()
			l.bad(wiretest.AtomicResponse(1, id, 0).MO(4), rdmap.TermUntaggedMO)
			l, id = asked()
			l.bad(wiretest.AtomicResponse(1, id, 0).QN(0), rdmap.TermOpcode)
			l, id = asked()
			l.bad(wiretest.AtomicResponse(1, id, 0).Shorten(ddp.UntaggedLen+11), rdmap.TermStream)
			l, id = asked()
			l.bad(wiretest.AtomicResponse(1, id, 0).Append(make([]byte, 20)...), rdmap.TermUntaggedTooLong,
				rdmap.TermStream)
			l, _ = asked()
			l.bad(wiretest.ReadResponse(ourSTag, ourTO, make([]byte, rdmap.AtomicSize)), rdmap.TermOpcode,
				rdmap.TermTaggedSTag)
		}),
	must("x-02/atomic-length", "RFC 7306 §5.2.1", "An Atomic Request is one segment of 52 octets.", func(t *trial) {
		for _, n := range []int{0, 28, 51, 53} {
			t.extended().bad(wiretest.Untagged(rdmap.OpAtomicReq, ddp.QNReadReq, 1, make([]byte, n)), rdmap.TermStream,
				rdmap.TermUntaggedTooLong)
		}
	}),
	must("x-03/queues", "RFC 7306 §4.1", "Its messages belong to queues 0, 1 and 3.", func(t *trial) {
		for qn := uint32(1); qn < 4; qn++ {
			t.extended().bad(wiretest.Immediate(1, 0).QN(qn), rdmap.TermOpcode)
		}
		for _, qn := range []uint32{0, 2, 3} {
			t.extended().bad(wiretest.AtomicRequest(1, rdmap.FetchAdd(1, noSTag, ourTO, 0)).QN(qn), rdmap.TermOpcode)
		}
	}),
	ofTarget("x-04/immediate", "RFC 7306 §6.1, §6.3",
		"Immediate Data completes one receive each, behind the Write before it, and tells its value.",
		"rping does not tell what its receives got", func(t *trial) {
			l := t.extended()
			r := l.app.region(target.AllRights)
			l.transmit(wiretest.Write(r.STag, r.TO, []byte("written")), wiretest.Immediate(1, 0x0102030405060708),
				wiretest.Immediate(2, 9<<32|9).Op(rdmap.OpImmediateSE))
			l.app.placed(r, 0, []byte("written"))
			// An application's immediate may have 32 bits (ibv_wc), and which of the 64 they
			// are is the provider's affair: a value of two equal halves tells either.
			for _, halves := range []bool{false, true} {
				c := l.app.next(uint64(l.app.taken + 1))
				l.app.taken++
				if !c.HasImm || halves && c.Imm != 9 {
					t.Fail(fmt.Sprintf("a receive with immediate %t, value %d", c.HasImm, c.Imm),
						"a receive with the immediate")
				}
			}
		}),
	ofTarget("x-05/atomics", "RFC 7306 §5.1, §5.2.2",
		"Atomics under masks do what they are defined to do, and answer with the value before, in order.",
		"rping grants no atomics", func(t *trial) {
			l := t.extended()
			m := l.app.region(target.AllRights)
			word := binary.NativeEndian.Uint64(l.app.shadow[m.Off:])
			ops := []rdmap.AtomicRequest{
				rdmap.FetchAdd(11, m.STag, m.TO, 5),
				rdmap.FetchAdd(12, m.STag, m.TO, ^uint64(0)), // wraps
				{Op: rdmap.AtomicFetchAdd, ID: 13, STag: m.STag, TO: m.TO, Data: 0x00ff_00ff_00ff_00ff,
					Mask: 0x8000_8000_8000_8000, CompareMask: ^uint64(0)},
				rdmap.CmpSwap(14, m.STag, m.TO, 1, 2), // not equal
				{Op: rdmap.AtomicCmpSwap, ID: 15, STag: m.STag, TO: m.TO, Data: 0x1111_2222_3333_4444, Mask: 0xffff,
					Compare: 0, CompareMask: 0},
			}
			var segs []*wiretest.Segment
			for i, op := range ops {
				segs = append(segs, wiretest.AtomicRequest(uint32(i+1), op))
			}
			l.transmit(segs...)
			for _, op := range ops {
				f := l.receives(rdmap.OpAtomicResp, rdmap.AtomicResponseLen, "an Atomic Response")
				if got, want := rdmap.GetAtomicResponse(f.Payload()), (rdmap.AtomicResponse{ID: op.ID,
					Original: word}); got != want {
					t.Fail(fmt.Sprintf("%+v to %+v", got, op), fmt.Sprintf("%+v", want))
				}
				word = op.Result(word)
			}
			l.app.placed(m, 0, binary.NativeEndian.AppendUint64(nil, word))
			l.clean()
		}),
	ofTarget("x-06/atomic-asked", "RFC 7306 §5.2.1, §5.2.2",
		"A right Atomic Response completes the atomic, with the value that it carries.", "rping asks for no atomic",
		func(t *trial) {
			l := t.extended()
			r := l.asks()
			l.transmit(wiretest.AtomicResponse(1, r.ID, 0x1122334455667788))
			l.app.done(l.read)
			l.app.placed(l.app.region(target.Work), 0, binary.NativeEndian.AppendUint64(nil, 0x1122334455667788))
		}),
}
