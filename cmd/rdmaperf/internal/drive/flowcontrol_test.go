package drive

import (
	"testing"

	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/engine"
	"github.com/rdmaperf/rdmaperf/reports"
	"github.com/rdmaperf/rdmaperf/transports"
)

// Each control message has its turn, and changes what it says; out of turn it ends the stream.
func TestControlMessagesHaveTheirTurn(t *testing.T) {
	type lane = flowLane
	any := func(*lane) bool { return true }
	for _, c := range []struct {
		name, op string
		bare     bool // nothing is compared
		said     control
		before   func(l *lane)
		after    func(l *lane) bool // nil: it is out of turn
	}{
		{"room for as many", "send", false, ctlCredit, func(l *lane) { l.sent = 8 },
			func(l *lane) bool { return l.credit == 8 }},
		{"room for more than came", "send", false, ctlCredit, func(l *lane) { l.sent = 7 }, nil},
		{"room again", "send", false, ctlCredit, func(l *lane) { l.sent, l.credit = 16, 8 },
			func(l *lane) bool { return l.credit == 16 }},
		{"room that nobody needs", "write", false, ctlCredit, func(l *lane) { l.sent = 100 }, nil},
		{"go", "send", false, ctlStart, func(*lane) {}, func(l *lane) bool { return l.begun && l.flowing }},
		{"go again", "send", false, ctlStart, func(l *lane) { l.begun = true }, nil},
		{"fin", "send", false, ctlFin, func(l *lane) { l.flowing = true },
			func(l *lane) bool { return l.peerFin && l.acksDue == 1 && l.taken == 1 && l.flowing }},
		{"fin again", "send", false, ctlFin, func(l *lane) { l.peerFin = true }, nil},
		{"hurry", "send", false, ctlStop, func(l *lane) { l.flowing = true },
			func(l *lane) bool { return l.peerFin && l.acksDue == 1 && !l.flowing && !l.stopPeer }},
		{"hurry again", "send", false, ctlStop, func(l *lane) { l.peerFin = true }, nil},
		{"answer", "send", false, ctlAck, func(l *lane) { l.Fenced = true }, func(l *lane) bool { return l.finAcked }},
		{"answer to nothing", "send", false, ctlAck, func(*lane) {}, nil},
		{"answer again", "send", false, ctlAck, func(l *lane) { l.Fenced, l.finAcked = true, true }, nil},
		{"comparison", "write", false, ctlCompare, func(l *lane) {
			for n := range uint64(l.Sh.Slots) {
				l.in.write(l.Mem[l.Sh.RxSlot(int(n)):][:l.Sh.Size], n, true)
			}
		}, func(l *lane) bool { return l.acksDue == 1 && l.passes == 1 }},
		{"comparison before the answer", "write", false, ctlCompare, func(l *lane) { l.acksDue = 1 }, nil},
		{"comparison where nothing is compared", "write", true, ctlCompare, func(*lane) {}, nil},
		{"comparison of messages", "send", false, ctlCompare, func(*lane) {}, nil},
		{"compared", "write", false, ctlAck, func(l *lane) { l.pass.Waiting = true },
			func(l *lane) bool { return !l.pass.Waiting }},
		{"a message both ways", "send", true, control(100 - 1), func(*lane) {}, any},
	} {
		_, _, w, l := bothWaysOn(c.op, engine.SideServer, func(sh *engine.Shape) { sh.Verify = !c.bare })
		c.before(l)
		length := controlLen(l.Sh, c.said)
		if c.said >= numControls {
			length = l.Sh.Size
		}
		err := w.takeDone(l, &transports.Done{Kind: transports.KindRecv, Len: uint32(length)})
		switch {
		case c.after == nil && reports.Code(err) != reports.ExitPeer:
			t.Errorf("%s: %v, want a control message out of turn", c.name, err)
		case c.after != nil && (err != nil || !c.after(l)):
			t.Errorf("%s: %v, %+v", c.name, err, l)
		}
		if l.unposted != 1 {
			t.Errorf("%s: %d receives are to be posted again, want the one that it took", c.name, l.unposted)
		}
	}
	_, _, w, l := bothWaysOn("send", engine.SideServer, unverified)
	if err := w.takeDone(l, &transports.Done{Kind: transports.KindRecv,
		Len: 50}); reports.Code(err) != reports.ExitCorruption {
		t.Errorf("a message of another length: %v", err)
	}
}

// A credit goes when as many messages as it is for were taken; acknowledgements when receives are posted again.
func TestRepliesBothWays(t *testing.T) {
	for _, c := range []struct {
		name string
		set  func(l *flowLane)
		said []control
		room int // for posts, receives included; negative: all
	}{
		{"nothing yet", func(l *flowLane) { l.unposted = l.repostAt - 1 }, nil, -1},
		{"receives alone", func(l *flowLane) { l.unposted, l.taken = l.repostAt, 7 }, nil, -1},
		{"room", func(l *flowLane) { l.unposted, l.taken = l.repostAt, 8 }, []control{ctlCredit}, -1},
		{"room twice", func(l *flowLane) { l.unposted, l.taken, l.granted = l.repostAt, 30, 8 },
			[]control{ctlCredit, ctlCredit}, -1},
		{"room, with few receives to post", func(l *flowLane) { l.unposted, l.taken = 1, 8 }, []control{ctlCredit}, -1},
		{"its end", func(l *flowLane) { l.unposted, l.acksDue = 1, 1 }, []control{ctlAck}, -1},
		{"all", func(l *flowLane) { l.unposted, l.taken, l.acksDue = 1, 8, 2 }, []control{ctlCredit, ctlAck, ctlAck},
			-1},
		{"no room for receives", func(l *flowLane) { l.unposted, l.acksDue = 3, 1 }, nil, 2},
		{"no room for the second", func(l *flowLane) { l.unposted, l.acksDue = 1, 2 }, []control{ctlAck}, 2},
		{"no room for the first", func(l *flowLane) { l.unposted, l.taken, l.acksDue = 1, 8, 1 }, nil, 1},
	} {
		p, _, w, l := bothWaysOn("send", engine.SideServer, unverified)
		c.set(l)
		p.room = c.room
		was := l.unposted
		moved, err := w.reply(l)
		var said []control
		for _, op := range p.posted {
			if op.Kind == transports.KindSend {
				n, _ := controlOf(l.Sh, int(op.Len))
				said = append(said, n)
			}
		}
		if err != nil || moved != (c.name != "nothing yet") || len(said) != len(c.said) {
			t.Errorf("%s: %v, %v, said %v, want %v", c.name, moved, err, said, c.said)
			continue
		}
		for i := range said {
			if said[i] != c.said[i] {
				t.Errorf("%s: said %v, want %v", c.name, said, c.said)
			}
		}
		if moved && c.room != 2 && l.unposted != 0 && was > 0 {
			t.Errorf("%s: %d receives left", c.name, l.unposted)
		}
	}
}

// No length of data is that of a control message, and every control message is understood.
func TestControlMessagesAreNoData(t *testing.T) {
	for size := 1; size < 100; size++ {
		sh := &engine.Shape{Point: engine.Point{Size: size}}
		seen := map[int]bool{size: true}
		for n := range numControls {
			length := controlLen(sh, n)
			if got, ok := controlOf(sh, length); !ok || got != n || seen[length] || length > controlReach ||
				length > sh.Stride() {
				t.Errorf("size %d: control message %d has %d bytes, read as %d, %v", size, n, length, got, ok)
			}
			seen[length] = true
		}
		for length := range 2 * engine.SlotAlign {
			if _, ok := controlOf(sh, length); ok != (seen[length] && length != size) {
				t.Errorf("size %d: %d bytes are a control message: %v", size, length, ok)
			}
		}
	}
}
