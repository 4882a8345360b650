package loop

import (
	"fmt"
	"time"

	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/engine"
	"github.com/rdmaperf/rdmaperf/reports"
	throughputkind "github.com/rdmaperf/rdmaperf/reports/kinds/throughput"
	"github.com/rdmaperf/rdmaperf/transports"
)

// Bidirectional streams: both sides run the same loop, which sends, takes what the
// peer sends, returns credits, and tells and answers the end. Each side's window
// lasts until the peer's answer proves that everything arrived.
//
// Messages of the loop itself are told apart by their length alone, because a
// transport may have no other mark, and on one QP nobody knows which receive they
// will take. Their bytes are those that belong at the start of the slot where they
// land: the k-th message of a session takes slot k mod Slots and, whatever its
// length, comes out of that source slot.

// notice is what a message of the loop says.
type notice int

const (
	noticeCredit notice = iota // CreditEvery more receives are there again; it is empty
	NoticeGo                   // from the client: it begins
	noticeFin                  // all of this side's operations of the phase are posted
	noticeHurry                // the same, and the peer shall end, too
	noticeAnswer               // to a fin: everything ahead of it arrived
	NumNotices
)

// NoticeReach is the most bytes of a notice: one more than NumNotices-1, because notices
// make room for the size of data.
const NoticeReach = int(NumNotices)

// NoticeLen is the length of a notice. Data has no such length.
func NoticeLen(sh *engine.Shape, w notice) int {
	if n := int(w); n < sh.Size || n == 0 {
		return n
	}
	return int(w) + 1
}

// NoticeOf is the inverse of NoticeLen; false for another length.
func NoticeOf(sh *engine.Shape, length int) (notice, bool) {
	w := notice(length)
	if length > sh.Size {
		w--
	}
	return w, w >= 0 && w < NumNotices && NoticeLen(sh, w) == length
}

// duplexLane is a session of a stream both ways, on either side.
type duplexLane struct {
	Sender
	receiver
	seedOut, seedIn uint64 // of the patterns that leave and arrive

	// Sending.
	begun, flowing bool   // the stream may begin; it goes on
	unsignaled     int    // operations since the last signalled one
	delivered      uint64 // data operations of the session
	credit         uint64 // of these, how many the peer took and has room for again
	hurry          bool   // the fin says so
	answered, done bool   // the fin was; and with it, every read is complete

	// Receiving.
	taken     uint64 // data messages of the session
	granted   uint64 // of these, told to the peer
	count     int64  // data messages of the phase
	written   []bool // by slot, in the phase; of sends
	peerFin   bool
	owes      bool // an answer
	firstPost int  // receives to post at first
}

// slackReceives is the receives for notices. The peer sends a credit for each half
// of the receives for data, so at most three are under way; and go, fin, answer,
// and those behind the last repost.
const (
	slackReceives = engine.CtlSlots
	duplexRepost  = 8
)

// Duplex is one side of a stream both ways.
type Duplex struct {
	c       *engine.Group
	Workers []*duplexWorker
	begun   bool
}

// duplexWorker is one thread's share.
type duplexWorker struct {
	*engine.Worker
	Lanes []*duplexLane
}

func newDuplex(c *engine.Group) (engine.Side, error) {
	d := &Duplex{c: c}
	for _, w := range c.Workers {
		dw := &duplexWorker{Worker: w}
		for _, l := range w.Lanes {
			dw.Lanes = append(dw.Lanes, newDuplexLane(l, c.Role))
		}
		d.Workers = append(d.Workers, dw)
	}
	return d, nil
}

func newDuplexLane(base *engine.Lane, role string) *duplexLane {
	sh := base.Sh
	l := &duplexLane{Sender: NewSender(base), receiver: newReceiver(sh), seedOut: sh.Seed, seedIn: ^sh.Seed,
		written: make([]bool, sh.Slots), firstPost: slackReceives}
	if role == engine.SideServer { // bytes that a transport turned back must not pass for the peer's
		l.seedOut, l.seedIn = l.seedIn, l.seedOut
	}
	if l.TakesReceive {
		l.firstPost += sh.RecvDepth
	}
	l.repostAt = min(duplexRepost, CreditEvery(sh))
	if l.Kind == transports.KindSend {
		return l
	}
	// Data does not go where the receives point, and nobody reads notices.
	l.recvs, l.receiver.ring = make([]transports.Op, engine.CtlSlots), engine.CtlSlots
	for i := range l.recvs {
		l.recvs[i] = l.CtlRecv(i)
	}
	return l
}

// duplexConfig has room for notices.
func duplexConfig(sh *engine.Shape, c *transports.Config) { c.RecvDepth = sh.RecvDepth + slackReceives }

func (d *Duplex) each(f func(w *duplexWorker, l *duplexLane) error) error {
	for _, w := range d.Workers {
		for _, l := range w.Lanes {
			if err := f(w, l); err != nil {
				return err
			}
		}
	}
	return nil
}

func (d *Duplex) Prepare(gen int) error {
	defer func() { d.begun = true }()
	return d.each(func(_ *duplexWorker, l *duplexLane) error {
		l.ClearSlots()
		l.FillSlots(l.seedOut, gen)
		l.seek()
		if d.begun {
			return nil
		}
		return l.start(&l.Lane, l.firstPost)
	})
}

func (d *Duplex) Loop(w *engine.Worker) func() error {
	return d.Workers[w.Index].run
}

func (d *Duplex) Counts() []engine.LaneCount {
	counts := make([]engine.LaneCount, len(d.c.Lanes))
	d.each(func(_ *duplexWorker, l *duplexLane) error { counts[l.Index] = l.Sent(); return nil })
	return counts
}

func (d *Duplex) Close() error { return nil }

// seek starts a phase.
func (l *duplexLane) seek() {
	l.First = l.delivered
	l.Head = int(l.First % uint64(Ring(l.Sh)))
	if l.Kind == transports.KindSend {
		l.Head = int(l.Messages % uint64(Ring(l.Sh)))
	}
	l.Posted, l.counted, l.Fenced, l.remaining = 0, 0, false, 0
	l.begun, l.flowing, l.hurry, l.answered, l.done = false, false, false, false, false
	l.count, l.peerFin, l.owes = 0, false, false
	clear(l.written)
}

// over tells that both directions of a lane are done and nothing is outstanding.
func (l *duplexLane) over() bool {
	return l.answered && l.peerFin && !l.owes && l.Out == 0
}

// Verify holds what arrived in one direction against the peer's count.
func (d *Duplex) Verify(gen int, lanes []engine.LaneCount) error {
	if err := d.c.VerifyCounts(lanes); err != nil {
		return err
	}
	return d.each(func(w *duplexWorker, l *duplexLane) error {
		n := lanes[l.Index]
		if l.TakesReceive && l.count != n.Count {
			return w.Corrupt(&l.Lane, fmt.Sprintf("number of messages (%d, want %d)", l.count, n.Count), 0, byte(n.Count), byte(l.count))
		}
		switch l.Kind {
		case transports.KindRead:
			return w.VerifySlots(&l.Lane, l.seedIn, gen, l.First, l.Posted)
		case transports.KindSend:
			return w.verifyReceives(l, gen)
		}
		return w.VerifySlots(&l.Lane, l.seedIn, gen, n.First, n.Count)
	})
}

// verifyReceives holds the slots of bidirectional sends against the pattern. The
// first bytes of a slot may come from a notice.
func (w *duplexWorker) verifyReceives(l *duplexLane, gen int) error {
	sh := l.Sh
	for s := range sh.Slots {
		slot := l.Mem[sh.RxSlot(s):][:sh.Stride()]
		what := fmt.Sprintf("window slot %d", s)
		from := 0
		if l.written[s] {
			if i, want := engine.MatchPattern(slot[:sh.Size], engine.PatternState(l.seedIn, gen, l.Index, s)); i >= 0 {
				return w.Corrupt(&l.Lane, what, i, want, slot[i])
			}
			from, what = sh.Size, what+" (behind its end)"
		} else {
			what += " (never written)"
		}
		if from = max(from, NoticeReach); from < len(slot) {
			if i := engine.FirstNonZero(slot[from:]); i >= 0 {
				return w.Corrupt(&l.Lane, what, from+i, 0, slot[from+i])
			}
		}
	}
	return nil
}

// BothWays completes the result with each direction and the sum.
func bothWays(m *engine.Measurement, res *reports.Result, out *engine.Outcome) {
	size := int64(m.Sh.Size)
	direction := func(ops int64, window time.Duration) throughputkind.Direction {
		t := reports.NewThroughput(ops*size, ops, window)
		return throughputkind.Direction{Operations: ops, DurationNs: int64(window), BytesPerSecond: t.BytesPerSecond, OperationsPerSecond: t.OperationsPerSecond}
	}
	b := &throughputkind.Bidirectional{FromClient: direction(out.Ops, out.Window)}
	if r := m.Report; r != nil {
		b.FromServer = direction(r.Operations, time.Duration(r.WindowNs))
	}
	res.Detail, res.MeasuredBy = b, engine.SideBoth
	res.Operations = b.FromClient.Operations + b.FromServer.Operations
	res.DurationNs = max(b.FromClient.DurationNs, b.FromServer.DurationNs)
	res.Throughput = &reports.Throughput{
		BytesPerSecond:      b.FromClient.BytesPerSecond + b.FromServer.BytesPerSecond,
		OperationsPerSecond: b.FromClient.OperationsPerSecond + b.FromServer.OperationsPerSecond,
	}
}
