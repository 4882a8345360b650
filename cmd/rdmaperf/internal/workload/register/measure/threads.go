package measure

import (
	"errors"
	"runtime"
	"sync"
	"time"

	"github.com/rdmaperf/rdmaperf/reports"
	"github.com/rdmaperf/rdmaperf/transports/rdma"
)

// together has threads register at once, each a buffer of its own.
func (r *run) together() (err error) {
	const gap = 4096 // no two buffers are joined
	step := (r.Size+gap-1)/gap*gap + gap
	whole, err := r.arm.Take(step * r.Threads)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, r.arm.Give(whole)) }()
	touch(whole)
	type worker struct {
		s   *stages
		err error
	}
	workers := make([]worker, r.Threads)
	var ready, done sync.WaitGroup
	start := make(chan time.Time) // closed never: each takes one
	for i := range workers {
		b, err := whole.Slice(step*i, r.Size)
		if err != nil {
			return err
		}
		w := &workers[i]
		w.s = newStages()
		ready.Add(1)
		done.Add(1)
		go func() {
			defer done.Done()
			runtime.LockOSThread()
			defer runtime.UnlockOSThread()
			ready.Done()
			until := <-start
			w.err = r.batches(w.s, func() rdma.Buffer { return b }, until)
		}()
	}
	ready.Wait()
	r.begin()
	for range workers {
		start <- r.until
	}
	done.Wait()
	all := newStages()
	var errs []error
	for i := range workers {
		errs = append(errs, workers[i].err)
		for _, m := range [][2]*reports.Recorder{{all.register, workers[i].s.register},
			{all.deregister, workers[i].s.deregister}} {
			m[0].Merge(m[1])
		}
		all.took += workers[i].s.took
	}
	sum := all.took
	all.took /= time.Duration(r.Threads) // at once
	all.keep(r)
	if r.out.Operations > 0 {
		r.out.EachNs = float64(sum.Nanoseconds()) / float64(r.out.Operations)
	}
	for i := range workers { // what they registered works
		b, err := whole.Slice(step*i, r.Size)
		if err == nil {
			err = r.once(b)
		}
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}

// once registers, uses and deregisters.
func (r *run) once(b rdma.Buffer) error {
	h, err := r.arm.Get(b)
	if err != nil {
		return err
	}
	return errors.Join(r.use(h, b), h.Put())
}
