package suite

import (
	"bytes"
	"fmt"

	"github.com/rdmaperf/rdmaperf/softstack/rdmap"
	"github.com/rdmaperf/rdmaperf/softstack/wiretest"
	"github.com/rdmaperf/rdmaperf/softstack/wiretest/target"
)

func (t *trial) one(s *wiretest.Segment, codes ...rdmap.TermCode) { t.connect().rejects(s, codes...) }
func (l *link) write(to uint64, n int) *wiretest.Segment {
	return wiretest.Write(l.sink.SinkSTag, to, make([]byte, n))
}

func (t *trial) into(region string, at int64, n int, codes ...rdmap.TermCode) {
	l := t.connect()
	r := l.app.region(region)
	l.rejects(wiretest.Write(r.STag, r.TO+uint64(at), bytes.Repeat([]byte{0xee}, n)), codes...)
}

func (t *trial) known(of func(l *link) *wiretest.Segment, codes ...rdmap.TermCode) {
	l := t.connect().learn()
	l.rejects(of(l), codes...)
}

var ddpRows = []row{
	hazard(must("w-36/ddp-version", "RFC 5041 §7.2",
		"Another DDP version ends the stream with Terminate 1/1/04 or 1/2/06.", func(t *trial) {
			for _, dv := range []byte{0, 2, 3} {
				t.one(wiretest.Write(noSTag, 0, []byte("x")).DV(dv), rdmap.TermTaggedVersion)
				t.one(wiretest.Send(1, nil).DV(dv), rdmap.TermUntaggedVersion)
			}
		})),
	must("w-37/reserved-bits", "RFC 5041 §4; RFC 5040 §4", "Reserved bits are ignored.", func(t *trial) {
		l := t.connect()
		l.transmit(l.hello().Flip(0, 0x3c).Flip(1, 0x30))
		l.answered()
	}),
	must("w-38/queue-number", "RFC 5041 §7.1",
		"A queue that does not exist ends the stream with Terminate 1/2/01.", func(t *trial) {
			for _, qn := range []uint32{4, 0xffffffff} {
				t.one(wiretest.Send(1, nil).QN(qn), rdmap.TermUntaggedQN)
			}
			l := t.connect()
			codes := []rdmap.TermCode{rdmap.TermUntaggedQN}
			if l.extended() {
				codes = []rdmap.TermCode{rdmap.TermOpcode} // queue 3 exists, for other messages
			}
			l.rejects(wiretest.Send(1, nil).QN(3), codes...)
		}),
	must("w-39/msn-ahead", "RFC 5041 §7.1",
		"A message sequence number ahead of the next one ends the stream.", func(t *trial) {
			for _, msn := range []uint32{2, 1 + 1<<31, 0xffffffff} {
				t.one(wiretest.Send(msn, nil), rdmap.TermUntaggedMSN, rdmap.TermUntaggedNoBuffer)
			}
		}),
	must("w-40/msn-behind", "RFC 5041 §4.3, §5.3",
		"The first number is 1, and a number is taken once.", func(t *trial) {
			t.one(wiretest.Send(0, nil), rdmap.TermUntaggedMSN, rdmap.TermUntaggedNoBuffer)
			t.known(func(l *link) *wiretest.Segment { l.msn = 1; return l.hello() }, rdmap.TermUntaggedMSN)
		}),
	must("w-41/message-offset", "RFC 5041 §7.1",
		"A message offset other than the next octet ends the stream with Terminate 1/2/04.", func(t *trial) {
			t.one(wiretest.Send(1, nil).MO(4), rdmap.TermUntaggedMO)
			for _, mo := range []uint32{3, 5} { // overlap and gap
				l := t.connect()
				s := wiretest.Send(1, []byte("efgh")).MO(mo)
				l.transmit(wiretest.Send(1, []byte("abcd")).More(), s)
				l.ends(s, rdmap.TermUntaggedMO)
			}
		}),
	must("w-42/message-too-long", "RFC 5041 §7.1",
		"A message longer than its receive ends the stream with Terminate 1/2/05.", func(t *trial) {
			t.one(wiretest.Send(1, make([]byte, 4096)), rdmap.TermUntaggedTooLong)
			l := t.connect()
			s := wiretest.Send(1, make([]byte, 1000)).MO(8)
			l.transmit(wiretest.Send(1, make([]byte, 8)).More(), s)
			l.ends(s, rdmap.TermUntaggedTooLong)
		}),
	ofTarget("w-43/no-receive", "RFC 5041 §7.1", "A Send without a receive ends the stream with Terminate 1/2/02.",
		"how many receives the peer has is not known; rping posts them again", func(t *trial) {
			o := plainStage()
			for _, n := range []int{0, helloLen, 9000} {
				t.Note("Send of %d octets", n)
				o.Recvs = 0
				l := t.connectTo(o)
				l.rejects(wiretest.Send(1, make([]byte, n)), rdmap.TermUntaggedNoBuffer)
			}
			o.Recvs = 1
			l := t.connectTo(o)
			s := wiretest.Send(2, nil)
			l.transmit(l.hello(), s)
			l.app.delivered(helloLen)
			l.ends(s, rdmap.TermUntaggedNoBuffer)
		}),
	must("w-44/unknown-stag", "RFC 5041 §7.1",
		"A Write under an STag that does not exist, or does not any more, ends the stream with Terminate 1/1/00.",
		func(t *trial) {
			t.one(wiretest.Write(noSTag, ourTO, []byte("x")), rdmap.TermTaggedSTag)
			t.one(wiretest.Write(noSTag, ourTO, make([]byte, 9000)), rdmap.TermTaggedSTag)
			if t.target != nil {
				t.into(target.Freed, 0, 8, rdmap.TermTaggedSTag)
			}
		}),
	must("w-45/bounds", "RFC 5041 §7.1", "A Write outside its buffer ends the stream with Terminate 1/1/01, and is "+
		"placed nowhere.", func(t *trial) {
		if t.target != nil {
			t.into(target.AllRights, -1, 8, rdmap.TermTaggedBounds)
			l := t.connect()
			r := l.app.region(target.AllRights)
			s := wiretest.Write(r.STag, r.TO+uint64(r.Len-8), make([]byte, 9))
			last := []byte("the last")
			l.transmit(wiretest.Write(r.STag, r.TO+uint64(r.Len-8), last), s)
			l.app.placed(r, r.Len-8, last)
			l.ends(s, rdmap.TermTaggedBounds)
		}
		for _, far := range []uint64{1 << 40, 1 << 32} {
			t.known(func(l *link) *wiretest.Segment { return l.write(l.sink.SinkTO+far, 8) }, rdmap.TermTaggedBounds)
		}
		t.known(func(l *link) *wiretest.Segment { return l.write(0, 8) }, rdmap.TermTaggedBounds)
	}),
	ofTarget("w-46/another-domain", "RFC 5041 §7.1",
		"A Write under an STag of another protection domain ends the stream with Terminate 1/1/02.",
		"rping tells no STag of another protection domain",
		func(t *trial) { t.into(target.OtherPD, 0, 8, rdmap.TermTaggedNotAssoc) }),
	must("w-47/offset-wraps", "RFC 5041 §7.1",
		"A Write whose offset wraps ends the stream with Terminate 1/1/03.", func(t *trial) {
			t.known(func(l *link) *wiretest.Segment { return l.write(^uint64(0)-3, 8) }, rdmap.TermTaggedWrap)
		}),
	must("w-48/empty-write", "RFC 5041 §5.2", "STag and TO of a Write of no octets are not checked.", func(t *trial) {
		l := t.connect()
		l.transmit(wiretest.Write(noSTag, ^uint64(0), nil), wiretest.Write(0, 0, nil))
		l.works()
	}),
	must("w-49/mixed-messages", "RFC 5041 §5; RFC 5040 §7.2",
		"A message that begins, or changes its opcode, before the last one ended is an error.", func(t *trial) {
			for _, s := range []*wiretest.Segment{wiretest.Send(2, []byte("next")),
				wiretest.Send(1, []byte("ef")).MO(4).Op(rdmap.OpSendSE)} {
				l := t.connect()
				l.transmit(wiretest.Send(1, []byte("abcd")).More(), s)
				l.ends(s, rdmap.TermUntaggedMO, rdmap.TermOpcode, rdmap.TermUntaggedMSN)
			}
		}),
	may(ofTarget("w-50/scattered-write", "RFC 5041 §4.1",
		"Segments of one Write with gaps are placed each, or refused; no other octet changes.",
		"what rping lets a peer write is not told before the ping that writes it", func(t *trial) {
			for _, offs := range [][]uint64{{0, 100}, {0, 4}, {200, 0}} { // gap, overlap, backwards
				l := t.connect()
				r := l.app.region(target.AllRights)
				for _, off := range offs {
					l.app.loose(r.Off+int(off), 8)
				}
				l.transmit(wiretest.Write(r.STag, r.TO+offs[0], []byte("segment1")).More(),
					wiretest.Write(r.STag, r.TO+offs[1], []byte("segment2")), l.hello())
				got, err := l.app.v.Completions(1, quiet)
				t.Stop(err)
				t.Note("at %v: completions %s", offs, names(got))
			}
		})),
}

func (t *trial) closes(segs ...*wiretest.Segment) {
	l := t.connect()
	l.transmit(segs...)
	if got := l.over().Terminates(); len(got) > 0 {
		t.Fail(fmt.Sprintf("Terminates %v", got), "no Terminate in answer")
	}
}
