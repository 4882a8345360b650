package loop

import (
	"fmt"
	"time"

	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/engine"
	"github.com/rdmaperf/rdmaperf/reports"
	throughputkind "github.com/rdmaperf/rdmaperf/reports/kinds/throughput"
	"github.com/rdmaperf/rdmaperf/transports"
	"github.com/rdmaperf/rdmaperf/transports/rdma"
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
	return d.Workers[w.Index].converse
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

// stopFlow ends a lane's sending; hurry asks the peer to end, too.
func (l *duplexLane) stopFlow(hurry bool) {
	l.flowing = false
	l.hurry = l.hurry || hurry
}

// converse is the loop. The client begins, and ends when both directions are done;
// the server begins when it hears of it, and waits to be stopped.
func (w *duplexWorker) converse() error {
	w.Open()
	deadline := int64(1<<63 - 1)
	if w.Lim.Dur > 0 {
		deadline = w.Begin + int64(w.Lim.Dur)
	}
	begun := w.Role == engine.SideClient
	err := w.converseUntil(deadline, &begun)
	if w.End == 0 {
		w.End = engine.Now()
	}
	for _, l := range w.Lanes {
		n := l.Posted
		if !l.answered {
			n -= min(int64(l.Out), l.Posted) // what nobody knows did not happen
		}
		w.Ops += n
		w.Took(w.End, n-l.counted)
	}
	return err
}

func (w *duplexWorker) converseUntil(deadline int64, begun *bool) error {
	for ended := false; ; {
		over, moved := true, false
		for _, l := range w.Lanes {
			n, err := w.converseTurn(l)
			switch {
			case err == engine.ErrStop && w.MayFinish():
			case err != nil:
				return err
			}
			moved = moved || n
			over = over && l.over()
		}
		if !*begun && w.Lanes[0].begun {
			// Before that nobody asked this side for anything.
			*begun = true
			w.Begin = engine.Now()
		}
		if over && (w.Role == engine.SideClient || w.Stopped()) {
			return nil
		}
		if w.Stopped() && !ended {
			if !w.MayFinish() {
				return engine.ErrStop
			}
			ended = true
			w.stopFlows()
		}
		if !moved {
			continue
		}
		if t := engine.Now(); t >= deadline && !ended {
			ended = true
			w.stopFlows()
		} else {
			w.count(t)
		}
	}
}

// stopFlows ends the sending of all lanes. A lane that never began still has to
// take part in the end.
func (w *duplexWorker) stopFlows() {
	for _, l := range w.Lanes {
		l.stopFlow(true)
	}
}

// count looks at how far the own direction is.
func (w *duplexWorker) count(t int64) {
	for _, l := range w.Lanes {
		if done := l.Posted - int64(l.Out); done > l.counted {
			w.Took(t, done-l.counted)
			l.counted = done
		}
	}
}

// converseTurn does what can be done on one lane now and tells whether that was
// anything.
func (w *duplexWorker) converseTurn(l *duplexLane) (moved bool, err error) {
	posted, err := w.converseSend(l)
	if err != nil {
		return false, err
	}
	n, err := l.S.Poll(w.Done)
	if err != nil {
		return false, w.Lost(&l.Lane, "poll", err)
	}
	for i := range w.Done[:n] {
		if err := w.converseTake(l, &w.Done[i]); err != nil {
			return true, err
		}
	}
	if l.answered && !l.done && (l.Out == 0 || l.Kind != transports.KindRead) {
		l.done = true
		w.End = engine.Now()
	}
	replied, err := w.converseReply(l)
	switch {
	case err != nil:
		return true, err
	case n > 0 || replied:
		w.Spins = 0
	case !posted:
		return false, w.Idle(&l.Lane)
	}
	return true, nil
}

// converseSend begins the stream, goes on with it, or tells its end.
func (w *duplexWorker) converseSend(l *duplexLane) (bool, error) {
	switch {
	case !l.begun && w.Role == engine.SideClient:
		return w.Say(l, NoticeGo, func() { w.beginLane(l) })
	case l.flowing && l.remaining > 0:
		return w.pushDuplex(l)
	case l.begun && !l.Fenced:
		l.flowing = false
		fin := noticeFin
		if l.hurry || w.Lim.Dur > 0 || w.Lim.Ops == 0 {
			fin = noticeHurry
		}
		return w.Say(l, fin, func() { l.Fenced = true })
	}
	return false, nil
}

func (w *duplexWorker) beginLane(l *duplexLane) {
	l.begun = true
	l.flowing = !w.Finishing
	if l.remaining = w.Lim.Ops; w.Lim.Ops == 0 {
		l.remaining = 1<<62 - 1
	}
}

// pushDuplex posts one batch of data.
func (w *duplexWorker) pushDuplex(l *duplexLane) (bool, error) {
	sh := l.Sh
	k := min(sh.Depth-l.Out, Batch(sh))
	if l.TakesReceive {
		k = min(k, sh.RecvDepth-int(l.delivered-l.credit))
	}
	k = int(min(int64(k), l.remaining))
	if k <= 0 {
		return false, nil
	}
	ops := l.Ops[l.Head : l.Head+k]
	// Words lie between the data, so the moderation has no fixed place in the ring.
	unsignaled := l.unsignaled
	for i := range ops {
		op := &ops[i]
		op.Imm = uint32(l.delivered) + uint32(i)
		op.Flags = l.Flags
		if unsignaled++; unsignaled < sh.Moderation {
			op.Flags |= transports.Unsignaled
		} else {
			op.Slot, unsignaled = uint32(unsignaled), 0
		}
	}
	n, err := l.S.Post(ops)
	for i := range ops[:n] {
		if l.unsignaled++; ops[i].Flags&transports.Unsignaled == 0 {
			l.unsignaled = 0
		}
	}
	l.Posted += int64(n)
	l.remaining -= int64(n)
	l.delivered += uint64(n)
	l.advance(n)
	if n < k && err != rdma.ErrQueueFull {
		return true, w.Lost(&l.Lane, "post "+sh.Op, err)
	}
	return n > 0, nil
}

// advance counts what was posted.
func (l *duplexLane) advance(n int) {
	l.Out += n
	l.Messages += uint64(n)
	l.Head = (l.Head + n) % Ring(l.Sh)
}

// Say posts one notice and calls then when it is on its way. It is signalled, so
// that nothing ahead of it stays without a completion.
func (w *duplexWorker) Say(l *duplexLane, what notice, then func()) (bool, error) {
	op := &l.Pair[0]
	*op = transports.Op{Kind: transports.KindSend, Local: uint64(l.Sh.CtlTx(0)), Len: uint32(NoticeLen(l.Sh, what)), Slot: uint32(l.unsignaled + 1)}
	if l.Kind == transports.KindSend {
		op.Local = l.Ops[l.Head].Local
	}
	switch _, err := l.S.Post(l.Pair[:1]); {
	case err == rdma.ErrQueueFull:
		return false, nil
	case err != nil:
		return false, w.Lost(&l.Lane, "post a notice", err)
	}
	l.unsignaled = 0
	if l.Kind == transports.KindSend {
		l.advance(1)
	} else {
		l.Out++
	}
	then()
	return true, nil
}

// converseTake takes one completion.
func (w *duplexWorker) converseTake(l *duplexLane, c *transports.Done) error {
	sh := l.Sh
	switch {
	case c.Status != rdma.StatusSuccess:
		return engine.StatusError(&l.Lane, *c)
	case c.Kind != transports.KindRecv:
		l.Out -= int(c.Slot)
		return nil
	}
	l.unposted++
	if c.HasImm || l.Kind == transports.KindSend && int(c.Len) == sh.Size {
		if c.HasImm && sh.Verify && c.Imm != uint32(l.taken) {
			return w.Corrupt(&l.Lane, "immediate", 0, byte(l.taken), byte(c.Imm))
		}
		if l.Kind == transports.KindSend {
			l.written[c.Slot] = true
		}
		l.taken++
		l.count++
		return nil
	}
	said, ok := NoticeOf(sh, int(c.Len))
	if !ok {
		return w.Corrupt(&l.Lane, "length of a message", 0, byte(sh.Size), byte(c.Len))
	}
	switch {
	case said == noticeCredit && l.TakesReceive && l.credit+uint64(CreditEvery(sh)) <= l.delivered:
		l.credit += uint64(CreditEvery(sh))
	case said == NoticeGo && !l.begun:
		w.beginLane(l)
	case said == noticeFin && !l.peerFin:
		l.peerFin, l.owes = true, true
	case said == noticeHurry && !l.peerFin:
		l.peerFin, l.owes = true, true
		l.stopFlow(false)
	case said == noticeAnswer && l.Fenced && !l.answered:
		l.answered = true
	default:
		return w.Lost(&l.Lane, "read notice", fmt.Errorf("%d out of turn", said))
	}
	return nil
}

// converseReply posts receives again, and then tells the peer of the room, and that
// its fin arrived.
func (w *duplexWorker) converseReply(l *duplexLane) (moved bool, err error) {
	if l.unposted < l.repostAt && !l.owes {
		return false, nil
	}
	if err := l.repost(w.Worker, &l.Lane); err != nil || l.unposted > 0 {
		return true, err
	}
	every := uint64(CreditEvery(l.Sh))
	for l.TakesReceive && l.taken-l.granted >= every {
		said, err := w.Say(l, noticeCredit, func() { l.granted += every })
		if err != nil || !said {
			return true, err
		}
	}
	if l.owes {
		_, err = w.Say(l, noticeAnswer, func() { l.owes = false })
	}
	return true, err
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
