package suite

import (
	"fmt"
	"strconv"
	"time"

	"github.com/rdmaperf/rdmaperf/softstack/mpa"
	"github.com/rdmaperf/rdmaperf/softstack/rdmap"
	"github.com/rdmaperf/rdmaperf/softstack/wiretest"
	"github.com/rdmaperf/rdmaperf/softstack/wiretest/target"
	"github.com/rdmaperf/rdmaperf/transports/rdma"
)

func bent(change func(*wiretest.Startup)) []byte {
	s := wiretest.StartupOf(request())
	change(&s)
	return s.Bytes()
}

func wrongKey(i int) func(*wiretest.Startup) {
	return func(s *wiretest.Startup) {
		b := []byte(s.Key)
		b[i] ^= 1
		s.Key = string(b)
	}
}

// peerToPeer asks for that model, with every indication that there is (RFC 6581 §9).
func peerToPeer(f *mpa.Frame) { f.Enh.PeerToPeer, f.Enh.RTRWrite, f.Enh.RTRRead = true, true, true }

func (t *trial) taken(l *link) {
	if l.app != nil {
		got, err := l.app.v.Completions(1, quiet)
		t.Stop(err)
		t.Note("completions: %s", names(got))
		return
	}
	if f, err := l.Next(); err == nil {
		t.Note("answered by %v", f)
	} else {
		t.Note("ended: %v", err)
	}
}

// firstTries is how often an FPDU races the responder.
const firstTries = 30

var startup = []row{
	hazard(must("w-01/request-key", "RFC 5044 §7.1.2 rule 2, §8",
		"A Request with a wrong key is answered by the end of the connection.", func(t *trial) {
			for _, i := range []int{0, 7, 15} {
				t.refuses(bent(wrongKey(i)), false)
			}
		})),
	hazard(ofTarget("w-02/reply-key", "RFC 5044 §7.1.2 rule 3", "A Reply with a wrong key ends the connection.",
		wantsInitiator, func(t *trial) {
			for _, i := range []int{0, 10, 15} { // 10 makes a Request of it, nearly
				t.called(plainStage()).refused(wrongKey(i), rdmap.TermMPABadFrame)
			}
		})),
	hazard(must("w-03/revision", "RFC 5044 §7.1.1; RFC 6581 §8",
		"An unknown revision is not accepted.", func(t *trial) {
			for _, rev := range []byte{3, 129, 255} {
				t.refuses(bent(func(s *wiretest.Startup) { s.Rev = rev }), false)
			}
		})),
	hazard(must("w-04/private-length", "RFC 5044 §7.1.1",
		"A PD_Length above 512 closes the connection.", func(t *trial) {
			for _, n := range []int{513, 65535} {
				t.refuses(bent(func(s *wiretest.Startup) {
					s.PDLen, s.Private = n, append(s.Private, make([]byte, n-len(s.Private))...)
				}), false)
			}
		})),
	hazard(must("w-05/private-short", "RFC 5044 §7.1.2 rules 9, 10",
		"A Request that ends before its PD_Length is not accepted, and does not keep the connection.", func(t *trial) {
			short := bent(func(s *wiretest.Startup) { s.PDLen = 40 })
			t.refuses(short, true)
			t.refuses(short, false)
		})),
	hazard(must("w-06/octets-behind-request", "RFC 5044 §7.1.2",
		"An FPDU that comes before the Reply is deferred, or ends the connection; it does no harm.", func(t *trial) {
			l := t.dial()
			l.FullOperation(true, false, false)
			if l.Write(append(wiretest.StartupOf(request()).Bytes(), l.Encode(l.hello())...)) != nil {
				return
			}
			rep, err := l.ReadStartup()
			if err != nil || rep.Reject {
				t.Note("the connection ended")
				return
			}
			t.Note("deferred")
			l.answered()
		})),
	hazard(ofTarget("w-08/two-initiators", "RFC 5044 §7.1.2 rule 8", "A Request in answer to a Request is detected.",
		wantsInitiator, func(t *trial) {
			t.called(plainStage()).refused(func(s *wiretest.Startup) { s.Key = wiretest.RequestKey },
				rdmap.TermMPABadFrame)
		})),
	ofTarget("w-09/responder-first", "RFC 5044 §7.1.2 rule 4", "A responder sends nothing before an FPDU came.",
		"the peer has to post a send before it hears anything; rping does not", func(t *trial) {
			o := plainStage()
			o.Post = []target.Post{{Op: rdma.OpSend, Len: helloLen}}
			l := t.connectTo(o)
			l.app.join() // it has posted
			if err := l.Quiet(quiet); err != nil {
				t.Fail(err.Error(), "silence until the first FPDU of the initiator")
			}
			l.transmit(l.hello())
			l.receives(rdmap.OpSend, helloLen, "the Send that was posted, behind our first FPDU")
			l.app.done(target.FirstPost)
			l.app.delivered(helloLen)
			l.clean()
		}),
	should(must("w-10/no-request", "RFC 5044 §7.1.2 rule 10",
		"A connection without a Request is closed in time.", func(t *trial) { t.refuses(nil, false) })),
	ofTarget("w-11/no-reply", "RFC 5044 §7.1.2 rule 10", "A Request without Reply fails in time.", wantsInitiator,
		func(t *trial) {
			o := plainStage()
			o.WaitMS = 1000 // of the application's connect
			t.called(o).fails()
		}),
	must("w-12/markers", "RFC 5044 §4.3",
		"Every sender is able to generate markers: who asks for them gets them every 512 octets.", func(t *trial) {
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
		o, _ := t.varied(variantNoCRC)
		l := t.connectTo(o, func(f *mpa.Frame) { f.CRC = false })
		if l.rep.CRC {
			t.Lacks("the peer asks for CRC")
		}
		l.transmit(l.hello().CRC(func([]byte) [4]byte { return [4]byte{0xde, 0xad, 0xbe, 0xef} }))
		l.answered()
	}),
	ofTarget("w-15/rejecting-reply", "RFC 5044 §7.1.1",
		"A rejecting Reply fails the connection, with its private data.", wantsInitiator, func(t *trial) {
			const why = "busy"
			l := t.called(plainStage())
			l.replies(func(f *mpa.Frame) { f.Reject, f.Private = true, []byte(why) })
			if j := l.fails(); !j.Rejected || string(j.Private) != why {
				t.Fail(fmt.Sprintf("rejected %t, private data %q: %s", j.Rejected, j.Private, j.Error),
					"a rejection with private data "+strconv.Quote(why))
			}
		}),
	must("w-16/reserved-flags", "RFC 5044 §7.1.1", "Reserved bits of the flags are not checked.", func(t *trial) {
		l := t.dial()
		if err := l.Write(bent(func(s *wiretest.Startup) { s.Flags |= 0x0f })); err != nil {
			t.Fail(err.Error(), "an accepting Reply")
		}
		rep, err := l.ReadStartup()
		if err != nil || rep.Reject {
			t.Fail("no accepting Reply", "an accepting Reply")
		}
		l.FullOperation(true, rep.Markers, false)
		l.settled()
		l.works()
	}),
	may(must("w-17/other-rtr", "RFC 6581 §9", "An RTR that was not agreed on is an error of the initiator's: what the "+
		"responder does is recorded.", func(t *trial) {
		l := t.connect(peerToPeer)
		other := wiretest.Write(1, 0, nil)
		if l.rep.Enh.RTRWrite {
			other = wiretest.ReadRequest(1, rdmap.ReadRequest{SinkSTag: 1, SrcSTag: 1})
		}
		l.transmit(other, l.hello())
		t.taken(l)
	})),
	may(must("w-18/send-for-rtr", "RFC 6581 §9",
		"In the peer-to-peer model a Send in place of the RTR is a violation, or data.", func(t *trial) {
			l := t.connect(peerToPeer)
			l.transmit(l.hello())
			t.taken(l)
		})),
	hazard(must("w-19/enhanced-rev1", "RFC 6581 §6",
		"S with revision 1 is not taken for enhanced data.", func(t *trial) {
			l := t.dial()
			if l.Write(bent(func(s *wiretest.Startup) { s.Rev = 1 })) != nil {
				return
			}
			if rep, err := l.ReadStartup(); err == nil && !rep.Reject && rep.Enhanced {
				t.Fail("an enhanced Reply", "the connection closes", "a Reply that rejects",
					"a Reply without enhanced data")
			}
		})),
	hazard(must("w-20/enhanced-short", "RFC 6581 §6",
		"S with less than four octets of private data is refused.", func(t *trial) {
			for n := range 4 {
				t.refuses(bent(func(s *wiretest.Startup) { s.Private = s.Private[:n] }), false)
			}
		})),
	ofTarget("w-21/insufficient-ird", "RFC 6581 §9, §10",
		"An ORD of the responder above the initiator's IRD is refused with Terminate 2/0/06, or the initiator makes "+
			"room for it.", wantsInitiator, func(t *trial) {
			for _, ord := range []uint16{9, 5000} {
				o := plainStage()
				o.IRD = 4
				l := t.called(o)
				l.replies(func(f *mpa.Frame) { f.Enh.ORD = ord })
				if j := l.joins(); j.Error != "" {
					l.endsWith(rdmap.TermMPAInsufficientIRD)
					continue
				}
				t.Note("it makes room for %d", ord)
				l.answersReads(int(ord))
			}
		}),
	must("w-22/no-negotiation", "RFC 6581 §9", "IRD and ORD of 0x3FFF are answered by 0x3FFF.", func(t *trial) {
		l := t.connect(func(f *mpa.Frame) { f.Enh.IRD, f.Enh.ORD = mpa.NoNegotiation, mpa.NoNegotiation })
		if e := l.rep.Enh; e.IRD != mpa.NoNegotiation || e.ORD != mpa.NoNegotiation {
			t.Fail(hex(e.IRD)+" and "+hex(e.ORD), "IRD and ORD of 0x3fff")
		}
		l.works()
	}),
	must("x-01/depths", "RFC 6581 §9", "The responder's ORD is at most the initiator's IRD.", func(t *trial) {
		for _, ird := range []uint16{0, 1, 5} {
			l := t.connect(func(f *mpa.Frame) { f.Enh.IRD = ird })
			if l.rep.Enh.ORD > ird {
				t.Fail(hex(l.rep.Enh.ORD), "an ORD of at most "+hex(ird))
			}
		}
	}),
	must("x-08/revision-1", "RFC 6581 §8",
		"A Request of revision 1 is answered without enhanced data, in revision 1.", func(t *trial) {
			l := t.connect(func(f *mpa.Frame) { f.Rev, f.Enhanced, f.Enh, f.Private = 1, false, mpa.Enhanced{}, nil })
			if l.rep.Rev != 1 || l.rep.Enhanced {
				t.Fail(fmt.Sprintf("revision %d, enhanced %t", l.rep.Rev, l.rep.Enhanced), "revision 1, not enhanced")
			}
			l.transmit(l.hello())
			if l.app != nil {
				l.app.delivered(helloLen) // whether it may read is not negotiated
			}
		}),
	must("x-09/rtr", "RFC 6581 §9.2", "A peer-to-peer Request is answered by an indication that it offers, which "+
		"then opens the stream.", func(t *trial) {
		for _, read := range []bool{false, true} {
			l := t.connect(func(f *mpa.Frame) { f.Enh.PeerToPeer, f.Enh.RTRWrite, f.Enh.RTRRead = true, !read, read })
			if e := l.rep.Enh; !e.PeerToPeer || e.RTRWrite == read || e.RTRRead != read {
				t.Fail(fmt.Sprintf("%+v", e), fmt.Sprintf("peer-to-peer, with write %t and read %t", !read, read))
			}
			if !read {
				l.transmit(wiretest.Write(1, 0, nil), l.hello())
				l.answered()
				continue
			}
			l.transmit(wiretest.ReadRequest(1, rdmap.ReadRequest{SinkSTag: 1, SrcSTag: 1}))
			l.receives(rdmap.OpReadResp, 0, "the Read Response of no octets that the indication asks for")
			l.transmit(l.hello())
			l.answered()
		}
	}),
	must("x-11/first-fpdu", "RFC 5044 §7.1.2 rule 4",
		"An FPDU may follow as soon as the Reply is there: it is taken, whatever the responder still has to do.",
		func(t *trial) {
			for i := range firstTries {
				l := t.reach(plainStage())
				l.Timeout = 2 * time.Second
				l.transmit(wiretest.Send(1, nil).QN(4)) // answered by the device itself, without its application
				if e := l.finish(); e.Kind == wiretest.EndTimeout {
					t.Fail(fmt.Sprintf("connection %d of %d: the FPDU is not looked at", i+1, firstTries),
						"the FPDU is taken, which here ends the connection")
				}
			}
		}),
}
