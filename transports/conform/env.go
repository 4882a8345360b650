package conform

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/rdmaperf/rdmaperf/transports/rdma"
)

// quietTime is how long "nothing happens" is watched. It can only miss a fault, never invent one.
const quietTime = 250 * time.Millisecond

// Env is the world of one running case: two devices, and fixtures that are ended with the case. A and B, the
// initiator's and the acceptor's device, and ListenAddr are for cases that bring their own fixtures; the cases here use
// the helpers, which end the case at the first broken requirement by unwinding to the runner, as t.Fatal does.
type Env struct {
	T
	A, B       rdma.Device
	ListenAddr string
	Caps       rdma.Caps  // what both devices can do
	Rand       *rand.Rand // seeded by the run's seed and the case ID
	Profile    Profile

	ctx      context.Context // ends at the case's deadline or when the case is over
	cancel   context.CancelFunc
	h        *Harness
	path     Path // of a case that needs one
	boxes    []*cqBox
	conns    []*conn
	regions  []*region
	listener rdma.Listener
	closers  []closer
	tasks    []*task
	scratch  [64]rdma.WC
	salt     uint64
	stuck    bool // a goroutine did not come back: memory must stay mapped
	dead     bool // device b was killed: its objects may fail to close
}

// closer ends one object; rank orders QP, CQ and SRQ, listener, MR, PD, memory.
type closer struct {
	rank int
	what string
	far  bool // an object of device b
	f    func() error
}

const (
	rankQP = iota
	rankCQ
	rankListener
	rankMR
	rankPD
	rankMem
	numRanks
)

func newEnv(ctx context.Context, h *Harness, addr string, caps rdma.Caps, o Options, seed uint64) *Env {
	e := &Env{A: h.a, B: h.b, ListenAddr: addr, Caps: caps, Profile: o.Profile,
		Rand: rand.New(rand.NewPCG(seed, 0x5eed)), salt: seed, h: h, path: h.path}
	e.ctx, e.cancel = context.WithCancel(ctx)
	// Events of the case before are none of this one's business.
	for _, d := range []rdma.Device{e.A, e.B} {
		for _, more := d.Event(); more; _, more = d.Event() {
		}
	}
	return e
}

// run executes the case, checks the rules that hold in every case, and ends the fixtures whatever happened.
func (e *Env) run(c *Case) error {
	err := e.Guard(func() { c.Run(e) })
	if err == nil {
		err = e.Guard(e.checkLeftovers)
	}
	if cerr := e.call(e.close); err == nil {
		err = cerr
	}
	return err
}

// call is Guard for what returns an error too.
func (e *Env) call(f func() error) (err error) {
	if ended := e.Guard(func() { err = f() }); ended != nil {
		return ended
	}
	return err
}

func (e *Env) failf(want string, format string, args ...any) {
	e.Fail(fmt.Sprintf(format, args...), want)
}

func (e *Env) must(what string, err error) {
	if err != nil {
		e.failf(what+" succeeds", "%v", err)
	}
}

func (e *Env) refusedWith(what string, err error, want ...error) {
	var names []string
	for _, w := range want {
		if errors.Is(err, w) {
			return
		}
		names = append(names, fmt.Sprintf("%s fails with %q", what, w.Error()))
	}
	got := "no error"
	if err != nil {
		got = err.Error()
	}
	e.Fail(got, names...)
}

func (e *Env) loops(fast, full int) int {
	if e.Profile == Full {
		return full
	}
	return fast
}

func (e *Env) step() bool {
	any := false
	for _, b := range e.boxes {
		if !b.asleep && !b.closed && b.poll() {
			any = true
		}
	}
	return any
}

// wait polls both sides until the condition holds. The case's deadline ends it as a mismatch.
func (e *Env) wait(what func() string, until func() bool) {
	start := time.Now()
	for idle, turn := 0, 0; !until(); turn++ {
		idle++
		if e.step() {
			idle = 0
		}
		if idle > 200 {
			rest(idle)
		} else if turn%256 != 0 { // what moves on has its deadline, too
			continue
		}
		if e.ctx.Err() != nil {
			if errors.Is(e.ctx.Err(), context.Canceled) {
				panic(halt{fmt.Errorf("case cancelled while waiting for %s", what())})
			}
			e.failf(what(), "nothing more in %v%s", time.Since(start).Round(time.Millisecond), e.states())
		}
	}
}

func (e *Env) waitFor(what string, until func() bool) { e.wait(func() string { return what }, until) }

func (e *Env) pause(d time.Duration) {
	end := time.Now().Add(d)
	for idle := 200; time.Now().Before(end) && e.ctx.Err() == nil; idle++ {
		if e.step() {
			idle = 200
		} else {
			rest(idle)
		}
	}
}

// rest leaves the processor to the provider's goroutines, longer when nothing has come for a while.
func rest(idle int) {
	if idle < 400 {
		time.Sleep(20 * time.Microsecond)
	} else {
		time.Sleep(200 * time.Microsecond)
	}
}

func (e *Env) states() string {
	s := ""
	for _, c := range e.conns {
		s += fmt.Sprintf("; %s %s, %s %s", c.a.name, c.a.qp.State(), c.b.name, c.b.qp.State())
	}
	return s
}

// short is a context for a call that has to end by itself: d, and with the case at the latest.
func (e *Env) short(d time.Duration) context.Context {
	ctx, cancel := context.WithTimeout(e.ctx, d)
	context.AfterFunc(e.ctx, cancel)
	return ctx
}

func (e *Env) onClose(rank int, dev rdma.Device, what string, f func() error) {
	e.closers = append(e.closers, closer{rank, what, dev == e.B, f})
}

// checkLeftovers enforces the rules of every case: nothing is left in a CQ, and no byte outside a buffer has changed.
func (e *Env) checkLeftovers() {
	for e.step() {
	}
	for _, b := range e.boxes {
		for _, x := range b.ends {
			x.s.checkLeftovers()
			x.r.checkLeftovers()
		}
	}
	for _, r := range e.regions {
		r.checkCanaries()
	}
}

// checkLeftovers requires no completion that nobody took; file has checked those of a flush.
func (q *workQueue) checkLeftovers() {
	for i := range q.done {
		if q.done[i].Status != rdma.StatusWRFlushErr {
			q.e.failf("no completion but the expected ones", "one more: %s", q.text(&q.done[i]))
		}
	}
}

// close ends all in the order the waist asks for, and returns the first failure.
func (e *Env) close() error {
	e.cancel()
	var first error
	for _, t := range e.tasks {
		if !t.join(2 * time.Second) {
			e.stuck = true
			if first == nil {
				first = fmt.Errorf("%s did not return after its deadline", t.what)
			}
		}
	}
	for rank := range numRanks {
		if e.stuck && rank == rankMem {
			break // a stuck goroutine may still touch it
		}
		for _, c := range slices.Backward(e.closers) {
			if c.rank != rank {
				continue
			}
			err := e.call(c.f)
			if err != nil && first == nil && !(e.dead && c.far) {
				first = &Mismatch{Want: []string{"close " + c.what + " succeeds"}, Got: err.Error()}
			}
		}
	}
	return first
}
