package allreduce

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"slices"
	"time"

	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/drive"
	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/engine"
	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/workload/allreduce/mesh"
	"github.com/rdmaperf/rdmaperf/reports"
	"github.com/rdmaperf/rdmaperf/transports/rdma"
)

const (
	warmup        = 2 // iterations before the measured ones
	probes        = 3 // iterations that say how many fit into a window, roughly
	leastMeasured = 5
	mostMeasured  = 20_000 // of a window; arbitrary: times travel as JSON, of up to 11 octets each
	probePart     = 8      // of a window is tried before it, as the first iterations are slower
)

func (*Workload) Server(ctx context.Context, s *engine.Serve) error {
	o, err := engine.ReadOptions(s.Point, (*options).check)
	if err != nil {
		return err
	}
	if err := s.Hold(o.needs(s.Point.Size)); err != nil {
		return err
	}
	return serveRank(ctx, checked{s.Peer, &o, s.Point.Size}, s.Open.Device)
}

// checked is a link whose orders ask for no more than the point that was admitted.
type checked struct {
	Link
	o    *options
	size int
}

func (c checked) Receive(ctx context.Context, v any) error {
	if err := c.Link.Receive(ctx, v); err != nil {
		return err
	}
	order, ok := v.(*Order)
	if !ok {
		return nil
	}
	if h := order.Hello; h != nil && (h.Size > c.o.Ranks || h.Eager > c.o.Eager) {
		return fmt.Errorf("order of %d ranks with eager messages of %d bytes: the point has %d and %d", h.Size, h.Eager,
			c.o.Ranks, c.o.Eager)
	}
	if r := order.Run; r != nil && (r.Bytes > c.size || r.Deferred > c.o.Deferred ||
		r.Iterations > max(c.o.Iterations, mostMeasured)) {
		return fmt.Errorf("order of %d iterations of %d bytes, %d deferred: more than the point has", r.Iterations,
			r.Bytes, r.Deferred)
	}
	return nil
}

// Client starts the ranks and takes all arms in turn, so that a change of the machine's load hits all of them.
func (*Workload) Client(ctx context.Context, r *engine.Run) error {
	o, err := engine.ReadOptions(r.Point, (*options).check)
	if err != nil {
		return err
	}
	links, hosts := []Link{r.Peer}, []string{cmp.Or(r.Host(), "127.0.0.1")}
	for range o.Ranks - 1 {
		l, err := r.Process(ctx)
		if err != nil {
			return fmt.Errorf("start rank %d: %w", len(links), err)
		}
		links, hosts = append(links, l), append(hosts, cmp.Or(l.Host(), "127.0.0.1"))
	}
	g, err := join(ctx, links, hosts, Hello{Stack: r.Plan.Transport, Config: mesh.Config{Eager: o.Eager,
		Segment: o.Segment, Wait: o.Wait, Timeout: max(r.Plan.Timeout, 10*time.Second)}})
	if err != nil {
		return err
	}
	done := int64(0)
	for _, algorithm := range o.Algorithms {
		for _, buffers := range o.Buffers {
			for _, detour := range o.Offloads {
				for _, arm := range o.Arms {
					order := Run{Algorithm: algorithm, Arm: arm, Bytes: r.Point.Size, Fresh: buffers == fresh,
						Offload: detour, Deferred: o.Deferred,
						Warmup: warmup, Iterations: o.Iterations, Verify: o.Verify, Seed: r.Plan.Seed}
					res, err := one(ctx, r, g, &o, order)
					if err != nil {
						return err
					}
					r.Add(res)
					done++
					r.Progress(done, int64(o.count()))
				}
			}
		}
	}
	return nil
}

func one(ctx context.Context, r *engine.Run, g *group, o *options, order Run) (reports.Result, error) {
	limit := 2*o.Window + r.Plan.Timeout + 2*time.Minute // fills and sums of a gigabyte are slow
	if order.Iterations == 0 {
		order.Iterations = probes
		for _, window := range []time.Duration{o.Window / probePart, o.Window} {
			times, err := g.run(ctx, order, limit)
			if err != nil {
				return reports.Result{}, err
			}
			order.Iterations = fit(window, order.Iterations, times)
		}
	} else {
		limit = time.Hour // as many as were asked for
	}
	times, err := g.run(ctx, order, limit)
	if err != nil {
		return reports.Result{}, err
	}
	res := r.Result()
	res.Op, res.Stack, res.Label, res.Verified = order.Algorithm, g.name, g.label, o.Verify
	sums := int64(order.Iterations) * int64(o.Ranks)
	res.Verification = &reports.Verification{Mode: reports.VerifyNone, Messages: sums}
	if o.Verify { // every rank compares its sum, whose numbers are the iteration's
		res.Verification = drive.AllCompared(sums, sums*int64(r.Point.Size))
	}
	res.Disturbance = disturbed(times)
	res.Polling, res.Threads, res.MeasuredBy = engine.PollingBusy, 0, ""
	d, took := detail(r.Point.Size, o, order, times)
	if o.Wait {
		res.Polling, d.Waiting = engine.PollingEvent, "sleep"
	}
	if o.ODP {
		d.Absent = "variant odp unsupported: it is one of the workload register"
	}
	res.Operations, res.DurationNs, res.Detail = int64(order.Iterations), took, d
	return res, nil
}

// disturbed is what the machine took from the rank that it took most from: the slowest counts.
func disturbed(times []*Times) *reports.Disturbance {
	worst := slices.MaxFunc(times, func(a, b *Times) int {
		return cmp.Compare(a.Noise.RunQueueWaitNs, b.Noise.RunQueueWaitNs)
	})
	noise := worst.Noise
	noise.Segments, noise.Retransmits = 0, 0
	for _, t := range times {
		noise.Segments, noise.Retransmits = noise.Segments+t.Noise.Segments, noise.Retransmits+t.Noise.Retransmits
		noise.StealNs, noise.MajorFaults = max(noise.StealNs, t.Noise.StealNs), max(noise.MajorFaults, t.Noise.MajorFaults)
	}
	d := &reports.Disturbance{Server: &noise}
	d.Judge(time.Duration(worst.Window))
	return d
}

func fit(window time.Duration, iterations int, times []*Times) int {
	most := int64(1)
	for _, t := range times {
		most = max(most, t.Window)
	}
	n := float64(window.Nanoseconds()) * float64(iterations) / float64(most)
	return int(min(max(n, leastMeasured), mostMeasured))
}

// detail has the slowest rank of each iteration. tookNs is of all iterations, without barriers, filling and comparing.
func detail(size int, o *options, order Run, times []*Times) (d *Allreduce, tookNs int64) {
	n := reports.NewRecorder
	total, reduce, mapped, unmapped := n(), n(), n(), n()
	for i := range order.Iterations {
		var a, b, c int64 // of the slowest
		for _, t := range times {
			b = max(b, t.Reduce[i])
			if order.Fresh {
				a, c = max(a, t.Map[i]), max(c, t.Unmap[i])
			}
		}
		total.Record(a + b + c)
		tookNs += a + b + c
		reduce.Record(b)
		if order.Fresh {
			mapped.Record(a)
			unmapped.Record(c)
		}
	}
	take := func(r *reports.Recorder) *reports.Latency { return new(r.Snapshot()) }
	d = &Allreduce{Ranks: o.Ranks, Algorithm: order.Algorithm, Arm: order.Arm, Buffers: reused,
		Offload: order.Offload, Eager: o.Eager, Segment: o.Segment, Waiting: "poll",
		Total: take(total), Reduce: take(reduce), Cache: times[0].Cache, MostDeferred: times[0].Most}
	if order.Fresh {
		d.Buffers, d.Map, d.Unmap = fresh, take(mapped), take(unmapped)
	}
	if d.Total.Mean > 0 {
		d.BusBytesPerSecond = float64(size) * 2 * float64(o.Ranks-1) / float64(o.Ranks) / d.Total.Mean * 1e9
	}
	for _, t := range times {
		d.CPUNs += t.CPU
	}
	return d, tookNs
}

type group struct {
	name, label string // of the stack
	links       []Link
	pids        []int
	failed      bool
}

func join(ctx context.Context, links []Link, hosts []string, hello Hello) (*group, error) {
	g := &group{links: links, pids: make([]int, len(links))}
	hello.Size = len(links)
	answers, err := g.all(ctx, hello.Timeout, func(r int) Order {
		h := hello
		h.Rank, h.Listen = r, net.JoinHostPort(hosts[r], "0")
		return Order{Hello: &h}
	})
	if err != nil {
		return nil, err
	}
	var token [8]byte
	if _, err := rand.Read(token[:]); err != nil {
		return nil, err
	}
	j := Join{Token: binary.NativeEndian.Uint64(token[:])}
	for r, a := range answers {
		j.Addrs = append(j.Addrs, a.Addr)
		g.pids[r] = a.PID
	}
	g.name, g.label = answers[0].Name, answers[0].Label
	_, err = g.all(ctx, 2*hello.Timeout, func(int) Order { return Order{Join: &j} })
	return g, err
}

func (g *group) run(ctx context.Context, o Run, limit time.Duration) ([]*Times, error) {
	answers, err := g.all(ctx, limit, func(int) Order { return Order{Run: &o} })
	if err != nil {
		return nil, err
	}
	times := make([]*Times, len(answers))
	for r, a := range answers {
		t := a.Times
		if t == nil || len(t.Reduce) != o.Iterations || o.Fresh && (len(t.Map) != o.Iterations ||
			len(t.Unmap) != o.Iterations) {
			return nil, fmt.Errorf("rank %d: an answer without its times: %w", r, rdma.ErrProtocol)
		}
		times[r] = t
	}
	return times, nil
}

// grace is how long others are heard after a failure, as one's end may be noticed after its effects. Arbitrary.
const grace = 500 * time.Millisecond

func (g *group) all(ctx context.Context, limit time.Duration, order func(r int) Order) ([]Answer, error) {
	if g.failed {
		return nil, fmt.Errorf("the ranks failed before: %w", rdma.ErrState)
	}
	ctx, cancel := context.WithTimeoutCause(ctx, limit, fmt.Errorf("no answer within %v", limit))
	defer cancel()
	type reply struct {
		rank int
		a    Answer
		err  error
	}
	replies := make(chan reply, len(g.links))
	for r, l := range g.links {
		go func() {
			var a Answer
			err := l.Send(order(r))
			if err == nil {
				err = l.Receive(ctx, &a)
			}
			replies <- reply{r, a, err}
		}()
	}
	answers := make([]Answer, len(g.links))
	var lost, fault error // the first of each
	for range g.links {
		r := <-replies
		answers[r.rank] = r.a
		switch {
		case r.err != nil && lost == nil && (fault == nil || ctx.Err() == nil):
			lost = &reports.ExitError{Code: reports.ExitPeer, Operation: fmt.Sprintf("rank %d (process %d)", r.rank,
				g.pids[r.rank]), Err: cause(r.err), Hint: "the log of the ranks above"}
		case r.a.Fault != nil && fault == nil:
			fault = faulty(r.rank, r.a.Fault)
		}
		if (lost != nil || fault != nil) && !g.failed {
			g.failed = true
			defer time.AfterFunc(grace, cancel).Stop()
		}
	}
	if lost != nil {
		return nil, lost
	}
	return answers, fault
}

func cause(err error) error {
	if exit, ok := errors.AsType[*reports.ExitError](err); ok && exit.Err != nil {
		return exit.Err
	}
	return err
}

func faulty(r int, f *Fault) error {
	e := &reports.ExitError{Code: reports.ExitFailed, Operation: fmt.Sprintf("rank %d", r), Err: errors.New(f.Message)}
	switch {
	case f.Corrupt:
		e.Code = reports.ExitCorruption
	case f.Unsupported:
		e.Code = reports.ExitNotRun
	}
	return e
}
