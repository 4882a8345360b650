package direct

import (
	"errors"
	"testing"
	"time"

	"github.com/rdmaperf/rdmaperf/transports"
	"github.com/rdmaperf/rdmaperf/transports/memdev"
	"github.com/rdmaperf/rdmaperf/transports/rdma"
)

func TestCapsFollowTheDevice(t *testing.T) {
	d := must(memdev.NewFabric(memdev.Config{}).Open("a"))(t)
	defer d.Close()
	all := transports.Kinds(transports.KindSend, transports.KindSendImm, transports.KindWrite, transports.KindWriteImm,
		transports.KindRead, transports.KindFetchAdd, transports.KindCmpSwap, transports.KindRecv)
	for _, c := range []struct {
		what string
		bend func(*rdma.Caps)
		ok   func(transports.Caps) bool
	}{
		{"the reference device has every kind but call", nil, func(c transports.Caps) bool {
			return c.Kinds == all && c.InProcess && c.Events && c.LastByteLast && !c.LocalComplete
		}},
		{"a missing opcode is a missing kind", func(c *rdma.Caps) { c.Ops = rdma.Ops(rdma.OpSend, rdma.OpRead) },
			func(c transports.Caps) bool {
				return c.Kinds == transports.Kinds(transports.KindSend, transports.KindRead, transports.KindRecv)
			}},
		{"an immediate has room beside it, or is alone", func(c *rdma.Caps) { c.Features &^= rdma.FeatImmPayload },
			func(c transports.Caps) bool { return c.ImmAlone }},
		{"only the memory device is in one process", func(c *rdma.Caps) { c.Label = rdma.LabelDevice },
			func(c transports.Caps) bool { return !c.InProcess && c.Label == rdma.LabelDevice }},
		{"local completion is passed on", func(c *rdma.Caps) { c.Completion = rdma.CompletionLocal },
			func(c transports.Caps) bool { return c.LocalComplete }},
		{"no inline feature, no inline bytes", func(c *rdma.Caps) { c.Features &^= rdma.FeatInline },
			func(c transports.Caps) bool { return c.MaxInline == 0 }},
		{"no events", func(c *rdma.Caps) { c.Features &^= rdma.FeatEvents | rdma.FeatLastByteLast },
			func(c transports.Caps) bool { return !c.Events && !c.LastByteLast }},
		{"both queues fit the completion queue", func(c *rdma.Caps) { c.MaxCQE = 100 },
			func(c transports.Caps) bool { return 2*c.MaxDepth+cqSlack <= 100 }},
	} {
		if got := New(bent{Device: d, caps: c.bend}).Caps(); !c.ok(got) {
			t.Errorf("%s: caps = %+v", c.what, got)
		}
	}
	if got := New(d).Name(); got != d.Name() {
		t.Errorf("name = %q, want %q", got, d.Name())
	}
}

func TestASetUpTheDeviceCannotGiveIsRefusedWithTheGap(t *testing.T) {
	d := must(memdev.NewFabric(memdev.Config{}).Open("a"))(t)
	defer d.Close()
	cfg := transports.Config{Window: 4096, Events: true}
	for what, bend := range map[string]func(*rdma.Caps){
		"device lacks feature events":           func(c *rdma.Caps) { c.Features &^= rdma.FeatEvents },
		"device lacks 44 bytes of private data": func(c *rdma.Caps) { c.MaxPrivate = 43 },
	} {
		_, err := New(bent{Device: d, caps: bend}).Dial(soon(t), "a:1", nil, cfg)
		var gap *rdma.MissingError
		if !errors.Is(err, rdma.ErrNotSupported) || !errors.As(err, &gap) || gap.Error() != what {
			t.Errorf("dial: %v, want %q", err, what)
		}
	}
}

// What siw looks through before every post, nobody asks for in vain. A tier that reads
// on its own behalf (sched) keeps its room.
func TestWithoutReadsTheDeviceIsAskedForNone(t *testing.T) {
	d := must(memdev.NewFabric(memdev.Config{}).Open("a"))(t)
	defer d.Close()
	most := d.Caps().MaxRDAtom
	for _, c := range []struct {
		noReads, own bool
		want         int
	}{{false, false, most}, {true, false, 0}, {true, true, most}} {
		tr := New(bent{Device: d, caps: func(caps *rdma.Caps) { caps.OwnReads = c.own }}).(*transport)
		cfg := must(tr.normal(transports.Config{Window: 4096, NoReads: c.noReads}))(t)
		if p := tr.param(cfg, nil); p.IRD != c.want || p.ORD != c.want {
			t.Errorf("no reads %v, reads of the device's own %v: ird %d, ord %d, want %d", c.noReads, c.own, p.IRD,
				p.ORD, c.want)
		}
	}
}

func TestFlagsTheDeviceLacksAreRefused(t *testing.T) {
	r := newRig(t, func(d rdma.Device) rdma.Device {
		return bent{Device: d, caps: func(c *rdma.Caps) { c.Features &^= rdma.FeatInline | rdma.FeatFence }}
	}, transports.Config{Window: 4096})
	for _, f := range []transports.OpFlags{transports.Inline, transports.Fence,
		transports.Fence | transports.Unsignaled} {
		if n, err := r.near.Post([]transports.Op{{Kind: transports.KindWrite, Len: 8, Flags: f}}); n != 0 ||
			!errors.Is(err, rdma.ErrNotSupported) {
			t.Errorf("flags %b: post = %d, %v, want 0, %v", f, n, err, rdma.ErrNotSupported)
		}
	}
}

// A device may take part of a batch for reasons of its own. Places, signals and
// order must survive that, on the sending and on the receiving side.
func TestAStingyQueueLosesNothing(t *testing.T) {
	r := newRig(t, func(d rdma.Device) rdma.Device { return bent{Device: d, stingy: 3} },
		transports.Config{Window: 8192, SendDepth: 12, RecvDepth: 12})
	for _, way := range [][2]*session{{r.near, r.far}, {r.far, r.near}} {
		numbered(t, way[0], way[1])
	}
}

func numbered(t *testing.T, from, to *session) {
	const total = 300
	var next, recvs, arrived uint32
	dst := make([]transports.Done, 4)
	offer := func(s *session, n uint32, op func(k uint32) transports.Op) uint32 {
		var ops []transports.Op
		for k := n; k < total && len(ops) < 9; k++ {
			ops = append(ops, op(k))
		}
		took, err := s.Post(ops)
		if err != nil && err != rdma.ErrQueueFull {
			t.Fatal(err)
		}
		return n + uint32(took)
	}
	poll := func(s *session) []transports.Done {
		n := must(s.Poll(dst))(t)
		return dst[:n]
	}
	for deadline := time.Now().Add(30 * time.Second); arrived < total; {
		recvs = offer(to, recvs, func(k uint32) transports.Op {
			return transports.Op{Kind: transports.KindRecv, Len: 8, Slot: k}
		})
		next = offer(from, next, func(k uint32) transports.Op {
			op := transports.Op{Kind: transports.KindWriteImm, Imm: k, Slot: k, Len: 8}
			if k%7 != 0 {
				op.Flags = transports.Unsignaled
			}
			return op
		})
		for _, d := range poll(from) {
			if d.Status != 0 || d.Slot%7 != 0 {
				t.Fatalf("sender's done = %+v", d)
			}
		}
		for _, d := range poll(to) {
			if d.Status != 0 || d.Slot != arrived || d.Imm != arrived || !d.HasImm {
				t.Fatalf("receiver's done = %+v, want number %d", d, arrived)
			}
			arrived++
		}
		if time.Now().After(deadline) {
			t.Fatalf("%d of %d arrived, %d posted", arrived, total, next)
		}
	}
	for range 10 {
		poll(from)
	}
	if from.inUse != from.unsignaled || from.unsignaled >= from.signalEvery {
		t.Errorf("at rest %d places are in use, %d of them unsignaled; a signal is due every %d", from.inUse,
			from.unsignaled, from.signalEvery)
	}
	if to.recvInUse != 0 {
		t.Errorf("at rest %d receives are in use", to.recvInUse)
	}
}

func TestDepthsAreThoseOfTheSetUp(t *testing.T) {
	r := newRig(t, func(d rdma.Device) rdma.Device { return bent{Device: d, deeper: 100} },
		transports.Config{Window: 8192, SendDepth: 5, RecvDepth: 3})
	for kind, depth := range map[transports.Kind]int{transports.KindWrite: 5, transports.KindRecv: 3} {
		ops := make([]transports.Op, 50)
		for i := range ops {
			ops[i].Kind = kind
		}
		if n, err := r.near.Post(ops); n != depth || err != rdma.ErrQueueFull {
			t.Errorf("post of 50 ops of kind %v at depth %d = %d, %v", kind, depth, n, err)
		}
	}
}

func TestAnOpBecomesThisWorkRequest(t *testing.T) {
	var seen []rdma.SendWR
	r := newRig(t, func(d rdma.Device) rdma.Device { return bent{Device: d, seen: &seen} },
		transports.Config{Window: 4096, SendDepth: 8, RecvDepth: 8, MaxInline: 16})
	local, remote := r.near.base, r.near.peer.addr
	lkey, rkey := r.near.mr.LKey(), r.far.mr.RKey()
	sge := func(off uint64, n uint32) [rdma.MaxSGE]rdma.SGE {
		return [rdma.MaxSGE]rdma.SGE{{Addr: local + off, Len: n, LKey: lkey}}
	}
	for _, c := range []struct {
		op   transports.Op
		want rdma.SendWR
	}{
		{transports.Op{Kind: transports.KindSend, Local: 9, Len: 3, Flags: transports.Inline, Priority: 3},
			rdma.SendWR{Op: rdma.OpSend, Flags: rdma.Signaled | rdma.Inline, NumSGE: 1, SGE: sge(9, 3),
				RemoteAddr: remote, Priority: 3}},
		{transports.Op{Kind: transports.KindWrite, Local: 8, Remote: 16, Len: 8,
			Flags: transports.Unsignaled | transports.Fence},
			rdma.SendWR{Op: rdma.OpWrite, Flags: rdma.Fence, NumSGE: 1, SGE: sge(8, 8), RemoteAddr: remote + 16}},
		// An empty element would stand for 2^31 bytes on some devices.
		{transports.Op{Kind: transports.KindWriteImm, Remote: 1, Imm: 77},
			rdma.SendWR{Op: rdma.OpWriteImm, Flags: rdma.Signaled, NumSGE: 0, SGE: sge(0, 0), RemoteAddr: remote + 1,
				Imm: 77}},
		{transports.Op{Kind: transports.KindRead, Local: 1, Remote: 2, Len: 4},
			rdma.SendWR{Op: rdma.OpRead, Flags: rdma.Signaled, NumSGE: 1, SGE: sge(1, 4), RemoteAddr: remote + 2}},
		{transports.Op{Kind: transports.KindFetchAdd, Local: 8, Remote: 8, Add: 5},
			rdma.SendWR{Op: rdma.OpFetchAdd, Flags: rdma.Signaled, NumSGE: 1, SGE: sge(8, 8), RemoteAddr: remote + 8,
				CompareAdd: 5}},
		{transports.Op{Kind: transports.KindCmpSwap, Local: 8, Remote: 8, Len: 8, Add: 5, Swap: 6},
			rdma.SendWR{Op: rdma.OpCmpSwap, Flags: rdma.Signaled, NumSGE: 1, SGE: sge(8, 8), RemoteAddr: remote + 8,
				CompareAdd: 5, Swap: 6}},
	} {
		seen = seen[:0]
		c.op.Slot = 40
		n, err := r.far.Post([]transports.Op{{Kind: transports.KindRecv, Len: 8}})
		if n == 1 && err == nil {
			n, err = r.near.Post([]transports.Op{c.op})
		}
		if n != 1 || err != nil || len(seen) != 1 {
			t.Fatalf("%v: post = %d, %v, %d work requests", c.op.Kind, n, err, len(seen))
		}
		if idSlot(seen[0].ID) != 40 || idKind(seen[0].ID) != c.op.Kind {
			t.Errorf("%v: ID %#x", c.op.Kind, seen[0].ID)
		}
		c.want.ID, c.want.RKey = seen[0].ID, rkey
		if seen[0] != c.want {
			t.Errorf("%v became\n%+v, want\n%+v", c.op.Kind, seen[0], c.want)
		}
	}
}

func TestAFailureComesOutWithItsStatusThoughQuiet(t *testing.T) {
	for what, flags := range map[string]transports.OpFlags{"signaled": 0, "unsignaled": transports.Unsignaled} {
		t.Run(what, func(t *testing.T) {
			r := newRig(t, nil, transports.Config{Window: 4096, SendDepth: 8, RecvDepth: 2})
			for i := range r.near.sends {
				r.near.sends[i].RKey++ // the peer knows no such key
			}
			n, err := r.near.Post([]transports.Op{
				{Kind: transports.KindRecv, Len: 8, Slot: 3},
				{Kind: transports.KindWrite, Len: 8, Slot: 1, Flags: flags},
				{Kind: transports.KindWrite, Len: 8, Slot: 2, Flags: flags},
			})
			if n != 3 || err != nil {
				t.Fatalf("post = %d, %v", n, err)
			}
			got := map[uint32]rdma.Status{}
			for _, d := range collect(t, r.near, 3) {
				got[d.Slot] = d.Status
			}
			if got[1] != rdma.StatusRemAccessErr || got[2] != rdma.StatusWRFlushErr || got[3] != rdma.StatusWRFlushErr {
				t.Errorf("statuses = %v", got)
			}
			for i := 0; ; i++ {
				if _, err := r.near.Poll(make([]transports.Done, 1)); errors.Is(err, rdma.ErrState) {
					break
				} else if err != nil || i > 4*idlePolls {
					t.Fatalf("poll %d after the failure: %v, want %v soon", i, err, rdma.ErrState)
				}
			}
		})
	}
}

func TestAnIdleSessionNoticesTheEnd(t *testing.T) {
	r := newRig(t, nil, transports.Config{Window: 4096, Events: true})
	if err := r.far.Close(); err != nil {
		t.Fatal(err)
	}
	for end := time.Now().Add(30 * time.Second); r.near.qp.State() != rdma.QPErr; {
		if time.Now().After(end) {
			t.Fatal("the near QP never went to ERR")
		}
		r.near.Poll(nil)
	}
	if err := r.near.Wait(soon(t)); err != nil {
		t.Fatalf("wait: %v", err)
	}
	if _, err := r.near.Poll(make([]transports.Done, 1)); !errors.Is(err, rdma.ErrState) {
		t.Errorf("poll: %v, want %v", err, rdma.ErrState)
	}
}

func TestAStrangerIsRejectedAndTheNextTaken(t *testing.T) {
	near, far := hosts(t, memdev.Config{})
	server, client := New(far), New(near)
	l := must(server.Listen(soon(t), "far:0", transports.Config{Window: 4096}))(t)
	type accepted struct {
		s     transports.Session
		hello []byte
		err   error
	}
	got := make(chan accepted, 1)
	go func() {
		s, h, err := l.Accept(soon(t))
		got <- accepted{s, h, err}
	}()
	cq := must(near.NewCQ(4))(t)
	qp := must(near.NewQP(rdma.QPConfig{SendCQ: cq, RecvCQ: cq}))(t)
	if _, err := qp.Connect(soon(t), l.Addr(), rdma.ConnParam{PrivateData: []byte("who are you?")}); !errors.Is(err,
		rdma.ErrRejected) {
		t.Errorf("unknown peer's connect: %v, want %v", err, rdma.ErrRejected)
	}
	s := must(client.Dial(soon(t), l.Addr(), []byte("friend"), transports.Config{Window: 4096}))(t)
	a := <-got
	if a.err != nil || string(a.hello) != "friend" {
		t.Fatalf("accept: hello %q, %v", a.hello, a.err)
	}
	closeAll(t, s, a.s, l, qp, cq, client, server)
}

// When this side cannot go on, Accept says why and the dialler is not left waiting.
func TestAnAcceptThatFailsHereRejects(t *testing.T) {
	near, far := hosts(t, memdev.Config{})
	client := New(near)
	server := New(bent{Device: far, stingy: 1}) // its queue pairs are unknown peers to the device
	l := must(server.Listen(soon(t), "far:0", transports.Config{Window: 4096}))(t)
	accepted := make(chan error, 1)
	go func() {
		_, _, err := l.Accept(soon(t))
		accepted <- err
	}()
	s, err := client.Dial(soon(t), l.Addr(), nil, transports.Config{Window: 4096})
	if !errors.Is(err, rdma.ErrRejected) {
		t.Errorf("dial = %v, %v, want %v", s, err, rdma.ErrRejected)
	}
	if err := <-accepted; !errors.Is(err, rdma.ErrInvalid) {
		t.Errorf("accept: %v, want %v", err, rdma.ErrInvalid)
	}
	closeAll(t, l, client, server) // nothing was left open
}

func TestAStrangeAnswerEndsTheDial(t *testing.T) {
	near, far := hosts(t, memdev.Config{})
	l := must(far.Listen(soon(t), "far:0", 1))(t)
	cq := must(far.NewCQ(4))(t)
	qp := must(far.NewQP(rdma.QPConfig{SendCQ: cq, RecvCQ: cq}))(t)
	answered := make(chan error, 1)
	go func() {
		req, err := l.Accept(soon(t))
		if err == nil {
			_, err = req.Accept(soon(t), qp, rdma.ConnParam{PrivateData: []byte("welcome")})
		}
		answered <- err
	}()
	client := New(near)
	s, err := client.Dial(soon(t), l.Addr(), nil, transports.Config{Window: 4096})
	if !errors.Is(err, rdma.ErrProtocol) {
		t.Errorf("dial = %v, %v, want %v", s, err, rdma.ErrProtocol)
	}
	if err := <-answered; err != nil {
		t.Error(err)
	}
	closeAll(t, l, qp, cq, client, far) // the failed dial left nothing open
}
