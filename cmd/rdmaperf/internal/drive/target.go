package drive

import (
	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/engine"
	"github.com/rdmaperf/rdmaperf/transports"
	"github.com/rdmaperf/rdmaperf/transports/rdma"
)

// Turns is a loop of a server: it calls one for every lane in turn until it fails or the flag is set.
func Turns[L any](w *engine.Worker, lanes []L, one func(L) error) error {
	w.Begin = engine.Now()
	taken, sleep := int64(0), int64(0)
	for !w.Stopped() { // here as well as in Idle, which a flood of messages never reaches
		for _, l := range lanes {
			if err := one(l); err != nil {
				w.End = engine.Now()
				if err == engine.ErrStop {
					return nil
				}
				return err
			}
		}
		switch {
		case !w.Sleeps:
		case w.Ops > taken:
			taken = w.Ops
			// Half of the receives are taken before the client gets credit.
			sleep = SleepTime(w.Sh.RecvDepth/2, taken, engine.Now()-w.Begin)
		case sleep >= leastSleep:
			Sleep(sleep)
		}
	}
	w.End = engine.Now()
	return nil
}

func pollTurn(w *engine.Worker, l *engine.Lane) error {
	n, err := w.Poll(l)
	if err != nil {
		return err
	}
	return completed(l, w.Done[:n])
}

func completed(l *engine.Lane, done []transports.Done) error {
	for i := range done {
		if d := &done[i]; d.Status != rdma.StatusSuccess {
			return engine.StatusError(l, *d)
		}
	}
	return nil
}

// exposed has windows that the client reads and writes; its thread only polls, or sleeps where its device needs none.
type exposed struct {
	c     *engine.Group
	fill  bool                                        // sources have the pattern
	check func(p *Proof, sent engine.LaneCount) error // nil: nothing was written
}

// NewExposed makes one. fill is for clients that read; check holds a window against what the client says it wrote.
func NewExposed(c *engine.Group, fill bool, check func(p *Proof, sent engine.LaneCount) error) engine.Side {
	return &exposed{c, fill, check}
}

func (e *exposed) Prepare(gen int) error {
	for _, l := range e.c.Lanes {
		l.ClearSlots()
		if e.fill {
			(&Proof{L: l, Gen: gen}).fillSlots()
		}
	}
	return nil
}

func (e *exposed) Loop(w *engine.Worker) func() error { return onlyPoll(w) }

func onlyPoll(w *engine.Worker) func() error {
	if w.Sh.Idle {
		return w.Rest
	}
	return func() error { return Turns(w, w.Lanes, func(l *engine.Lane) error { return pollTurn(w, l) }) }
}

func (e *exposed) Counts() []engine.LaneCount { return nil }
func (e *exposed) Close() error               { return nil }

func (e *exposed) Verify(gen int, sent []engine.LaneCount) error {
	if err := e.c.VerifyCounts(sent); err != nil || e.check == nil {
		return err
	}
	for _, w := range e.c.Workers {
		for _, l := range w.Lanes {
			p := NewProof(w, l)
			p.Gen = gen
			if err := e.check(&p, sent[l.Index]); err != nil {
				return err
			}
		}
	}
	return nil
}

// Where the kernel is the device, its threads need the CPUs that poll, so both ends of a stream sleep for a 64th of
// what the queue holds; a sleep may last four times as long. MostSleep is a sixth of a fair scheduler's slice; below
// leastSleep most of it is slack of the kernel's timers.
const (
	sleepPart        = 64
	MostSleep  int64 = 500_000 // ns
	leastSleep int64 = 100_000
)

// SleepTime is for how many ns a worker may sleep with left operations to do, after done of them in took ns.
func SleepTime(left int, done, took int64) int64 {
	if left <= 0 || done <= 0 {
		return 0
	}
	return min(took/done*int64(left)/sleepPart, MostSleep)
}

// Sleep sleeps for so many ns. A variable, so that tests can have a clock of their own.
var Sleep = engine.SleepFor
