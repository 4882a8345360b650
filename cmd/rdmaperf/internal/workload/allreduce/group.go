package allreduce

import (
	"context"
	"crypto/rand"
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"time"

	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/workload/allreduce/rank"
	"github.com/rdmaperf/rdmaperf/reports"
	"github.com/rdmaperf/rdmaperf/transports/rdma"
)

// group is ranks at work, by their links. It belongs to one goroutine.
type group struct {
	name, label string // of the stack
	links       []rank.Link
	pids        []int
	failed      bool
}

// join makes the ranks open their devices, each listen on its host, and connect to each other.
func join(ctx context.Context, links []rank.Link, hosts []string, hello rank.Hello) (*group, error) {
	g := &group{links: links, pids: make([]int, len(links))}
	hello.Size = len(links)
	answers, err := g.all(ctx, hello.Timeout, func(r int) rank.Order {
		h := hello
		h.Rank, h.Listen = r, net.JoinHostPort(hosts[r], "0")
		return rank.Order{Hello: &h}
	})
	if err != nil {
		return nil, err
	}
	var token [8]byte
	if _, err := rand.Read(token[:]); err != nil {
		return nil, err
	}
	j := rank.Join{Token: binary.NativeEndian.Uint64(token[:])}
	for r, a := range answers {
		j.Addrs = append(j.Addrs, a.Addr)
		g.pids[r] = a.PID
	}
	g.name, g.label = answers[0].Name, answers[0].Label
	_, err = g.all(ctx, 2*hello.Timeout, func(int) rank.Order { return rank.Order{Join: &j} })
	return g, err
}

// run has all ranks take a measurement, which may last as long as limit.
func (g *group) run(ctx context.Context, o rank.Run, limit time.Duration) ([]*rank.Times, error) {
	answers, err := g.all(ctx, limit, func(int) rank.Order { return rank.Order{Run: &o} })
	if err != nil {
		return nil, err
	}
	times := make([]*rank.Times, len(answers))
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

// grace is how long the others are heard after a failure: the end of one process is the
// reason for what the others say, and may be noticed after that. Arbitrary.
const grace = 500 * time.Millisecond

// all tells every rank its order and waits for every answer.
func (g *group) all(ctx context.Context, limit time.Duration, order func(r int) rank.Order) ([]rank.Answer, error) {
	if g.failed {
		return nil, fmt.Errorf("the ranks failed before: %w", rdma.ErrState)
	}
	ctx, cancel := context.WithTimeoutCause(ctx, limit, fmt.Errorf("no answer within %v", limit))
	defer cancel()
	type reply struct {
		rank int
		a    rank.Answer
		err  error
	}
	replies := make(chan reply, len(g.links))
	for r, l := range g.links {
		go func() {
			var a rank.Answer
			err := l.Send(order(r))
			if err == nil {
				err = l.Receive(ctx, &a)
			}
			replies <- reply{r, a, err}
		}()
	}
	answers := make([]rank.Answer, len(g.links))
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

// cause is what a link says without where.
func cause(err error) error {
	var exit *reports.ExitError
	if errors.As(err, &exit) && exit.Err != nil {
		return exit.Err
	}
	return err
}

// faulty is what a rank said of itself.
func faulty(r int, f *rank.Fault) error {
	e := &reports.ExitError{Code: reports.ExitFailed, Operation: fmt.Sprintf("rank %d", r), Err: errors.New(f.Message)}
	switch {
	case f.Corrupt:
		e.Code = reports.ExitCorruption
	case f.Unsupported:
		e.Code = reports.ExitNotRun
	}
	return e
}
