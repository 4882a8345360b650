package drive

import (
	"errors"
	"testing"

	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/engine"
	"github.com/rdmaperf/rdmaperf/transports"
	"github.com/rdmaperf/rdmaperf/transports/rdma"
)

// Credit is for half of the receives at a time; both ways with few of them for each.
func TestHowOftenRoomIsTold(t *testing.T) {
	for _, c := range []struct {
		both            bool
		receives, every int
	}{{false, 1, 1}, {false, 2, 1}, {false, 9, 4}, {false, 64, 32}, {true, 1, 1}, {true, fewReceives, 1},
		{true, fewReceives + 1, (fewReceives + 1) / 2}} {
		if got := CreditEvery(&engine.Shape{Point: engine.Point{Bidirectional: c.both},
			RecvDepth: c.receives}); got != c.every {
			t.Errorf("%+v: for each %d", c, got)
		}
	}
}

// onSlots is the receives of a stream on a puppet.
func onSlots(depth int, slots, target bool) (*puppet, *engine.Worker, *engine.Lane, *receiver) {
	sh := &engine.Shape{Numbers: true,
		Point: engine.Point{Words: "send", Op: "send", Size: 100}, Depth: 5, Moderation: 1, Slots: 24, RecvDepth: depth}
	p, w, l := pulled(sh, engine.SideServer)
	r := newReceiver(sh, slots, target)
	return p, w, l, &r
}

// There is a receive for each slot, and they come round; those of control messages lie where no data lands.
func TestPreparedReceives(t *testing.T) {
	for _, slots := range []bool{true, false} {
		p, w, l, r := onSlots(40, slots, true)
		sh, ring := l.Sh, engine.CtlSlots
		if slots {
			ring = 24
		}
		if len(r.recvs) != ring+40 || r.ring != ring || r.repostAt != 20 {
			t.Errorf("%d receives, %d in the ring, posted again %d at a time", len(r.recvs), r.ring, r.repostAt)
		}
		for i, got := range r.recvs {
			want := transports.Op{Kind: transports.KindRecv, Local: uint64(sh.RxSlot(i % 24)), Len: 128,
				Slot: uint32(i % ring)}
			if !slots {
				want.Local, want.Len = uint64(sh.CtlRx(i%engine.CtlSlots)), engine.CtlSize
			}
			if got != want {
				t.Errorf("slots %v: receive %d is %+v, want %+v", slots, i, got, want)
			}
		}
		if err := r.start(l, 40); err != nil || len(p.posted) != 40 || r.recvHead != 40%ring {
			t.Fatalf("%v, %d posted, the next is %d", err, len(p.posted), r.recvHead)
		}
		r.unposted = 60
		if err := r.repost(w, l); err != nil || r.unposted != 0 || len(p.posted) != 100 || r.recvHead != 100%ring {
			t.Fatalf("%v, %d left, %d posted, the next is %d", err, r.unposted, len(p.posted), r.recvHead)
		}
		for i, op := range p.posted {
			if op != r.recvs[i%ring] {
				t.Errorf("receive %d posted is %+v", i, op)
			}
		}
	}
	for target, want := range map[bool]int{true: repostData, false: repostControls} {
		if _, _, _, r := onSlots(1000, true, target); r.repostAt != want || len(r.recvs) != 24+engine.BatchMax {
			t.Errorf("of many receives %d are posted again at a time, want %d; %d prepared", r.repostAt, want,
				len(r.recvs))
		}
	}
}

// Receives for which there is no room are posted another time; a session that takes none is lost.
func TestReceivesWaitForRoom(t *testing.T) {
	p, w, l, r := onSlots(40, true, true)
	r.unposted, p.room = 10, 4
	if err := r.repost(w, l); err != nil || r.unposted != 6 || r.recvHead != 4 {
		t.Errorf("%v, %d left, the next is %d", err, r.unposted, r.recvHead)
	}
	p.room = -1
	if err := r.repost(w, l); err != nil || r.unposted != 0 || r.recvHead != 10 {
		t.Errorf("%v, %d left, the next is %d", err, r.unposted, r.recvHead)
	}
	p.room, p.refuse, r.unposted = 0, errBroken, 3
	if err := r.repost(w, l); !errors.Is(err, errBroken) || r.unposted != 3 {
		t.Errorf("%v, %d left", err, r.unposted)
	}
	if err := r.start(l, 5); !errors.Is(err, errBroken) {
		t.Errorf("at first: %v", err)
	}
	p.refuse = rdma.ErrQueueFull
	if err := r.start(l, 5); !errors.Is(err, rdma.ErrQueueFull) {
		t.Errorf("at first there must be room: %v", err)
	}
}
