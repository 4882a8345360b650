package drive

import (
	"encoding/binary"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/engine"
	"github.com/rdmaperf/rdmaperf/reports"
	"github.com/rdmaperf/rdmaperf/transports"
	"github.com/rdmaperf/rdmaperf/transports/rdma"
)

// streamOn is the client's side of a stream, whose shape a test may change before.
func streamOn(op string, change func(sh *engine.Shape)) (*puppet, *stream, *streamWorker, *streamLane) {
	sh := &engine.Shape{Row: &engine.Workload{Numbered: true, Stream: true, Layout: (*engine.Shape).StreamLayout, Describe: func(engine.Point) string { return op }},
		Point: engine.Point{Op: op, Size: 100}, Depth: 8, RecvDepth: 16, Moderation: 1, Slots: 8, Polling: engine.PollingBusy, Seed: 1}
	if change != nil {
		change(sh)
	}
	p, base, l := pulled(sh, engine.SideClient)
	side, _ := NewStream(&engine.Group{Sh: sh, Role: engine.SideClient, Lanes: []*engine.Lane{l}, Workers: []*engine.Worker{base}})
	s := side.(*stream)
	return p, s, s.workers[0], s.workers[0].lanes[0]
}

// said is a credit for so many messages.
func (l *streamLane) said(p *puppet, n uint64) {
	binary.LittleEndian.PutUint64(l.Mem[l.Sh.CtlRx(3):], n)
	p.done = append(p.done, transports.Done{Kind: transports.KindRecv, Slot: 3, Len: 8})
}

// answering has every poll take 100 ns, at the end of which all is complete that was posted, and
// a barrier answered.
func (l *streamLane) answering(p *puppet) {
	messages := uint64(0)
	p.onPoll = func(int) {
		time.Sleep(100)
		for _, op := range p.complete() {
			if engine.TakesReceives(op.Kind) {
				messages++
			}
			if op.Kind == transports.KindSend && op.Len == 0 {
				l.said(p, messages)
			}
		}
	}
}

// A stream has its depth outstanding until its operations are posted or its time is over, and ends
// with the answer to its barrier; what is seen complete counts at once.
func TestAStreamFillsItsWindow(t *testing.T) {
	for _, c := range []struct {
		name, op    string
		lim         engine.Limits
		ops, window int64
	}{
		// A turn posts 8, which are complete at its end; the tail takes another, and so does the barrier.
		{"so many", "write", engine.Limits{Ops: 33}, 33, 600}, {"one", "write", engine.Limits{Ops: 1}, 1, 300},
		{"for a time", "write", engine.Limits{Dur: 500}, 5*8 + 1, 700}, {"for a little more", "write", engine.Limits{Dur: 501}, 6*8 + 1, 800},
		{"so many reads", "read", engine.Limits{Ops: 33}, 33, 500}, {"reads for a time", "read", engine.Limits{Dur: 500}, 5*8 + 1, 600},
	} {
		synctest.Test(t, func(t *testing.T) {
			engine.RestartClock()
			p, s, w, l := streamOn(c.op, nil)
			if err := s.Prepare(engine.GenMeasure); err != nil {
				t.Fatal(err)
			}
			p.complete()
			l.answering(p)
			w.Lim = c.lim
			err := s.Loop(w.Worker)()
			var counted int64
			for _, n := range w.Peak.Slots {
				counted += n
			}
			if err != nil || w.Ops != c.ops || l.Posted != c.ops || counted != c.ops || w.End-w.Begin != c.window || l.Out != 0 {
				t.Errorf("%s: %v, %d operations, %d counted, in %d ns; want %d in %d", c.name, err, w.Ops, counted, w.End-w.Begin, c.ops, c.window)
			}
		})
		engine.RestartClock()
	}
}

// No more is posted than the depth, what is left, and the receives of the peer allow; a queue that
// is full takes the rest later, and another refusal ends the stream.
func TestAStreamKeepsToItsBounds(t *testing.T) {
	for _, c := range []struct {
		name      string
		out       int
		remaining int64
		acked     uint64 // of 20 messages
		room      int
		refuse    error
		want      int
		lost      bool
	}{
		{"an empty queue", 0, 100, 20, -1, nil, 8, false}, {"a part", 3, 100, 20, -1, nil, 5, false}, {"a full one", 8, 100, 20, -1, nil, 0, false},
		{"the last", 0, 2, 20, -1, nil, 2, false}, {"none left", 0, 0, 20, -1, nil, 0, false},
		{"few receives", 0, 100, 7, -1, nil, 3, false}, {"no receives", 0, 100, 4, -1, nil, 0, false},
		{"room for some", 0, 100, 20, 3, rdma.ErrQueueFull, 3, false}, {"no room", 0, 100, 20, 0, rdma.ErrQueueFull, 0, false}, {"refused", 0, 100, 20, 3, errBroken, 3, true},
	} {
		p, _, w, l := streamOn("send", nil)
		l.Out, l.remaining, l.Messages, l.acked, p.room, p.refuse = c.out, c.remaining, 20, c.acked, c.room, c.refuse
		n, err := w.push(l, nil)
		if n != c.want || errors.Is(err, errBroken) != c.lost || err != nil != c.lost || len(p.posted) != c.want {
			t.Errorf("%s: %d, %v, posted %d, want %d", c.name, n, err, len(p.posted), c.want)
		}
		if k := int64(c.want); l.Posted != k || l.remaining != c.remaining-k || l.Out != c.out+c.want || l.Messages != 20+uint64(k) || l.Head != c.want%8 {
			t.Errorf("%s: %d posted, %d remain, %d out, %d messages, then %d", c.name, l.Posted, l.remaining, l.Out, l.Messages, l.Head)
		}
	}
}

// A credit says how many messages were taken: more than before, and no more than were sent.
func TestCreditsOfAStream(t *testing.T) {
	for n, fine := range map[uint64]bool{10: false, 9: false, 11: true, 20: true, 21: false} {
		p, _, w, l := streamOn("send", nil)
		l.Messages, l.acked = 20, 10
		l.said(p, n)
		got, err := w.collect(l)
		if (err == nil) != fine || err != nil && reports.Code(err) != reports.ExitPeer || fine && (l.acked != n || got != 1 || len(p.posted) != 1 || p.posted[0] != l.CtlRecv(3)) {
			t.Errorf("%d taken: %v, %d, posted %+v", n, err, l.acked, p.posted)
		}
	}
	p, _, w, l := streamOn("send", nil)
	l.Messages = 20
	l.said(p, 5)
	p.room, p.refuse = 0, errBroken
	if _, err := w.collect(l); !errors.Is(err, errBroken) {
		t.Errorf("a receive that is refused: %v", err)
	}
	p.lost = errors.New("gone")
	if _, err := w.collect(l); !errors.Is(err, p.lost) {
		t.Errorf("%v, want %v", err, p.lost)
	}
}
