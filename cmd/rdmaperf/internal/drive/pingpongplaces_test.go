package drive

import (
	"testing"

	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/engine"
	"github.com/rdmaperf/rdmaperf/transports"
)

// Messages of a ping-pong go round their slots and their sources, and a slot's last byte is, until
// the next one comes, the mark of the one before.
func TestPlacesOfAPingPong(t *testing.T) {
	for _, size := range []int{64, engine.MediumMessage + 1, engine.LargeMessage + 1} {
		_, _, l := pingPongOn(t, "write", engine.SideClient, engine.ArrivalMemory, size)
		sh := l.Sh
		for n := range uint64(300) {
			if want := sh.RxSlot(int(n) % sh.Slots); l.at(n) != want {
				t.Fatalf("%d bytes, message %d: its slot is at %d, want %d", size, n, l.at(n), want)
			}
			if want := int(n) % engine.LatencyShifts * Shift(sh); l.source(n) != want {
				t.Fatalf("%d bytes, message %d: its source is at %d, want %d", size, n, l.source(n), want)
			}
			want := byte(0)
			if n > uint64(sh.Slots) {
				want = byte((int(n)-sh.Slots)%255) + 1
			}
			if n > 0 && (l.before(n) != want || l.before(n) == stampOf(n) || stampOf(n) == 0) {
				t.Fatalf("%d bytes, before message %d: %d, want %d", size, n, l.before(n), want)
			}
		}
	}
}

// An answer lies in the slot whose receive it took, whichever that is, and that is posted again;
// one of a write with an immediate where the message lay.
func TestAnAnswerLiesWhereItCame(t *testing.T) {
	for _, op := range []string{"send", "send_imm", "write_imm"} {
		for slot := range uint32(engine.LatencySlots) {
			w, l, r, _ := begun(t, op, engine.ArrivalMessage, beginMessage)
			at := l.Sh.RxSlot(int(slot))
			if op == "write_imm" {
				at = l.at(1)
			}
			r.slot, r.length, r.imm, r.hasImm = slot, 64, 1, op != "send"
			copy(l.Mem[at:], l.ref.Bytes()[r.off:r.off+64])
			if err := verifyMessage(w, l, r); err != nil || r.at != at || len(l.again) != 1 ||
				l.again[0] != l.recvs[slot] {
				t.Errorf("%s that took the receive of slot %d: %v, looked for at %d, want %d", op, slot, err, r.at, at)
			}
		}
	}
}

// Where a ping-pong is taken: in the provider where both ends can, nobody sleeps and no message
// announces, unless the plan says otherwise; and what ends a write's way.
func TestTheShapeOfAPingPong(t *testing.T) {
	for _, c := range []struct {
		op, plan, polling string
		both              transports.Caps
		loop, arrival     string
	}{
		{"send", "", engine.PollingBusy, transports.Caps{PingPong: true}, engine.LoopProvider, engine.ArrivalMessage},
		{"send", engine.LoopProvider, engine.PollingBusy, transports.Caps{PingPong: true}, engine.LoopProvider,
			engine.ArrivalMessage},
		{"send", engine.LoopPlain, engine.PollingBusy, transports.Caps{PingPong: true}, engine.LoopPlain,
			engine.ArrivalMessage},
		{"send", "", engine.PollingBusy, transports.Caps{}, engine.LoopPlain, engine.ArrivalMessage},
		{"send", "", engine.PollingEvent, transports.Caps{PingPong: true}, engine.LoopPlain, engine.ArrivalMessage},
		{"read", "", engine.PollingBusy, transports.Caps{PingPong: true}, engine.LoopProvider,
			engine.ArrivalCompletion},
		{"write", "", engine.PollingBusy, transports.Caps{PingPong: true, LastByteLast: true}, engine.LoopProvider,
			engine.ArrivalMemory},
		{"write", "", engine.PollingEvent, transports.Caps{PingPong: true, LastByteLast: true}, engine.LoopPlain,
			engine.ArrivalNotify},
		{"write", "", engine.PollingBusy, transports.Caps{PingPong: true}, engine.LoopPlain, engine.ArrivalNotify},
	} {
		c.both.Kinds, c.both.MaxMsg, c.both.Events = ^transports.KindSet(0), 64, true
		s := &engine.Setup{Plan: &engine.Plan{Loop: c.plan, Polling: c.polling},
			Point: engine.Point{Op: c.op, Size: 64}, Caps: engine.Abilities{Both: c.both}}
		sh, err := PingPongShape(s)
		if err != nil {
			t.Fatal(err)
		}
		if sh.Loop != c.loop || sh.Arrival != c.arrival || sh.Depth != 1 || sh.Moderation != 1 ||
			sh.Slots != engine.LatencySlots || sh.RecvDepth != sh.Slots {
			t.Errorf("%+v: %+v", c, sh)
		}
	}
}
