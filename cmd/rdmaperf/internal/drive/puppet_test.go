package drive

import (
	"context"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/engine"
	"github.com/rdmaperf/rdmaperf/reports"
	"github.com/rdmaperf/rdmaperf/transports"
	"github.com/rdmaperf/rdmaperf/transports/rdma"
)

// bubble runs something in a bubble of testing/synctest, whose clock begins at 0.
func bubble(t *testing.T, run func(t *testing.T)) {
	t.Helper()
	defer engine.RestartClock()
	synctest.Test(t, func(t *testing.T) {
		engine.RestartClock()
		run(t)
	})
}

// puppet is a session that does what a test says, and keeps what was posted.
type puppet struct {
	mem    []byte
	posted []transports.Op
	room   int   // operations that it takes yet; negative: all
	refuse error // what it says behind those
	done   []transports.Done
	steps  func(call int, vs []transports.PingPongStep) (int, error)
	calls  int
	ended  int // of what was posted
	polls  int
	onPoll func(n int)
	lost   error // of polls
}

func (p *puppet) Local() []byte              { return p.mem }
func (p *puppet) RemoteLen() uint64          { return uint64(len(p.mem)) }
func (p *puppet) Wait(context.Context) error { return nil }
func (p *puppet) Close() error               { return nil }

func (p *puppet) Post(ops []transports.Op) (int, error) {
	if len(ops) == 0 {
		panic("nothing is posted")
	}
	n := len(ops)
	if p.room >= 0 {
		n = min(n, p.room)
		p.room -= n
	}
	p.posted = append(p.posted, ops[:n]...)
	if n < len(ops) {
		return n, p.refuse
	}
	return n, nil
}

func (p *puppet) Poll(dst []transports.Done) (int, error) {
	if p.polls++; p.onPoll != nil {
		p.onPoll(p.polls)
	}
	n := copy(dst, p.done)
	p.done = p.done[n:]
	if n == 0 {
		return 0, p.lost
	}
	return n, nil
}

func (p *puppet) PingPong(vs []transports.PingPongStep, _ []transports.Done) (int, error) {
	if p.calls++; p.calls > 100 {
		panic("asked for ever")
	}
	return p.steps(p.calls, vs)
}

// complete has all signalled operations end that were posted since it was called last, and gives them.
func (p *puppet) complete() []transports.Op {
	ops := p.posted[p.ended:]
	for _, op := range ops {
		if op.Kind != transports.KindRecv && op.Flags&transports.Unsignaled == 0 {
			p.done = append(p.done, transports.Done{Kind: op.Kind, Slot: op.Slot, Len: op.Len})
		}
	}
	p.ended = len(p.posted)
	return ops
}

// flowOn is one side of a stream both ways, or with one-way of one, whose shape a test may change before.
func flowOn(op, role string, both bool, change func(sh *engine.Shape)) (*puppet, *Flow, *flowWorker, *flowLane) {
	sh := &engine.Shape{Counted: true, Numbers: true,
		Point: engine.Point{Words: op, Op: op, Size: 100, Bidirectional: both}, Depth: 8, RecvDepth: 16, Moderation: 1,
		Slots: 32, Polling: engine.PollingBusy, Verify: true, Seed: 1}
	if change != nil {
		change(sh)
	}
	p, base, l := pulled(sh, role)
	g := &engine.Group{Sh: sh, Role: role, Lanes: []*engine.Lane{l}, Workers: []*engine.Worker{base}}
	side, _ := NewFlow(g)
	f := side.(*Flow)
	return p, f, f.workers[0], f.workers[0].lanes[0]
}

func bothWaysOn(op, role string, change func(sh *engine.Shape)) (*puppet, *Flow, *flowWorker, *flowLane) {
	return flowOn(op, role, true, change)
}

// pulled is a lane of a shape on a puppet, and the worker that drives it.
func pulled(sh *engine.Shape, role string) (*puppet, *engine.Worker, *engine.Lane) {
	if sh.QPs == 0 {
		sh.QPs, sh.Threads = 1, 1
	}
	sh.Timeout = engine.DefaultTimeout
	if sh.Layout.Window == 0 {
		sh.Layout = sh.StreamLayout()
	}
	p := &puppet{mem: make([]byte, sh.Window()), room: -1, refuse: rdma.ErrQueueFull}
	w := engine.NewWorker(sh, role, -1)
	w.Rec, w.Stop, w.Ctx = reports.NewRecorder(), new(atomic.Uint32), context.Background()
	l := engine.NewLane(p, sh, 0)
	w.Lanes = []*engine.Lane{l}
	return p, w, l
}

// pingPongOn is one of a ping-pong of an operation, of 64 bytes where no size is said.
func pingPongOn(t *testing.T, op, role, arrival string, size ...int) (*puppet, *pingPongWorker, *pingPongLane) {
	t.Helper()
	sh := &engine.Shape{Point: engine.Point{Op: op, Size: append(size, 64)[0]}, Depth: 1,
		Moderation: 1, Polling: engine.PollingBusy, Arrival: arrival}
	sh.Slots = LatencySlotsFor(sh.Size)
	sh.RecvDepth, sh.Layout = sh.Slots, PingPongLayout(sh)
	p, base, l := pulled(sh, role)
	lane, err := newPingPongLane(base, l)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { lane.ref.Free() })
	return p, &pingPongWorker{Worker: base, lanes: []*pingPongLane{lane}, inProvider: true}, lane
}

// met has the first n of steps end, each of which took so long.
func met(vs []transports.PingPongStep, n int, took int64) {
	at := engine.Now()
	for i := range vs {
		vs[i].HasAsk = false
		if vs[i].Met = i < n; vs[i].Met {
			vs[i].Start, vs[i].Took = at+int64(i)*took, took
		}
	}
}

var alone = exchange{divide: 1, until: rdma.UntilSend, begin: beginRead,
	verify: func(*pingPongWorker, *pingPongLane, *roundTrip) error { return nil }}

// SendStart has the client of a stream both ways begin it, and do no more.
func SendStart(client engine.Side) (bool, error) {
	w := client.(*Flow).workers[0]
	return w.sendControl(w.lanes[0], ctlStart)
}
