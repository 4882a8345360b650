package bench

import (
	"fmt"
	"time"

	"github.com/rdmaperf/rdmaperf/reports"
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
	noticeCredit notice = iota // creditEvery more receives are there again; it is empty
	noticeGo                   // from the client: it begins
	noticeFin                  // all of this side's operations of the phase are posted
	noticeHurry                // the same, and the peer shall end, too
	noticeAnswer               // to a fin: everything ahead of it arrived
	numNotices
)

// noticeReach is the most bytes of a notice: one more than numNotices-1, because notices
// make room for the size of data.
const noticeReach = int(numNotices)

// noticeLen is the length of a notice. Data has no such length.
func (sh *Shape) noticeLen(w notice) int {
	if n := int(w); n < sh.Size || n == 0 {
		return n
	}
	return int(w) + 1
}

// noticeOf is the inverse of noticeLen; false for another length.
func (sh *Shape) noticeOf(length int) (notice, bool) {
	w := notice(length)
	if length > sh.Size {
		w--
	}
	return w, w >= 0 && w < numNotices && sh.noticeLen(w) == length
}

// duplexLane is what a lane of a bidirectional stream has beside a stream's.
type duplexLane struct {
	// Sending.
	begun, flowing bool   // the stream may begin; it goes on
	dark           int    // operations since the last signalled one
	sent           uint64 // data operations of the session
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
	slackReceives = ctlSlots
	duplexRepost  = 8
)

// prepareDuplex replaces the receives of a stream.
func (l *lane) prepareDuplex() {
	sh := l.sh
	l.duplex = &duplexLane{written: make([]bool, sh.Slots), firstPost: slackReceives}
	if l.takesReceive {
		l.duplex.firstPost += sh.RecvDepth
	}
	l.repostAt = min(duplexRepost, sh.creditEvery())
	if l.kind == transports.KindSend {
		return
	}
	// Data does not go where the receives point, and nobody reads notices.
	l.recvs = make([]transports.Op, ctlSlots)
	for i := range l.recvs {
		l.recvs[i] = l.ctlRecv(i)
	}
}

// recvRing is the number of receives after which they repeat.
func (l *lane) recvRing() int {
	if l.duplex != nil && l.kind != transports.KindSend {
		return ctlSlots
	}
	return l.sh.Slots
}

// seekDuplex starts a phase.
func (l *lane) seekDuplex() {
	d := l.duplex
	l.first = d.sent
	l.head = int(l.first % uint64(l.sh.ring()))
	if l.kind == transports.KindSend {
		l.head = int(l.messages % uint64(l.sh.ring()))
	}
	l.posted, l.counted, l.fenced, l.remaining = 0, 0, false, 0
	d.begun, d.flowing, d.hurry, d.answered, d.done = false, false, false, false, false
	d.count, d.peerFin, d.owes = 0, false, false
	clear(d.written)
}

// over tells that both directions of a lane are done and nothing is outstanding.
func (l *lane) over() bool {
	d := l.duplex
	return d.answered && d.peerFin && !d.owes && l.out == 0
}

// stopFlow ends a lane's sending; hurry asks the peer to end, too.
func (l *lane) stopFlow(hurry bool) {
	l.duplex.flowing = false
	l.duplex.hurry = l.duplex.hurry || hurry
}

// converse is the loop. The client begins, and ends when both directions are done;
// the server begins when it hears of it, and waits to be stopped.
func (w *worker) converse() error {
	w.open()
	deadline := int64(1<<63 - 1)
	if w.lim.dur > 0 {
		deadline = w.begin + int64(w.lim.dur)
	}
	begun := w.side == sideClient
	err := w.converseUntil(deadline, &begun)
	if w.end == 0 {
		w.end = now()
	}
	for _, l := range w.lanes {
		n := l.posted
		if !l.duplex.answered {
			n -= min(int64(l.out), l.posted) // what nobody knows did not happen
		}
		w.ops += n
		w.took(w.end, n-l.counted)
	}
	return err
}

func (w *worker) converseUntil(deadline int64, begun *bool) error {
	for ended := false; ; {
		over, moved := true, false
		for _, l := range w.lanes {
			n, err := w.converseTurn(l)
			switch {
			case err == errStop && w.mayFinish():
			case err != nil:
				return err
			}
			moved = moved || n
			over = over && l.over()
		}
		if !*begun && w.lanes[0].duplex.begun {
			// Before that nobody asked this side for anything.
			*begun = true
			w.begin = now()
		}
		if over && (w.side == sideClient || w.stopped()) {
			return nil
		}
		if w.stopped() && !ended {
			if !w.mayFinish() {
				return errStop
			}
			ended = true
			w.stopFlows()
		}
		if !moved {
			continue
		}
		if t := now(); t >= deadline && !ended {
			ended = true
			w.stopFlows()
		} else {
			w.count(t)
		}
	}
}

// stopFlows ends the sending of all lanes. A lane that never began still has to
// take part in the end.
func (w *worker) stopFlows() {
	for _, l := range w.lanes {
		l.stopFlow(true)
	}
}

// count looks at how far the own direction is.
func (w *worker) count(t int64) {
	for _, l := range w.lanes {
		if done := l.posted - int64(l.out); done > l.counted {
			w.took(t, done-l.counted)
			l.counted = done
		}
	}
}

// converseTurn does what can be done on one lane now and tells whether that was
// anything.
func (w *worker) converseTurn(l *lane) (moved bool, err error) {
	posted, err := w.converseSend(l)
	if err != nil {
		return false, err
	}
	n, err := l.s.Poll(w.done)
	if err != nil {
		return false, w.lost(l, "poll", err)
	}
	for i := range w.done[:n] {
		if err := w.converseTake(l, &w.done[i]); err != nil {
			return true, err
		}
	}
	if d := l.duplex; d.answered && !d.done && (l.out == 0 || l.kind != transports.KindRead) {
		d.done = true
		w.end = now()
	}
	replied, err := w.converseReply(l)
	switch {
	case err != nil:
		return true, err
	case n > 0 || replied:
		w.spins = 0
	case !posted:
		return false, w.idle(l)
	}
	return true, nil
}

// converseSend begins the stream, goes on with it, or tells its end.
func (w *worker) converseSend(l *lane) (bool, error) {
	d := l.duplex
	switch {
	case !d.begun && w.side == sideClient:
		return w.say(l, noticeGo, func() { w.beginLane(l) })
	case d.flowing && l.remaining > 0:
		return w.pushDuplex(l)
	case d.begun && !l.fenced:
		d.flowing = false
		fin := noticeFin
		if d.hurry || w.lim.dur > 0 || w.lim.ops == 0 {
			fin = noticeHurry
		}
		return w.say(l, fin, func() { l.fenced = true })
	}
	return false, nil
}

func (w *worker) beginLane(l *lane) {
	l.duplex.begun = true
	l.duplex.flowing = !w.finishing
	if l.remaining = w.lim.ops; w.lim.ops == 0 {
		l.remaining = 1<<62 - 1
	}
}

// pushDuplex posts one batch of data.
func (w *worker) pushDuplex(l *lane) (bool, error) {
	d, sh := l.duplex, l.sh
	k := min(sh.Depth-l.out, sh.batch())
	if l.takesReceive {
		k = min(k, sh.RecvDepth-int(d.sent-d.credit))
	}
	k = int(min(int64(k), l.remaining))
	if k <= 0 {
		return false, nil
	}
	ops := l.ops[l.head : l.head+k]
	// Words lie between the data, so the moderation has no fixed place in the ring.
	dark := d.dark
	for i := range ops {
		op := &ops[i]
		op.Imm = uint32(d.sent) + uint32(i)
		op.Flags = l.flags
		if dark++; dark < sh.Moderation {
			op.Flags |= transports.Quiet
		} else {
			op.Slot, dark = uint32(dark), 0
		}
	}
	n, err := l.s.Post(ops)
	for i := range ops[:n] {
		if d.dark++; ops[i].Flags&transports.Quiet == 0 {
			d.dark = 0
		}
	}
	l.posted += int64(n)
	l.remaining -= int64(n)
	d.sent += uint64(n)
	l.advance(n)
	if n < k && err != rdma.ErrQueueFull {
		return true, w.lost(l, "post "+sh.Op, err)
	}
	return n > 0, nil
}

// advance counts what was posted.
func (l *lane) advance(n int) {
	l.out += n
	l.messages += uint64(n)
	l.head = (l.head + n) % l.sh.ring()
}

// say posts one notice and calls then when it is on its way. It is signalled, so
// that nothing ahead of it stays in the dark.
func (w *worker) say(l *lane, what notice, then func()) (bool, error) {
	d := l.duplex
	op := &l.pair[0]
	*op = transports.Op{Kind: transports.KindSend, Local: uint64(l.sh.ctlTx(0)), Len: uint32(l.sh.noticeLen(what)), Slot: uint32(d.dark + 1)}
	if l.kind == transports.KindSend {
		op.Local = l.ops[l.head].Local
	}
	switch _, err := l.s.Post(l.pair[:1]); {
	case err == rdma.ErrQueueFull:
		return false, nil
	case err != nil:
		return false, w.lost(l, "post a notice", err)
	}
	d.dark = 0
	if l.kind == transports.KindSend {
		l.advance(1)
	} else {
		l.out++
	}
	then()
	return true, nil
}

// converseTake takes one completion.
func (w *worker) converseTake(l *lane, c *transports.Done) error {
	d, sh := l.duplex, l.sh
	switch {
	case c.Status != rdma.StatusSuccess:
		return statusError(l, *c)
	case c.Kind != transports.KindRecv:
		l.out -= int(c.Slot)
		return nil
	}
	l.unposted++
	if c.HasImm || l.kind == transports.KindSend && int(c.Len) == sh.Size {
		if c.HasImm && sh.Verify && c.Imm != uint32(d.taken) {
			return w.corrupt(l, "immediate", 0, byte(d.taken), byte(c.Imm))
		}
		if l.kind == transports.KindSend {
			d.written[c.Slot] = true
		}
		d.taken++
		d.count++
		return nil
	}
	said, ok := sh.noticeOf(int(c.Len))
	if !ok {
		return w.corrupt(l, "length of a message", 0, byte(sh.Size), byte(c.Len))
	}
	switch {
	case said == noticeCredit && l.takesReceive && d.credit+uint64(sh.creditEvery()) <= d.sent:
		d.credit += uint64(sh.creditEvery())
	case said == noticeGo && !d.begun:
		w.beginLane(l)
	case said == noticeFin && !d.peerFin:
		d.peerFin, d.owes = true, true
	case said == noticeHurry && !d.peerFin:
		d.peerFin, d.owes = true, true
		l.stopFlow(false)
	case said == noticeAnswer && l.fenced && !d.answered:
		d.answered = true
	default:
		return w.lost(l, "read notice", fmt.Errorf("%d out of turn", said))
	}
	return nil
}

// converseReply posts receives again, and then tells the peer of the room, and that
// its fin arrived.
func (w *worker) converseReply(l *lane) (moved bool, err error) {
	d := l.duplex
	if l.unposted < l.repostAt && !d.owes {
		return false, nil
	}
	if err := w.repost(l); err != nil || l.unposted > 0 {
		return true, err
	}
	every := uint64(l.sh.creditEvery())
	for l.takesReceive && d.taken-d.granted >= every {
		said, err := w.say(l, noticeCredit, func() { d.granted += every })
		if err != nil || !said {
			return true, err
		}
	}
	if d.owes {
		_, err = w.say(l, noticeAnswer, func() { d.owes = false })
	}
	return true, err
}

// verifyDuplex holds what arrived in one direction against the peer's count.
func (c *crew) verifyDuplex(gen int, lanes []laneCount) error {
	for _, w := range c.workers {
		for _, l := range w.lanes {
			n := lanes[l.index]
			if got := l.duplex.count; l.takesReceive && got != n.Count {
				return w.corrupt(l, fmt.Sprintf("number of messages (%d, want %d)", got, n.Count), 0, byte(n.Count), byte(got))
			}
			var err error
			switch l.kind {
			case transports.KindRead:
				err = w.verifySlots(l, gen, l.first, l.posted)
			case transports.KindSend:
				err = w.verifyReceives(l, gen)
			default:
				err = w.verifySlots(l, gen, n.First, n.Count)
			}
			if err != nil {
				return err
			}
		}
	}
	return nil
}

// verifyReceives holds the slots of bidirectional sends against the pattern. The
// first bytes of a slot may come from a notice.
func (w *worker) verifyReceives(l *lane, gen int) error {
	sh := l.sh
	for s := range sh.Slots {
		slot := l.mem[sh.rxSlot(s):][:sh.stride()]
		what := fmt.Sprintf("window slot %d", s)
		from := 0
		if l.duplex.written[s] {
			if i, want := matchPattern(slot[:sh.Size], patternState(l.seedIn, gen, l.index, s)); i >= 0 {
				return w.corrupt(l, what, i, want, slot[i])
			}
			from, what = sh.Size, what+" (behind its end)"
		} else {
			what += " (never written)"
		}
		if from = max(from, noticeReach); from < len(slot) {
			if i := firstNonZero(slot[from:]); i >= 0 {
				return w.corrupt(l, what, from+i, 0, slot[from+i])
			}
		}
	}
	return nil
}

// bothWays completes the result with each direction and the sum.
func (m *measurement) bothWays(res *reports.Result, out *outcome) {
	size := int64(m.sh.Size)
	direction := func(ops int64, window time.Duration) reports.Direction {
		t := reports.NewThroughput(ops*size, ops, window)
		return reports.Direction{Operations: ops, DurationNs: int64(window), BytesPerSecond: t.BytesPerSecond, OperationsPerSecond: t.OperationsPerSecond}
	}
	b := &reports.Bidirectional{FromClient: direction(out.ops, out.window)}
	if r := m.report; r != nil {
		b.FromServer = direction(r.Operations, time.Duration(r.WindowNs))
	}
	res.Bidirectional, res.MeasuredBy = b, sideBoth
	res.Operations = b.FromClient.Operations + b.FromServer.Operations
	res.DurationNs = max(b.FromClient.DurationNs, b.FromServer.DurationNs)
	res.Throughput = &reports.Throughput{
		BytesPerSecond:      b.FromClient.BytesPerSecond + b.FromServer.BytesPerSecond,
		OperationsPerSecond: b.FromClient.OperationsPerSecond + b.FromServer.OperationsPerSecond,
	}
}
