package drive

import (
	"errors"
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

// held is a phase of one side behind which memory is as it should be, and what a test changes.
func held(t *testing.T, name, op string, size int, sent engine.LaneCount, change func(sh *engine.Shape, l *flowLane),
	want int) compare {
	t.Helper()
	_, d, w, l := bothWaysOn(op, engine.SideServer, func(sh *engine.Shape) { sh.Size, sh.Slots = size, 8 })
	sh := l.Sh
	l.in.Gen, l.count = engine.GenMeasure, sent.Count
	for n := range uint64(sent.Count) {
		s := int(n % uint64(sh.Slots))
		l.in.write(l.Mem[sh.RxSlot(s):][:sh.Size], n, l.in.Whole(n) || l.in.comparesPass(n/uint64(sh.Slots)))
		l.written[s] = true
	}
	change(sh, l)
	if err := d.Verify(l.in.Gen, []engine.LaneCount{sent}); reports.Code(err) != want {
		t.Errorf("%s: %v, want exit %d", name, err, want)
	}
	return compare{w.Compared.Numbers}
}

type compare struct{ numbers int64 }

const found = reports.ExitCorruption

func nothing(*engine.Shape, *flowLane) {}

func flip(slot, at int) func(sh *engine.Shape, l *flowLane) {
	return func(sh *engine.Shape, l *flowLane) { l.Mem[sh.RxSlot(slot)+at] ^= 0x10 }
}

// Behind a phase of writes the last message of each slot is compared, and what lies around them.
func TestTheLastWritesBothWaysAreCompared(t *testing.T) {
	sent := engine.LaneCount{Count: 2*8 + 5} // the last of slots 5 to 7 are of the pass before
	if c := held(t, "as it should be", "write", 100, sent, nothing, 0); c.numbers != 8 {
		t.Errorf("%d compared, want one of each slot", c.numbers)
	}
	for name, change := range map[string]func(*engine.Shape, *flowLane){
		"the oldest": flip(5, 0), "the newest": flip(4, 0), "behind its end": flip(2, 100),
		"at the end of the gap": flip(7, 127),
	} {
		held(t, name+" changed", "write", 100, sent, change, found)
	}
	compared := func(sh *engine.Shape, l *flowLane) { l.passes = 2; flip(5, 0)(sh, l) }
	if c := held(t, "two passes compared", "write", 100, sent, compared, 0); c.numbers != 5 {
		t.Errorf("%d compared, want those behind two passes", c.numbers)
	}
	held(t, "never written", "write", 100, engine.LaneCount{Count: 3}, flip(3, 9), found)
}

// Messages that take receives are counted; what lies around them is compared behind the phase.
func TestMessagesBothWaysAreCounted(t *testing.T) {
	sent := engine.LaneCount{Count: 3}
	for _, op := range []string{"send", "write_imm"} {
		held(t, op+" as it should be", op, 100, sent, nothing, 0)
		held(t, op+" compared", op, 100, sent, flip(1, 0), 0)
		held(t, op+" lost", op, 100, sent, func(_ *engine.Shape, l *flowLane) { l.count-- }, found)
		held(t, op+" behind its end", op, 100, sent, flip(2, 100), found)
		held(t, op+" never written", op, 100, sent, flip(3, 50), found)
	}
	_, d, _, _ := bothWaysOn("send", engine.SideServer, func(*engine.Shape) {})
	if err := d.Verify(1, make([]engine.LaneCount, 2)); reports.Code(err) != reports.ExitPeer {
		t.Errorf("counts of two queue pairs for one: %v", err)
	}
}

// The first bytes of a slot may be a control message's; those behind its longest are nobody's.
func TestControlMessagesMayLieWhereSendsDo(t *testing.T) {
	sent := engine.LaneCount{Count: 3}
	for _, size := range []int{3, 100} {
		held(t, "a control message", "send", size, sent, flip(5, controlReach-1), 0)
		held(t, "behind a control message", "send", size, sent, flip(5, controlReach), found)
	}
	held(t, "a control message behind a short message", "send", 3, sent, flip(1, controlReach-1), 0)
	held(t, "behind both", "send", 3, sent, flip(1, controlReach), found)
	held(t, "no room behind it", "send", 64, sent, nothing, 0)
	_, d, _, l := bothWaysOn("send", engine.SideServer, func(*engine.Shape) {})
	flip(5, controlReach+9)(l.Sh, l)
	var bad *engine.CorruptionError
	if err := d.Verify(1, []engine.LaneCount{{}}); !errors.As(err, &bad) || bad.Offset != controlReach+9 ||
		bad.Got != 0x10 || bad.Want != 0 {
		t.Errorf("%v, want the byte that was changed", err)
	}
}

// What the server sends has the complement of the phase's generation, so that bytes that come back are nobody's.
func TestEachDirectionHasItsGeneration(t *testing.T) {
	for role, out := range map[string]int{engine.SideClient: 5, engine.SideServer: ^5} {
		_, d, _, l := bothWaysOn("send", role, func(*engine.Shape) {})
		if err := d.Prepare(5); err != nil || l.out.Gen != out || l.in.Gen != ^out {
			t.Errorf("%s: %v, generation %d out and %d in, want %d and %d", role, err, l.out.Gen, l.in.Gen, out, ^out)
		}
	}
}

// Of sends both ways control messages take slots, too; other messages have a slot for each.
func TestControlMessagesOfSendsTakeSlots(t *testing.T) {
	for _, c := range []struct {
		op    string
		both  bool
		slots int
		want  int
	}{
		{"send", true, 64, 64 - controlReceives}, {"send", true, controlReceives + 2, fewReceives},
		{"send", true, 4, 4},
		{"send", false, 64, 64}, {"write_imm", true, 64, 64},
	} {
		if got := ownReceives(&engine.Shape{Point: engine.Point{Op: c.op, Bidirectional: c.both},
			Slots: c.slots}); got != c.want {
			t.Errorf("%s, both ways %v, %d slots: %d receives, want %d", c.op, c.both, c.slots, got, c.want)
		}
	}
	for receives, want := range map[int]bool{32 - controlReceives: false, 32 - controlReceives + 1: true} {
		_, _, _, l := bothWaysOn("send", engine.SideClient, func(sh *engine.Shape) { sh.RecvDepth = receives })
		if l.shared != want {
			t.Errorf("%d receives and those for control messages in 32 slots: shared %v, want %v", receives, l.shared,
				want)
		}
	}
}
