// Package mesh measures the pairs of many ranks, which an existing launcher has started. Rank 0 listens; each rank,
// itself included, connects and gets pairs to measure, with a server in another rank. Pairs of a round have no rank in
// common.
// A rank sends greeting (the key, checked before anything else is read), hello, done and pong; rank 0 sends welcome or
// refuse, task (one direction of a pair), ping (to a rank that another did not reach) and end.
package mesh

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"slices"
	"sync"
	"time"

	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/engine"
	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/workload/allreduce"
	"github.com/rdmaperf/rdmaperf/reports"
	"github.com/rdmaperf/rdmaperf/transports"
	"github.com/rdmaperf/rdmaperf/transports/rdma"
)

const (
	magic = "rdmaperf-mesh"

	// version changes when ranks of an older one would misunderstand.
	version = 2

	// Bounds of the lines of a rank that is not welcome yet, bytes.
	mostGreeting = 4 << 10
	mostHello    = 64 << 10

	sendWait = 5 * time.Second // for a line to leave
)

type message struct {
	Magic   string `json:"magic,omitempty"` // of the greeting, as are the next two
	Version int    `json:"version,omitempty"`
	Key     string `json:"key,omitempty"` // the same for all ranks of the run

	Hello   *Hello   `json:"hello,omitempty"`
	Welcome *welcome `json:"welcome,omitempty"`
	Refuse  string   `json:"refuse,omitempty"` // why
	Task    *Task    `json:"task,omitempty"`
	Done    *Done    `json:"done,omitempty"`
	Ping    int      `json:"ping,omitempty"` // also the answer
	End     bool     `json:"end,omitempty"`
}

// Hello is what a rank says of itself.
type Hello struct {
	Rank    int               `json:"rank"`
	Size    int               `json:"size"`
	Host    string            `json:"host"`
	Machine string            `json:"machine"` // the same for ranks on one kernel
	CPUs    []int             `json:"cpus"`    // that it may run on
	Switch  string            `json:"switch,omitempty"`
	Addr    string            `json:"addr"` // of its server; without a host: that by which rank 0 is reached
	Facts   map[string]string `json:"facts,omitempty"`
	Lacks   []string          `json:"lacks,omitempty"` // what doctor would say

	Expected map[string]float64  `json:"expected,omitempty"` // by stack, bytes a second
	Families map[string][]string `json:"families,omitempty"` // by stack, of its addresses; none: not known
}

type welcome struct {
	Token []byte        `json:"token"` // of the servers of this run
	Plans []engine.Plan `json:"plans"` // one a stack
}

// Task is one direction of a pair, for From.
type Task struct {
	ID     int    `json:"id"`
	Plan   int    `json:"plan"`
	From   int    `json:"from"`
	To     int    `json:"to"`
	Addr   string `json:"addr"`
	Points []int  `json:"points"`

	More []string `json:"more,omitempty"` // servers of the other ranks that take part

	control bool // a good pair between those that are measured again
}

// Done is what came of it.
type Done struct {
	ID      int              `json:"id"`
	Results []reports.Result `json:"results,omitempty"` // one for each point until the error
	Code    int              `json:"code,omitempty"`
	Error   string           `json:"error,omitempty"`
}

// conn is one end of a connection. Lines are read by one goroutine and sent by another.
type conn struct {
	net.Conn
	in *bufio.Reader
}

func newConn(c net.Conn) *conn { return &conn{c, bufio.NewReader(c)} }

func (c *conn) send(messages ...*message) error {
	var lines bytes.Buffer
	for _, m := range messages {
		if err := json.NewEncoder(&lines).Encode(m); err != nil {
			return err
		}
	}
	if err := c.SetWriteDeadline(time.Now().Add(sendWait)); err != nil {
		return err
	}
	_, err := c.Write(lines.Bytes())
	return err
}

func (c *conn) receive() (*message, error) { return c.receiveAtMost(engine.MaxLine) }

// receiveAtMost refuses a line of more bytes before it decodes anything.
func (c *conn) receiveAtMost(bytes int64) (*message, error) {
	line, err := engine.ReadLine(c.in, bytes)
	if err != nil {
		return nil, err
	}
	m := new(message)
	if err := json.Unmarshal(line, m); err != nil {
		return nil, fmt.Errorf("not the protocol of rdmaperf mesh: %w", err)
	}
	return m, nil
}

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
