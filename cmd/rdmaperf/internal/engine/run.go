package engine

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/rdmaperf/rdmaperf/reports"
	"github.com/rdmaperf/rdmaperf/transports"
	"github.com/rdmaperf/rdmaperf/transports/rdma"
)

// A Runner is a workload as the engine runs it: what its two sides do at a point. The
// engine gives them the opened stack, the plan and a channel between them, bounds their
// time, and collects the results.
type Runner interface {
	// Client measures one point and hands what it measured to r, also what it measured
	// before an error. It is called again for every repeat.
	Client(ctx context.Context, r *Run) error

	// Server is the other side of a point. It ends when Client does, which it learns from
	// Peer.Receive. It checks the point, which may come from anybody, before it opens anything.
	Server(ctx context.Context, s *Serve) error
}

// ClientOnly is what a workload embeds whose points have Alone set.
type ClientOnly struct{}

// Server refuses.
func (ClientOnly) Server(_ context.Context, s *Serve) error {
	return PeerError("check point", fmt.Errorf("the workload %q has no server", s.Point.Workload), "the same rdmaperf version on both sides")
}

// Needs is what a point holds of a server.
type Needs struct {
	Windows int64 // bytes of memory that is registered or filled
	Queues  int64 // bytes of queue pairs: see [QueueBytes]
	Threads int
}

// QueueBytes is what queue pairs of so many places cost, rounded up.
func QueueBytes(qps, places int) int64 {
	return int64(qps) * (qpCost + placeCost*int64(places))
}

// Opener opens further stacks by their names, as --transport spells them. What it
// returns belongs to the caller.
type Opener struct {
	Stack  func(spec string) (transports.Stack, error)
	Device func(spec string) (rdma.Device, error) // of providers, and tiers over them
}

// Run is the client's side of a point.
type Run struct {
	Plan  *Plan // with defaults filled in
	Point Point
	Stack transports.Stack // what Plan.Transport names; the caller's, open until the run ends
	Open  Opener
	Peer  *Link // the server; nil where the workload has none

	// Progress tells what is done of how much. It may take some time: between windows only.
	Progress func(done, total int64)

	client  *Client
	links   []*Link
	results []reports.Result
}

// Add hands over results.
func (r *Run) Add(results ...reports.Result) { r.results = append(r.results, results...) }

// Serve is the server's side of a point.
type Serve struct {
	Plan  *Plan
	Point Point
	Stack transports.Stack
	Open  Opener
	Peer  *Link // the client

	// Host is the address at which the client reached this server, to listen on.
	Host string

	token   []byte // of the server; nil: none
	server  *Server
	release []func() // of what is held
}

// Hold asks for what the point needs of this machine, before anything is allocated. It is
// given back when the point ends; an error refuses the point.
func (s *Serve) Hold(n Needs) error {
	release, err := s.server.hold(s.Plan.Describe(s.Point), n)
	if err == nil {
		s.release = append(s.release, release)
	}
	return err
}

// Process starts one more server process and returns the link to what serves the same
// point there. Against a server on another host, that one serves once more, in the same
// process. It ends with the run.
func (r *Run) Process(ctx context.Context) (*Link, error) {
	l, err := r.client.another(ctx, r)
	if err == nil {
		r.links = append(r.links, l)
	}
	return l, err
}

// Host is the address of the server, to dial what it listens on; "" in one process.
func (r *Run) Host() string { return r.client.host }

// Result is the beginning of a result of the point: what the plan and the stack say.
func (r *Run) Result() reports.Result { return r.client.resultOf(r.Point) }

// Options are those of a workload with a run of its own, in a form in which points
// compare and go to the server.
type Options string

// PackOptions makes them of a struct, by its JSON form.
func PackOptions(v any) Options {
	b, err := json.Marshal(v)
	if err != nil {
		panic("engine: options without a JSON form: " + err.Error()) // of a type, not of values
	}
	return Options(b)
}

// Unpack reads them into the struct that v points to. The other side may be of another
// version, or hostile: unknown fields are an error.
func (o Options) Unpack(v any) error {
	d := json.NewDecoder(strings.NewReader(string(o)))
	d.DisallowUnknownFields()
	if err := d.Decode(v); err != nil {
		return fmt.Errorf("options: %w", err)
	}
	return nil
}

// Checked makes a check of points of one of options: what is not the options of this
// workload is refused before it.
func Checked[O any](check func(o *O, size int) error) func(Point) error {
	return func(pt Point) error {
		var o O
		if err := pt.Options.Unpack(&o); err != nil {
			return err
		}
		return check(&o, pt.Size)
	}
}

// Described says in words what points of a workload are, by their options. What check refuses
// is described too, in the message that says so, and words never sees it.
func Described[O any](check func(o *O, size int) error, words func(o *O, size int) string) func(Point) string {
	return func(pt Point) string {
		var o O
		if pt.Options.Unpack(&o) != nil || check(&o, pt.Size) != nil {
			return pt.Workload
		}
		return words(&o, pt.Size)
	}
}

// Local tells that no point needs a server.
func (p *Plan) Local() bool {
	for _, pt := range p.Points {
		if !pt.Alone {
			return false
		}
	}
	return true
}

// PlannedTime is how long a point takes by its plan, windows being how many it has one
// after the other; zero when operations are counted instead.
func (p *Plan) PlannedTime(pt Point, windows int) time.Duration {
	if pt.Time > 0 {
		return pt.Time
	}
	if p.Duration == 0 {
		return 0
	}
	return p.WarmupDuration + time.Duration(max(windows, 1))*p.Duration
}

// limit bounds a point: twice its time and five minutes more for
// what surrounds its windows, or an hour where operations are counted.
func (p *Plan) limit(pt Point) time.Duration {
	if t := p.PlannedTime(pt, 1); t > 0 {
		return 2*t + 5*time.Minute
	}
	return idleWait
}

// Alone makes a client of a plan that needs no server: see [Plan.Local]. The transport
// stays the caller's.
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
	return &Client{Plan: plan, Tr: tr, Remembered: map[any]any{}}, nil
}

// runPoint takes a point whose workload is a Runner.
func (c *Client) runPoint(ctx context.Context, pt Point, w *Workload) ([]reports.Result, error) {
	limit := c.Plan.limit(pt)
	deadline, cancel := context.WithTimeoutCause(ctx, limit, fmt.Errorf("not done within %v", limit))
	defer cancel()
	r := &Run{Plan: &c.Plan, Point: pt, Stack: c.Tr, Open: c.Open, Progress: c.Progress, client: c}
	if r.Progress == nil {
		r.Progress = func(int64, int64) {}
	}
	var err error
	if !pt.Alone {
		if r.Peer, err = c.begin(c.Ctl, pt, limit, c.host); err != nil {
			return nil, err
		}
		r.links = append(r.links, r.Peer)
		unhook := context.AfterFunc(c.Ctl.Alive, cancel)
		defer unhook()
	}
	before, began := ReadProcessNoise(), time.Now()
	err = w.Runner.Client(deadline, r)
	results := r.results
	window := time.Since(began)
	client := ProcessNoise(before)
	for _, l := range r.links {
		err = cmp.Or(err, l.end(ctx, err == nil))
	}
	for i := range results {
		results[i].Kind = w.Kind
		// By a clock of its own a device loses nothing to the machine.
		if results[i].Disturbance == nil && c.Tr.Caps().Clock == nil {
			d := &reports.Disturbance{Client: &client}
			d.Judge(window)
			results[i].Disturbance = d
		}
	}
	switch {
	case err == nil:
		return results, nil
	case ctx.Err() != nil && reports.Code(err) != reports.ExitCorruption:
		return results, Interrupted()
	case deadline.Err() != nil && errors.Is(err, context.DeadlineExceeded):
		err = Failed(c.Plan.Describe(pt), context.Cause(deadline))
	case errors.As(err, new(*reports.ExitError)):
	default:
		err = Failed(c.Plan.Describe(pt), err)
	}
	return results, err
}

// resultOf is what plan and stack say about the results of a point.
func (c *Client) resultOf(pt Point) reports.Result {
	w := c.Plan.Workloads.Of(pt)
	res := reports.Result{Stack: c.Tr.Name(), Transport: cmp.Or(c.Plan.Transport, c.Tr.Name()), Label: string(c.Tr.Caps().Label),
		Workload: pt.Workload, Kind: w.Kind, Op: pt.Op, SizeBytes: int64(pt.Size), MeasuredBy: SideClient, Polling: c.Plan.Polling,
		Depth: 1, QPs: max(pt.QPs, 1), Threads: max(c.Plan.Threads, 1)}
	p := map[string]any{"seed": c.Plan.Seed, "verify": c.Plan.Verify, "clock": "CLOCK_MONOTONIC",
		"warmup_iterations": c.Plan.WarmupIterations, "warmup_ns": int64(c.Plan.WarmupDuration)}
	if c.Plan.Iterations > 0 {
		p["iterations"] = c.Plan.Iterations
	} else {
		p["duration_ns"] = int64(c.Plan.Duration)
	}
	var own map[string]any
	if pt.Options != "" && json.Unmarshal([]byte(pt.Options), &own) == nil {
		p["options"] = own
	}
	res.Parameters = p
	return res
}
