package suite

import (
	"github.com/rdmaperf/rdmaperf/softstack/mpa"
	"github.com/rdmaperf/rdmaperf/softstack/wiretest"
)

// bent is a right Request with one thing wrong.
func bent(change func(*wiretest.Startup)) []byte {
	s := wiretest.StartupOf(request())
	change(&s)
	return s.Bytes()
}

var startup = []row{
	hazard(must("w-01/request-key", "RFC 5044 §7.1.2 rule 2, §8", "A Request with a wrong key is answered by the end of the connection.", func(t *trial) {
		for _, i := range []int{0, 7, 15} {
			t.refuses(bent(func(s *wiretest.Startup) {
				b := []byte(s.Key)
				b[i] ^= 1
				s.Key = string(b)
			}), false)
		}
	})),
	unasked("w-02/reply-key", "RFC 5044 §7.1.2 rule 3", "A Reply with a wrong key ends the connection.", wantsInitiator),
	hazard(must("w-03/revision", "RFC 5044 §7.1.1; RFC 6581 §8", "An unknown revision is not accepted.", func(t *trial) {
		for _, rev := range []byte{3, 129, 255} {
			t.refuses(bent(func(s *wiretest.Startup) { s.Rev = rev }), false)
		}
	})),
	hazard(must("w-04/private-length", "RFC 5044 §7.1.1", "A PD_Length above 512 closes the connection.", func(t *trial) {
		for _, n := range []int{513, 65535} {
			t.refuses(bent(func(s *wiretest.Startup) {
				s.PDLen, s.Private = n, append(s.Private, make([]byte, n-len(s.Private))...)
			}), false)
		}
	})),
	hazard(must("w-05/private-short", "RFC 5044 §7.1.2 rules 9, 10", "A Request that ends before its PD_Length is not accepted, and does not keep the connection.", func(t *trial) {
		short := bent(func(s *wiretest.Startup) { s.PDLen = 40 })
		t.refuses(short, true)
		t.refuses(short, false)
	})),
	hazard(must("w-06/octets-behind-request", "RFC 5044 §7.1.2", "An FPDU that comes before the Reply is deferred, or ends the connection; it does no harm.", func(t *trial) {
		l := t.dial()
		l.FullOperation(true, false, false)
		if l.Write(append(wiretest.StartupOf(request()).Bytes(), l.Encode(l.hello())...)) != nil {
			return
		}
		rep, err := l.ReadStartup()
		if err != nil || rep.Reject {
			t.note("the connection ended")
			return
		}
		t.note("deferred")
		l.heard()
	})),
	unasked("w-08/two-initiators", "RFC 5044 §7.1.2 rule 8", "A Request in answer to a Request is detected.", wantsInitiator),
	unasked("w-09/responder-first", "RFC 5044 §7.1.2 rule 4", "A responder sends nothing before an FPDU came.", "the peer has to post a send before it hears anything; rping does not"),
	should("w-10/no-request", "RFC 5044 §7.1.2 rule 10", "A connection without a Request is closed in time.", func(t *trial) { t.refuses(nil, false) }),
	unasked("w-11/no-reply", "RFC 5044 §7.1.2 rule 10", "A Request without Reply fails in time.", wantsInitiator),
	must("w-12/markers", "RFC 5044 §4.3", "Every sender is able to generate markers: who asks for them gets them every 512 octets.", func(t *trial) {
		l := t.connect(func(f *mpa.Frame) { f.Markers = true })
		l.works() // the Reader checks the markers
		l.works()
	}),
	must("w-13/crc-agreement", "RFC 5044 §7.1.1", "CRCs are used when either side asks for them.", func(t *trial) {
		for _, crc := range []bool{true, false} {
			l := t.connect(func(f *mpa.Frame) { f.CRC = crc })
			l.works() // with CRC the Reader checks it
		}
	}),
	must("w-14/crc-unchecked", "RFC 5044 §7.1.1", "Without CRC the field is not checked.", func(t *trial) {
		l := t.connect(func(f *mpa.Frame) { f.CRC = false })
		if l.rep.CRC {
			t.lacks("the peer asks for CRC")
		}
		l.say(l.hello().CRC(func([]byte) [4]byte { return [4]byte{0xde, 0xad, 0xbe, 0xef} }))
		l.heard()
	}),
	unasked("w-15/rejecting-reply", "RFC 5044 §7.1.1", "A rejecting Reply fails the connection, with its private data.", wantsInitiator),
	must("w-16/reserved-flags", "RFC 5044 §7.1.1", "Reserved bits of the flags are not checked.", func(t *trial) {
		l := t.dial()
		if err := l.Write(bent(func(s *wiretest.Startup) { s.Flags |= 0x0f })); err != nil {
			t.fail(err.Error(), "an accepting Reply")
		}
		rep, err := l.ReadStartup()
		if err != nil || rep.Reject {
			t.fail("no accepting Reply", "an accepting Reply")
		}
		l.FullOperation(true, rep.Markers, false)
		l.works()
	}),
	unasked("w-17/other-rtr", "RFC 6581 §9", "An RTR that was not agreed on is an error.", wantsInitiator),
	may("w-18/send-for-rtr", "RFC 6581 §9", "In the peer-to-peer model a Send in place of the RTR is a violation, or data.", func(t *trial) {
		l := t.connect(func(f *mpa.Frame) { f.Enh.PeerToPeer, f.Enh.RTRWrite, f.Enh.RTRRead = true, true, true })
		l.say(l.hello())
		if f, err := l.Next(); err == nil {
			t.note("answered by %v", f)
		} else {
			t.note("ended: %v", err)
		}
	}),
	hazard(must("w-19/enhanced-rev1", "RFC 6581 §6", "S with revision 1 is not taken for enhanced data.", func(t *trial) {
		l := t.dial()
		if l.Write(bent(func(s *wiretest.Startup) { s.Rev = 1 })) != nil {
			return
		}
		if rep, err := l.ReadStartup(); err == nil && !rep.Reject && rep.Enhanced {
			t.fail("an enhanced Reply", "the connection closes", "a Reply that rejects", "a Reply without enhanced data")
		}
	})),
	hazard(must("w-20/enhanced-short", "RFC 6581 §6", "S with less than four octets of private data is refused.", func(t *trial) {
		for n := range 4 {
			t.refuses(bent(func(s *wiretest.Startup) { s.Private = s.Private[:n] }), false)
		}
	})),
	unasked("w-21/insufficient-ird", "RFC 6581 §9, §10", "An ORD of the responder above the initiator's IRD is refused with Terminate 2/0/06.", wantsInitiator),
	must("w-22/no-negotiation", "RFC 6581 §9", "IRD and ORD of 0x3FFF are answered by 0x3FFF.", func(t *trial) {
		l := t.connect(func(f *mpa.Frame) { f.Enh.IRD, f.Enh.ORD = mpa.NoNegotiation, mpa.NoNegotiation })
		if e := l.rep.Enh; e.IRD != mpa.NoNegotiation || e.ORD != mpa.NoNegotiation {
			t.fail(hex(e.IRD)+" and "+hex(e.ORD), "IRD and ORD of 0x3fff")
		}
		l.works()
	}),
	must("x-01/depths", "RFC 6581 §9", "The responder's ORD is at most the initiator's IRD.", func(t *trial) {
		for _, ird := range []uint16{0, 1, 5} {
			l := t.connect(func(f *mpa.Frame) { f.Enh.IRD = ird })
			if l.rep.Enh.ORD > ird {
				t.fail(hex(l.rep.Enh.ORD), "an ORD of at most "+hex(ird))
			}
		}
	}),
}
