package drive

import (
	"errors"
	"testing"

	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/engine"
	"github.com/rdmaperf/rdmaperf/transports"
	"github.com/rdmaperf/rdmaperf/transports/rdma"
)

// What a stream needs follows from what was asked for, and gives way to what the device has.
func TestDepthsOfAStream(t *testing.T) {
	type shape struct{ depth, receives, moderation, slots int }
	for _, c := range []struct {
		name, op string
		plan     engine.Plan
		point    int // depth
		most     int // of the device
		size     int
		want     shape
	}{
		{"by default", "write", engine.Plan{}, 0, 0, 64, shape{128, 512, 16, 128}},
		{"deep", "write", engine.Plan{Depth: 300}, 0, 0, 64, shape{300, 600, 37, 300}},
		{"of the point", "write", engine.Plan{Depth: 300}, 40, 0, 64, shape{40, 512, 5, 40}},
		{"shallow", "write", engine.Plan{Depth: 4}, 0, 0, 64, shape{4, 512, 1, 4}},
		{"receives", "write", engine.Plan{Depth: 16, RecvDepth: 20}, 0, 0, 64, shape{16, 20, 2, 16}},
		{"of a device", "write", engine.Plan{}, 0, 48 + engine.CtlSlots, 64, shape{48, 48, 6, 48}},
		{"the largest moderated", "write", engine.Plan{}, 0, 0, engine.ModerationLimit, shape{128, 512, 16, 8}},
		{"a larger one", "write", engine.Plan{}, 0, 0, engine.ModerationLimit + 1, shape{128, 512, 1, 7}},
		{"moderated more than it has slots", "write", engine.Plan{Depth: 8, Moderation: 6}, 0, 0, 16 << 10,
			shape{8, 512, 6, 4}},
		{"than is deep", "write", engine.Plan{Depth: 8, Moderation: 60}, 0, 0, 64, shape{8, 512, 8, 8}},
		{"slots for each receive", "send", engine.Plan{Verify: true, RecvDepth: 1024}, 0, 0, 1024,
			shape{128, 1024, 16, 1024}},
		{"slots for the depth alone", "send",
			engine.Plan{Verify: true, RecvDepth: 1025}, 0, 0, 1024, shape{128, 128, 16, 128}},
		{"writes compared", "write", engine.Plan{Verify: true, RecvDepth: 1024}, 0, 0, 1024, shape{128, 1024, 16, 128}},
		{"large ones compared", "write", engine.Plan{Verify: true, Depth: 16, Moderation: 16}, 0, 0, 3 << 20,
			shape{16, 512, 5, 5}},
		{"large ones that take receives", "send", engine.Plan{Verify: true, Moderation: 8}, 0, 0, 1 << 20,
			shape{128, 16, 8, 16}},
		{"a completion of many of them", "send", engine.Plan{Verify: true, Moderation: 128}, 0, 0, 1 << 20,
			shape{128, 16, 16, 16}},
		{"compared", "send", engine.Plan{Verify: true, RecvDepth: 32, Moderation: 1}, 0, 0, 64 << 10,
			shape{128, 32, 1, 128}},
		{"not compared", "send", engine.Plan{RecvDepth: 32, Moderation: 1}, 0, 0, 64 << 10, shape{128, 32, 1, 1}},
		{"large and not compared", "send", engine.Plan{}, 0, 0, 4 << 20, shape{128, 512, 1, 1}},
	} {
		sh := &engine.Shape{Numbers: true, Point: engine.Point{Op: c.op, Size: c.size, Depth: c.point},
			Verify: c.plan.Verify}
		StreamDepths(sh, &c.plan, transports.Caps{MaxDepth: c.most})
		if got := (shape{sh.Depth, sh.RecvDepth, sh.Moderation, sh.Slots}); got != c.want {
			t.Errorf("%s: %+v, want %+v", c.name, got, c.want)
		}
	}
}

// A target sleeps where its device serves it unaided; of writes to compare only with one queue pair a thread.
func TestWhereTheTargetOfAStreamSleeps(t *testing.T) {
	unaided := transports.Caps{Unaided: true, Events: true}
	for _, c := range []struct {
		op           string
		verify, both bool
		qps, threads int
		server, all  transports.Caps
		want         bool
	}{
		{"write", true, false, 1, 1, unaided, unaided, true}, {"write", true, false, 2, 2, unaided, unaided, true},
		{"write", true, false, 2, 1, unaided, unaided, false},
		{"write", false, false, 2, 1, unaided, unaided, true},
		{"write", true, true, 1, 1, unaided, unaided, false},
		{"write", true, false, 1, 1, unaided, transports.Caps{}, false},
		{"write", true, false, 1, 1, transports.Caps{}, unaided, false},
		{"read", true, false, 2, 1, unaided, unaided, true}, {"read", true, true, 1, 1, unaided, unaided, false},
		{"read", true, false, 1, 1, transports.Caps{}, unaided, false},
		{"send", true, false, 1, 1, unaided, unaided, false},
	} {
		c.all.Kinds, c.all.MaxMsg = ^transports.KindSet(0), 64
		s := &engine.Setup{Plan: &engine.Plan{QPs: c.qps, Threads: c.threads, Verify: c.verify},
			Point: engine.Point{Op: c.op, Size: 64, Bidirectional: c.both},
			Caps:  engine.Abilities{Server: c.server, Both: c.all}}
		sh, err := ThroughputShape(s)
		if err != nil {
			t.Fatal(err)
		}
		if sh.Idle != c.want {
			t.Errorf("%+v: sleeps %v", c, sh.Idle)
		}
	}
}

// A target that is reached into polls, and holds its window against the counts of all its sessions.
func TestATargetThatIsReachedInto(t *testing.T) {
	sh := &engine.Shape{Point: engine.Point{Words: "reads", Op: "read", Size: 64}, Slots: 4, Moderation: 1}
	p, w, l := pulled(sh, engine.SideServer)
	looked := 0
	e := NewExposed(&engine.Group{Sh: sh, Lanes: []*engine.Lane{l}, Workers: []*engine.Worker{w}}, true,
		func(p *Proof, sent engine.LaneCount) error {
			if looked++; p.Gen != 2 || sent.Count != 7 {
				t.Errorf("generation %d, %+v", p.Gen, sent)
			}
			return errBroken
		})
	if err := e.Verify(2, []engine.LaneCount{{Count: 7}}); err != errBroken || looked != 1 {
		t.Errorf("%v, looked %d times", err, looked)
	}
	if err := e.Verify(2, nil); err == nil || err == errBroken || looked != 1 {
		t.Errorf("without counts: %v, looked %d times", err, looked)
	}
	p.done = []transports.Done{{Kind: transports.KindWrite}}
	if err := pollTurn(w, l); err != nil {
		t.Error(err)
	}
	p.done = []transports.Done{{Kind: transports.KindWrite, Status: 99}}
	if err := pollTurn(w, l); err == nil {
		t.Error("what failed is well")
	}
	p.lost = errBroken
	if err := pollTurn(w, l); err == nil {
		t.Error("what is lost is well")
	}
}

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
