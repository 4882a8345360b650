package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"slices"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/bench"
	"github.com/rdmaperf/rdmaperf/reports"
	"github.com/rdmaperf/rdmaperf/transports"
)

func newRunCommand() *cobra.Command {
	var o runOptions
	cmd := &cobra.Command{
		Use:   "run [flags] [HOST]",
		Short: "Measure latency, throughput and head-of-line blocking",
		Long: `run measures against "rdmaperf serve" on HOST, or, without a HOST, against a
server process of its own on this machine. Without any option it measures the
best that the machine has: kernel verbs on the first RDMA device with an ACTIVE
port, or else user-space iWARP. It writes rdmaperf-results/TIME/result.json, with
report.html beside it for reading.

Several transports are measured point by point in turn, so that a change of the
machine's mood hits all of them.

--scenario FILE takes several runs, each with options of its own, into one
document. The file maps the long names of run's flags to their values:

  version: 1
  name: small-and-large
  defaults: {transport: [tcp, iwarp], duration: 3s}
  runs:
    - {name: small, workload: latency, op: send, size: 64}
    - {name: large, workload: throughput, op: write, size: 1M}

Flags on the command line win over the file. The whole file is checked before
anything is measured. A run that is not possible here is left out, with exit
code 77 at the end; any other error ends the scenario.

Exit codes: 0 done, 1 failed, 2 usage, 3 a threshold was missed, 4 data arrived changed, 5 the peer is
unreachable or incompatible, 77 not run for lack of a device or ability.`,
		Example: `  rdmaperf run
  rdmaperf run --transport tcp,iwarp --workload latency --op send -s 64 -D 3s
  rdmaperf run --op write -s 64 --rate-sweep 10000:50000:10000 --arrivals poisson
  rdmaperf run --transport tcp,iwarp --workload hol --bulk-size 64K,1M
  rdmaperf run --transport 'grpc(tcp),grpc(fused)+iwarp' --workload rpc -s 64 -D 3s
  rdmaperf run --transport 'grpc(tcp),grpc(fused)+iwarp' --workload kv --ycsb a,c --records 100000 --outstanding 4
  rdmaperf run --transport 'grpc(tcp),grpc(fused)+iwarp' --workload tensor --tensor exchange -s 1K,64K,1M,64M
  rdmaperf run --scenario nightly.yaml --json nightly.json
  rdmaperf run 192.0.2.7 --workload throughput --op write -s 1M -t 16 --json r.json`,
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) > 1 {
				return fmt.Errorf("one HOST at most, got %q", args)
			}
			return nil
		},
	}
	o.register(cmd.Flags())
	groupedUsage(cmd, runGroups)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if len(args) == 1 {
			o.host = args[0]
		}
		bare := len(args) == 0 && cmd.Flags().NFlag() == 0
		return o.run(cmd, bare)
	}
	return cmd
}

// run takes the whole measurement: plan, peers, points, document. The document is
// written whatever happened after the plan stood.
func (o *runOptions) run(cmd *cobra.Command, bare bool) error {
	ctx, stderr := cmd.Context(), cmd.ErrOrStderr()
	steps, err := o.steps(cmd)
	if err != nil {
		return err
	}
	if bare {
		o.output = defaultOutput(time.Now())
	}
	log := newLog(stderr, o.quiet, o.verbose)
	doc := &reports.Document{Started: time.Now().UTC(), Command: os.Args, Environment: reports.Collect()}
	if err := o.metrics.start(ctx, log, doc); err != nil {
		return err
	}
	if err := o.raw.open(o.output); err != nil {
		return errors.Join(err, o.metrics.stop())
	}
	if err := o.profile.start(); err != nil {
		return errors.Join(err, o.raw.close(), o.metrics.stop())
	}
	err = o.measure(ctx, steps, doc, log, stderr)
	if e := o.profile.stop(); err == nil {
		err = e
	}
	if e := o.raw.close(); err == nil {
		err = e
	}
	if err != nil {
		doc.Error = reports.NewRunError(err)
	}
	doc.Repeats = reports.SummariseRepeats(doc.Results)
	if e := o.write(cmd.OutOrStdout(), doc); e != nil {
		err = errors.Join(err, e)
	}
	if e := errors.Join(o.metrics.write(doc), o.metrics.stop()); e != nil {
		err = errors.Join(err, e)
	}
	if e := o.failIf.check(stderr, doc); e != nil {
		switch code := reports.Code(err); {
		case code == reports.ExitOK:
			err = e // an error of the run says more than what it left unmeasured
		case code == reports.ExitNotRun && len(doc.Results) > 0:
			err = errors.Join(e, err) // of a scenario, what was measured counts
		}
	}
	if bare && err == nil && !o.quiet {
		fmt.Fprint(stderr, nextSteps(o.output))
	}
	return err
}

// runner is one run in progress.
type runner struct {
	o      *runOptions
	p      *runPlan
	doc    *reports.Document
	log    *slog.Logger
	stderr io.Writer

	metrics *metricsOptions // of the whole document
	raw     *rawOptions     // likewise
	profile *profileOptions // likewise

	stacks stackSet
	peer   *peer // the child, once it is needed
	arms   []*arm
	bar    *progress
}

// arm is one transport of the side-by-side run.
type arm struct {
	tr     transports.Transport
	plan   bench.Plan
	client *bench.Client
	stop   func() error // ends a server in this process
}

// measure opens everything, takes all points in turn and closes everything.
func (m *runner) measure(ctx context.Context) (err error) {
	defer func() {
		if e := m.close(); e != nil {
			err = errors.Join(err, e)
		}
	}()
	if err := m.open(); err != nil {
		return err
	}
	for _, a := range m.arms {
		if err := m.connect(ctx, a); err != nil {
			return err
		}
	}
	m.bar = newProgress(m.stderr, m.o.quiet || m.o.verbose, m.costs())
	defer m.bar.end()
	for repeat := range m.o.repeat {
		if err := m.series(ctx, repeat+1); err != nil {
			return err
		}
	}
	return nil
}

// open makes the transports and the plan of each.
func (m *runner) open() (err error) {
	seen := map[string]bool{}
	for _, spec := range m.p.stacks {
		asked := spec
		if spec, err = chooseDevice(spec, false); err != nil {
			return err
		}
		if seen[spec] {
			return usage("open transport "+strconv.Quote(asked), fmt.Errorf("that is %s, which stands there already", spec), "each stack once")
		}
		seen[spec] = true
		if asked == m.o.chosen && spec != embeddedStack() {
			m.log.Info("measure the first RDMA device with an ACTIVE port", "transport", spec, "else", "--transport "+embeddedStack())
		}
		a := &arm{}
		if a.tr, err = m.stacks.open(spec); err != nil {
			return err
		}
		m.arms = append(m.arms, a)
		if err := m.choose(a, spec); err != nil {
			return err
		}
	}
	return nil
}

// series takes every point once. Repeats are whole series one after another, so
// that they show what the machine does over the time of the whole run.
func (m *runner) series(ctx context.Context, repeat int) error {
	for _, pt := range m.p.points {
		for _, a := range m.arms {
			i := slices.Index(a.plan.Points, pt)
			if i < 0 {
				continue
			}
			m.log.Debug("measure", "point", pt.String(), "transport", a.tr.Name(), "repeat", repeat)
			m.bar.before(a.tr.Name(), pt.String(), plannedTime(&a.plan, pt))
			a.client.ReadCounters(m.stacks.countersOf(a.tr.Name()))
			m.raw.keep(a.client, len(m.doc.Results))
			res, err := a.client.Run(ctx, i)
			m.raw.name(&res)
			m.bar.after()
			if m.o.repeat > 1 {
				res.Repeat = repeat
			}
			if err == nil || res.Operations > 0 {
				m.doc.Results = append(m.doc.Results, res)
			}
			if e := m.metrics.publish(m.doc); err == nil {
				err = e
			}
			if err != nil {
				return err
			}
		}
	}
	return nil
}

// choose makes the plan of one transport: what the user asked for must be
// possible; of what he did not ask for, what is possible is taken.
func (m *runner) choose(a *arm, spec string) error {
	a.plan = m.p.base
	if a.plan.Transport = spec; m.o.host != "" {
		a.plan.Transport = forPeer(spec)
	}
	caps := a.tr.Caps()
	if caps.InProcess && m.o.host != "" {
		return usage("run against "+m.o.host, fmt.Errorf("%s lives in one process", spec), "no HOST, or another --transport")
	}
	a.plan.Points = m.p.points
	if !m.p.askOps {
		a.plan.Points = slices.DeleteFunc(slices.Clone(m.p.points), func(pt bench.Point) bool {
			k, ok := transports.ParseKind(pt.Op)
			return ok && !caps.Kinds.Has(k)
		})
	}
	if caps.SameHost && m.o.host != "" && !thisMachine(m.o.host) {
		return usage("run against "+m.o.host, fmt.Errorf("%s needs both ends on one machine", spec), "no HOST, or another --transport")
	}
	if len(a.plan.Points) == 0 && caps.Kinds == transports.Kinds(transports.KindCall) {
		return &reports.ExitError{Code: reports.ExitNotRun, Operation: "check " + spec, Err: errors.New("it carries calls, and none of the workloads makes any"), Hint: "--workload " + bench.WorkloadRPC}
	}
	if len(a.plan.Points) == 0 && !slices.ContainsFunc(m.p.points, func(pt bench.Point) bool { return !bench.CallWorkload(pt.Workload) }) {
		return &reports.ExitError{Code: reports.ExitNotRun, Operation: "check " + spec, Err: errors.New("no operation call"), Hint: "--transport 'grpc(fused)+" + embeddedStack() + "', or another --workload"}
	}
	if len(a.plan.Points) == 0 {
		return &reports.ExitError{Code: reports.ExitNotRun, Operation: "check " + spec, Err: errors.New("none of the default operations is possible"), Hint: "--op"}
	}
	return bench.Check(&a.plan, a.tr.Name(), caps)
}

// connect finds or starts the server of one transport.
func (m *runner) connect(ctx context.Context, a *arm) (err error) {
	if a.tr.Caps().InProcess {
		s := &bench.Server{Open: m.stacks.open}
		var conn net.Conn
		conn, a.stop = inProcess(ctx, s)
		a.client, err = bench.ConnectConn(ctx, conn, a.tr, a.plan)
		return err
	}
	addr := net.JoinHostPort(m.o.host, strconv.Itoa(m.o.port))
	if m.o.host == "" {
		if m.peer == nil {
			profile, err := m.profile.server()
			if err != nil {
				return err
			}
			if m.peer, err = startChild(ctx, m.stderr, profile...); err != nil {
				return err
			}
			m.p.pinAuto()
		}
		a.plan.ClientCPU, a.plan.ServerCPU = m.p.base.ClientCPU, m.p.base.ServerCPU
		addr = m.peer.addr
	}
	if a.client, err = bench.Connect(ctx, addr, a.tr, a.plan); err != nil {
		return err
	}
	if e := a.client.ServerEnvironment(); m.o.host != "" && e != nil && e.Hostname != m.doc.Environment.Hostname {
		m.doc.ServerEnvironment = e
	}
	return nil
}

// close ends the clients, the transports and the server child, in this order.
func (m *runner) close() error {
	var errs []error
	for _, a := range m.arms {
		if a.client != nil {
			a.client.Close()
		}
		if a.stop != nil {
			errs = append(errs, a.stop())
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
