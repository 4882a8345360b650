package suite

import (
	"encoding/binary"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/rdmaperf/rdmaperf/softstack/ddp"
	"github.com/rdmaperf/rdmaperf/softstack/mpa"
	"github.com/rdmaperf/rdmaperf/softstack/rdmap"
	"github.com/rdmaperf/rdmaperf/softstack/wiretest"
	"github.com/rdmaperf/rdmaperf/softstack/wiretest/target"
	"github.com/rdmaperf/rdmaperf/transports/conform"
	"github.com/rdmaperf/rdmaperf/transports/rdma"
)

type trial struct {
	conform.T
	addr  string
	limit time.Duration
	end   time.Time
	seed  uint64
	full  bool
	open  []*link

	target   *target.Client // nil for a peer that serves rping
	variants []string       // with which the target's device can be opened
	gone     error          // why there is no test target any more
	last     *app           // stage of the last connection, not yet judged
}

// Limits of the scripted side.
const (
	depth     = 16 // IRD and ORD
	helloLen  = 16 // rping's messages
	pingLen   = 64 // octets that the peer has to read
	ourSTag   = 0x11223344
	ourTO     = 0x1000
	noSTag    = 0x5eadbeef            // of nobody
	pollPause = 50 * time.Millisecond // what an application may need from the Reply to its connection
)

type link struct {
	*wiretest.Peer
	t    *trial
	app  *app       // nil with rping
	req  *mpa.Frame // of a peer that connected to us
	rep  *mpa.Frame
	ext  rdmap.Extensions
	msn  uint32 // of the next Send
	sink rdmap.ReadRequest
	read uint64 // the target's read
}

func (t *trial) dial() *link { return t.dialTo(plainStage()) }

func (t *trial) dialTo(o target.Stage) *link {
	addr, a := t.addr, (*app)(nil)
	if t.target != nil {
		a = t.stage(o)
		addr = a.Listen
	}
	p, err := wiretest.Dial(addr, max(time.Until(t.end), time.Millisecond))
	if err != nil {
		t.Fail(err.Error(), "a TCP connection")
	}
	return t.link(p, a)
}

// link is a connection of a case. The form of a Terminate is the matter of one case,
// x-10/terminate-form; its reason is that of all others.
func (t *trial) link(p *wiretest.Peer, a *app) *link {
	p.Check.AnyLayout = true
	l := &link{Peer: p, t: t, msn: 1, app: a}
	t.open = append(t.open, l)
	return l
}

// request is a right Request, with an offer of RFC 7306 behind no private data.
func request() *mpa.Frame {
	return &mpa.Frame{Rev: 2, CRC: true, Enhanced: true, Enh: mpa.Enhanced{IRD: depth, ORD: depth},
		Private: rdmap.AppendOffer(nil, rdmap.ExtAll)}
}

func (t *trial) connect(bend ...func(*mpa.Frame)) *link { return t.connectTo(plainStage(), bend...) }

// connectTo is connect to a test target in a stage. It goes on when the peer's application has its connection, too:
// what a peer makes of an FPDU that comes before is the matter of one case, x-11/first-fpdu.
func (t *trial) connectTo(o target.Stage, bend ...func(*mpa.Frame)) *link {
	l := t.reach(o, bend...)
	l.settled()
	return l
}

func (l *link) settled() {
	switch {
	case l.rep != nil && l.rep.Enh.PeerToPeer: // an application may have it behind the indication only
	case l.app != nil:
		l.app.join()
	default:
		time.Sleep(pollPause)
	}
}

func (t *trial) reach(o target.Stage, bend ...func(*mpa.Frame)) *link {
	f := request()
	for _, b := range bend {
		b(f)
	}
	l := t.dialTo(o)
	rep, err := l.Initiate(f)
	if err != nil {
		t.Fail(fmt.Sprintf("the connection is not accepted: %v", err), "an accepting Reply")
	}
	l.rep = rep
	_, l.ext, _ = rdmap.CutOffer(rep.Private)
	l.Check.ORD, l.Check.Plain = depth, l.ext == 0
	return l
}

// extended reports whether the peer takes RFC 7306.
func (l *link) extended() bool { return l.ext == rdmap.ExtAll }

// transmit sends segments in one write. The peer may have ended the connection already.
func (l *link) transmit(segs ...*wiretest.Segment) { _ = l.Send(segs...) }

// hello is rping's advertisement: read pingLen octets of ours.
func (l *link) hello() *wiretest.Segment {
	b := binary.BigEndian.AppendUint64(nil, ourTO)
	b = binary.BigEndian.AppendUint32(b, ourSTag)
	b = binary.BigEndian.AppendUint32(b, pingLen)
	l.msn++
	return wiretest.Send(l.msn-1, b)
}

// answered waits for the Read Request that proves a hello delivered, and keeps it. rping
// answers by itself, a test target when it is asked to.
func (l *link) answered() {
	if l.app != nil {
		l.app.delivered(helloLen)
		l.read = l.app.post(target.Post{Op: rdma.OpRead, Len: pingLen, STag: ourSTag, TO: ourTO})
		sink := l.app.region(target.Work)
		l.app.loose(sink.Off, pingLen)
	}
	f, err := l.Next()
	if err != nil {
		l.t.Fail(fmt.Sprintf("the stream ended: %v", err), "a Read Request of rping in answer to its advertisement")
	}
	if f.Op() != rdmap.OpReadReq || len(f.Payload()) != rdmap.ReadRequestLen {
		l.t.Fail(l.name(f), "a Read Request of rping in answer to its advertisement")
	}
	l.sink = rdmap.GetReadRequest(f.Payload())
	if l.sink.Size != pingLen || l.sink.SrcSTag != ourSTag || l.sink.SrcTO != ourTO {
		l.t.Fail(fmt.Sprintf("%+v", l.sink), "a Read Request for what was advertised")
	}
	l.clean()
}

func (l *link) works() {
	if l.sink.Size == 0 {
		l.transmit(l.hello())
		l.answered()
		return
	}
	l.transmit(wiretest.ReadResponse(l.sink.SinkSTag, l.sink.SinkTO, make([]byte, pingLen)))
	if l.app != nil {
		l.app.done(l.read)
		l.app.post(target.Post{Op: rdma.OpSend, Len: helloLen})
	}
	l.receives(rdmap.OpSend, helloLen, "rping's go-ahead of 16 octets")
	l.clean()
}

func (l *link) receives(op rdmap.Opcode, n int, what string) *wiretest.FPDU {
	f, err := l.Next()
	if err != nil || f.Op() != op || len(f.Payload()) != n {
		l.t.Fail(fmt.Sprintf("%s, %v", l.name(f), err), what)
	}
	return f
}

func (l *link) learn() *link {
	l.transmit(l.hello())
	l.answered()
	return l
}

func (l *link) name(f *wiretest.FPDU) string {
	if f == nil {
		return "nothing"
	}
	return f.String()
}

func (l *link) clean() {
	if f := l.Check.Faults(); len(f) > 0 {
		l.t.Fail(strings.Join(f, "; "), "FPDUs without fault")
	}
}

// ends requires the peer to end the stream with one of the reasons. quoted is the
// segment whose header the Terminate has to show, or nil.
func (l *link) ends(quoted *wiretest.Segment, codes ...rdmap.TermCode) *wiretest.End {
	e := l.over()
	got := e.Terminates()
	if len(got) != 1 || !slices.Contains(codes, got[0]) {
		l.t.Fail(fmt.Sprintf("Terminates %v, then %v", got, e.Kind), texts(codes)...)
	}
	if quoted == nil || len(quoted.ULPDU()) < ddp.HeaderLen(quoted.ULPDU()[0]) {
		return e
	}
	term, _ := e.FPDUs[len(e.FPDUs)-1].Terminate()
	u := quoted.ULPDU()
	if head := u[:ddp.HeaderLen(u[0])]; term.D && string(term.DDP) != string(head) {
		l.t.Fail(fmt.Sprintf("the Terminate quotes %x", term.DDP), fmt.Sprintf("the offending header %x", head))
	}
	return e
}

func (l *link) rejects(s *wiretest.Segment, codes ...rdmap.TermCode) {
	l.transmit(s)
	l.ends(s, codes...)
}

// drops is rejects for an FPDU that is not taken, so that no Terminate quotes it.
func (l *link) drops(s *wiretest.Segment, codes ...rdmap.TermCode) {
	l.transmit(s)
	l.ends(nil, codes...)
}

// mayEnd is ends where the connection may also just close.
func (l *link) mayEnd(codes ...rdmap.TermCode) {
	got := l.over().Terminates()
	if len(got) > 1 || len(got) == 1 && !slices.Contains(codes, got[0]) {
		l.t.Fail(fmt.Sprintf("Terminates %v", got), append(texts(codes), "no Terminate")...)
	}
}

func (l *link) over() *wiretest.End {
	e := l.finish()
	switch e.Kind {
	case wiretest.EndTimeout:
		l.t.Fail(fmt.Sprintf("the peer keeps the connection; it sent %v", e.FPDUs), "the end of the connection")
	case wiretest.EndReset:
		l.t.Note("ended by a reset")
	case wiretest.EndCut:
		l.t.Fail("the stream ends inside an FPDU", "an end between FPDUs")
	}
	l.clean()
	return e
}

func (l *link) finish() *wiretest.End {
	e := l.Finish()
	if l.app != nil {
		l.app.ended = true
	}
	return &e
}

func texts(codes []rdmap.TermCode) []string {
	var out []string
	for _, c := range codes {
		out = append(out, "Terminate "+c.String())
	}
	return out
}

// refuses sends octets in place of a Request and requires no accepting Reply: the
// connection closes, or the Reply rejects.
func (t *trial) refuses(b []byte, fin bool) {
	l := t.dial()
	if err := l.Write(b); err != nil {
		return // closed before the last octet
	}
	if fin {
		_ = l.CloseWrite()
	}
	rep, err := l.ReadStartup()
	switch {
	case err == nil && rep.Reject:
		t.Note("refused by a Reply")
	case err == nil:
		t.Fail("an accepting Reply", "the connection closes", "a Reply that rejects")
	case strings.Contains(err.Error(), "timeout"):
		t.Fail("silence", "the connection closes", "a Reply that rejects")
	}
}
