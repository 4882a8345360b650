package wiretest

import (
	"strings"
	"testing"

	"github.com/rdmaperf/rdmaperf/softstack/ddp"
	"github.com/rdmaperf/rdmaperf/softstack/rdmap"
)

// step is one FPDU, from the side that is checked or to it.
type step struct {
	to bool
	s  *Segment
}

func got(s *Segment) step  { return step{false, s} }
func sent(s *Segment) step { return step{true, s} }

func read(msn, size uint32) *Segment {
	return ReadRequest(msn, rdmap.ReadRequest{SinkSTag: 7, SinkTO: 1000, Size: size})
}

func add(msn uint32) *Segment { return AtomicRequest(msn, rdmap.FetchAdd(msn, 7, 1000, 1)) }

func TestCheckerNamesEveryFault(t *testing.T) {
	long := payload(200)
	for _, c := range []struct {
		name  string
		fault string // "" for none
		steps []step
	}{
		{"messages in order", "", []step{got(Send(1, nil)), got(Send(2, long).More()), got(Send(2, long).MO(200)),
			got(Send(3, nil))}},
		{"queues count apart", "", []step{got(Send(1, nil)), got(read(1, 0)), got(Send(2, nil)),
			got(TerminateCode(rdmap.TermLocal))}},
		{"first msn", "msn 2, want 1", []step{got(Send(2, nil))}},
		{"msn repeated", "msn 1, want 2", []step{got(Send(1, nil)), got(Send(1, nil))}},
		{"msn in a message", "msn 2, want 1", []step{got(Send(1, long).More()), got(Send(2, nil).MO(200))}},
		{"mo gap", "mo 201, want 200", []step{got(Send(1, long).More()), got(Send(1, nil).MO(201))}},
		{"mo of a new message", "mo 1, want 0", []step{got(Send(1, nil).MO(1))}},
		{"opcode in a message", "message began",
			[]step{got(Send(1, long).More()), got(Send(1, nil).MO(200).Op(rdmap.OpSendSE))}},
		{"small segment in the middle", "not the last", []step{got(Send(1, payload(8)).More())}},
		{"ddp version", "version or reserved", []step{got(Send(1, nil).DV(2))}},
		{"ddp reserved bits", "version or reserved", []step{got(Send(1, nil).Flip(0, 0x04))}},
		{"rdmap version", "version or reserved", []step{got(Send(1, nil).RV(0))}},
		{"rdmap reserved bits", "version or reserved", []step{got(Send(1, nil).Flip(1, 0x20))}},
		{"queue", "queue number", []step{got(Send(1, nil).QN(9))}},
		{"opcode on another queue", "unexpected opcode", []step{got(Send(1, nil).QN(1))}},
		{"invalidate stag", "without invalidate", []step{got(Send(1, nil).Inv(5))}},
		{"invalidate stag where it belongs", "", []step{got(Send(1, nil).Op(rdmap.OpSendInv).Inv(5))}},
		{"short ulpdu", "no ddp header", []step{got(Raw(0x41))}},
		{"long ulpdu", "mulpdu 1000", []step{got(Send(1, payload(983)))}},
		{"two terminates", "after its terminate",
			[]step{got(TerminateCode(rdmap.TermLocal)), got(TerminateCode(rdmap.TermLocal).MSN(2))}},
		{"send after terminate", "after its terminate", []step{got(TerminateCode(rdmap.TermLocal)), got(Send(1, nil))}},
		{"terminate msn", "msn 2, want 1", []step{got(TerminateCode(rdmap.TermLocal).MSN(2))}},
		{"terminate cut", "payload", []step{got(Terminate(0x11, 0, 0xc0, 0))}},
		{"terminate in siw's layout", "payload", []step{got(Terminate(0x11, 0, 0x01, 0, 0, 14))}},
		{"write in pieces", "", []step{got(Write(5, 100, long).More()), got(Write(5, 300, long)),
			got(Write(6, 0, nil))}},
		{"write gap", "goes on", []step{got(Write(5, 100, long).More()), got(Write(5, 301, long))}},
		{"write to another stag", "goes on", []step{got(Write(5, 100, long).More()), got(Write(6, 300, long))}},
		{"reads within ord", "", []step{got(read(1, 4)), got(read(2, 4)), sent(ReadResponse(7, 1000, payload(4))),
			got(read(3, 4))}},
		{"reads beyond ord", "3 reads outstanding",
			[]step{got(read(1, 4)), got(read(2, 4)), sent(ReadResponse(7, 1000, payload(2)).More()), got(read(3, 4))}},
		{"read request of two segments", "not one segment",
			[]step{got(Untagged(rdmap.OpReadReq, ddp.QNReadReq, 1, payload(200)).More())}},
		{"responses in order", "", []step{sent(read(1, 400)), sent(read(2, 0)), got(ReadResponse(7, 1000, long).More()),
			got(ReadResponse(7, 1200, long)), got(ReadResponse(7, 1000, nil))}},
		{"response unasked", "nothing was asked", []step{sent(Send(1, nil)), got(ReadResponse(7, 1000, nil))}},
		{"response elsewhere", "want stag", []step{sent(read(1, 4)), got(ReadResponse(7, 1001, payload(4)))}},
		{"response with another stag", "want stag", []step{sent(read(1, 4)), got(ReadResponse(8, 1000, payload(4)))}},
		{"response short", "3 octets so far", []step{sent(read(1, 4)), got(ReadResponse(7, 1000, payload(3)))}},
		{"response long", "5 octets so far", []step{sent(read(1, 4)), got(ReadResponse(7, 1000, payload(5)))}},
		{"immediate data between sends", "",
			[]step{got(Send(1, nil)), got(Immediate(2, 7)), got(Immediate(3, 7).Op(rdmap.OpImmediateSE)),
				got(Send(4, nil))}},
		{"immediate data of 7 octets", "not one segment",
			[]step{got(Untagged(rdmap.OpImmediate, ddp.QNSend, 1, payload(7)))}},
		{"atomics within ord", "", []step{got(read(1, 4)), got(add(2)), sent(ReadResponse(7, 1000, payload(4))),
			sent(AtomicResponse(1, 2, 0)), got(add(3)), got(add(4))}},
		{"atomics beyond ord", "3 reads outstanding", []step{got(read(1, 4)), got(add(2)), got(add(3))}},
		{"atomic request of 51 octets", "not one segment", []step{got(add(1).Shorten(ddp.UntaggedLen + 51))}},
		{"atomic responses in order", "",
			[]step{sent(add(1)), sent(read(2, 4)), sent(add(3)), got(AtomicResponse(1, 1, 5)),
				got(ReadResponse(7, 1000, payload(4))), got(AtomicResponse(2, 3, 5))}},
		{"atomic response unasked", "nothing was asked", []step{got(AtomicResponse(1, 1, 0))}},
		{"atomic response before a read response", "read is to be answered first",
			[]step{sent(read(1, 4)), sent(add(2)), got(AtomicResponse(1, 2, 0))}},
		{"read response before an atomic response", "atomic is to be answered first",
			[]step{sent(add(1)), sent(read(2, 4)), got(ReadResponse(7, 1000, payload(4)))}},
		{"atomic response to another", "identifier 9, want 1", []step{sent(add(1)), got(AtomicResponse(1, 9, 0))}},
		{"atomic response of 13 octets", "not one segment",
			[]step{sent(add(1)), got(AtomicResponse(1, 1, 0).Append(0))}},
		{"atomic response msn", "msn 2, want 1", []step{sent(add(1)), got(AtomicResponse(2, 1, 0))}},
		{"response without l", "200 octets so far",
			[]step{sent(read(1, 200)), got(ReadResponse(7, 1000, long).More())}},
	} {
		k := Checker{ORD: 2, MULPDU: 1000}
		for _, s := range c.steps {
			if s.to {
				k.Sent(s.s.ULPDU())
			} else {
				k.Got(&FPDU{ULPDU: s.s.ULPDU()})
			}
		}
		oneFault(t, c.name, k.Faults(), c.fault)
	}
}

func oneFault(t *testing.T, name string, got []string, want string) {
	t.Helper()
	switch {
	case want == "" && len(got) != 0:
		t.Errorf("%s: faults %q, want none", name, got)
	case want != "" && (len(got) != 1 || !strings.Contains(got[0], want)):
		t.Errorf("%s: faults %q, want one with %q", name, got, want)
	}
}

func TestCheckerWantsTheInitiatorToSpeakFirst(t *testing.T) {
	for _, c := range []struct {
		received bool
		s        *Segment
		want     int
	}{{false, Send(1, nil), 1}, {true, Send(1, nil), 0}, {false, TerminateCode(rdmap.TermMPACRC), 0}} {
		k := Checker{ORD: -1, Passive: true}
		if c.received {
			k.Sent(Send(1, nil).ULPDU())
		}
		if k.Got(&FPDU{ULPDU: c.s.ULPDU()}); len(k.Faults()) != c.want {
			t.Errorf("received %t: faults %q, want %d", c.received, k.Faults(), c.want)
		}
	}
}

func TestPlainCheckerKnowsNoRFC7306(t *testing.T) {
	for _, s := range []*Segment{Immediate(1, 7), add(1), AtomicResponse(1, 1, 0)} {
		k := Checker{ORD: -1, Plain: true}
		if k.Got(&FPDU{ULPDU: s.ULPDU()}); len(k.Faults()) != 1 {
			t.Errorf("%x: faults %q, want one", s.ULPDU(), k.Faults())
		}
	}
}

func TestReaderNamesFramingFaults(t *testing.T) {
	zero := func(uint16) [4]byte { return [4]byte{} }
	for _, c := range []struct {
		name, fault string
		seg         *Segment
	}{
		{"crc", "crc", Send(1, nil).BadCRC()},
		{"pad", "pad", Send(1, payload(1)).Pad(0, 1, 0)},
		{"marker pointer", "marker", Send(1, payload(600)).Mark(zero)},
		{"marker reserved bits", "marker", Send(1, nil).Mark(func(p uint16) [4]byte { return [4]byte{1, 0, 0, 0} })},
	} {
		e := Encoder{CRC: true, Markers: true}
		r := Reader{CRC: true, Markers: true}
		r.Feed(e.Append(nil, c.seg))
		f, ok := r.Next()
		if !ok {
			t.Fatalf("%s: no FPDU", c.name)
		}
		oneFault(t, c.name, f.Faults, c.fault)
	}
}
