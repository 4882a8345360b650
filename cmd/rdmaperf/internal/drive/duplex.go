package drive

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
//
// Data has numbers, as in a stream one way: those of messages that take receives go on from
// phase to phase, those of the others begin with each. Of what the server sends, generations
// are negative: bytes that a transport turned back must not pass for the peer's.

// notice is what a message of the loop says.
type notice int

const (
	noticeCredit notice = iota // CreditEvery more receives are there again; it is empty
	NoticeGo                   // from the client: it begins
	noticeFin                  // all of this side's operations of the phase are posted
	noticeHurry                // the same, and the peer shall end, too
	noticeAnswer               // to a fin: everything ahead of it arrived
	noticeLook                 // a pass of writes is over that is looked at, by the seed
	noticeLooked               // the answer
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
	genOut, genIn int // of the patterns that leave and arrive

	// Sending.
	begun, flowing bool     // the stream may begin; it goes on
	unsignaled     int      // operations since the last signalled one
	delivered      uint64   // data operations of the session
	credit         uint64   // of these, how many the peer took and has room for again
	shared         bool     // of sends: several receives lie in a slot
	used           []uint64 // by slot: data operations up to the last one there; of sends with few slots
	asked          int64    // writes posted when a look at them was asked for last
	looking        bool     // and that is not answered yet
	brought        int64    // reads of the phase that were looked at
	hurry          bool     // the fin says so
	answered, done bool     // the fin was; and with it, every read is complete

	// Receiving.
	taken     uint64 // data messages of the session
	granted   uint64 // of these, told to the peer
	count     int64  // data messages of the phase
	written   []bool // by slot, in the phase; of sends
	passes    uint64 // of the peer's writes: up to the last one that was looked at
	owesLook  bool   // the answer to that
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

	// fewReceives: with as many for data or fewer, each message is told to the peer, so that
	// as many credits and the other notices are under way at most.
	fewReceives = slackReceives - 4
)

// ownReceives is how many receives for data a stream may have whose slots are each a
// message's own until it was looked at. Notices take slots, too.
func ownReceives(sh *engine.Shape) int {
	if sh.Bidirectional && sh.Kind() == transports.KindSend {
		return max(sh.Slots-slackReceives, min(sh.Slots, fewReceives))
	}
	return sh.Slots
}

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
			dw.Lanes = append(dw.Lanes, newDuplexLane(l))
		}
		d.Workers = append(d.Workers, dw)
	}
	return d, nil
}

func newDuplexLane(base *engine.Lane) *duplexLane {
	sh := base.Sh
	l := &duplexLane{Sender: NewSender(base), receiver: newReceiver(sh), shared: sh.RecvDepth+slackReceives > sh.Slots, used: make([]uint64, sh.Slots),
		written: make([]bool, sh.Slots), firstPost: slackReceives}
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
		if l.genOut, l.genIn = gen, ^gen; d.c.Role == engine.SideServer {
			l.genOut, l.genIn = l.genIn, l.genOut
		}
		l.FillSlots(l.Sh.Seed, l.genOut)
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
	if !l.TakesReceive {
		l.delivered = 0
	}
	l.First = l.delivered
	l.Head = int(l.First % uint64(Ring(l.Sh)))
	if l.Kind == transports.KindSend {
		l.Head = int(l.Messages % uint64(Ring(l.Sh)))
	}
	l.Posted, l.counted, l.Fenced, l.remaining = 0, 0, false, 0
	l.begun, l.flowing, l.hurry, l.answered, l.done = false, false, false, false, false
	l.count, l.peerFin, l.owes = 0, false, false
	l.asked, l.looking, l.brought, l.passes, l.owesLook = 0, false, 0, 0, false
	clear(l.written)
	clear(l.used) // the answer to the fin says that all of them were looked at
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
		switch {
		case l.Kind == transports.KindRead && l.brought != l.Posted:
			return w.Miscounted(&l.Lane, l.brought, l.Posted)
		case l.Kind == transports.KindRead:
			return w.Gaps(&l.Lane, l.Posted)
		case l.Kind == transports.KindSend:
			return w.slotsOfReceives(l)
		}
		if err := w.GapsOf(&l.Lane, 0, l.Sh.Slots, n.First, n.Count); err != nil || l.TakesReceive {
			return err
		}
		first := max(int64(l.passes)*int64(l.Sh.Slots), n.Count-int64(l.Sh.Slots)) // the others were looked at, or are gone
		return w.LookAtWrites(&l.Lane, l.genIn, uint64(first), n.Count-first)
	})
}

// slotsOfReceives holds what lies behind the slots of sends, and the slots where none came.
// The first bytes may come from a notice.
func (w *duplexWorker) slotsOfReceives(l *duplexLane) error {
	sh := l.Sh
	for s := range sh.Slots {
		slot := l.Mem[sh.RxSlot(s):][:sh.Stride()]
		what, from := fmt.Sprintf("window slot %d (never written)", s), 0
		if l.written[s] {
			from, what = sh.Size, fmt.Sprintf("window slot %d (behind its end)", s)
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
	res.Verification.Messages = res.Operations // both sides told what they compared
	res.DurationNs = max(b.FromClient.DurationNs, b.FromServer.DurationNs)
	res.Throughput = &reports.Throughput{
		BytesPerSecond:      b.FromClient.BytesPerSecond + b.FromServer.BytesPerSecond,
		OperationsPerSecond: b.FromClient.OperationsPerSecond + b.FromServer.OperationsPerSecond,
	}
}
