package drive

import (
	"testing"

	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/engine"
	"github.com/rdmaperf/rdmaperf/reports"
	"github.com/rdmaperf/rdmaperf/transports"
)

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

// Behind a pass of writes that is compared, that is asked for once, and nothing is written before
// the answer; a batch ends with such a pass, and goes on beyond others.
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

// Writes of a pass that is compared have all of their bytes; of the others, and of messages, those
// that the seed chooses, and the others their number alone.
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
				if want := l.out.Whole(n) || all && l.in.comparesPass(pass); whole != want ||
					l.Mem[at] != byte(n) {
					t.Errorf("%s %d, pass %d: all of it %v, want %v", op, n, pass, whole, want)
				}
			}
		}
	}
}

// A control message of a stream of sends takes a slot of the ring, as it takes a receive; others have a
// place of their own.
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
