package drive

import (
	"errors"
	"testing"
	"time"

	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/engine"
	"github.com/rdmaperf/rdmaperf/reports"
	"github.com/rdmaperf/rdmaperf/transports"
	"github.com/rdmaperf/rdmaperf/transports/rdma"
)

// streamOn is the client of a stream one way that compares nothing, whose shape a test may change before.
func streamOn(op string, change func(sh *engine.Shape)) (*puppet, *Flow, *flowWorker, *flowLane) {
	return flowOn(op, engine.SideClient, false, func(sh *engine.Shape) {
		if sh.Slots, sh.Verify = 8, false; change != nil {
			change(sh)
		}
	})
}

// targetOn is the server of one that compares what it can.
func targetOn(op string, change func(sh *engine.Shape)) (*puppet, *Flow, *flowWorker, *flowLane) {
	p, f, w, l := flowOn(op, engine.SideServer, false, func(sh *engine.Shape) {
		if sh.Slots = 8; change != nil {
			change(sh)
		}
	})
	l.in.Gen = engine.GenMeasure
	return p, f, w, l
}

func all(sh *engine.Shape) { sh.Verify, sh.VerifyAll = true, true }

// arrives has a control message of the peer arrive.
func arrives(p *puppet, length int) {
	p.done = append(p.done, transports.Done{Kind: transports.KindRecv, Len: uint32(length)})
}

// prepare begins a measured phase, whose receives are posted.
func prepare(t *testing.T, p *puppet, f *Flow) {
	t.Helper()
	if err := f.Prepare(engine.GenMeasure); err != nil {
		t.Fatal(err)
	}
	p.complete()
}

// answers has every poll take 100 ns, at the end of which all is complete that was posted, and a fin answered.
func answers(p *puppet) {
	p.onPoll = func(int) {
		time.Sleep(100)
		for _, op := range p.complete() {
			if op.Kind == transports.KindSend && op.Len == 0 {
				arrives(p, numberSize)
			}
		}
	}
}

// A stream has its depth outstanding until its limit, and ends with the answer to its fin, or its last read.
func TestAStreamFillsItsWindow(t *testing.T) {
	for _, c := range []struct {
		name, op    string
		lim         engine.Limits
		every       int // operations to a completion
		ops, window int64
	}{
		// A turn posts 8, which are complete at its end; a fin takes another.
		{"so many", "write", engine.Limits{Ops: 33}, 1, 33, 600}, {"one", "write", engine.Limits{Ops: 1}, 1, 1, 200},
		{"for a time", "write", engine.Limits{Dur: 500}, 1, 5 * 8, 600},
		{"for a little more", "write", engine.Limits{Dur: 501}, 1, 6 * 8, 700},
		{"so many reads", "read", engine.Limits{Ops: 33}, 1, 33, 500},
		{"reads for a time", "read", engine.Limits{Dur: 500}, 1, 5 * 8, 600},
		{"groups", "write", engine.Limits{Ops: 33}, 4, 33, 600},
		{"groups of reads", "read", engine.Limits{Ops: 33}, 4, 33, 500},
		// two are outstanding at 500, and one more ends them
		{"odd groups of reads", "read", engine.Limits{Dur: 500}, 3, 8 + 4*6 + 1, 600},
	} {
		bubble(t, func(t *testing.T) {
			p, f, w, l := streamOn(c.op, func(sh *engine.Shape) { sh.Moderation = c.every })
			prepare(t, p, f)
			answers(p)
			w.Lim = c.lim
			err := f.Loop(w.Worker)()
			var counted int64
			for _, n := range w.Peak.Slots {
				counted += n
			}
			if err != nil || w.Ops != c.ops || l.Posted != c.ops || counted != c.ops || w.End-w.Begin != c.window ||
				l.Out != 0 {
				t.Errorf("%s: %v, %d operations, %d counted, in %d ns; want %d in %d", c.name, err, w.Ops, counted,
					w.End-w.Begin, c.ops, c.window)
			}
		})
	}
}

// A stream that is stopped completes what it posted; one that broke, or is to end now, does not.
func TestAStoppedStreamComesHome(t *testing.T) {
	for _, c := range []struct {
		name     string
		stop     uint32
		lost     error
		ops, out int64
	}{{"soon", engine.StopSoon, nil, 4 * 8, 0}, {"now", engine.StopNow, nil, 4 * 8, 0},
		{"broken", 0, errBroken, 3 * 8, 8}} {
		bubble(t, func(t *testing.T) {
			p, f, w, l := streamOn("write", nil)
			prepare(t, p, f)
			answers(p)
			poll := p.onPoll
			p.onPoll = func(n int) {
				if n == 4 && c.lost != nil {
					p.lost = c.lost
					time.Sleep(100)
					return
				}
				if poll(n); n == 4 {
					w.Stop.Store(c.stop)
				}
			}
			err := f.Loop(w.Worker)()
			if home := c.name == "soon"; (err == nil) != home || !home && !errors.Is(err, c.lost) &&
				err != engine.ErrStop || l.finAcked != home {
				t.Errorf("%s: %v, answered %v", c.name, err, l.finAcked)
			}
			if w.Ops != c.ops || int64(l.Out) != c.out || w.Peak.Slots[0] != c.ops {
				t.Errorf("%s: %d operations, %d counted, %d out", c.name, w.Ops, w.Peak.Slots[0], l.Out)
			}
		})
	}
}

// A fin whose answer is lost fails what was else all well; one that needs a receive waits for credit.
func TestAFinIsAnswered(t *testing.T) {
	p, f, w, l := streamOn("write", nil)
	prepare(t, p, f)
	p.onPoll = func(int) {
		for _, op := range p.complete() {
			if op.Kind == transports.KindSend {
				p.done, p.lost = nil, errBroken
			}
		}
	}
	w.Lim.Ops = 9
	if err := f.Loop(w.Worker)(); !errors.Is(err, errBroken) || !l.Fenced {
		t.Errorf("%v, want %v", err, errBroken)
	}
	for sent, want := range map[uint64]bool{16: false, 15: true} {
		p, _, w, l := streamOn("send", nil)
		l.begun, l.sent = true, sent
		if said, err := w.send(l); err != nil || said != want || l.Fenced != want || (len(p.posted) == 1) != want {
			t.Errorf("%d of 16 receives are taken: %v, %v, posted %+v", sent, said, err, p.posted)
		}
	}
}

// What reads and atomics bring is compared when they end; what never ended is missed.
func TestWhatComesBackIsCompared(t *testing.T) {
	for _, op := range []string{"read", "fetch_add"} {
		for _, bent := range []bool{false, true} {
			p, f, w, l := streamOn(op, func(sh *engine.Shape) {
				if all(sh); op == "fetch_add" {
					sh.Size = engine.AtomicSize
				}
			})
			l.in.Gen, l.Posted, l.Out, l.begun = engine.GenMeasure, 3, 3, true
			for n := range uint64(3) {
				slot := l.Mem[l.Sh.RxSlot(int(n)):][:l.Sh.Size]
				if op == "read" {
					engine.FillPattern(slot, engine.PatternState(1, l.in.Gen, 0, readFrom(l.Sh, n)))
				} else {
					slot[0] = byte(n)
				}
			}
			if bent {
				l.Mem[l.Sh.RxSlot(2)+3] ^= 8
			}
			p.done = []transports.Done{{Kind: l.Kind, Slot: 2}}
			if _, _, err := w.turn(l); err != nil || l.brought != 2 || l.Out != 1 || w.Compared.Messages != 2 ||
				l.finAcked {
				t.Errorf("%s: %v, %d compared %+v", op, err, l.brought, w.Compared)
			}
			if err := f.Verify(l.in.Gen, nil); reports.Code(err) != reports.ExitCorruption {
				t.Errorf("%s: one is missing: %v", op, err)
			}
			p.done = []transports.Done{{Kind: l.Kind, Slot: 1}}
			if _, _, err := w.turn(l); (reports.Code(err) == reports.ExitCorruption) != bent || !bent &&
				(err != nil || l.brought != 3 || !l.finAcked || f.Verify(l.in.Gen, nil) != nil) {
				t.Errorf("%s, bent %v: %v, %d compared", op, bent, err, l.brought)
			}
		}
	}
}

// Where nothing is compared, immediates and what is swapped count on; a read asks for another slot in each pass.
func TestWhatIsSetInEveryOperation(t *testing.T) {
	fill := func(op string, verify bool) (*flowLane, []transports.Op) {
		_, _, _, l := streamOn(op, func(sh *engine.Shape) { sh.Verify = verify })
		if l.sent = 21; l.fill == nil {
			return l, nil
		}
		l.fill(l, l.Ops[:3])
		return l, l.Ops[:3]
	}
	for _, op := range []string{"send_imm", "write_imm"} {
		if _, ops := fill(op, false); ops[0].Imm != 21 || ops[2].Imm != 23 {
			t.Errorf("%s: %d and %d", op, ops[0].Imm, ops[2].Imm)
		}
	}
	for _, verify := range []bool{false, true} {
		if _, ops := fill("cmp_swap", verify); ops[0].Add != 21 || ops[0].Swap != 22 || ops[2].Add != 23 ||
			ops[2].Swap != 24 {
			t.Errorf("%+v", ops)
		}
		if _, ops := fill("fetch_add", verify); ops != nil {
			t.Errorf("%+v, want what is prepared", ops)
		}
	}
	for _, op := range []string{"send", "write", "read"} {
		if _, ops := fill(op, false); ops != nil {
			t.Errorf("%s: %+v, want what is prepared", op, ops)
		}
	}
	l, ops := fill("read", true)
	for i, o := range ops {
		if want := uint64(readFrom(l.Sh, uint64(21+i)) * 128); o.Remote != want {
			t.Errorf("read %d is of %d, want %d", i, o.Remote, want)
		}
	}
}

// Messages are known by their length and immediate, and counted; what is another is found.
func TestATargetTakesWhatItKnows(t *testing.T) {
	recv := func(size uint32) transports.Done { return transports.Done{Kind: transports.KindRecv, Len: size} }
	imm := func(size, n uint32) transports.Done {
		return transports.Done{Kind: transports.KindRecv, Len: size, Imm: n, HasImm: true}
	}
	bare := func(sh *engine.Shape) { sh.ImmAlone, sh.Size = true, 1 }
	for _, c := range []struct {
		name, op string
		change   func(*engine.Shape)
		d        transports.Done
		code     int
		data     int64
		replies  int
		bytes    int64 // compared
	}{
		{"a message", "send", nil, recv(100), 0, 1, 0, 100},
		{"of another length", "send", nil, recv(99), reports.ExitCorruption, 0, 0, 0},
		{"with an immediate", "send", nil, imm(100, 0), reports.ExitCorruption, 0, 0, 0},
		{"a fin", "send", nil, recv(0), 0, 0, 1, 0},
		{"a write with its number", "write_imm", nil, imm(100, 0), 0, 1, 0, 100},
		{"a write with another", "write_imm", nil, imm(100, 1), reports.ExitCorruption, 0, 0, 0},
		{"a write with none", "write_imm", nil, recv(100), reports.ExitCorruption, 0, 0, 0},
		{"a fin behind writes", "write_imm", nil, recv(0), 0, 0, 1, 0},
		{"a write whose length nobody tells", "write_imm", nil, imm(0, 0), 0, 1, 0, 100},
		{"a message with its number", "send_imm", nil, imm(100, 0), 0, 1, 0, 100},
		{"a short one with its number", "send_imm", nil, imm(99, 0), reports.ExitCorruption, 0, 0, 0},
		{"a number alone", "send_imm", bare, imm(0, 0), 0, 1, 0, 4},
		{"a number with bytes", "send_imm", bare, imm(1, 0), reports.ExitCorruption, 0, 0, 0},
		{"a fin behind plain writes", "write", nil, recv(0), 0, 0, 1, 0},
		{"a pass to compare", "write", nil, recv(numberSize), 0, 0, 1, 8 * 100},
		{"credit for nothing", "send", nil, recv(1), reports.ExitCorruption, 0, 0, 0},
		{"what failed", "send", nil, transports.Done{Kind: transports.KindRecv, Len: 100,
			Status: rdma.StatusSuccess + 1}, reports.ExitPeer, 0, 0, 0},
	} {
		p, _, w, l := targetOn(c.op, c.change)
		for n := range uint64(8) {
			if sh := l.Sh; !sh.ImmAlone {
				l.in.write(l.Mem[sh.RxSlot(int(n)):][:sh.Size], n, l.in.Whole(n) || l.Kind == transports.KindWrite)
			}
		}
		p.done, p.room = []transports.Done{c.d}, 0 // an answer that is due stays so
		err := w.takeTurn(l)
		if reports.Code(err) != c.code && !(c.code == reports.ExitPeer && err != nil) || l.count != c.data ||
			l.acksDue != c.replies || w.Compared.Bytes != c.bytes {
			t.Errorf("%s: %v, %d data, %d replies, compared %+v", c.name, err, l.count, l.acksDue, w.Compared)
		}
		if err == nil && (l.unposted != 1 || w.Ops != 1) {
			t.Errorf("%s: %d to be posted, %d operations", c.name, l.unposted, w.Ops)
		}
	}
}

// Numbers without bytes are counted, and leave none.
func TestNumbersAloneLeaveNothing(t *testing.T) {
	for _, c := range []struct {
		name   string
		change func(l *flowLane)
		code   int
	}{
		{"as it should be", func(*flowLane) {}, 0},
		{"one lost", func(l *flowLane) { l.count-- }, reports.ExitCorruption},
		{"bytes", func(l *flowLane) { l.Mem[l.Sh.RxSlot(2)] = 1 }, reports.ExitCorruption},
	} {
		_, f, _, l := targetOn("send_imm", func(sh *engine.Shape) { sh.ImmAlone, sh.Size = true, 1 })
		l.count = 9
		c.change(l)
		if err := f.Verify(l.in.Gen, []engine.LaneCount{{Count: 9}}); reports.Code(err) != c.code {
			t.Errorf("%s: %v", c.name, err)
		}
	}
}

// A target that sleeps does so for the fin of each session, and then until it is stopped.
func TestASleepingTargetWaitsForItsFins(t *testing.T) {
	p, f, w, l := targetOn("write", func(sh *engine.Shape) { sh.Verify, sh.Idle = false, true })
	second, _, _, other := targetOn("write", nil)
	w.lanes = append(w.lanes, other)
	l.peerFin, other.peerFin = false, false
	ctx, stop := w.Ctx, w.Stop
	p.onPoll = func(n int) {
		if n == 3 {
			arrives(p, 0)
		}
	}
	arrives(second, 0)
	second.onPoll = func(int) { w.Ctx = ended(t) }
	if err := f.Loop(w.Worker)(); err != nil || w.End == 0 || l.acksDue != 0 || other.acksDue != 0 || p.polls != 3 ||
		second.polls != 1 {
		t.Errorf("%v, ended at %d, %d polls, then %d of the second", err, w.End, p.polls, second.polls)
	}
	w.Ctx, l.peerFin, p.onPoll, p.lost = ctx, false, nil, errBroken
	if err := f.Loop(w.Worker)(); !errors.Is(err, errBroken) {
		t.Errorf("%v, want %v", err, errBroken)
	}
	p.lost = nil
	stop.Store(engine.StopSoon)
	if err := f.Loop(w.Worker)(); err != nil {
		t.Errorf("stopped before its fin: %v", err)
	}
}
