// Package run goes from options or a scenario to points, takes them in rounds, and puts out the results.
package run

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/catalogue"
	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/cli"
	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/engine"
	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/resultfile"
	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/stackspec"
	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/workload"
	"github.com/rdmaperf/rdmaperf/reports"
	"github.com/rdmaperf/rdmaperf/reports/render"
	"github.com/rdmaperf/rdmaperf/transports"
)

// Run takes the whole measurement. The document is written whatever happened after the plan was made.
func (o *Options) Run(cmd *cobra.Command, args []string) error {
	if len(args) == 1 {
		var err error
		if o.host, o.port, err = splitHost(args[0], o.port, cmd.Flags().Changed("port")); err != nil {
			return cli.Usage("read command line", err, "rdmaperf run node7 -p 18515")
		}
	}
	o.pinNamed = cmd.Flags().Changed("pin")
	bare := isBare(cmd.Flags())
	if bare {
		o.transports = stackspec.AllStacks
	}
	ctx, stderr := cmd.Context(), cmd.ErrOrStderr()
	if len(o.impair) > 0 {
		return o.runImpaired(cmd)
	}
	steps, err := o.steps(cmd)
	if err != nil {
		return err
	}
	if err := o.failIf.measured(steps); err != nil {
		return err
	}
	if o.to.json == "-" {
		if cmd.Flags().Changed("format") && o.format != render.Document {
			return cli.Usage("read --json", fmt.Errorf("- is stdout, where --format %s goes", o.format), "one of them")
		}
		o.format = render.Document
	}
	if err := o.to.open(time.Now()); err != nil {
		return err
	}
	if err := o.metrics.open(); err != nil {
		return err
	}
	log := cli.NewLog(stderr, o.quiet, o.verbose)
	doc := &reports.Document{Started: time.Now().UTC(), Command: os.Args, Environment: reports.Collect()}
	awake, err := o.keepAwake(&doc.Environment)
	if err != nil {
		return err
	}
	defer awake.Close() // its error says nothing about the results
	defer hold(ctx, log, Measuring).Close()
	observeWakeup(ctx, log, &doc.Environment)
	if err := o.metrics.start(ctx, log, doc); err != nil {
		return err
	}
	if err := o.raw.open(o.to.dir); err != nil {
		return errors.Join(err, o.metrics.stop())
	}
	if err := o.profile.start(); err != nil {
		return errors.Join(err, o.raw.close(), o.metrics.stop())
	}
	err = cmp.Or(o.measure(ctx, steps, doc, log, stderr), o.profile.file.Stop(), o.raw.close())
	err = joined(o.finish(cmd.OutOrStdout(), doc, err), o.metrics.write(doc), o.metrics.stop())
	if e := o.failIf.check(stderr, doc); e != nil {
		switch code := reports.Code(err); {
		case code == reports.ExitOK:
			err = e // an error of the run says more than what it left unmeasured
		case code == reports.ExitNotRun && len(doc.Results) > 0:
			err = errors.Join(e, err) // of a scenario, what was measured counts
		}
	}
	if o.to.chosen && len(doc.Results) > 0 && !o.quiet {
		fmt.Fprintf(stderr, "\nSaved: open %s in a browser.\n", filepath.Join(o.to.dir, resultfile.PageFile))
	}
	if bare && err == nil && len(args) == 0 {
		fmt.Fprint(stderr, nextSteps)
	}
	return err
}

type runner struct {
	o        *Options
	p        *runPlan
	doc      *reports.Document
	log      *slog.Logger
	stderr   io.Writer
	to       *destinations   // of the whole document
	metrics  *metricsOptions // likewise
	raw      *rawOptions     // likewise
	profile  *profileOptions // likewise
	stacks   stackspec.Set
	saidLong bool  // announceLong has had its turn
	peer     *peer // the child, once it is needed
	arms     []*arm
	left     []stackspec.LeftOut // what is not measured
	rounds   int                 // slices of each point
	total    time.Duration       // planned
	least    int                 // of these, what is measured also when the run takes longer than announced
	beside   neighbours
	lost     []error // of stacks that ended during the run
	bar      *cli.Progress
}

// arm is one transport of the side-by-side run.
type arm struct {
	spec    string // as it was opened
	given   string // as it was asked for
	tr      transports.Stack
	plan    engine.Plan
	clients []*engine.Client
	stops   []func() error // of servers in this process
	lost    bool           // it ended, and has no more turns
}

func (m *runner) measure(ctx context.Context) (err error) {
	defer func() { err = joined(err, m.close()) }()
	if err := m.open(); err != nil {
		return err
	}
	m.total = m.cut()
	if !m.o.quiet {
		m.announce(m.stderr, m.total)
	}
	if err := m.place(os.DirFS("/")); err != nil {
		return err
	}
	for _, a := range m.arms {
		_, err := m.client(ctx, a, 0)
		if reports.Code(err) == reports.ExitNotRun && len(m.arms) > len(m.lost)+1 { // the server lacks what it needs
			a.lost, m.lost = true, append(m.lost, err)
			fmt.Fprintf(m.stderr, "Left out: %s, %v.\n", a.spec, inner(err))
		} else if err != nil {
			return err
		}
	}
	if m.beside, err = startNeighbours(m.p.points); err != nil {
		return err
	}
	defer m.beside.end()
	var costs []time.Duration
	for _, a := range m.arms {
		for _, pt := range a.plan.Points {
			costs = append(costs, a.plan.PlannedTime(pt))
		}
	}
	m.bar = cli.NewProgress(m.stderr, m.o.quiet || m.o.verbose || m.o.infinite, slices.Repeat(costs, m.rounds))
	defer m.bar.End()
	groups := m.p.groups()
	s := schedule{end: time.Now().Add(m.total - allStart)}
	for _, g := range groups {
		s.shares = append(s.shares, m.planned(g))
	}
	for i, g := range groups {
		err := m.measureGroup(ctx, g, s.until(i, time.Now()))
		if m.o.infinite && errors.Is(err, engine.ErrInterrupted) && len(m.doc.Results) > 0 {
			for i := range m.doc.Results { // that is how it ends
				m.doc.Results[i].Interrupted = false
			}
			return nil
		}
		if err != nil {
			return err
		}
	}
	return m.ended()
}

// open makes the transports and the plan of each. A stack that can do nothing of it is left out, unless no other is
// left.
func (m *runner) open() (err error) {
	m.left = slices.Clone(m.p.left)
	if err := m.p.addLayers(); err != nil {
		return err
	}
	seen := map[string]bool{}
	var first error // of the stacks that are left out
	for _, asked := range m.p.stacks {
		spec, err := stackspec.ChooseDevice(asked, false)
		if err != nil {
			return err
		}
		if seen[spec] {
			return cli.Usage("open transport "+strconv.Quote(asked), fmt.Errorf("that is %s, which is given already",
				spec), "each stack once")
		}
		seen[spec] = true
		a := &arm{spec: spec, given: asked}
		if a.tr, err = m.stacks.Open(spec); err == nil {
			m.arms = append(m.arms, a) // also after an error it is closed with the others
			err = m.choose(a)
		} else if !m.p.everything {
			return err
		}
		if err == nil {
			continue
		}
		if code := reports.Code(err); code != reports.ExitNotRun && code != reports.ExitUsage {
			return err
		}
		first = cmp.Or(first, err)
		m.leave(spec, err)
		if a.tr != nil {
			m.arms = m.arms[:len(m.arms)-1]
			if err := a.tr.Close(); err != nil {
				return err
			}
		}
	}
	if len(m.arms) == 0 {
		return first
	}
	m.shareLoop()
	return nil
}

func (m *runner) leave(what string, err error) {
	m.left = append(m.left, stackspec.LeftOut{Stack: what, Why: inner(err).Error()})
}

func inner(err error) error {
	if exit, ok := errors.AsType[*reports.ExitError](err); ok && exit.Err != nil {
		return exit.Err
	}
	return err
}

// take puts a result into the document; one that ended early must have measured something.
func (m *runner) take(res *reports.Result, round int, err error) {
	m.raw.name(res)
	if m.rounds > 1 {
		res.Repeat = round
	}
	if err == nil || res.Operations > 0 {
		m.doc.Results = append(m.doc.Results, *res)
	}
}

// choose makes the plan of one stack: the points that it can do. It is an error if there are none.
func (m *runner) choose(a *arm) error {
	spec := a.spec
	a.plan = m.p.base
	if a.plan.Transport = spec; m.o.host != "" {
		a.plan.Transport = stackspec.ForPeer(spec)
	}
	caps := a.tr.Caps()
	if caps.InProcess && m.o.host != "" {
		return cli.Usage("run against "+m.o.host, fmt.Errorf("%s is in-process only", spec),
			"no HOST, or another --transport")
	}
	if caps.SameHost && m.o.host != "" && !thisMachine(m.o.host) {
		return cli.Usage("run against "+m.o.host, fmt.Errorf("%s needs both ends on one machine", spec),
			"no HOST, or another --transport")
	}
	points := slices.DeleteFunc(slices.Clone(m.p.points), func(pt engine.Point) bool { return !m.p.suits(a.given, pt) })
	if len(points) == 0 {
		return cli.Usage("check "+spec, errors.New("no point is for it"), "another --transport")
	}
	if !m.p.askOps {
		points = slices.DeleteFunc(points, func(pt engine.Point) bool {
			k, ok := transports.ParseKind(pt.Op)
			// A stack that has sessions is measured by them where the workload is.
			other := k == transports.KindCall && !ofCalls(pt) && caps.Kinds != transports.Kinds(transports.KindCall)
			return ok && (other || !caps.Kinds.Has(k))
		})
	}
	switch {
	case len(points) > 0:
	case caps.Kinds == transports.Kinds(transports.KindCall):
		return cli.Usage("check "+spec, errors.New("it carries calls, and none of the workloads makes any"),
			"--workload "+workload.ForCalls(catalogue.All()).Meta().Name)
	case !slices.ContainsFunc(m.p.points, func(pt engine.Point) bool { return !ofCalls(pt) }):
		return cli.Usage("check "+spec, errors.New("no operation call"),
			"--transport 'grpc(fused)+"+stackspec.Embedded()+"', or another --workload")
	default:
		return &reports.ExitError{Code: reports.ExitNotRun, Operation: "check " + spec,
			Err: errors.New("none of the default operations is possible"), Hint: "--op"}
	}
	able, over := overStack(points, a.tr)
	if len(able) == 0 {
		over.Operation = "check " + spec
		return over
	}
	able, err := possible(a.plan, able, spec, caps)
	if a.plan.Points = able; len(able) == 0 {
		return ofTheDevice(spec, err)
	}
	if over != nil {
		m.leave("points of "+spec, over)
	}
	if err != nil {
		m.leave("points of "+spec, err)
	}
	return nil
}

// overStack are those of the points whose workload takes the stack, with the error of the first other.
func overStack(points []engine.Point, s transports.Stack) (able []engine.Point, not *reports.ExitError) {
	for _, pt := range points {
		err := error(nil)
		if over := metaOf(pt).Over; over != nil {
			err = over(s, pt)
		}
		var exit *reports.ExitError
		switch {
		case err == nil:
			able = append(able, pt)
		case not != nil:
		case errors.As(err, &exit):
			not = exit
		default:
			not = &reports.ExitError{Code: reports.ExitUsage, Err: err}
		}
	}
	return able, not
}

func possible(p engine.Plan, points []engine.Point, name string, caps transports.Caps) (able []engine.Point,
	err error) {
	var not []engine.Point
	for _, pt := range points {
		p.Points = []engine.Point{pt}
		if engine.Check(&p, name, caps) == nil {
			able = append(able, pt)
		} else {
			not = append(not, pt)
		}
	}
	p.Points = not
	return able, engine.Check(&p, name, caps)
}

// ofTheDevice is err where another device would do what is missing; else no machine can, and the command line is wrong.
func ofTheDevice(spec string, err error) error {
	var exit *reports.ExitError
	if !errors.As(err, &exit) || exit.Code != reports.ExitNotRun {
		return err
	}
	layers, e := stackspec.Parse(spec)
	if e != nil || stackspec.Find(layers[len(layers)-1].Name).Chooses {
		return err
	}
	wrong := *exit
	wrong.Code = reports.ExitUsage
	return &wrong
}

// client is number n of those of a stack. The server takes one point at a time from each.
func (m *runner) client(ctx context.Context, a *arm, n int) (*engine.Client, error) {
	for len(a.clients) <= n {
		a.clients = append(a.clients, nil)
	}
	if a.clients[n] != nil {
		return a.clients[n], nil
	}
	c, err := m.connect(ctx, a)
	if c != nil {
		c.Open, c.More = engine.Opener{Stack: m.stacks.Open, Device: m.stacks.OpenDevice}, m.more
		a.clients[n] = c
	}
	return c, err
}

func (m *runner) connect(ctx context.Context, a *arm) (c *engine.Client, err error) {
	if a.plan.Local() {
		a.plan.ClientCPU, a.plan.ServerCPU = m.p.base.ClientCPU, m.p.base.ServerCPU
		return engine.Alone(a.tr, a.plan)
	}
	if a.tr.Caps().InProcess {
		s := &engine.Server{Workloads: a.plan.Workloads, Open: m.stacks.Open, Device: m.stacks.OpenDevice}
		conn, stop := inProcess(ctx, s)
		a.stops = append(a.stops, stop)
		return engine.ConnectConn(ctx, conn, a.tr, a.plan)
	}
	addr := net.JoinHostPort(m.o.host, strconv.Itoa(m.o.port))
	if m.o.host == "" {
		if m.peer == nil {
			profile, err := m.profile.server()
			if err != nil {
				return nil, err
			}
			if m.peer, err = startChild(ctx, m.stderr, profile...); err != nil {
				return nil, err
			}
		}
		a.plan.ClientCPU, a.plan.ServerCPU = m.p.base.ClientCPU, m.p.base.ServerCPU
		addr = m.peer.addr
	}
	a.plan.Log = m.log
	if c, err = engine.Connect(ctx, addr, a.tr, a.plan); err != nil {
		return nil, err
	}
	if e := c.ServerEnvironment(); m.o.host != "" && e != nil && e.Hostname != m.doc.Environment.Hostname {
		m.doc.ServerEnvironment = e
	}
	return c, nil
}

// more starts one more server for a workload that has several, or with a HOST names the same one.
func (m *runner) more(ctx context.Context) (addr string, stop func() error, err error) {
	if m.o.host != "" {
		return net.JoinHostPort(m.o.host, strconv.Itoa(m.o.port)), nil, nil
	}
	p, err := startChild(ctx, m.stderr)
	if err != nil {
		return "", nil, err
	}
	return p.addr, p.stop, nil
}

func (m *runner) close() error {
	var errs []error
	for _, a := range m.arms {
		for _, c := range a.clients {
			if c != nil {
				c.Close()
			}
		}
		for _, stop := range a.stops {
			errs = append(errs, stop())
		}
		if err := a.tr.Close(); err != nil {
			errs = append(errs, fmt.Errorf("close %s: %w", a.tr.Name(), err))
		}
	}
	if m.peer != nil {
		if err := m.peer.stop(); err != nil {
			m.log.Debug("server process", "err", err) // its death during the run was an error already
		}
	}
	return errors.Join(errs...)
}

const nextSteps = `
What to try next:
  rdmaperf run --transport tcp,iwarp             the protocol's cost beside TCP
  rdmaperf run --workload latency --op send -a   every size from 2 B to 8 MiB
  rdmaperf run --op send -s 64 --rate 20000      timed from when each was due
  rdmaperf serve                                 there; here: rdmaperf run HOST
`
