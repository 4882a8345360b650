package suite

import (
	"fmt"
	"slices"
	"time"

	"github.com/rdmaperf/rdmaperf/softstack/mpa"
	"github.com/rdmaperf/rdmaperf/softstack/rdmap"
	"github.com/rdmaperf/rdmaperf/softstack/wiretest"
	"github.com/rdmaperf/rdmaperf/softstack/wiretest/target"
)

// What a link does whose peer connected to us.

// quiet is how long silence has to last: a thread's turn on a busy machine.
const quiet = 300 * time.Millisecond

// reply answers the peer's Request by a right Reply, changed by frame and then by octets; either may be nil.
func (l *link) reply(frame func(*mpa.Frame), octets func(*wiretest.Startup)) error {
	f := &mpa.Frame{Reply: true, Rev: l.req.Rev, CRC: true, Enhanced: l.req.Enhanced}
	if f.Enhanced {
		f.Enh = mpa.Enhanced{IRD: depth, ORD: min(depth, l.req.Enh.IRD)}
	}
	if frame != nil {
		frame(f)
	}
	s := wiretest.StartupOf(f)
	if octets != nil {
		octets(&s)
	}
	l.FullOperation(true, l.req.Markers, false)
	l.Check.ORD, l.Check.Plain = -1, true
	return l.WriteStartup(s)
}

func (l *link) replies(frame func(*mpa.Frame)) {
	if err := l.reply(frame, nil); err != nil {
		l.t.Fail(err.Error(), "the Reply is taken")
	}
}

func (l *link) joins() *target.Joined {
	j, err := l.app.v.Joined(l.app.left())
	l.t.Stop(err)
	if j.Pending {
		l.t.Fail("the connect neither fails nor succeeds", "an outcome of the connect, in time")
	}
	return j
}

// fails requires the connect to fail and the stream to end, without a Terminate but one of the reasons.
func (l *link) fails(codes ...rdmap.TermCode) *target.Joined {
	j := l.joins()
	if j.Error == "" {
		l.t.Fail("the connect succeeds", "the connect fails")
	}
	e := l.Finish()
	got := e.Terminates()
	switch {
	case e.Kind == wiretest.EndTimeout:
		l.t.Fail("the peer keeps the connection", "the end of the connection")
	case len(e.FPDUs) > len(got), len(got) > 1, len(got) == 1 && !slices.Contains(codes, got[0]):
		l.t.Fail(fmt.Sprintf("it sent %v", e.FPDUs), append(texts(codes), "nothing")...)
	}
	return j
}

func (l *link) refused(bend func(*wiretest.Startup), codes ...rdmap.TermCode) {
	if l.reply(nil, bend) == nil {
		l.fails(codes...)
	}
}

func (l *link) endsWith(code rdmap.TermCode) {
	e := l.Finish()
	if got := e.Terminates(); len(got) != 1 || got[0] != code || e.Kind == wiretest.EndTimeout {
		l.t.Fail(fmt.Sprintf("Terminates %v, then %v", got, e.Kind), "Terminate "+code.String())
	}
}

func (l *link) answersReads(n int) {
	l.transmit(emptyReads(n)...)
	for i := range n {
		if f, err := l.Next(); err != nil || f.Op() != rdmap.OpReadResp {
			l.t.Fail(fmt.Sprintf("%d of %d answered, then %s, %v", i, n, l.name(f), err),
				"room for as many as the Reply says", "Terminate "+rdmap.TermMPAInsufficientIRD.String())
		}
	}
}

func emptyReads(n int) (segs []*wiretest.Segment) {
	for i := range n {
		segs = append(segs, wiretest.ReadRequest(uint32(i+1), rdmap.ReadRequest{SinkSTag: 1, SrcSTag: 1}))
	}
	return segs
}
