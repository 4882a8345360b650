package allreduce

import (
	"context"
	"errors"
	"fmt"
	"os"
	"runtime"
	"time"

	"golang.org/x/sys/unix"

	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/arms"
	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/disturbance"
	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/workload/allreduce/mesh"
	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/workload/allreduce/steps"
	"github.com/rdmaperf/rdmaperf/regcache/offload"
	"github.com/rdmaperf/rdmaperf/reports"
	"github.com/rdmaperf/rdmaperf/transports/rdma"
)

// Link is the way between a rank and its parent: JSON values in order. Receive is io.EOF at the end.
type Link interface {
	Send(v any) error
	Receive(ctx context.Context, v any) error
}

// serveRank is the life of a rank: it obeys its parent until the link or ctx ends, or until something fails, which it
// says. One thread does everything: computation and communication overlap only in what the device does by itself.
func serveRank(ctx context.Context, link Link, open func(stack string) (rdma.Device, error)) (err error) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	s := &server{open: open}
	defer func() { err = errors.Join(err, s.close()) }()
	for {
		var o Order
		if err := link.Receive(ctx, &o); err != nil {
			return err
		}
		a, err := s.obey(ctx, o)
		if err != nil {
			a = Answer{Fault: &Fault{Message: err.Error(), Corrupt: errors.Is(err, errSum),
				Unsupported: errors.Is(err, rdma.ErrNotSupported)}}
		}
		if e := link.Send(a); e != nil {
			return e
		}
		if err != nil {
			return nil // the parent has heard
		}
	}
}

type server struct {
	open  func(stack string) (rdma.Device, error)
	dev   rdma.Device
	mesh  *mesh.Mesh
	hello Hello
	left  []func() error // what a failed measurement held, which queue pairs may still use
}

func (s *server) close() error {
	var errs []error
	if s.mesh != nil {
		errs = append(errs, s.mesh.Close())
	}
	for _, end := range s.left {
		errs = append(errs, end())
	}
	if s.dev != nil {
		errs = append(errs, s.dev.Close())
	}
	return errors.Join(errs...)
}

func (s *server) obey(ctx context.Context, o Order) (a Answer, err error) {
	switch {
	case o.Hello != nil && s.dev == nil:
		s.hello = *o.Hello
		if s.dev, err = s.open(s.hello.Stack); err != nil {
			return a, err
		}
		if s.mesh, err = mesh.Open(s.dev, s.hello.Listen, s.hello.Config); err != nil {
			return a, err
		}
		return Answer{Addr: s.mesh.Addr(), Name: s.dev.Name(), Label: string(s.dev.Caps().Label), PID: os.Getpid()}, nil
	case o.Join != nil && s.mesh != nil:
		return Answer{Ready: true}, s.mesh.Join(ctx, o.Join.Addrs, o.Join.Token)
	case o.Run != nil && s.mesh != nil:
		a.Times, err = s.run(ctx, o.Run)
		return a, err
	}
	return a, fmt.Errorf("an order out of turn: %w", rdma.ErrState)
}

// Order is a line from the parent; one member is set.
type Order struct {
	Hello *Hello `json:"hello,omitempty"`
	Join  *Join  `json:"join,omitempty"`
	Run   *Run   `json:"run,omitempty"`
}

// Hello is the first order: what the rank is.
type Hello struct {
	Stack  string `json:"stack"`
	Listen string `json:"listen"` // "host:port"
	mesh.Config
}

// Join is the second order: where the others are.
type Join struct {
	Addrs []string `json:"addrs"`
	Token uint64   `json:"token"`
}

type Run struct {
	Algorithm  string `json:"algorithm"`
	Arm        string `json:"arm"`
	Bytes      int    `json:"bytes"` // of the vector, a multiple of 4
	Fresh      bool   `json:"fresh"` // buffers are mapped and unmapped in each iteration
	Offload    string `json:"offload"`
	Deferred   int    `json:"deferred_bytes"`
	Warmup     int    `json:"warmup"`
	Iterations int    `json:"iterations"`
	Verify     bool   `json:"verify"`
	Seed       uint64 `json:"seed"`
}

// Answer is a line to the parent; one member is set.
type Answer struct {
	Addr  string `json:"addr,omitempty"`  // of Hello
	Name  string `json:"name,omitempty"`  // likewise: the stack's full name
	Label string `json:"label,omitempty"` // likewise: of its results
	PID   int    `json:"pid,omitempty"`   // likewise: of the process
	Ready bool   `json:"ready,omitempty"` // of Join
	Times *Times `json:"times,omitempty"` // of Run
	Fault *Fault `json:"fault,omitempty"` // instead of any
}

// Times are nanoseconds, one an iteration.
type Times struct {
	Map    []int64          `json:"map_ns,omitempty"` // both buffers, and a touch of each page
	Reduce []int64          `json:"reduce_ns"`        // the all-reduce
	Unmap  []int64          `json:"unmap_ns,omitempty"`
	Cache  map[string]int64 `json:"cache,omitempty"`
	Most   uint64           `json:"most_deferred_bytes,omitempty"`
	Window int64            `json:"window_ns"` // from behind the warm-up to the end
	CPU    int64            `json:"cpu_ns"`    // user and system, of the whole process in the window
	Noise  reports.Noise    `json:"noise"`     // of the rank's thread and connections in the window
}

// Fault is the end of the rank.
type Fault struct {
	Message     string `json:"message"`
	Corrupt     bool   `json:"corrupt,omitempty"`     // a sum is wrong
	Unsupported bool   `json:"unsupported,omitempty"` // the device or the arm cannot do it
}

const elem, page = 4, 4096 // bytes of a float32, and of a touch

var errSum = errors.New("wrong sum")

type reducer interface {
	Barrier(ctx context.Context) error
	Reduce(ctx context.Context, list []steps.Step, in, out rdma.Buffer, arm arms.Arm) error
}

type work struct {
	*Run
	s     *server
	m     reducer
	arm   arms.Arm
	list  []steps.Step
	in    rdma.Buffer // what this rank has to add
	out   rdma.Buffer // the sum
	times Times
}

// run takes a measurement: every iteration adds other numbers, and sums are compared outside the measured time.
func (s *server) run(ctx context.Context, r *Run) (_ *Times, err error) {
	if r.Bytes < elem || r.Bytes%elem != 0 || r.Iterations < 1 || r.Warmup < 0 || r.Deferred < 0 {
		return nil, fmt.Errorf("%d iterations of %d bytes: %w", r.Iterations, r.Bytes, rdma.ErrInvalid)
	}
	w := &work{Run: r, s: s, m: s.mesh}
	if w.list, err = steps.Of(r.Algorithm, s.hello.Rank, s.hello.Size, r.Bytes/elem); err != nil {
		return nil, err
	}
	if err := s.mesh.Reserve(r.Bytes); err != nil {
		return nil, err
	}
	detour, err := offload.Parse(r.Offload)
	if err != nil {
		return nil, err
	}
	set := arms.Settings{Reg: s.dev, Access: rdma.LocalWrite | rdma.RemoteWrite, Pages: rdma.PagesBase, Piece: r.Bytes,
		Deferred: max(r.Deferred, 2*r.Bytes)}
	end := func() error { return nil } // of the detour
	if detour != (offload.Config{}) {
		o := offload.Wrap(s.dev, detour)
		set.Reg, end = o, o.Close
	}
	if w.arm, err = arms.New(r.Arm, set); err != nil {
		return nil, errors.Join(err, end())
	}
	if err := w.all(ctx); err != nil {
		s.left = append(s.left, w.give, w.arm.Close, end)
		return nil, err
	}
	c, pool := w.arm.Counters()
	if c != nil {
		w.times.Cache = c.Map()
	}
	if pool != nil {
		w.times.Most = pool.Most
	}
	return &w.times, errors.Join(w.arm.Close(), end())
}

func (w *work) all(ctx context.Context) error {
	if !w.Fresh {
		if err := w.take(); err != nil {
			return err
		}
	}
	var cpu int64
	var began time.Time
	var before reports.Noise
	for i := range w.Warmup + w.Iterations {
		if i == w.Warmup {
			before = noise()
			began, cpu = time.Now(), cpuTime()
		}
		if err := w.iteration(ctx, i, i >= w.Warmup); err != nil {
			return err
		}
	}
	w.times.Window, w.times.CPU = time.Since(began).Nanoseconds(), cpuTime()-cpu
	w.times.Noise = disturbance.Between(before, noise())
	if !w.Fresh {
		return w.give()
	}
	return nil
}

func (w *work) iteration(ctx context.Context, i int, note bool) error {
	t0 := time.Now()
	if w.Fresh {
		if err := w.take(); err != nil {
			return err
		}
	}
	mapped := time.Since(t0)
	shift := int(w.Seed+uint64(i)) & (period - 1)
	fill(mesh.Floats(w.in.Bytes()), shift, 1, w.s.hello.Rank)
	if err := w.m.Barrier(ctx); err != nil {
		return err
	}
	t0 = time.Now()
	if err := w.m.Reduce(ctx, w.list, w.in, w.out, w.arm); err != nil {
		return err
	}
	reduced := time.Since(t0)
	if w.Verify {
		p := w.s.hello.Size
		if err := compare(mesh.Floats(w.out.Bytes()), shift, p, p*(p-1)/2); err != nil {
			return fmt.Errorf("iteration %d: %w", i, err)
		}
	}
	t0 = time.Now()
	if w.Fresh {
		if err := w.give(); err != nil {
			return err
		}
	}
	if note {
		w.times.Reduce = append(w.times.Reduce, reduced.Nanoseconds())
		if w.Fresh {
			w.times.Map = append(w.times.Map, mapped.Nanoseconds())
			w.times.Unmap = append(w.times.Unmap, time.Since(t0).Nanoseconds())
		}
	}
	return nil
}

func (w *work) take() (err error) {
	for _, b := range []*rdma.Buffer{&w.in, &w.out} {
		if *b, err = w.arm.Take(w.Bytes); err != nil {
			return err
		}
		p := b.Bytes()
		for i := 0; i < len(p); i += page {
			p[i] = 1
		}
	}
	return nil
}

func (w *work) give() error {
	var errs []error
	for _, b := range []*rdma.Buffer{&w.in, &w.out} {
		if len(b.Bytes()) > 0 {
			errs = append(errs, w.arm.Give(*b))
		}
		*b = rdma.Buffer{}
	}
	return errors.Join(errs...)
}

// period is after how many elements numbers come again; with 32 ranks every sum is far below 2^24 and so exact.
const period = 1024

// fill writes elements of the sum of p ranks, whose own numbers add up to sum.
func fill(v []float32, shift, p, sum int) {
	n := min(len(v), period)
	for k := range n {
		v[k] = float32(p*((k+shift)&(period-1)) + sum)
	}
	for ; n > 0 && n < len(v); n *= 2 { // a multiple of the period each time
		copy(v[n:], v[:n])
	}
}

func compare(v []float32, shift, p, sum int) error {
	var want [period]float32
	fill(want[:], shift, p, sum)
	for at := 0; at < len(v); at += period {
		part := v[at:min(at+period, len(v))]
		for k, x := range part {
			if x != want[k] {
				return fmt.Errorf("%w: element %d is %v, want %v", errSum, at+k, x, want[k])
			}
		}
	}
	return nil
}

// noise is the machine's on the calling thread, which does the rank's work.
func noise() reports.Noise {
	return disturbance.WithSockets(disturbance.Of(unix.Gettid()).Read(), disturbance.Sockets())
}

var cpuTime = func() int64 {
	var u unix.Rusage
	if unix.Getrusage(unix.RUSAGE_SELF, &u) != nil {
		return 0
	}
	return u.Utime.Nano() + u.Stime.Nano()
}
