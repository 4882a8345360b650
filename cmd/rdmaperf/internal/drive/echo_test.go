package drive

import (
	"errors"
	"testing"

	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/engine"
	"github.com/rdmaperf/rdmaperf/reports"
	"github.com/rdmaperf/rdmaperf/transports"
	"github.com/rdmaperf/rdmaperf/transports/rdma"
)

var errBroken = errors.New("broken")

// came is messages that took receives, from a slot on.
func came(slot uint32, n int, size uint32) (all []transports.Done) {
	for i := range uint32(n) {
		all = append(all, transports.Done{Kind: transports.KindRecv, Slot: slot + i, Len: size, Imm: slot + i + 1,
			HasImm: true})
	}
	return all
}

// Each message is answered out of its slot, whose receive is posted again when the answer has left.
func TestEchoes(t *testing.T) {
	for _, answered := range []int{0, 2, 3} {
		p, w, l := pingPongOn(t, "send", engine.SideServer, engine.ArrivalMessage)
		n := copy(w.Done, came(0, 3, 64))
		if err := w.echo(l, n, answered); err != nil || w.Ops != 3 || l.iter != 3 || l.next != 3 ||
			len(p.posted) != 3-answered {
			t.Errorf("%d answered: %v, %d operations, %d messages, %d posted", answered, err, w.Ops, l.iter,
				len(p.posted))
		}
		for i, op := range p.posted {
			if slot := uint32(answered + i); op.Kind != transports.KindSend || op.Slot != slot ||
				op.Local != uint64(l.rx[slot]) || op.Len != 64 {
				t.Errorf("%d answered: %+v, want the bytes of slot %d", answered, op, slot)
			}
		}
		p.posted, p.done = nil, []transports.Done{{Kind: transports.KindSend, Slot: 1}}
		if err := echoTurn(w, l); err != nil || len(p.posted) != 1 || p.posted[0] != l.recvs[1] || w.Ops != 3 {
			t.Errorf("behind an echo: %v, posted %+v, want the receive of slot 1", err, p.posted)
		}
	}
	p, w, l := pingPongOn(t, "send", engine.SideServer, engine.ArrivalMessage)
	p.done, p.room, p.refuse = came(0, 2, 64), 1, errBroken
	if err := echoTurn(w, l); !errors.Is(err, errBroken) || w.Ops != 1 {
		t.Errorf("%v after %d answers, want %v after one", err, w.Ops, errBroken)
	}
	p.lost = errors.New("gone")
	p.done = nil
	if err := echoTurn(w, l); !errors.Is(err, p.lost) {
		t.Errorf("%v, want %v", err, p.lost)
	}
	p.done = []transports.Done{{Kind: transports.KindSend, Status: rdma.StatusSuccess + 1}}
	if err := echoTurn(w, l); reports.Code(err) == 0 || w.Ops != 1 {
		t.Errorf("an answer that failed: %v", err)
	}
}

// A write into memory is answered when its mark is there; without room for the answer the mark stays.
func TestEchoesOfWrites(t *testing.T) {
	p, w, l := pingPongOn(t, "write", engine.SideServer, engine.ArrivalMemory)
	if err := memoryTurn(w, l); err != nil || w.Ops != 0 || p.polls != 1 {
		t.Errorf("%v, %d answers before anything came", err, w.Ops)
	}
	at := l.at(1)
	l.Mem[at+l.Sh.Size-1], p.room = stampOf(1), 0
	if err := memoryTurn(w, l); err != nil || w.Ops != 0 || l.iter != 0 || p.polls != 2 {
		t.Errorf("without room: %v, %d answers, %d polls", err, w.Ops, p.polls)
	}
	p.room = 1
	if err := memoryTurn(w, l); err != nil || w.Ops != 1 || l.iter != 1 || p.polls != 2 || len(p.posted) != 1 ||
		p.posted[0].Remote != uint64(at) || p.posted[0].Len != 64 {
		t.Errorf("with room: %v, %d answers, %+v", err, w.Ops, p.posted)
	}
	p.lost = errBroken
	if err := memoryTurn(w, l); !errors.Is(err, errBroken) {
		t.Errorf("%v, want %v", err, errBroken)
	}
	l.Mem[l.at(2)+l.Sh.Size-1], p.refuse = stampOf(2), errors.New("refused")
	if err := memoryTurn(w, l); !errors.Is(err, p.refuse) || w.Ops != 1 {
		t.Errorf("%v, want %v", err, p.refuse)
	}
	p.done = []transports.Done{{Kind: transports.KindWrite, Status: rdma.StatusSuccess + 1}}
	l.Mem[l.at(2)+l.Sh.Size-1] = l.before(2)
	if err := memoryTurn(w, l); reports.Code(err) == 0 || errors.Is(err, errBroken) {
		t.Errorf("an answer that failed: %v", err)
	}
}

// A write that a message announced is answered by both, and its receive posted again.
func TestEchoesOfAnnouncedWrites(t *testing.T) {
	p, w, l := pingPongOn(t, "write", engine.SideServer, engine.ArrivalNotify)
	p.done = append(came(4, 2, 0), transports.Done{Kind: transports.KindWrite})
	if err := notifyTurn(w, l); err != nil || w.Ops != 2 || l.iter != 2 || len(p.posted) != 6 {
		t.Fatalf("%v, %d answers, %+v", err, w.Ops, p.posted)
	}
	for i := range 2 {
		write, say, again := p.posted[3*i], p.posted[3*i+1], p.posted[3*i+2]
		if at := uint64(l.at(uint64(i + 1))); write.Kind != transports.KindWrite || write.Local != at ||
			write.Remote != at || write.Len != 64 || say.Kind != transports.KindSend || say.Len != 0 ||
			again != l.recvs[4+i] {
			t.Errorf("answer %d: %+v", i, p.posted[3*i:3*i+3])
		}
	}
	for room := range 3 {
		p.done, p.room, p.refuse = came(0, 1, 0), room, errBroken
		if err := notifyTurn(w, l); !errors.Is(err, errBroken) || w.Ops != 2 {
			t.Errorf("room for %d of 3: %v, %d answers", room, err, w.Ops)
		}
	}
}

// Only a worker with one session, whose provider takes steps, leaves the answers to that.
func TestWhoAnswersInTheProvider(t *testing.T) {
	for _, c := range []struct {
		op, arrival string
		in, two     bool
		want        bool
	}{{"send", engine.ArrivalMessage, true, false, true}, {"send", engine.ArrivalMessage, false, false, false},
		{"write_imm", engine.ArrivalMessage, true, false, true},
		{"send", engine.ArrivalMessage, true, true, false}, {"write", engine.ArrivalMemory, true, false, true},
		{"write", engine.ArrivalNotify, true, false, false}, {"read", engine.ArrivalCompletion, true, false, false}} {
		p, w, l := pingPongOn(t, c.op, engine.SideServer, c.arrival)
		p.onPoll = func(int) { w.Stop.Store(engine.StopSoon) }
		p.steps = func(int, []transports.PingPongStep) (int, error) { w.Stop.Store(engine.StopSoon); return 0, nil }
		if w.inProvider = c.in; c.two {
			w.lanes = append(w.lanes, l)
		}
		if err := w.target()(); err != nil || (p.calls > 0) != c.want {
			t.Errorf("%+v: %v, %d calls", c, err, p.calls)
		}
	}
}

// Messages go round their slots and their sources; a slot's last byte is the mark of the one before.
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

// An answer lies in the slot whose receive it took; one of a write with an immediate where the message lay.
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

// A ping-pong is in the provider where both can, nobody sleeps and no message announces, unless the plan objects.
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
