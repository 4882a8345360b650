package suite

import (
	"github.com/rdmaperf/rdmaperf/softstack/ddp"
	"github.com/rdmaperf/rdmaperf/softstack/rdmap"
	"github.com/rdmaperf/rdmaperf/softstack/wiretest"
)

// either sends a segment of RFC 7306: codes are right for a peer that takes it, and
// an unexpected opcode or queue for one that does not.
func (t *trial) either(s *wiretest.Segment, codes ...rdmap.TermCode) {
	l := t.connect()
	if !l.extended() {
		t.note("the peer does not say that it takes RFC 7306")
		codes = append([]rdmap.TermCode{rdmap.TermOpcode, rdmap.TermUntaggedQN}, codes...)
	}
	l.say(s)
	l.ends(s, codes...)
}

// atomic is an Atomic Request under the STag that the peer told.
func (t *trial) atomic(bend func(r *rdmap.AtomicRequest), codes ...rdmap.TermCode) {
	l := t.connect().learn()
	if !l.extended() {
		t.lacks("the peer does not say that it takes RFC 7306")
	}
	r := rdmap.FetchAdd(1, l.sink.SinkSTag, l.sink.SinkTO&^7, 0) // adds nothing (RFC 7306 §1.1)
	bend(&r)
	s := wiretest.AtomicRequest(1, r)
	l.say(s)
	l.ends(s, codes...)
}

var extensionRows = []row{
	must("w-56/immediate-length", "RFC 7306 §6.3", "Immediate Data is exactly 8 octets: others end the stream.", func(t *trial) {
		for _, n := range []int{0, 4, 7, 9, 16} {
			t.either(wiretest.Untagged(rdmap.OpImmediate, ddp.QNSend, 1, make([]byte, n)), rdmap.TermStream, rdmap.TermUntaggedTooLong)
		}
	}),
	must("w-67/atomic-target", "RFC 7306 §5.2.1, §8.2", "An atomic outside a key, its bounds or its rights, or misaligned, ends the stream with its reason.", func(t *trial) {
		t.either(wiretest.AtomicRequest(1, rdmap.FetchAdd(1, noSTag, ourTO, 0)), rdmap.TermProtSTag)
		t.atomic(func(r *rdmap.AtomicRequest) { r.TO += 1 << 40 }, rdmap.TermProtBounds)
		t.atomic(func(r *rdmap.AtomicRequest) { r.TO = ^uint64(7) }, rdmap.TermProtWrap)
		t.atomic(func(r *rdmap.AtomicRequest) { r.TO++ }, rdmap.TermStream, rdmap.TermProtAccess)
		t.atomic(func(*rdmap.AtomicRequest) {}, rdmap.TermProtAccess) // rping grants no atomics
	}),
	must("w-68/atomic-operation", "RFC 7306 §5.2.1", "An operation that is not assigned ends the stream.", func(t *trial) {
		for op := range rdmap.AtomicOp(16) {
			if !op.Assigned() {
				t.either(wiretest.AtomicRequest(1, rdmap.AtomicRequest{Op: op, STag: noSTag, TO: ourTO}), rdmap.TermOpcode, rdmap.TermStream)
			}
		}
	}),
	must("w-69/atomic-response", "RFC 7306 §5.2.2", "An Atomic Response that nothing asked for, or on another queue, ends the stream.", func(t *trial) {
		t.either(wiretest.AtomicResponse(1, 1, 0), rdmap.TermUntaggedNoBuffer, rdmap.TermOpcode)
		t.either(wiretest.AtomicResponse(1, 1, 0).QN(1), rdmap.TermOpcode)
		t.either(wiretest.AtomicResponse(1, 1, 0).Shorten(ddp.UntaggedLen+11), rdmap.TermUntaggedNoBuffer, rdmap.TermOpcode, rdmap.TermStream)
		l := t.connect().learn() // a read is outstanding
		if l.extended() {
			s := wiretest.AtomicResponse(1, 1, 0)
			l.say(s)
			l.ends(s, rdmap.TermOpcode, rdmap.TermUntaggedNoBuffer)
		}
	}),
	must("x-02/atomic-length", "RFC 7306 §5.2.1", "An Atomic Request is one segment of 52 octets.", func(t *trial) {
		for _, n := range []int{0, 28, 51, 53} {
			t.either(wiretest.Untagged(rdmap.OpAtomicReq, ddp.QNReadReq, 1, make([]byte, n)), rdmap.TermStream, rdmap.TermUntaggedTooLong)
		}
	}),
	must("x-03/queues", "RFC 7306 §4.1", "Its messages belong to queues 0, 1 and 3.", func(t *trial) {
		for qn := uint32(1); qn < 4; qn++ {
			t.either(wiretest.Immediate(1, 0).QN(qn), rdmap.TermOpcode)
		}
		for _, qn := range []uint32{0, 2, 3} {
			t.either(wiretest.AtomicRequest(1, rdmap.FetchAdd(1, noSTag, ourTO, 0)).QN(qn), rdmap.TermOpcode)
		}
	}),
}
