// Package think is the workload of calls whose server computes for a stated time before it answers, and of what the
// client's processor does meanwhile (LITE, SOSP'17: adaptive waiting). The server looks at the clock in a loop, as a
// sleep is longer by a wake-up. A side's CPU is that of its process, without daemons of a stack.
package think

import (
	"cmp"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"strings"
	"sync/atomic"
	"time"

	"github.com/spf13/pflag"

	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/curves"
	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/drive"
	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/engine"
	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/values"
	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/workload"
	"github.com/rdmaperf/rdmaperf/reports"
	"github.com/rdmaperf/rdmaperf/transports"
)

const Name = "think"

const (
	op = "time"
	// longest is how long a server may think. Arbitrary: an unknown peer asks for it.
	longest = 100 * time.Millisecond
	// largest is the longest request and answer, bytes. Arbitrary, likewise.
	largest = 256 << 10
)

var set = curves.Results(reports.Workload{
	Name: Name, Title: "Thinking",
	Intro: "The server computes for a while before it answers each call. Who polls for the answer uses a processor " +
		"all the time, who sleeps pays with a wake-up, and who waits adaptively polls while answers come soon and " +
		"sleeps behind that. The server computes before it answers; over it is the latency beyond that time; CPU is " +
		"of a call, busy the part of a CPU that the client uses.",
	Dims: []reports.DimDef{{Name: "think_ns", Unit: "ns", Help: "for which the server computes before it answers"}},
	Figures: []reports.FigureDef{
		{Name: "call_p50_ns", Quantity: reports.QuantityTime, Help: "p50"},
		{Name: "call_p99_ns", Quantity: reports.QuantityTime, Help: "p99"},
		{Name: "waiting_p50_ns", Quantity: reports.QuantityTime, Help: "Latency beyond the time to think, median"},
		{Name: "client_cpu_ns", Quantity: reports.QuantityTime, Help: "CPU of the client for a call"},
		{Name: "client_busy", Quantity: reports.QuantityRatio, Help: "Part of a CPU that the client uses"},
		{Name: "server_cpu_ns", Quantity: reports.QuantityTime, Help: "server"},
	},
}, "one caller, one call at a time", map[string]reports.DimDef{op: {Name: "think_ns", Unit: "ns"}})

type options struct{ Think time.Duration }

func (o *options) check(size int) error {
	switch {
	case o.Think < 0 || o.Think > longest:
		return fmt.Errorf("%v to think: want 0 to %v", o.Think, longest)
	case size < least || size > largest:
		return fmt.Errorf("calls of %d bytes: want %d to %d", size, least, largest)
	}
	return nil
}

type Workload struct {
	times string
}

func (*Workload) Meta() workload.Meta {
	return workload.Meta{
		Name:       Name,
		Results:    set,
		Summary:    "latency and client CPU of calls whose server computes first",
		Examples:   "rdmaperf run --transport 'lite+iwarp,lite(poll=adaptive)+iwarp,grpc(tcp)' --workload think",
		Group:      "Workload think",
		OwnThreads: true,
		Over:       over,
		Sizes:      []int{64},
	}
}

// over takes stacks of calls whose sides are two processes.
func over(s transports.Stack, _ engine.Point) error {
	if _, err := engine.CallsOf(s); err != nil {
		return err
	}
	if s.Caps().InProcess {
		return &reports.ExitError{Code: reports.ExitNotRun, Hint: "--transport lite+iwarp",
			Err: errors.New("both sides are one process, whose CPU is not the client's")}
	}
	return nil
}

func (f *Workload) Flags(s *pflag.FlagSet) {
	values.ListVar(s, &f.times, "think-time", "0,2us,5us,10us,20us,50us,100us,200us",
		"think: how long the server computes before it answers, a comma list")
}

func (f *Workload) Points(c *workload.Common) (points []engine.Point, err error) {
	if s := c.AnyOf("op", "qp", "qp-sweep", "threads", "polling", "depth"); s != "" && c.Alone() {
		return nil, values.Wrong(s, "the workload think has one caller with one call at a time; see --think-time")
	}
	for _, size := range c.SizesOf("", f.Meta().Sizes) {
		for word := range strings.SplitSeq(f.times, ",") {
			d, err := time.ParseDuration(strings.TrimSpace(word))
			if err != nil {
				return nil, values.Wrong("think-time", "%q: want times, such as 0,10us", word)
			}
			o := options{d}
			if err := o.check(size); err != nil {
				return nil, values.Wrong("think-time", "%v", err)
			}
			points = append(points, engine.Point{Workload: Name, Op: op, Size: size,
				Words: fmt.Sprintf("think: %d B, %v", size, d), Options: engine.PackOptions(o)})
		}
	}
	return points, nil
}

const (
	// least is the number of a call, which is its request's first bytes.
	least = 8
	// samplesMost bounds the latencies that are kept: the first of a window.
	samplesMost = 1 << 20
)

// listening is what the server says first, and used what it says last.
type listening struct {
	Addr   string
	Number []byte // for who knows the server's token; nil: it has none
}
type used struct {
	CPU   time.Duration
	Calls int64
	Wrong string
}

// mark is said by the client where its window begins, and where it ends.
type mark struct{ End bool }

func config(size int, secret []byte) transports.CallConfig {
	return transports.CallConfig{MaxRequest: size, MaxResponse: size, Callers: 1, Conns: 1, Secret: secret}
}

func mix(b byte, i int) byte { return b + byte(i) + 1 }

var compute = func(d time.Duration) {
	for begin := time.Now(); time.Since(begin) < d; {
	}
}

type thinker struct {
	think time.Duration
	size  int
	calls atomic.Int64
	wrong atomic.Pointer[string]
}

func (t *thinker) ServeCall(s *transports.Served) error {
	compute(t.think)
	if n := s.Request.Len(); n != t.size {
		text := fmt.Sprintf("a request of %d bytes, want %d", n, t.size)
		t.wrong.CompareAndSwap(nil, &text)
	}
	out := make([]byte, 0, t.size)
	for i, b := range s.Request.AppendTo(nil) {
		out = append(out, mix(b, i))
	}
	t.calls.Add(1)
	s.Response = out
	return nil
}

func (*Workload) Server(ctx context.Context, s *engine.Serve) (err error) {
	o, err := engine.ReadOptions(s.Point, (*options).check)
	if err != nil {
		return err
	}
	if err := s.Hold(engine.Memory{Windows: 2 * int64(s.Point.Size), Threads: 1}); err != nil {
		return err
	}
	tr, err := engine.CallsOf(s.Stack)
	if err != nil {
		return err
	}
	t := &thinker{think: o.Think, size: s.Point.Size}
	number, secret := s.Ticket()
	srv, err := tr.ListenCalls(ctx, net.JoinHostPort(s.Host, "0"), config(s.Point.Size, secret),
		drive.Answers{CallHandler: t})
	if err != nil {
		return engine.TransportError("listen for calls", err)
	}
	defer func() { err = errors.Join(err, srv.Close()) }()
	if err := s.Peer.Send(listening{srv.Addr(), number}); err != nil {
		return err
	}
	var m mark
	if err := s.Peer.Receive(ctx, &m); err != nil {
		return err
	}
	before, calls := engine.ReadUsage(), t.calls.Load()
	if err := s.Peer.Send(used{}); err != nil {
		return err
	}
	if err := s.Peer.Receive(ctx, &m); err != nil {
		return err
	}
	u := used{CPU: engine.ReadUsage().Minus(before).CPU, Calls: t.calls.Load() - calls}
	if w := t.wrong.Load(); w != nil {
		u.Wrong = *w
	}
	return s.Peer.Send(u)
}

func (*Workload) Client(ctx context.Context, r *engine.Run) (err error) {
	o, err := engine.ReadOptions(r.Point, (*options).check)
	if err != nil {
		return err
	}
	tr, err := engine.CallsOf(r.Stack)
	if err != nil {
		return err
	}
	var at listening
	if err := r.Peer.Receive(ctx, &at); err != nil {
		return err
	}
	conn, err := tr.DialCalls(ctx, at.Addr, config(r.Point.Size, r.Plan.Secret(at.Number)))
	if err != nil {
		return drive.ConnectFailed(tr, err)
	}
	defer func() { err = errors.Join(err, conn.Close()) }()
	k, err := conn.Caller(ctx, transports.CallerConfig{Timeout: r.Plan.Timeout + o.Think})
	if err != nil {
		return engine.TransportError("make a caller", err)
	}
	defer func() { err = errors.Join(err, k.Close()) }()
	w := &window{ctx: ctx, r: r, k: k, req: make([]byte, r.Point.Size)}
	if err := w.calls(int64(cmp.Or(r.Plan.WarmupIterations, 100)), 100*time.Millisecond); err != nil {
		return err
	}
	var u used
	if err := w.both(mark{}, &u); err != nil {
		return err
	}
	w.samples = w.samples[:0]
	begin, before := time.Now(), engine.ReadUsage()
	if err := w.calls(int64(r.Plan.Iterations), r.Plan.Duration); err != nil {
		return err
	}
	took, cpu := time.Since(begin), engine.ReadUsage().Minus(before).CPU
	n := w.done
	if err := w.both(mark{End: true}, &u); err != nil {
		return err
	}
	if u.Wrong != "" || u.Calls != n {
		return corrupt(fmt.Sprintf("the server answered %d of %d calls; %s", u.Calls, n, u.Wrong))
	}
	p50, p99 := workload.Rank(w.samples, 50), workload.Rank(w.samples, 99)
	res := r.Result()
	res.Polling, res.Verified, res.Depth = "", true, 1
	res.Verification = drive.AllCompared(n, n*int64(r.Point.Size))
	res.DurationNs, res.Operations = int64(took), n
	res.Parameters["think_ns"] = int64(o.Think)
	res.CPU = &reports.CPU{ClientSeconds: cpu.Seconds(), ServerSeconds: u.CPU.Seconds()}
	res.Detail = &curves.Point{X: float64(o.Think), Values: map[string]float64{
		"call_p50_ns": p50, "call_p99_ns": p99, "waiting_p50_ns": p50 - float64(o.Think),
		"client_cpu_ns": float64(cpu) / float64(n), "client_busy": float64(cpu) / float64(took),
		"server_cpu_ns": float64(u.CPU) / float64(n),
	}}
	r.Add(res)
	return nil
}

func corrupt(text string) error {
	return &reports.ExitError{Code: reports.ExitCorruption, Operation: Name, Err: errors.New(text)}
}

type window struct {
	ctx     context.Context
	r       *engine.Run
	k       transports.Caller
	req     []byte
	num     uint64
	done    int64
	samples []int64
}

// both tells the server where the client is.
func (w *window) both(m mark, u *used) error {
	if err := w.r.Peer.Send(m); err != nil {
		return err
	}
	return w.r.Peer.Receive(w.ctx, u)
}

// calls makes n of them, or as many as begin within d where n is 0, and compares every answer.
func (w *window) calls(n int64, d time.Duration) error {
	w.done = 0
	for begin := time.Now(); ; {
		t := time.Now()
		if w.done > 0 && (n > 0 && w.done >= n || n == 0 && t.Sub(begin) >= d) {
			return nil
		}
		w.num++
		binary.BigEndian.PutUint64(w.req, w.num)
		q := transports.Call{Request: w.req}
		if err := w.k.Call(&q); err != nil {
			if engine.WasInterrupted(w.ctx) {
				return engine.Interrupted()
			}
			return w.r.Explain(drive.CallFailed(w.r.Point, err))
		}
		ns := int64(time.Since(t))
		i := 0
		for _, part := range q.Response {
			for _, b := range part {
				if i >= len(w.req) || b != mix(w.req[i], i) {
					return corrupt(fmt.Sprintf("byte %d of the answer to call %d is wrong", i, w.num))
				}
				i++
			}
		}
		if i != len(w.req) {
			return corrupt(fmt.Sprintf("an answer of %d bytes, want %d", i, len(w.req)))
		}
		w.k.Free()
		if len(w.samples) < samplesMost {
			w.samples = append(w.samples, ns)
		}
		w.done++
	}
}
