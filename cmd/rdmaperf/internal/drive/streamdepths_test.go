package drive

import (
	"testing"

	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/engine"
	"github.com/rdmaperf/rdmaperf/transports"
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
		{"than is deep", "write", engine.Plan{Depth: 8, Moderation: 60}, 0, 0, 64,
			shape{8, 512, 8, 8}},
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

// A target sleeps where its device serves it unaided; not both ways, and of writes that it is asked
// to look at only where each thread has one queue pair.
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
