package register

import (
	"errors"
	"math/rand/v2"
	"runtime"
	"sync"
	"time"

	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/arms"
	"github.com/rdmaperf/rdmaperf/reports"
	"github.com/rdmaperf/rdmaperf/transports/rdma"
)

type stages struct {
	mapped, register, use, again, deregister, unmapped, full *reports.Recorder

	took time.Duration // of the registrations that are counted, with their deregistrations
}

func newStages() *stages {
	n := reports.NewRecorder
	return &stages{n(), n(), n(), n(), n(), n(), n(), 0}
}

func (s *stages) keep(r *run) {
	o := r.out
	o.Map, o.Register, o.Use, o.Again, o.Deregister, o.Unmap, o.Full = latency(s.mapped), latency(s.register),
		latency(s.use), latency(s.again), latency(s.deregister), latency(s.unmapped), latency(s.full)
	if o.Register != nil {
		o.Operations, o.Took = o.Register.Count*int64(o.Batch), s.took
	}
}

func (r *run) batches(s *stages, pick func() rdma.Buffer, until time.Time) error {
	k := r.arm.Batch(r.Size)
	holds, bufs := make([]arms.Hold, 0, k), make([]rdma.Buffer, k)
	// The first batch is where a cache misses and where code is new: it is not counted.
	for n := 0; n < 2 || r.ctx.Err() == nil && time.Now().Before(until); n++ {
		for i := range bufs {
			bufs[i] = pick()
		}
		holds = holds[:0]
		var err error
		t0 := time.Now()
		for _, b := range bufs {
			h, e := r.arm.Get(b)
			if e != nil {
				err = e
				break
			}
			holds = append(holds, h)
		}
		t1 := time.Now()
		for _, h := range holds {
			if e := h.Put(); e != nil && err == nil {
				err = e
			}
		}
		t2 := time.Now()
		if err != nil {
			return err
		}
		if n == 0 {
			continue
		}
		s.register.Record(t1.Sub(t0).Nanoseconds() / int64(k))
		s.deregister.Record(t2.Sub(t1).Nanoseconds() / int64(k))
		s.took += t2.Sub(t0)
	}
	return nil
}

func (r *run) cycles(s *stages, b rdma.Buffer) error {
	for first := true; first || r.more(); first = false {
		t0 := time.Now()
		h, err := r.arm.Get(b)
		if err != nil {
			return err
		}
		t1 := time.Now()
		if err := r.use(h, b); err != nil {
			return errors.Join(err, h.Put())
		}
		t2 := time.Now()
		if err := h.Put(); err != nil {
			return err
		}
		s.use.Record(t2.Sub(t1).Nanoseconds())
		s.full.Record(time.Since(t0).Nanoseconds())
	}
	return nil
}

func (r *run) repeated() (err error) {
	b, err := r.arm.Take(r.Size)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, r.arm.Give(b)) }()
	touch(b)
	s := newStages()
	defer s.keep(r)
	r.begin()
	if err := r.batches(s, func() rdma.Buffer { return b }, r.until.Add(-r.window/2)); err != nil {
		return err
	}
	return r.cycles(s, b)
}

// spread is how many buffers long the mapping of the scattered patterns is. Arbitrary.
const spread = 16

// scattered are buffers inside one mapping, at random or each in the middle of the one before.
func (r *run) scattered() (err error) {
	whole, err := r.arm.Take(spread * r.Size)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, r.arm.Give(whole)) }()
	touch(whole)
	rnd := rand.New(rand.NewPCG(r.seed, 0))
	const pages = 4096
	at := 0
	pick := func() rdma.Buffer {
		n, off := r.Size, at
		if r.Pattern == PatternRandom {
			n = 1 + rnd.IntN(r.Size)
			off = rnd.IntN((whole.Len()-n)/pages+1) * pages
		} else if at += r.Size / 2; at > whole.Len()-r.Size {
			at = 0
		}
		b, _ := whole.Slice(off, n) // inside by what is above
		return b
	}
	s := newStages()
	defer s.keep(r)
	r.begin()
	if err := r.batches(s, pick, r.until.Add(-r.window/2)); err != nil {
		return err
	}
	for first := true; first || r.more(); first = false {
		b := pick()
		t0 := time.Now()
		if err := r.once(b); err != nil {
			return err
		}
		s.full.Record(time.Since(t0).Nanoseconds())
	}
	return nil
}

func (r *run) fresh() error {
	s := newStages()
	defer s.keep(r)
	r.out.Batch = 1
	r.begin()
	for n := 0; n < 2 || r.more(); n++ { // the first is not counted
		t0 := time.Now()
		b, err := r.arm.Take(r.Size)
		if err != nil {
			return err
		}
		t1 := time.Now()
		h, err := r.arm.Get(b)
		if err != nil {
			return errors.Join(err, r.arm.Give(b))
		}
		t2 := time.Now()
		err = r.use(h, b)
		t3 := time.Now()
		if err == nil {
			err = r.use(h, b) // its pages are there now, whoever found them
		}
		w := time.Now()
		err = errors.Join(err, h.Put())
		t4 := time.Now()
		if err = errors.Join(err, r.arm.Give(b)); err != nil {
			return err
		}
		t5 := time.Now()
		if n == 0 {
			continue
		}
		s.mapped.Record(t1.Sub(t0).Nanoseconds())
		s.register.Record(t2.Sub(t1).Nanoseconds())
		s.use.Record(t3.Sub(t2).Nanoseconds())
		s.again.Record(w.Sub(t3).Nanoseconds())
		s.deregister.Record(t4.Sub(w).Nanoseconds())
		s.unmapped.Record(t5.Sub(t4).Nanoseconds())
		s.full.Record((t5.Sub(t0) - w.Sub(t3)).Nanoseconds())
		s.took += t5.Sub(t0) - w.Sub(t3)
	}
	return nil
}

// apart maps and touches n buffers that no cache joins with their neighbours. The mapping is to be given back.
func (r *run) apart(n int) (whole rdma.Buffer, bufs []rdma.Buffer, err error) {
	const gap = 4096
	step := (r.Size+gap-1)/gap*gap + gap
	if whole, err = r.arm.Take(step * n); err != nil {
		return whole, nil, err
	}
	touch(whole)
	for i := range n {
		b, _ := whole.Slice(step*i, r.Size) // inside by what is above
		bufs = append(bufs, b)
	}
	return whole, bufs, nil
}

// usedEach: one of so many registrations is used, seldom enough that caches are those of look-ups. Arbitrary.
const usedEach = 16

// workingSet takes buffers of a set at random. The first two rounds fill the cache, and are not counted.
func (r *run) workingSet() (err error) {
	whole, bufs, err := r.apart(r.Buffers)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, r.arm.Give(whole)) }()
	s := newStages()
	defer s.keep(r)
	r.out.Batch = 1
	rnd := rand.New(rand.NewPCG(r.seed, uint64(r.Buffers)))
	one := func(b rdma.Buffer, note bool) error {
		t0 := time.Now()
		h, err := r.arm.Get(b)
		if err != nil {
			return err
		}
		took := time.Since(t0)
		if note {
			s.register.Record(took.Nanoseconds())
			if s.register.Count()%usedEach == 1 {
				err = r.use(h, b)
			}
		}
		t0 = time.Now()
		err = errors.Join(err, h.Put())
		if note {
			s.took += took + time.Since(t0)
		}
		return err
	}
	for i := range 2 * len(bufs) { // all, then at random: what is kept is what is kept later
		b := bufs[i%len(bufs)]
		if i >= len(bufs) {
			b = bufs[rnd.IntN(len(bufs))]
		}
		if err := one(b, false); err != nil {
			return err
		}
	}
	hits, gets := r.hits()
	r.begin()
	for first := true; first || r.more(); first = false {
		if err := one(bufs[rnd.IntN(len(bufs))], true); err != nil {
			return err
		}
	}
	h, g := r.hits()
	r.out.SetHits, r.out.SetGets = h-hits, g-gets
	return nil
}

func (r *run) hits() (hits, gets int64) {
	if c, _ := r.arm.Counters(); c != nil {
		return int64(c.HitsFast + c.HitsSlow), int64(c.Gets)
	}
	return 0, 0
}

func (r *run) together() (err error) {
	whole, bufs, err := r.apart(r.Threads)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, r.arm.Give(whole)) }()
	workers, errs := make([]*stages, len(bufs)), make([]error, len(bufs))
	var ready, done sync.WaitGroup
	ready.Add(len(bufs))
	start := make(chan time.Time) // closed never: each takes one
	for i, b := range bufs {
		workers[i] = newStages()
		done.Go(func() {
			runtime.LockOSThread()
			defer runtime.UnlockOSThread()
			ready.Done()
			errs[i] = r.batches(workers[i], func() rdma.Buffer { return b }, <-start)
		})
	}
	ready.Wait()
	r.begin()
	for range workers {
		start <- r.until
	}
	done.Wait()
	all := newStages()
	for _, s := range workers {
		all.register.Merge(s.register)
		all.deregister.Merge(s.deregister)
		all.took += s.took
	}
	sum := all.took
	all.took /= time.Duration(r.Threads) // at once
	all.keep(r)
	if r.out.Operations > 0 {
		r.out.EachNs = float64(sum.Nanoseconds()) / float64(r.out.Operations)
	}
	for _, b := range bufs { // what they registered works
		errs = append(errs, r.once(b))
	}
	return errors.Join(errs...)
}

func (r *run) once(b rdma.Buffer) error {
	h, err := r.arm.Get(b)
	if err != nil {
		return err
	}
	return errors.Join(r.use(h, b), h.Put())
}
