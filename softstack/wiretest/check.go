package wiretest

import (
	"fmt"

	"github.com/rdmaperf/rdmaperf/softstack/ddp"
	"github.com/rdmaperf/rdmaperf/softstack/mpa"
	"github.com/rdmaperf/rdmaperf/softstack/rdmap"
)

// Checker finds what one side of a connection must never send, whatever it received. Got takes that side's FPDUs in
// order, Sent takes what it was sent, before it was sent.
type Checker struct {
	MULPDU  int  // longest ULPDU the side may send; 0 does not look
	ORD     int  // reads and atomics it may have outstanding; negative does not look
	Plain   bool // the opcodes of RFC 7306 were not agreed on
	Passive bool // it answered the Request: it sends nothing before it has received an FPDU

	// AnyLayout takes Terminates as Linux siw lays them out on little-endian hosts, too:
	// for judging the reason and not its form.
	AnyLayout bool

	received   bool
	terminated bool
	queues     [ddp.QNAtomicResp + 1]untaggedState
	write      taggedState
	asked      int      // reads and atomics it has outstanding
	requests   []demand // what it has to answer, oldest first
	served     uint64   // octets of the first of them that it sent
	faults     []string
}

// demand is a read, or an atomic, whose identifier the response must name.
type demand struct {
	atomic bool
	id     uint32
	read   rdmap.ReadRequest
}

type untaggedState struct {
	begun bool
	open  bool
	msn   uint32 // of the last segment
	mo    uint64 // next
	op    rdmap.Opcode
}

type taggedState struct {
	open bool
	stag uint32
	to   uint64 // next
}

// Faults are the violations so far.
func (c *Checker) Faults() []string { return c.faults }

func (c *Checker) fault(f *FPDU, format string, args ...any) {
	c.faults = append(c.faults, f.String()+": "+fmt.Sprintf(format, args...))
}

// Sent notes a ULPDU that is about to be sent to the side.
func (c *Checker) Sent(ulpdu []byte) {
	c.received = true
	f := &FPDU{ULPDU: ulpdu}
	switch {
	case f.Short():
	case f.Tagged():
		if f.Op() == rdmap.OpReadResp && f.Last() && c.asked > 0 {
			c.asked--
		}
	case f.Op() == rdmap.OpAtomicResp && c.asked > 0:
		c.asked--
	case f.Op() == rdmap.OpAtomicReq && len(f.Payload()) == rdmap.AtomicRequestLen:
		c.requests = append(c.requests, demand{atomic: true, id: rdmap.GetAtomicRequest(f.Payload()).ID})
	case f.Op() == rdmap.OpReadReq && len(f.Payload()) == rdmap.ReadRequestLen:
		c.requests = append(c.requests, demand{read: rdmap.GetReadRequest(f.Payload())})
	}
}

// Got checks an FPDU of the side.
func (c *Checker) Got(f *FPDU) {
	for _, s := range f.Faults {
		c.fault(f, "%s", s)
	}
	if c.terminated {
		c.fault(f, "after its terminate") // RFC 5040 §5.4
	}
	if f.Short() {
		c.fault(f, "no ddp header")
		return
	}
	_, isTerm := f.Terminate()
	if c.Passive && !c.received && !isTerm {
		c.fault(f, "the responder spoke first") // RFC 5044 §7.1.2 rule 4
	}
	if c.MULPDU > 0 && len(f.ULPDU) > c.MULPDU {
		c.fault(f, "ulpdu of %d octets, mulpdu %d", len(f.ULPDU), c.MULPDU)
	}
	if !f.Last() && len(f.ULPDU) < mpa.MinMULPDU {
		c.fault(f, "a segment of %d octets that is not the last", len(f.ULPDU)) // RFC 5044 §4.5
	}
	b := f.ULPDU
	if b[0]&0x03 != ddp.Version || b[0]&0x3c != 0 || b[1]&0xf0 != 0x40 {
		c.fault(f, "version or reserved bits: %02x %02x", b[0], b[1])
	}
	qn := uint32(0)
	if !f.Tagged() {
		qn = f.UntaggedHeader().QN
	}
	if code := rdmap.CheckInbound(f.Op(), f.Tagged(), qn, !c.Plain); code != 0 {
		c.fault(f, "%v", code)
		return
	}
	switch f.Op() {
	case rdmap.OpWrite:
		c.gotWrite(f)
	case rdmap.OpReadResp:
		c.gotResponse(f)
	default:
		c.gotUntagged(f)
	}
}

func (c *Checker) gotUntagged(f *FPDU) {
	h := f.UntaggedHeader()
	if !f.Op().Invalidates() && h.InvSTag != 0 {
		c.fault(f, "invalidate stag %08x without invalidate", h.InvSTag) // RFC 5040 §4.3
	}
	q := &c.queues[h.QN]
	want := q.msn + 1
	if q.open {
		want = q.msn
		if q.op != f.Op() {
			c.fault(f, "message began as %v", q.op)
		}
	}
	if !q.begun {
		want = 1 // RFC 5041 §4.3
	}
	if h.MSN != want {
		c.fault(f, "msn %d, want %d", h.MSN, want)
	}
	if uint64(h.MO) != q.mo {
		c.fault(f, "mo %d, want %d", h.MO, q.mo)
	}
	q.begun, q.msn, q.op, q.open = true, h.MSN, f.Op(), !h.Last
	if q.mo += uint64(len(f.Payload())); h.Last {
		q.mo = 0
	}
	switch f.Op() {
	case rdmap.OpReadReq, rdmap.OpAtomicReq:
		c.whole(f, &h, map[rdmap.Opcode]int{rdmap.OpReadReq: rdmap.ReadRequestLen,
			rdmap.OpAtomicReq: rdmap.AtomicRequestLen}[f.Op()])
		if c.asked++; c.ORD >= 0 && c.asked > c.ORD {
			c.fault(f, "%d reads outstanding, ord %d", c.asked, c.ORD) // RFC 5040 §6.1, RFC 7306 §5.2
		}
	case rdmap.OpImmediate, rdmap.OpImmediateSE:
		c.whole(f, &h, rdmap.ImmediateLen) // RFC 7306 §6.3
	case rdmap.OpAtomicResp:
		c.gotAtomicResponse(f, &h)
	case rdmap.OpTerminate:
		c.terminated = true
		if _, layout, err := rdmap.ParseTerminate(f.Payload()); err != nil || layout != rdmap.LayoutRFC &&
			!c.AnyLayout || !h.Last {
			c.fault(f, "payload %x", f.Payload())
		}
	}
}

func (c *Checker) whole(f *FPDU, h *ddp.Untagged, n int) {
	if len(f.Payload()) != n || !h.Last {
		c.fault(f, "not one segment of %d octets", n)
	}
}

func (c *Checker) gotAtomicResponse(f *FPDU, h *ddp.Untagged) {
	c.whole(f, h, rdmap.AtomicResponseLen)
	switch {
	case len(c.requests) == 0:
		c.fault(f, "nothing was asked")
		return
	case !c.requests[0].atomic:
		c.fault(f, "a read is to be answered first") // RFC 7306 §7
	case len(f.Payload()) == rdmap.AtomicResponseLen:
		if id := rdmap.GetAtomicResponse(f.Payload()).ID; id != c.requests[0].id {
			c.fault(f, "identifier %d, want %d", id, c.requests[0].id)
		}
	}
	c.requests = c.requests[1:]
}

func (c *Checker) gotWrite(f *FPDU) {
	h := f.TaggedHeader()
	if w := &c.write; w.open && (h.STag != w.stag || h.TO != w.to) {
		c.fault(f, "message goes on at stag %08x to %#x", w.stag, w.to)
	}
	c.write = taggedState{!h.Last, h.STag, h.TO + uint64(len(f.Payload()))}
}

func (c *Checker) gotResponse(f *FPDU) {
	if len(c.requests) == 0 {
		c.fault(f, "nothing was asked")
		return
	}
	if c.requests[0].atomic {
		c.fault(f, "an atomic is to be answered first") // RFC 7306 §7
		return
	}
	h, r := f.TaggedHeader(), &c.requests[0].read
	// RFC 5040 §4.5: the sink's STag, from its TO on, exactly as much as was asked.
	if h.STag != r.SinkSTag || h.TO != r.SinkTO+c.served {
		c.fault(f, "want stag %08x to %#x", r.SinkSTag, r.SinkTO+c.served)
	}
	c.served += uint64(len(f.Payload()))
	if c.served > uint64(r.Size) || h.Last != (c.served == uint64(r.Size)) {
		c.fault(f, "%d octets so far, %d asked", c.served, r.Size)
	}
	if h.Last {
		c.requests = c.requests[1:]
		c.served = 0
	}
}
