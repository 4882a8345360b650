package drive

import (
	"errors"
	"testing"
	"time"

	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/engine"
	"github.com/rdmaperf/rdmaperf/reports"
	"github.com/rdmaperf/rdmaperf/transports"
)

func unverified(sh *engine.Shape) { sh.Verify = false }

// Both ways, no more is outstanding than the depth, and where that is reached nothing is posted.
func TestBothWaysKeepToTheirDepth(t *testing.T) {
	p, _, w, l := bothWaysOn("write", engine.SideClient, func(sh *engine.Shape) { sh.Verify, sh.PostList = false, 3 })
	l.remaining = 100
	for turn, want := range []int{3, 6, 8, 8} {
		posted, err := w.push(l)
		if err != nil || len(p.posted) != want || posted != (turn < 3) {
			t.Errorf("turn %d: %v, %v, %d outstanding, want %d", turn, posted, err, len(p.posted), want)
		}
	}
	l.Out, l.remaining = 0, 0
	if posted, err := w.push(l); posted || err != nil || len(p.posted) != 8 {
		t.Errorf("behind the last one: %v, %v, %d posted", posted, err, len(p.posted))
	}
}

// A queue that is full takes the rest later; what else it says ends the stream.
func TestBothWaysWaitForRoom(t *testing.T) {
	p, _, w, l := bothWaysOn("write", engine.SideClient, unverified)
	l.remaining, p.room = 100, 3
	if posted, err := w.push(l); !posted || err != nil || l.Posted != 3 || l.Out != 3 || l.remaining != 97 {
		t.Errorf("%v, %v, %d posted, want 3", posted, err, l.Posted)
	}
	if posted, err := w.push(l); posted || err != nil || l.Posted != 3 {
		t.Errorf("without room: %v, %v, %d posted", posted, err, l.Posted)
	}
	broken := errors.New("broken")
	p.room, p.refuse = 1, broken
	if _, err := w.push(l); !errors.Is(err, broken) || l.Posted != 4 {
		t.Errorf("%v, %d posted, want %v behind 4", err, l.Posted, broken)
	}
}

// Both ways a window of time ends with what ended with it: nothing is begun behind that.
func TestBothWaysEndWithTheirWindow(t *testing.T) {
	bubble(t, func(t *testing.T) {
		p, d, w, l := bothWaysOn("write", engine.SideClient, func(sh *engine.Shape) { sh.Verify, sh.Depth = false, 4 })
		prepare(t, p, d)
		arrives := func(n control) {
			p.done = append(p.done, transports.Done{Kind: transports.KindRecv, Len: uint32(controlLen(l.Sh, n))})
		}
		p.onPoll = func(int) { // a peer that ends when it is asked to
			time.Sleep(100)
			for _, op := range p.complete() {
				if op.Kind == transports.KindSend && int(op.Len) == controlLen(l.Sh, ctlStop) {
					arrives(ctlAck)
					arrives(ctlStop)
				}
			}
		}
		w.Lim.Dur, w.Peak = 1000, new(engine.Peak)
		if err := w.run(); err != nil || w.Peak.Slots[0] != 9*4 || l.Posted != 9*4 || w.Ops != 9*4 ||
			w.End-w.Begin != 1100 {
			t.Errorf("%v, %d operations in %d ns, want 36 begun until 1000, and the answer to the end", err, w.Ops,
				w.End-w.Begin)
		}
	})
}

// A direction of reads is over when the last of them has come, one of messages with the answer to its end.
func TestADirectionOfReadsEndsWithTheLast(t *testing.T) {
	for op, early := range map[string]bool{"read": false, "send": true} {
		p, _, w, l := bothWaysOn(op, engine.SideClient, unverified)
		l.begun, l.Fenced, l.finAcked, l.Out = true, true, true, 1
		if _, _, err := w.turn(l); err != nil || l.done != early || (w.End != 0) != early {
			t.Errorf("%s: %v, over with one outstanding: %v, want %v", op, err, l.done, early)
		}
		p.done = []transports.Done{{Kind: l.Kind, Slot: 1}}
		if _, _, err := w.turn(l); err != nil || !l.done || w.End == 0 {
			t.Errorf("%s: %v, over with none outstanding: %v", op, err, l.done)
		}
	}
}

// Both ways a slot belongs to its last message until the peer took it, and one of so many is signalled.
func TestSlotsBothWaysAreAMessagesOwn(t *testing.T) {
	p, _, w, l := bothWaysOn("send", engine.SideClient, func(sh *engine.Shape) { sh.RecvDepth, sh.Moderation = 17, 4 })
	l.sent, l.credit, l.Messages, l.Head, l.remaining = 40, 39, 46, 30, 8
	l.used[5] = 40
	if posted, err := w.push(l); !posted || err != nil || l.Posted != 7 {
		t.Fatalf("%v, %v, %d posted, want those ahead of the slot that is not taken yet", posted, err, l.Posted)
	}
	for i, slot := range []int{30, 31, 0, 1, 2, 3, 4} {
		op, signalled := p.posted[i], i == 3
		if l.used[slot] != uint64(41+i) || op.Flags&transports.Unsignaled == 0 != signalled || signalled &&
			op.Slot != 4 {
			t.Errorf("message %d in slot %d: until %d, %+v", i, slot, l.used[slot], op)
		}
	}
	l.credit = 40
	if posted, err := w.push(l); !posted || err != nil || l.Posted != 8 || l.used[5] != 48 ||
		p.posted[7].Flags&transports.Unsignaled != 0 {
		t.Errorf("%v, %v, %d posted, want the last", posted, err, l.Posted)
	}
}

// A phase goes on with the slot of the next message, or of the next number; and writes begin anew.
func TestAPhaseBothWaysGoesOn(t *testing.T) {
	for op, head := range map[string]int{"send": 37 % 32, "write_imm": 35 % 32, "write": 0} {
		_, _, _, l := bothWaysOn(op, engine.SideClient, unverified)
		l.Messages, l.sent = 37, 35
		if l.seek(); l.Head != head {
			t.Errorf("%s: it begins in slot %d, want %d", op, l.Head, head)
		}
	}
	for brought, fine := range map[int64]bool{7: true, 6: false} {
		_, d, _, l := bothWaysOn("read", engine.SideClient, func(*engine.Shape) {})
		l.Posted, l.brought = 7, brought
		if err := d.Verify(1, make([]engine.LaneCount, 1)); (err == nil) != fine {
			t.Errorf("%d of 7 reads were compared: %v", brought, err)
		}
	}
}

// Both ways no more messages are under way than the peer has receives for, however many it took.
func TestBothWaysKeepToTheReceivesOfThePeer(t *testing.T) {
	p, _, w, l := bothWaysOn("send", engine.SideClient, func(sh *engine.Shape) { sh.Verify, sh.RecvDepth = false, 5 })
	l.remaining, l.sent, l.credit = 100, 10, 8
	for turn, want := range []int{3, 3} {
		if posted, err := w.push(l); err != nil || len(p.posted) != want || posted != (turn == 0) {
			t.Errorf("turn %d: %v, %v, %d posted, want %d for 5 receives of which 2 are taken", turn, posted, err,
				len(p.posted), want)
		}
	}
	l.credit++
	if posted, err := w.push(l); !posted || err != nil || len(p.posted) != 4 {
		t.Errorf("room for one again: %v, %v, %d posted, want one more", posted, err, len(p.posted))
	}
}

// Where slots are few, no more operations are under way than there are.
func TestBothWaysKeepToTheirSlots(t *testing.T) {
	_, _, w, l := bothWaysOn("read", engine.SideClient, func(sh *engine.Shape) { sh.Slots = 4 })
	for out, want := range []int{4, 3, 2, 1, 0} {
		l.Out = out
		if k, err := w.own(l, 8); k != want || err != nil {
			t.Errorf("%d of 4 slots in use: %v, %d may be posted, want %d", out, err, k, want)
		}
	}
}

// Behind a pass that is compared, that is asked for once, and nothing is written before the answer.
func TestWritesBothWaysWaitForAComparison(t *testing.T) {
	p, _, w, l := bothWaysOn("write", engine.SideClient, func(*engine.Shape) {})
	pass, slots := int64(sampledPass(l)), int64(l.Sh.Slots)
	for _, c := range []struct {
		name          string
		posted, asked int64
		waiting       bool
		k             int
		asks          bool
	}{
		{"at first", 0, 0, false, 8, false},
		{"at the end of the first pass", slots - 2, 0, false, 2, false},
		{"behind it", slots, 0, false, 0, true},
		{"that was asked for", slots, slots, true, 0, false},
		{"that was answered", slots, slots, false, 8, false},
		{"at the end of one that is not compared", 2*slots - 2, slots, false, 8, false},
		{"behind that", 2 * slots, slots, false, 8, false},
		{"at the end of the next one", (pass+1)*slots - 3, slots, false, 3, false},
		{"within it", pass*slots + 5, slots, false, 8, false},
		{"behind the next one", (pass + 1) * slots, slots, false, 0, true},
	} {
		p.posted, l.Out = nil, 0
		l.Posted, l.pass = c.posted, Pass{c.asked, c.waiting}
		k, err := w.own(l, 8)
		if err != nil || k != c.k || (len(p.posted) == 1) != c.asks {
			t.Errorf("%s: %v, %d may be posted, said %+v, want %d", c.name, err, k, p.posted, c.k)
		}
		if c.asks && (int(p.posted[0].Len) != controlLen(l.Sh, ctlCompare) || !l.pass.Waiting ||
			l.pass.asked != c.posted) {
			t.Errorf("%s: said %+v, asked at %d", c.name, p.posted[0], l.pass.asked)
		}
	}
}

// While as many operations are out as there may be, nothing is asked for either.
func TestAFullQueueAsksForNoComparison(t *testing.T) {
	p, _, w, l := bothWaysOn("write", engine.SideClient, func(*engine.Shape) {})
	l.remaining, l.Posted, l.Out = 100, int64(l.Sh.Slots), l.Sh.Depth
	if posted, err := w.push(l); posted || err != nil || len(p.posted) != 0 || l.pass.Waiting {
		t.Errorf("%d of %d out: %v, %v, said %+v", l.Out, l.Sh.Depth, posted, err, p.posted)
	}
	l.Out--
	if _, err := w.push(l); err != nil || len(p.posted) != 1 || !l.pass.Waiting {
		t.Errorf("%d of %d out: %v, said %+v, want a comparison asked for", l.Out, l.Sh.Depth, err, p.posted)
	}
}

// The peer compares the passes that are compared one after the other, each where it lies.
func TestEachComparisonIsOfTheNextPass(t *testing.T) {
	_, _, _, l := bothWaysOn("write", engine.SideServer, func(*engine.Shape) {})
	sh := l.Sh
	for _, pass := range []uint64{0, sampledPass(l)} {
		for n := pass * uint64(sh.Slots); n < (pass+1)*uint64(sh.Slots); n++ {
			l.in.write(l.Mem[sh.RxSlot(int(n)%sh.Slots):][:sh.Size], n, true)
		}
		for p := l.passes; p < pass; p++ {
			if l.in.comparesPass(p) {
				l.passes = p + 1 // passes between, which were compared
			}
		}
		if l.acksDue = 0; l.comparePass() != nil || l.passes != pass+1 || l.acksDue != 1 {
			t.Errorf("pass %d: %d compared, %d answers are due", pass, l.passes, l.acksDue)
		}
	}
	if err := l.comparePass(); reports.Code(err) != reports.ExitCorruption {
		t.Errorf("a pass that did not come: %v", err)
	}
}

// Writes of a pass that is compared have all of their bytes; others as the seed chooses.
func TestWhichMessagesBothWaysAreWritten(t *testing.T) {
	for op, all := range map[string]bool{"write": true, "send": false} {
		_, _, _, l := bothWaysOn(op, engine.SideClient, func(*engine.Shape) {})
		sh := l.Sh
		for _, pass := range []uint64{0, 1, sampledPass(l)} {
			for n := pass * uint64(sh.Slots); n < (pass+1)*uint64(sh.Slots); n++ {
				at := l.Ops[int(n)%sh.Slots].Local
				clear(l.Mem[at:][:sh.Size])
				l.sent = n
				writeNumbers(l, l.Ops[int(n)%sh.Slots:][:1])
				whole := engine.FirstNonZero(l.Mem[at+8:][:sh.Size-8]) >= 0
				if want := l.out.Whole(n) || all && l.in.comparesPass(pass); whole != want || l.Mem[at] != byte(n) {
					t.Errorf("%s %d, pass %d: all of it %v, want %v", op, n, pass, whole, want)
				}
			}
		}
	}
}

// A control message of a stream of sends takes a slot of the ring; others have a place of their own.
func TestWhereControlMessagesLeaveFrom(t *testing.T) {
	for op, inRing := range map[string]bool{"send": true, "write": false, "write_imm": false, "read": false} {
		p, _, w, l := bothWaysOn(op, engine.SideClient, unverified)
		l.Head, l.Messages, l.unsignaled = 7, 39, 2
		at, head, messages := uint64(l.Sh.CtlTx(0)), 7, uint64(39)
		if inRing {
			at, head, messages = l.Ops[7].Local, 8, 40
		}
		said, err := w.sendControl(l, ctlFin)
		if !said || err != nil || len(p.posted) != 1 || p.posted[0].Local != at ||
			p.posted[0].Kind != transports.KindSend || p.posted[0].Slot != 3 || p.posted[0].Flags != 0 {
			t.Fatalf("%s: %v, %v, said %+v, want it from %d", op, said, err, p.posted, at)
		}
		if l.Head != head || l.Messages != messages || l.Out != 1 || l.unsignaled != 0 {
			t.Errorf("%s: the next is %d of slot %d, %d outstanding", op, l.Messages, l.Head, l.Out)
		}
	}
}

// sampledPass finds a pass of writes behind the first that is compared, which those next to it are not.
func sampledPass(l *flowLane) uint64 {
	for pass := uint64(3); ; pass++ {
		if l.in.comparesPass(pass) && !l.in.comparesPass(pass-2) && !l.in.comparesPass(pass-1) &&
			!l.in.comparesPass(pass+1) && !l.in.comparesPass(pass+2) {
			return pass
		}
	}
}
