package engine

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/rdmaperf/rdmaperf/reports"
	"github.com/rdmaperf/rdmaperf/transports"
	"github.com/rdmaperf/rdmaperf/transports/rdma"
)

// Memory is what a point holds of a server.
type Memory struct {
	Windows int64 // bytes of memory that is registered or filled
	Queues  int64 // bytes of queue pairs: see [QueueBytes]
	Threads int
}

// QueueBytes is what queue pairs of so many places cost, rounded up.
func QueueBytes(qps, places int) int64 {
	return int64(qps) * (qpCost + placeCost*int64(places))
}

// Opener opens further stacks by their names, as --transport spells them. What it returns belongs to the caller.
type Opener struct {
	Stack  func(spec string) (transports.Stack, error)
	Device func(spec string) (rdma.Device, error) // of providers, and tiers over them
}

// Run is the client's side of a point.
type Run struct {
	Setup
	Stack    transports.Stack // what Plan.Transport names; the caller's, open until the run ends
	Open     Opener
	Peer     *Link                   // the server; nil where the workload has none
	Progress func(done, total int64) // reports what is done of how much. It may take some time: between windows only
	Kept     map[string]float64      // figures that the workload keeps from point to point of a stack

	client  *Client
	links   []*Link
	results []reports.Result // of the current slice
	slice   int              // from 0
	began   time.Time        // of the slice
	before  reports.Noise    // of the process, then
	used    [2]time.Duration // by the process and by the machine, then
}

// Add hands over results.
func (r *Run) Add(results ...reports.Result) { r.results = append(r.results, results...) }

// Again ends a slice: it hands over the results and waits for this stack's next turn. False: it was the last.
func (r *Run) Again() bool {
	if r.client.Turn == nil || r.slice+1 >= r.Plan.Rounds || !r.client.Turn(r.take()) {
		return false
	}
	r.slice++
	r.begin()
	return true
}

func (r *Run) begin() {
	r.before = ReadProcessNoise()
	r.used[0], r.used[1], _ = ReadCPU()
	r.began = time.Now()
}

// take is the results of the slice, with what the process and their workload say of them.
func (r *Run) take() []reports.Result {
	window := time.Since(r.began)
	own, machine, _ := ReadCPU()
	results, noise := r.results, ProcessNoise(r.before)
	for i := range results {
		// By a clock of its own a device loses nothing to the machine.
		if results[i].Disturbance == nil && r.Stack.Caps().Clock == nil {
			d := &reports.Disturbance{Client: &noise}
			d.OthersRan(othersRan(window, machine-r.used[1], own-r.used[0]))
			d.Judge(window)
			results[i].Disturbance = d
		}
		r.Plan.Workloads[r.Point.Workload].Results.Apply(&results[i])
		results[i].Contradict(results[i].Impossible)
	}
	r.results = nil
	return results
}

// Serve is the server's side of a point.
type Serve struct {
	Setup
	Stack transports.Stack
	Open  Opener
	Peer  *Link  // the client
	Host  string // the address at which the client reached this server, to listen on

	client  *ServedClient
	release []func() // of what is held
}

// Hold asks for what the point needs of this machine, until the point ends. An error refuses the point.
func (s *Serve) Hold(n Memory) error {
	release, err := s.client.Server.hold(s.Point.String(), n)
	if err == nil {
		s.release = append(s.release, release)
	}
	return err
}

// Release gives back what was held.
func (s *Serve) Release() {
	for _, release := range s.release {
		release()
	}
	s.release = nil
}

// Explain prefers what the server says of a failure: see [Client.Explain].
func (r *Run) Explain(err error) error { return r.client.Explain(err) }

// Host is the address of the server, to dial what it listens on; "" in one process.
func (r *Run) Host() string { return r.client.host }

// Options are those of a workload with a run of its own, in a form in which points compare and go to the server.
type Options string

// PackOptions makes them of a struct, by its JSON form.
func PackOptions(v any) Options {
	b, err := json.Marshal(v)
	if err != nil {
		panic("engine: options without a JSON form: " + err.Error()) // of a type, not of values
	}
	return Options(b)
}

// Unpack reads them into the struct that v points to. Unknown fields are an error.
func (o Options) Unpack(v any) error {
	d := json.NewDecoder(strings.NewReader(string(o)))
	d.DisallowUnknownFields()
	if err := d.Decode(v); err != nil {
		return fmt.Errorf("options: %w", err)
	}
	return nil
}

// ReadOptions are those of a point, which may come from anybody, as check allows them.
func ReadOptions[O any](pt Point, check func(o *O, size int) error) (o O, err error) {
	if err = pt.Options.Unpack(&o); err == nil {
		err = check(&o, pt.Size)
	}
	if err != nil {
		err = Refused(err)
	}
	return o, err
}

// Local reports that no point needs a server.
func (p *Plan) Local() bool {
	return !slices.ContainsFunc(p.Points, func(pt Point) bool { return !pt.Alone })
}

// PlannedTime is how long a point takes by its plan; zero when operations are counted instead.
func (p *Plan) PlannedTime(pt Point) time.Duration {
	if pt.Time > 0 {
		return pt.Time
	}
	if p.Duration == 0 {
		return 0
	}
	return p.WarmupDuration + time.Duration(max(pt.Windows, 1))*p.Duration
}

// limit bounds a point with all its slices: twice their time and five minutes, or an hour where operations are counted.
func (p *Plan) limit(pt Point) time.Duration {
	rounds := time.Duration(max(p.Rounds, 1))
	if t := p.PlannedTime(pt); t > 0 {
		return rounds*(2*t+p.Between) + 5*time.Minute
	}
	return rounds * (idleWait + p.Between)
}

// Alone makes a client of a plan that needs no server: see [Plan.Local]. The transport stays the caller's.
func Alone(tr transports.Stack, plan Plan) (*Client, error) {
	plan = plan.WithDefaults()
	if err := plan.Validate(); err != nil {
		return nil, err
	}
	if err := Check(&plan, tr.Name(), tr.Caps()); err != nil {
		return nil, err
	}
	if !plan.Local() {
		return nil, Failed("check plan", errors.New("a point needs a server"))
	}
	return &Client{Plan: plan, Tr: tr, kept: map[string]float64{}}, nil
}

// Run measures one point and returns the results of its last slice: see Turn. Ended early, by ctx or by a failure, it
// returns what was measured until then (Operations > 0) beside the error.
func (c *Client) Run(ctx context.Context, index int) (results []reports.Result, err error) {
	pt := c.Plan.Points[index]
	w := c.Plan.Workloads[pt.Workload]
	if c.broken {
		return nil, Failed(pt.String(), errors.New("the client failed before"))
	}
	defer func() { c.broken = err != nil }()
	c.Slice = 0 // it was that of another point
	limit := c.Plan.limit(pt)
	bound, cancel := context.WithTimeoutCause(ctx, limit, fmt.Errorf("not done within %v", limit))
	defer cancel()
	bound, lost := context.WithCancelCause(bound)
	defer lost(nil)
	r := c.NewRun(pt)
	if !pt.Alone {
		if r.Peer, err = c.begin(c.Ctl, pt, limit, c.host); err != nil {
			return nil, err
		}
		r.links = append(r.links, r.Peer)
		unhook := context.AfterFunc(c.Ctl.Alive, func() { lost(errServerGone) })
		defer unhook()
	}
	r.begin()
	err = w.Client(bound, r)
	results = r.take()
	for _, l := range r.links {
		err = cmp.Or(err, l.end(ctx, err == nil))
	}
	if err == nil && c.server.Results {
		err = c.tell(results)
	}
	switch {
	case err == nil:
		return results, nil
	case ctx.Err() != nil && reports.Code(err) != reports.ExitCorruption:
		return results, Interrupted()
	case errors.Is(bound.Err(), context.DeadlineExceeded) && (errors.Is(err, context.DeadlineExceeded) ||
		errors.Is(err, ErrInterrupted)):
		err = Failed(pt.String(), context.Cause(bound))
	case errors.As(err, new(*reports.ExitError)):
	default:
		err = Failed(pt.String(), err)
	}
	return results, err
}

func (c *Client) tell(results []reports.Result) error {
	b, err := json.Marshal(results)
	if err != nil {
		return err
	}
	return c.Ctl.Send(ReplyWait, &Message{Type: msgResults, Data: b})
}

// NewRun is the client's side of a point before anything was said to a server.
func (c *Client) NewRun(pt Point) *Run {
	r := &Run{Setup: Setup{&c.Plan, pt, c.abilities()}, Stack: c.Tr, Open: c.Open, Progress: c.Progress, Kept: c.kept,
		client: c}
	if r.Progress == nil {
		r.Progress = func(int64, int64) {}
	}
	return r
}

// errServerGone is why the context of a point ended whose server closed the channel.
var errServerGone = errors.New("the server closed the connection")

// WasInterrupted reports whether whoever runs a point ended it, or its time is over, and not because the server is
// gone.
func WasInterrupted(ctx context.Context) bool {
	return ctx.Err() != nil && context.Cause(ctx) != errServerGone
}

// Result is the beginning of a result of the point: what the plan and the stack say.
func (r *Run) Result() reports.Result {
	pt, p := r.Point, r.Plan
	res := reports.Result{Stack: r.Stack.Name(), Transport: cmp.Or(p.Transport, r.Stack.Name()),
		Label:    string(r.Stack.Caps().Label),
		Workload: pt.Workload, Op: pt.Op, SizeBytes: int64(pt.Size), MeasuredBy: SideClient, Polling: p.Polling,
		Depth: 1, QPs: max(pt.QPs, 1), Threads: max(p.Threads, 1)}
	res.Parameters = map[string]any{"seed": p.Seed, "verify": p.Verify, "clock": "CLOCK_MONOTONIC"}
	p.lasts(res.Parameters)
	var own map[string]any
	if pt.Options != "" && json.Unmarshal([]byte(pt.Options), &own) == nil {
		res.Parameters["options"] = own
	}
	return res
}

func (p *Plan) lasts(to map[string]any) {
	to["warmup_iterations"], to["warmup_ns"] = p.WarmupIterations, int64(p.WarmupDuration)
	if p.Iterations > 0 {
		to["iterations"] = p.Iterations
	} else {
		to["duration_ns"] = int64(p.Duration)
	}
}
