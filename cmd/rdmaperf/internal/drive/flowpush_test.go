package drive

import (
	"errors"
	"testing"
	"time"

	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/engine"
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

// A queue that is full takes the rest later, and a turn in which it took nothing is one; what else
// it says ends the stream.
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
		if err := d.Prepare(engine.GenMeasure); err != nil {
			t.Fatal(err)
		}
		p.complete()
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

// Both ways a slot belongs to the last message there until the peer took it, and one of so many is
// signalled, for all of them.
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
