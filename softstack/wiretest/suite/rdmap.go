package suite

import (
	"fmt"
	"math/rand/v2"

	"github.com/rdmaperf/rdmaperf/softstack/ddp"
	"github.com/rdmaperf/rdmaperf/softstack/rdmap"
	"github.com/rdmaperf/rdmaperf/softstack/wiretest"
	"github.com/rdmaperf/rdmaperf/softstack/wiretest/target"
)

var rdmapRows = []row{
	hazard(must("w-51/rdmap-version", "RFC 5040 §7.2",
		"Versions 10b and 11b end the stream with Terminate 0/2/05.", func(t *trial) {
			for _, rv := range []byte{2, 3} {
				t.one(wiretest.Send(1, nil).RV(rv), rdmap.TermRDMAPVersion)
				t.one(wiretest.Write(noSTag, 0, nil).RV(rv), rdmap.TermRDMAPVersion)
			}
		})),
	hazard(must("w-52/opcode", "RFC 5040 §7.2",
		"An opcode that is not assigned, or not agreed on, ends the stream with Terminate 0/2/06.", func(t *trial) {
			first := rdmap.Opcode(0xc)
			if !t.connect().extended() {
				first = rdmap.OpImmediate
			}
			for op := first; op < 16; op++ {
				t.one(wiretest.Untagged(op, 0, 1, []byte("x")), rdmap.TermOpcode)
				t.one(wiretest.Tagged(op, 0, 0, []byte("x")), rdmap.TermOpcode)
			}
		})),
	must("w-53/tagged-bit", "RFC 5040 §4.1, §7.2",
		"An opcode with the wrong T bit ends the stream with Terminate 0/2/06.", func(t *trial) {
			t.one(wiretest.Tagged(rdmap.OpSend, 0, 0, []byte("x")), rdmap.TermOpcode)
			t.one(wiretest.Tagged(rdmap.OpReadReq, 0, 0, make([]byte, rdmap.ReadRequestLen)), rdmap.TermOpcode)
			t.one(wiretest.Untagged(rdmap.OpWrite, 0, 1, []byte("x")), rdmap.TermOpcode)
			t.one(wiretest.Untagged(rdmap.OpReadResp, 0, 1, []byte("x")), rdmap.TermOpcode)
		}),
	must("w-54/wrong-queue", "RFC 5040 §4.1", "An opcode on another queue ends the stream.", func(t *trial) {
		codes := []rdmap.TermCode{rdmap.TermOpcode, rdmap.TermUntaggedQN}
		t.one(wiretest.Send(1, nil).QN(1), codes...)
		t.one(wiretest.Send(1, nil).QN(2), codes...)
		t.one(wiretest.ReadRequest(1, rdmap.ReadRequest{}).QN(0), codes...)
		l := t.connect()
		l.transmit(wiretest.TerminateCode(rdmap.TermLocal).QN(0))
		l.mayEnd(codes...)
	}),
	must("w-55/read-source", "RFC 5040 §7.2, §4.8",
		"A Read Request for what the peer must not read ends the stream with its reason, and is quoted.",
		func(t *trial) {
			read := func(stag uint32, to uint64) *wiretest.Segment {
				return wiretest.ReadRequest(1,
					rdmap.ReadRequest{SinkSTag: ourSTag, SinkTO: ourTO, Size: 16, SrcSTag: stag, SrcTO: to})
			}
			quoted := func(l *link, s *wiretest.Segment, code rdmap.TermCode) {
				l.transmit(s)
				e := l.over()
				got := e.Terminates()
				if len(got) != 1 || got[0] != code {
					t.Fail(fmt.Sprint(got), "Terminate "+code.String())
				}
				term, _ := e.FPDUs[len(e.FPDUs)-1].Terminate()
				u := s.ULPDU()
				if !term.R || !term.D || string(term.DDP) != string(u[:ddp.UntaggedLen]) ||
					string(term.RDMAP) != string(u[ddp.UntaggedLen:]) {
					t.Fail(fmt.Sprintf("it quotes %x %x", term.DDP, term.RDMAP),
						fmt.Sprintf("it quotes the request %x", u))
				}
			}
			quoted(t.connect(), read(noSTag, ourTO), rdmap.TermProtSTag)
			l := t.connect().learn()
			quoted(l, read(l.sink.SinkSTag, l.sink.SinkTO+1<<40), rdmap.TermProtBounds)
			l = t.connect().learn()
			quoted(l, read(l.sink.SinkSTag, ^uint64(0)-7), rdmap.TermProtWrap)
			if t.target == nil {
				return // rping advertises no STag without the right, and none of another domain
			}
			for _, c := range []struct {
				region string
				at     int64
				code   rdmap.TermCode
			}{
				{target.Freed, 0, rdmap.TermProtSTag}, {target.AllRights, -1, rdmap.TermProtBounds},
				{target.NoRights, 0, rdmap.TermProtAccess}, {target.OtherPD, 0, rdmap.TermProtNotAssociated},
			} {
				l := t.connect()
				r := l.app.region(c.region)
				quoted(l, read(r.STag, r.TO+uint64(c.at)), c.code)
			}
		}),
	must("w-57/beyond-ird", "RFC 5040 §6.1",
		"Read Requests beyond the IRD end the stream with Terminate 1/2/02, if they are outstanding.", func(t *trial) {
			l := t.connect()
			n := int(l.rep.Enh.IRD) + 1
			l.transmit(emptyReads(n)...)
			want := "Terminate " + rdmap.TermUntaggedNoBuffer.String()
			for answers := range n {
				f, err := l.Next()
				if err != nil {
					t.Fail(fmt.Sprintf("%d of %d answered, then %v", answers, n, err), want, "every request is answered")
				}
				if term, ok := f.Terminate(); ok {
					if term.Code != rdmap.TermUntaggedNoBuffer {
						t.Fail(term.Code.String(), want)
					}
					t.Note("refused behind %d answers", answers)
					return
				}
			}
			t.Note("all %d were answered before the next came", n)
		}),
	must("w-58/request-length", "RFC 5040 §4.4", "A Read Request is one segment of 28 octets.", func(t *trial) {
		for _, n := range []int{27, 29, 60} {
			t.one(wiretest.Untagged(rdmap.OpReadReq, ddp.QNReadReq, 1, make([]byte, n)), rdmap.TermUntaggedTooLong,
				rdmap.TermStream)
		}
		t.one(wiretest.Untagged(rdmap.OpReadReq, ddp.QNReadReq, 1, make([]byte, rdmap.ReadRequestLen)).More(),
			rdmap.TermUntaggedTooLong, rdmap.TermStream)
	}),
	must("w-59/empty-read", "RFC 5040 §7.2",
		"A Read Request for no octets is answered by none, whatever its STags.", func(t *trial) {
			l := t.connect()
			if l.rep.Enh.IRD == 0 {
				t.Lacks("the peer takes no Read Request: its IRD is 0")
			}
			l.transmit(wiretest.ReadRequest(1,
				rdmap.ReadRequest{SinkSTag: 9, SinkTO: ^uint64(0), SrcSTag: noSTag, SrcTO: ^uint64(0)}))
			l.receives(rdmap.OpReadResp, 0, "a Read Response of no octets")
			l.works()
		}),
	hazard(must("w-60/response-unasked", "RFC 5040 §7.2",
		"A Read Response that nothing asked for ends the stream, and is not placed.", func(t *trial) {
			for _, n := range []int{0, 1, 9000} {
				t.one(wiretest.ReadResponse(noSTag, ourTO, make([]byte, n)), rdmap.TermOpcode, rdmap.TermTaggedSTag)
			}
		})),
	hazard(must("w-61/response-elsewhere", "RFC 5040 §7.2; RFC 5041 §7.1",
		"A Read Response to another place, or of another length, ends the stream.", func(t *trial) {
			for _, wrong := range []struct {
				stag uint32
				to   uint64
				n    int
				more bool
			}{{stag: 1}, {to: 1}, {n: 1}, {n: -1}, {more: true}} {
				t.known(func(l *link) *wiretest.Segment {
					s := wiretest.ReadResponse(l.sink.SinkSTag^wrong.stag, l.sink.SinkTO+wrong.to,
						make([]byte, pingLen+wrong.n))
					if wrong.more {
						s.More()
					}
					return s
				}, rdmap.TermTaggedSTag, rdmap.TermTaggedBounds)
			}
		})),
	must("w-62/no-write-right", "RFC 5040 §7.2",
		"A Write under an STag without that right ends the stream with Terminate 0/1/02.", func(t *trial) {
			if t.target != nil {
				t.into(target.NoRights, 0, 8, rdmap.TermProtAccess)
				t.into(target.Readable, 0, 4000, rdmap.TermProtAccess)
				return
			}
			l := t.connect().learn()
			s := l.write(l.sink.SinkTO, 8)
			l.transmit(s, wiretest.ReadResponse(l.sink.SinkSTag, l.sink.SinkTO, make([]byte, pingLen)))
			f, err := l.Next()
			if err == nil && f.Op() == rdmap.OpSend {
				t.Lacks("the only STag that the peer tells grants it")
			}
			if err != nil {
				t.Fail(err.Error(), "Terminate "+rdmap.TermProtAccess.String())
			}
			if term, ok := f.Terminate(); !ok || term.Code != rdmap.TermProtAccess {
				t.Fail(f.String(), "Terminate "+rdmap.TermProtAccess.String())
			}
		}),
	must("w-63/invalidate", "RFC 5040 §7.2, §8.1.1",
		"A peer revokes only what it may: not what does not exist, and no ordinary registration.", func(t *trial) {
			codes := []rdmap.TermCode{rdmap.TermProtCannotInv, rdmap.TermProtSTag, rdmap.TermCannotInv}
			l := t.connect()
			l.rejects(l.hello().Op(rdmap.OpSendInv).Inv(noSTag), codes...)
			t.known(func(l *link) *wiretest.Segment { return l.hello().Op(rdmap.OpSendSEInv).Inv(l.sink.SinkSTag) },
				codes...)
			if t.target == nil {
				return
			}
			for _, name := range []string{target.AllRights, target.OtherPD} {
				l := t.connect()
				l.rejects(l.hello().Op(rdmap.OpSendInv).Inv(l.app.region(name).STag),
					append(codes, rdmap.TermProtNotAssociated)...)
				l = t.connect()
				r := l.app.region(target.AllRights)
				l.transmit(wiretest.Write(r.STag, r.TO, []byte("still there")), l.hello())
				l.app.placed(r, 0, []byte("still there"))
				l.answered()
			}
		}),
	ofTarget("x-07/revoke", "RFC 5040 §4 opcode 4, §5.3; RFC 5042 §6.2",
		"A Send with Invalidate revokes an STag that grants it, is delivered with it, and nothing is placed under it "+
			"any more.", "rping tells no STag that may be revoked", func(t *trial) {
			l := t.connect()
			r := l.app.region(target.Revocable)
			l.transmit(l.hello().Op(rdmap.OpSendInv).Inv(r.STag))
			if c := l.app.delivered(helloLen); !c.HasInv || c.Inv != r.STag {
				t.Fail(fmt.Sprintf("a receive with invalidation %t of %#x", c.HasInv, c.Inv),
					fmt.Sprintf("a receive that tells the invalidation of %#x", r.STag))
			}
			l.rejects(wiretest.Write(r.STag, r.TO, []byte("x")), rdmap.TermTaggedSTag)
		}),
	must("w-64/terminate", "RFC 5040 §5.4",
		"A Terminate ends the connection, whatever its reason, and is not answered by one.", func(t *trial) {
			for _, c := range []rdmap.TermCode{rdmap.TermLocal, rdmap.TermProtAccess, rdmap.TermOpcode,
				rdmap.TermTaggedSTag, rdmap.TermUntaggedMO, rdmap.TermMPACRC} {
				t.closes(wiretest.TerminateCode(c))
				t.closes(wiretest.Terminate(c.EType()<<4|c.Layer(), c.Code(), 0, 0)) // as Linux siw lays it out
			}
		}),
	must("w-65/bad-terminate", "RFC 5040 §4.8",
		"A Terminate that is wrong itself tears the connection down all the same.", func(t *trial) {
			control := []byte{0x20, 0x02, 0, 0}
			for _, s := range []*wiretest.Segment{
				wiretest.Terminate(control...).MSN(7), wiretest.Terminate(control...).MO(4), wiretest.Terminate(),
				wiretest.Terminate(0x20, 2, 0),
				wiretest.Terminate(0x11, 0, 0x80, 0), wiretest.Terminate(0x11, 0, 0xc0, 0, 0, 14),
			} {
				l := t.connect()
				l.transmit(s)
				l.over()
			}
		}),
	must("x-10/terminate-form", "RFC 5040 §4.8 Fig. 7-10",
		"A Terminate has its layer, type and flags at their places, quotes the offending headers where the reason "+
			"has some, and gives the whole length of the segment.", func(t *trial) {
			answer := func(l *link, s *wiretest.Segment) rdmap.Terminate {
				l.Check.AnyLayout = false
				l.transmit(s)
				e := l.over()
				if len(e.Terminates()) != 1 {
					t.Fail(fmt.Sprint(e.Terminates()), "one Terminate")
				}
				term, _ := e.FPDUs[len(e.FPDUs)-1].Terminate()
				return term
			}
			for _, s := range []*wiretest.Segment{
				wiretest.Send(1, nil).QN(4), wiretest.Write(noSTag, ourTO, []byte("some octets")),
				wiretest.Send(1, make([]byte, 9)).MO(4),
				wiretest.ReadRequest(1, rdmap.ReadRequest{SinkSTag: ourSTag, SinkTO: ourTO, Size: 16, SrcSTag: noSTag,
					SrcTO: ourTO}),
			} {
				term, u := answer(t.connect(), s), s.ULPDU()
				head := u[:ddp.HeaderLen(u[0])]
				if !term.M || !term.D || string(term.DDP) != string(head) || int(term.SegLen) != len(u) {
					t.Fail(fmt.Sprintf("it quotes %x of %d octets", term.DDP, term.SegLen),
						fmt.Sprintf("it quotes %x of %d octets", head, len(u)))
				}
				read := u[1]&0xf == byte(rdmap.OpReadReq)
				if term.R != read || read && string(term.RDMAP) != string(u[len(head):]) {
					t.Fail(fmt.Sprintf("the header of a Read Request: %x", term.RDMAP),
						fmt.Sprintf("the header of a Read Request, of none but that: %t", read))
				}
			}
			l := t.connect()
			if term := answer(l, l.hello().BadCRC()); term.D || term.R {
				t.Fail("it quotes a header", "no header of an FPDU that was not taken")
			}
		}),
	must("w-66/after-terminate", "RFC 5040 §5.4", "What follows a Terminate is ignored.", func(t *trial) {
		t.closes(wiretest.TerminateCode(rdmap.TermLocal), wiretest.Send(1, make([]byte, helloLen)))
		t.closes(wiretest.TerminateCode(rdmap.TermLocal), wiretest.TerminateCode(rdmap.TermOpcode).MSN(2))
	}),
}

// mutationsOf is how many damaged streams W-70 sends; the fast profile is a sample.
const (
	fastMutations = 200
	fullMutations = 100_000
)

var mutations = []row{
	hazard(must("w-70/mutations", "all", "Damaged streams end the connection or are taken; none hangs, and none "+
		"harms the next.", func(t *trial) {
		n := fastMutations
		if t.full {
			n = fullMutations
		}
		r := rand.New(rand.NewPCG(t.seed, 70))
		var base [][]byte
		for _, v := range wiretest.Vectors() {
			if !v.Startup && !v.Markers {
				base = append(base, v.Bytes)
			}
		}
		for range n {
			l := t.reach(plainStage())
			b := append([]byte(nil), base[r.IntN(len(base))]...)
			for range 1 + r.IntN(3) {
				b[r.IntN(len(b))] ^= 1 << r.IntN(8)
			}
			_ = l.Write(b)
			_ = l.CloseWrite()
			if e := l.Finish(); e.Kind == wiretest.EndTimeout {
				t.Fail(fmt.Sprintf("no end of the stream after %x", b), "the end of the connection")
			}
			l.Close()
			t.open = t.open[:len(t.open)-1]
		}
		t.Note("%d streams, seed %d", n, t.seed)
	})),
}
