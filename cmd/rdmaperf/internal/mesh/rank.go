package mesh

import (
	"cmp"
	"context"
	"errors"
	"io"
	"slices"
	"sync"

	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/engine"
	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/workload/allreduce"
	"github.com/rdmaperf/rdmaperf/reports"
	"github.com/rdmaperf/rdmaperf/transports"
	"github.com/rdmaperf/rdmaperf/transports/rdma"
)

type rank struct {
	*conn
	*welcome
	table  engine.Table
	open   func(spec string) (transports.Stack, error)
	device func(spec string) (rdma.Device, error)
	stacks []transports.Stack // by plan; nil: not opened yet
}

func (r *rank) run(ctx context.Context) error {
	r.stacks = make([]transports.Stack, len(r.Plans))
	defer func() {
		for _, s := range r.stacks {
			if s != nil {
				s.Close() // what was measured is with rank 0 already
			}
		}
	}()
	stop := context.AfterFunc(ctx, func() { r.Close() })
	defer stop()
	// The goroutine that measures ends before the stacks do that it uses.
	measuring, cancel := context.WithCancel(ctx)
	tasks := make(chan *Task)
	var measures sync.WaitGroup
	defer func() {
		cancel()
		close(tasks)
		measures.Wait()
	}()
	measures.Go(func() {
		for t := range tasks {
			r.send(&message{Done: r.measure(measuring, t)}) // a lost rank 0 ends the reader below
		}
	})
	for {
		m, err := r.receive()
		switch {
		case ctx.Err() != nil:
			return engine.Interrupted()
		case errors.Is(err, io.EOF):
			return engine.PeerError("measure", errors.New("rank 0 ended"), "what rank 0 printed")
		case err != nil:
			return engine.PeerError("measure", err, "what rank 0 printed")
		case m.End:
			return nil
		case m.Ping != 0:
			if err := r.send(m); err != nil {
				return engine.PeerError("answer rank 0", err, "what rank 0 printed")
			}
		case m.Task != nil && m.Task.Plan >= 0 && m.Task.Plan < len(r.Plans):
			select {
			case tasks <- m.Task:
			case <-ctx.Done():
				return engine.Interrupted()
			}
		}
	}
}

func (r *rank) measure(ctx context.Context, t *Task) *Done {
	d := &Done{ID: t.ID}
	plan := r.Plans[t.Plan]
	plan.Workloads, plan.Token = r.table, r.Token
	all := plan.Points
	plan.Points = nil
	for _, i := range t.Points {
		if i >= 0 && i < len(all) {
			plan.Points = append(plan.Points, all[i])
		}
	}
	fail := func(err error) *Done {
		var exit *reports.ExitError
		if errors.As(err, &exit) && exit.Err != nil {
			err = exit.Err
			d.Code = exit.Code
		}
		d.Code, d.Error = cmp.Or(d.Code, reports.ExitFailed), err.Error()
		return d
	}
	var err error
	if r.stacks[t.Plan] == nil {
		if r.stacks[t.Plan], err = r.open(plan.Transport); err != nil {
			return fail(err)
		}
	}
	c, err := engine.Connect(ctx, t.Addr, r.stacks[t.Plan], plan)
	if err != nil {
		return fail(err)
	}
	defer c.Close()
	c.Open = engine.Opener{Stack: r.open, Device: r.device}
	more := t.More
	c.More = func(context.Context) (addr string, stop func() error, err error) {
		if len(more) == 0 {
			return "", nil, errors.New("no further rank")
		}
		addr, more = more[0], more[1:]
		return addr, nil, nil
	}
	for i := range plan.Points {
		res, err := c.Run(ctx, i)
		if err == nil && len(res) != 1 {
			err = errors.New("not one result")
		}
		if err != nil {
			return fail(err)
		}
		d.Results = append(d.Results, brief(res[0]))
	}
	return d
}

func brief(r reports.Result) reports.Result {
	if d := allreduce.Of(&r); d != nil {
		r.Latency = d.Total
		r.Throughput = &reports.Throughput{BytesPerSecond: d.BusBytesPerSecond}
	}
	if r.Latency != nil {
		l := *r.Latency
		l.HDR = ""
		r.Latency = &l
	}
	r.LatencyCorrected, r.Counters, r.GC, r.Parameters, r.Detail = nil, nil, nil, nil, nil
	r.RawSamples, r.Others = nil, slices.Clip(r.Others[:0])
	return r
}
