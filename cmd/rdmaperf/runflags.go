package main

import (
	"crypto/rand"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/bench"
)

// runOptions are the flags of run, as given.
type runOptions struct {
	host string
	port int

	transports string
	chosen     string // the stack taken for want of --transport
	verbs      verbsFlags

	schedSlices  []string
	schedWindows []string
	schedSends   []string
	force        bool

	workloads  []string
	ops        []string
	sizes      []string
	all        bool
	iterations int64
	repeat     int
	duration   string
	warmup     string
	depth      int
	recvDepth  int
	qps        int
	threads    int
	inline     string
	moderation int
	polling    string
	nice       string
	noVerify   bool
	pin        string
	seed       uint64
	timeout    string
	hol        holFlags
	load       loadFlags
	train      trainFlags
	rpc        rpcFlags
	kv         kvFlags
	tensor     tensorFlags
	callsOnly  bool // every stack carries calls and does nothing else
	starve     starveFlags

	scenario string

	json     string
	output   string
	format   string
	gbits    bool
	counters bool
	failIf   failIf
	metrics  metricsOptions
	raw      rawOptions
	profile  profileOptions
	quiet    bool
	verbose  bool
}

func (o *runOptions) register(f *pflag.FlagSet) {
	f.StringVar(&o.transports, "transport", "", "comma list of stacks to run side by side: "+stackNames()+" (default verbs where an RDMA device has an ACTIVE port, else "+embeddedStack()+")")
	f.StringSliceVar(&o.schedSlices, "sched-slice", nil, "comma list of slices, such as 16K,64K,auto: each sched stack of --transport is run with each")
	f.StringSliceVar(&o.schedWindows, "sched-window", nil, "likewise of windows")
	f.StringSliceVar(&o.schedSends, "sched-send", nil, "likewise of what becomes of a send longer than a slice: whole (the default), refuse, slice (where both ends do, else whole) or slice-or-refuse")
	f.StringSliceVar(&o.workloads, "workload", bench.StandardWorkloads(), "comma list of latency, throughput, hol (small probes beside a bulk stream), incast (many clients to one server thread), connect (connection set-up), paramserver (a training with one parameter server), starvation (what a high class leaves to a low one on the same QP), rpc (calls of gRPC, which is all that stacks with grpc do), kv (mixes of YCSB on a key-value store behind calls), tensor (tensors pushed, pulled and exchanged by calls); without it, hol is left out where --op, --size, --all, --qp, --qp-sweep, --threads or --polling event describe another test, and --rate is for latency alone; grpc stacks alone mean rpc")
	f.StringSliceVar(&o.ops, "op", nil, "comma list of send, write, write_imm, read, fetch_add, cmp_swap (default latency of send, write and read, throughput of write)")
	f.StringSliceVarP(&o.sizes, "size", "s", nil, "comma list of message sizes in bytes; K, M, G are 1024 (default latency 64,4K, throughput 64,64K,1M)")
	f.BoolVarP(&o.all, "all", "a", false, "all sizes from 2 bytes to 8 MiB")
	f.Int64VarP(&o.iterations, "iters", "n", 0, "operations per QP, exactly")
	f.StringVarP(&o.duration, "duration", "D", "", "length of each measured window: 3, 3s or 500ms (default 1s)")
	f.IntVar(&o.repeat, "repeat", 1, "take the whole series of points so many times; the table shows medians, their spread and, from 3 on, the mean with its confidence interval")
	f.StringVar(&o.warmup, "warmup", "auto", "before each window: a duration, a number of operations, none, or auto (1000 operations, at most 200ms)")
	f.IntVarP(&o.qps, "qp", "q", 1, "queue pairs")
	f.IntVar(&o.threads, "threads", 0, "worker threads a side, which share the QPs (default 1; with event polling one per QP)")
	f.IntVarP(&o.depth, "tx-depth", "t", 0, fmt.Sprintf("operations outstanding per QP in throughput (default %d)", bench.DefaultDepth))
	f.IntVarP(&o.recvDepth, "rx-depth", "r", 0, fmt.Sprintf("receives posted per QP in throughput (default %d)", bench.DefaultRecvDepth))
	f.StringVarP(&o.inline, "inline_size", "I", "0", "post messages up to this size inline")
	f.IntVarP(&o.moderation, "cq-mod", "Q", 0, "one completion for so many operations in throughput (default by size and depth)")
	f.StringVar(&o.polling, "polling", bench.PollingBusy, "busy, event, or adaptive: busy, but both ends of a stream over kernel verbs sleep for up to 500 us at a time while the device is at work, which leaves the CPUs to a device that is the kernel itself")
	f.StringVar(&o.nice, "nice", "auto", "nice value of both sides' worker threads, 0 (as the process) to 19, or auto (19 in streams over kernel devices in software, which work on the same CPUs)")
	f.BoolVar(&o.noVerify, "no-verify", false, "do not compare what arrives")
	f.StringVar(&o.pin, "pin", "auto", "CPUs of the worker threads: none, CLIENT,SERVER, or auto (the last two allowed CPUs when there is no HOST)")
	f.Uint64Var(&o.seed, "seed", 0, "of the data patterns (default random)")
	f.StringVar(&o.timeout, "timeout", bench.DefaultTimeout.String(), "longest wait for the peer: connecting, answers, progress")

	o.load.register(f)
	o.hol.register(f)
	o.train.register(f)
	o.starve.register(f)
	o.rpc.register(f)
	o.kv.register(f)
	o.tensor.register(f)

	f.IntVarP(&o.port, "port", "p", defaultPort, "control port of rdmaperf serve")
	o.verbs.register(f)
	f.BoolVarP(&o.force, "CPU-freq", "F", false, "accepted: there is no CPU frequency check to silence")

	f.StringVar(&o.scenario, "scenario", "", scenarioUsage)
	f.StringVar(&o.json, "json", "", "write the result document to this file")
	f.StringVarP(&o.output, "output", "o", "", "write everything into this directory: result.json, report.html, the histograms (.hlog, .hgrm), and the other formats as text.txt, bench.txt, perftest.txt, results.csv, metrics.prom")
	f.StringVar(&o.format, "format", "text", "of stdout: "+strings.Join(formats, ", "))
	o.failIf.register(f, failIfUsage)
	o.metrics.register(f)
	o.raw.register(f)
	o.profile.register(f)
	f.BoolVar(&o.gbits, "report_gbits", false, "bandwidth in Gb/s instead of MiB/s")
	f.BoolVar(&o.counters, "counters", false, "show every counter of the devices in use, not only those that moved (the document always has all)")
	f.BoolVar(&o.quiet, "quiet", false, "nothing on stderr but errors")
	f.BoolVar(&o.verbose, "verbose", false, "log more")
}

// runPlan is what the flags ask for, before transports are looked at.
type runPlan struct {
	stacks  []string
	base    bench.Plan // all but transport and points
	points  []bench.Point
	askOps  bool // the operations were chosen by the user: a missing one is an error
	autoPin bool
}

// plan turns the flags into a plan, or says what is wrong with them.
func (o *runOptions) plan(cmd *cobra.Command) (*runPlan, error) {
	changed := cmd.Flags().Changed
	if err := o.conflicts(changed); err != nil {
		return nil, usage("read command line", err, "rdmaperf run --help")
	}
	if err := o.checkOutputs(); err != nil {
		return nil, err
	}
	p := &runPlan{askOps: changed("op")}
	var err error
	if p.stacks, err = o.stacks(); err != nil {
		return nil, err
	}
	o.callsOnly = !slices.ContainsFunc(p.stacks, func(s string) bool { return !carriesCalls(s) })
	b := &p.base
	*b = bench.Plan{Iterations: o.iterations, Depth: o.depth, RecvDepth: o.recvDepth, QPs: o.qps, Threads: o.threads,
		Polling: o.polling, Arrivals: o.load.arrivals, Moderation: o.moderation, HighPriority: o.starve.priority, Verify: !o.noVerify, Seed: o.seed}
	steps := []struct {
		flag string
		read func() error
	}{
		{"--duration", func() (err error) { b.Duration, err = o.window(); return }},
		{"--warmup", func() (err error) { b.WarmupIterations, b.WarmupDuration, err = parseWarmup(o.warmup); return }},
		{"--inline_size", func() (err error) { b.Inline, err = parseBytes(o.inline); return }},
		{"--nice", func() (err error) { b.Nice, err = parseNice(o.nice); return }},
		{"--timeout", func() (err error) { b.Timeout, err = parseDuration(o.timeout); return }},
		{"--pin", func() (err error) { p.autoPin, b.ClientCPU, b.ServerCPU, err = parsePin(o.pin, o.threads); return }},
		{"--interval", func() (err error) { b.Interval, err = o.load.series(changed); return }},
		{"head-of-line flags", func() error { return o.hol.plan(b, changed) }},
		{"--size", func() (err error) { p.points, err = o.points(changed, &b.Models); return }},
	}
	for _, s := range steps {
		if err := s.read(); err != nil {
			flag := s.flag
			if of := (*flagError)(nil); errors.As(err, &of) {
				flag, err = "--"+of.flag, of.err
			}
			return nil, usage("read "+flag, err, "rdmaperf run --help")
		}
	}
	if !changed("seed") {
		b.Seed = randomSeed()
	}
	check := *b
	check.Points = p.points
	if err := check.Validate(); err != nil {
		return nil, err
	}
	return p, nil
}

// flagError is a mistake in a flag. What reads several flags in one step returns it, so
// that the user hears of the flag and not of the step.
type flagError struct {
	flag string // without dashes
	err  error
}

// wrong returns a mistake in a flag; the text need not name the flag again.
func wrong(flag, format string, args ...any) error {
	return &flagError{flag, fmt.Errorf(format, args...)}
}

func (e *flagError) Error() string { return "--" + e.flag + ": " + e.err.Error() }
func (e *flagError) Unwrap() error { return e.err }

// checkOutputs finds mistakes in what concerns the whole document.
func (o *runOptions) checkOutputs() error {
	if !slices.Contains(formats, o.format) {
		return usage("read command line", fmt.Errorf("--format %q: want one of %s", o.format, strings.Join(formats, ", ")), "rdmaperf run --help")
	}
	return errors.Join(o.failIf.absolute(), o.metrics.check(), o.raw.check(o.output, o.host))
}

// exclusive are the flags that say the same thing in two ways.
var exclusive = [][2]string{{"iters", "duration"}, {"size", "all"}, {"probe-interval", "probe-rate"}, {"rate", "rate-sweep"}, {"qp", "qp-sweep"}}

func (o *runOptions) conflicts(changed func(string) bool) error {
	for _, pair := range exclusive {
		if changed(pair[0]) && changed(pair[1]) {
			return fmt.Errorf("--%s and --%s exclude each other", pair[0], pair[1])
		}
	}
	switch {
	case changed("iters") && o.iterations < 1:
		return fmt.Errorf("--iters %d: want at least 1", o.iterations)
	case changed("tx-depth") && o.depth < 1, changed("rx-depth") && o.recvDepth < 1,
		changed("qp") && o.qps < 1, changed("threads") && o.threads < 1, changed("cq-mod") && o.moderation < 1:
		return errors.New("--tx-depth, --rx-depth, --qp, --threads and --cq-mod start at 1")
	case o.repeat < 1 || o.repeat > maxRepeat:
		return fmt.Errorf("--repeat %d: want 1 to %d", o.repeat, maxRepeat)
	case o.port < 1 || o.port > 65535:
		return fmt.Errorf("--port %d: want 1 to 65535", o.port)
	}
	return nil
}

// stacks splits --transport. Without one, a device means kernel verbs, and
// nothing at all the best that this machine has.
func (o *runOptions) stacks() ([]string, error) {
	if o.transports == "" {
		if len(o.schedSlices)+len(o.schedWindows)+len(o.schedSends) > 0 {
			return nil, usage("read --transport", errNoSched, "--transport sched+"+embeddedStack())
		}
		if o.rpc.sweeps.any() || o.rpc.pollers != "" {
			return nil, usage("read --transport", errNoGRPC, "--transport 'grpc(fused)+"+embeddedStack()+"'")
		}
		if o.verbs.named() {
			return o.verbs.apply([]string{verbsName})
		}
		o.chosen = bestStack()
		return o.verbs.apply([]string{o.chosen})
	}
	var stacks []string
	for _, s := range splitTop(o.transports, ',') {
		stacks = append(stacks, strings.TrimSpace(s))
	}
	stacks, err := o.verbs.apply(stacks)
	if err != nil {
		return nil, err
	}
	if stacks, err = sweepSched(stacks, unique(o.schedSlices), unique(o.schedWindows), unique(o.schedSends)); err != nil {
		return nil, usage("read --transport", err, "rdmaperf run --help")
	}
	if stacks, err = o.rpc.multiply(stacks); err != nil {
		return nil, usage("read --transport", err, "rdmaperf run --help")
	}
	for i, s := range stacks {
		if slices.Contains(stacks[:i], s) {
			return nil, usage("read --transport", fmt.Errorf("%q stands there twice", s), "each stack once")
		}
	}
	return stacks, nil
}

func (o *runOptions) window() (time.Duration, error) {
	switch {
	case o.iterations > 0:
		return 0, nil
	case o.duration == "":
		return time.Second, nil
	}
	return parseDuration(o.duration)
}

// pinAuto chooses the last allowed CPU for the client and the one before it for
// the server, away from CPU 0, which takes most interrupts.
func (p *runPlan) pinAuto() {
	cpus := bench.AllowedCPUs()
	many := slices.ContainsFunc(p.points, func(pt bench.Point) bool {
		return pt.Workload == bench.WorkloadIncast || pt.Workload == bench.WorkloadConnect || bench.CallWorkload(pt.Workload)
	})
	if !p.autoPin || many || len(cpus) < 2 || p.base.Threads > 1 || p.base.Polling == bench.PollingEvent {
		return
	}
	p.base.ClientCPU, p.base.ServerCPU = cpus[len(cpus)-1], cpus[len(cpus)-2]
}

// randomSeed fits 32 bits, which every JSON reader keeps exactly.
func randomSeed() uint64 {
	var b [4]byte
	rand.Read(b[:]) // never fails (crypto/rand)
	return uint64(binary.LittleEndian.Uint32(b[:]))
}
