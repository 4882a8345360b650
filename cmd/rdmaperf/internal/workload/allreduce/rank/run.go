package rank

import (
	"context"
	"errors"
	"fmt"
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

const (
	elem = 4    // bytes of a float32
	page = 4096 // of a touch
)

// errSum is a sum that is wrong.
var errSum = errors.New("wrong sum")

// reducer is what ranks meet at: a mesh.
type reducer interface {
	Barrier(ctx context.Context) error
	Reduce(ctx context.Context, list []steps.Step, in, out rdma.Buffer, arm arms.Arm) error
}

// work is one measurement of a rank.
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

// run takes a measurement: every iteration adds other numbers, and all sums are compared
// outside the measured time.
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

// iteration is one all-reduce: MPI_Allreduce with two buffers.
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

// take maps both buffers and touches every page, as the owner of new memory does.
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

// give returns the buffers that are there.
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

// period is after how many elements numbers come again; with 32 ranks every sum is far
// below 2^24 and so exact.
const period = 1024

// number is an element of the sum of p ranks, whose own numbers add up to sum.
func number(k, shift, p, sum int) float32 { return float32(p*((k+shift)&(period-1)) + sum) }

// fill writes numbers.
func fill(v []float32, shift, p, sum int) {
	n := min(len(v), period)
	for k := range n {
		v[k] = number(k, shift, p, sum)
	}
	for ; n > 0 && n < len(v); n *= 2 { // a multiple of the period each time
		copy(v[n:], v[:n])
	}
}

// compare requires what fill writes.
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

// noise is what the machine took from the rank until now: the calling thread does its work.
func noise() reports.Noise {
	return disturbance.WithSockets(disturbance.Of(unix.Gettid()).Read(), disturbance.Sockets())
}

// cpuTime is the process's, in ns.
var cpuTime = func() int64 {
	var u unix.Rusage
	if unix.Getrusage(unix.RUSAGE_SELF, &u) != nil {
		return 0
	}
	return u.Utime.Nano() + u.Stime.Nano()
}
