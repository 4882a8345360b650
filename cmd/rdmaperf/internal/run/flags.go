package run

import (
	"crypto/rand"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/access"
	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/catalogue"
	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/cli"
	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/engine"
	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/stackspec"
	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/values"
	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/workload"
	"github.com/rdmaperf/rdmaperf/reports"
	"github.com/rdmaperf/rdmaperf/transports"
)

// Options are the flags of run, as given.
type Options struct {
	host       string
	port       int
	transports string
	chosen     string // the stack taken for want of --transport
	verbs      stackspec.VerbsFlags
	token      access.TokenFlags
	tls        access.TLSFlags
	force      bool
	awake      bool
	workloads  []string
	ops        []string
	sizes      []string
	noWait     bool
	all        bool
	iterations int64
	infinite   bool
	rounds     int
	duration   string
	warmup     string
	depth      int
	recvDepth  int
	qps        int
	threads    int
	inline     string
	moderation int
	postList   int
	polling    string
	nice       string
	verify     string
	loop       string
	pin        string
	pinNamed   bool // the command line has --pin
	seed       uint64
	timeout    string
	load       loadFlags
	work       []workload.Workload
	workFlags  [][]string // of each of them
	callsOnly  bool       // every stack carries calls and does nothing else
	scenario   string
	impair     []string
	to         destinations
	Show       func(stdout io.Writer, doc *reports.Document) error // instead of format
	format     string
	details    bool
	gbits      bool
	counters   bool
	failIf     FailIf
	metrics    metricsOptions
	raw        rawOptions
	profile    profileOptions
	quiet      bool
	verbose    bool
}

func (o *Options) Register(f *pflag.FlagSet) {
	values.ListVar(f, &o.transports, "transport", "",
		"comma list of `stacks` such as tcp,iwarp, or all\n"+stackspec.Names()+
			"; parameters: rdmaperf help stacks (default verbs where an RDMA device has an ACTIVE port, else "+
			stackspec.Embedded()+")")
	f.StringSliceVar(&o.workloads, "workload", workload.Standard(catalogue.All()), workloadHelp())
	f.StringArrayVar(&o.impair, "impair", nil,
		"put both ends into network namespaces with a bad path between them, as root: loss=0,0.1%,1%,5% (the whole "+
			"run for each), dup=P, reorder=P, delay=TIME, stop=TIME and cut=TIME (the server is stopped, the path "+
			"is cut, again and again for so long), seed=N; may be repeated")
	f.StringSliceVar(&o.ops, "op", nil,
		"comma list of send, send_imm, write, write_imm, read, fetch_add, cmp_swap, call\ncall is a request and its "+
			"response, for latency, throughput, hol, incast and connect; without --op only on stacks of calls "+
			defaultsHelp(defaultOps))
	f.StringSliceVarP(&o.sizes, "size", "s", nil,
		"comma list of bytes a message; K, M, G are 1024\n"+defaultsHelp(defaultSizes))
	f.BoolVarP(&o.all, "all", "a", false, "all sizes from 2 bytes to 8 MiB")
	f.VarP((*values.Count)(&o.iterations), "iters", "n", "instead: operations per QP, such as 10k (k is 1000)")
	f.StringVarP(&o.duration, "duration", "D", "",
		"time of each measurement: 3, 3s, 500ms\ndefault 1s, or 2s where stacks are compared")
	f.BoolVar(&o.infinite, "run-infinitely", false,
		"measure until Ctrl-C, with progress on stderr, then print the result; for one stack, workload and size")
	f.IntVar(&o.rounds, "rounds", 0,
		"slices of that time, in which stacks take turns\nA B, B A, A B…, with open sessions; default 32 of at "+
			"least 60ms each where stacks or variants are compared, else 1; with --iters, each slice has so many operations")
	f.IntVar(&o.rounds, "repeat", 0, "")
	f.MarkHidden("repeat") // the older name of --rounds
	f.StringVar(&o.warmup, "warmup", "auto",
		"before each measurement: a duration, a number of operations, none, or auto (1000 operations, at most 200ms)")
	f.IntVarP(&o.qps, "qp", "q", 1, "queue pairs")
	f.IntVar(&o.threads, "threads", 0,
		"worker threads per side, which share the QPs (default 1; with event polling one per QP)")
	f.IntVarP(&o.depth, "tx-depth", "t", 0, fmt.Sprintf("outstanding operations per QP (default %d)\nin throughput",
		engine.DefaultDepth))
	f.IntVarP(&o.recvDepth, "rx-depth", "r", 0, fmt.Sprintf("receives posted per QP in throughput (default %d)",
		engine.DefaultRecvDepth))
	f.StringVarP(&o.inline, "inline_size", "I", "0", "post messages up to this size inline")
	f.IntVarP(&o.moderation, "cq-mod", "Q", 0,
		"operations per signalled completion in throughput (default by size and depth)")
	cli.RangedP(f, &o.postList, "post_list", "l", 0, 1, engine.MaxDepth,
		"operations per post in throughput (default as many as fit)")
	f.StringVar(&o.polling, "polling", engine.PollingBusy,
		"busy, event, or adaptive\nadaptive polls, but in streams over kernel verbs both ends sleep up to 500 us at a "+
			"time, which leaves the CPUs to a device that runs in the kernel")
	f.StringVar(&o.loop, "loop", LoopAuto,
		"loop of latency: plain (post, poll and clock in Go), provider (up to 16 round trips in one call of the "+
			"provider; verbs has it in C), or auto (provider, if all stacks have it)")
	f.StringVar(&o.nice, "nice", "auto",
		"nice value of worker threads on both sides, 0 (as the process) to 19, or auto (19 in streams over software "+
			"devices of the kernel, which need the same CPUs)")
	f.StringVar(&o.verify, "verify", reports.VerifySample,
		"how much received data is compared: all, sample (one message in 256, and the sequence number of each but "+
			"of writes), or none; results say what was compared")
	f.StringVar(&o.pin, "pin", "auto",
		"CPUs of the worker threads: none, CLIENT,SERVER, or auto (without HOST, two cores of the adapter's NUMA "+
			"node, else the last two allowed); stderr shows them")
	f.Uint64Var(&o.seed, "seed", 0, "seed of the data patterns (default random)")
	f.BoolVar(&o.noWait, "no-wait", false,
		"exit with code 5 if the server is busy with another client, instead of waiting")
	f.StringVar(&o.timeout, "timeout", engine.DefaultTimeout.String(),
		"longest wait for the peer: connection, response, progress")

	o.load.register(f)
	o.work = catalogue.All()
	o.workFlags = workload.Register(o.work, f)

	f.IntVarP(&o.port, "port", "p", access.DefaultPort, "control port of rdmaperf serve")
	o.verbs.Register(f)
	o.verbs.RegisterConnection(f)
	o.token.Register(f)
	o.tls.RegisterClient(f)
	f.BoolVarP(&o.force, "CPU-freq", "F", false, "accepted as in perftest; rdmaperf has no CPU frequency check")

	f.BoolVar(&o.awake, "awake", false, "keep CPUs of this machine out of idle states: "+awakeHow)
	f.StringVar(&o.scenario, "scenario", "", scenarioUsage)
	o.to.register(f)
	f.StringVar(&o.format, "format", "text", "of stdout: "+strings.Join(Formats, ", "))
	f.BoolVar(&o.details, "details", false, "of text: every figure and condition, as in text.txt, without conclusions")
	o.failIf.Register(f, failIfUsage)
	o.metrics.register(f)
	o.raw.register(f)
	o.profile.register(f)
	f.BoolVar(&o.gbits, "report_gbits", false, "bandwidth in Gb/s instead of MiB/s")
	f.BoolVar(&o.counters, "counters", false,
		"show every counter of the devices, not only those that changed (the document has all)")
	f.BoolVar(&o.quiet, "quiet", false, "only errors on stderr")
	f.BoolVar(&o.verbose, "verbose", false, "log more")
}

type runPlan struct {
	stacks     []string
	added      map[string]bool // of these, put there for points that ask for a layer's parameter
	base       engine.Plan     // all but transport and points
	points     []engine.Point
	askOps     bool // the operations were chosen by the user: a missing one is an error
	autoPin    bool
	everything bool                // --transport all
	left       []stackspec.LeftOut // of it
	chooseTime bool                // nobody said how long windows are
	published  []reports.Published // of others, beside the results
}

// Plan turns the flags into a plan, or says what is wrong with them.
func (o *Options) Plan(cmd *cobra.Command) (*runPlan, error) {
	changed := cmd.Flags().Changed
	if err := o.conflicts(changed); err != nil {
		return nil, cli.Usage("read command line", err, "rdmaperf run --help all")
	}
	if err := o.checkOutputs(); err != nil {
		return nil, err
	}
	p := &runPlan{askOps: changed("op")}
	var err error
	if p.everything = o.transports == stackspec.AllStacks; p.everything {
		var every []string
		every, p.left = stackspec.All()
		o.transports = strings.Join(every, ",")
		p.stacks, err = o.Stacks()
		o.transports = stackspec.AllStacks
		p.chooseTime = !changed("duration") && !changed("iters")
	} else {
		p.stacks, err = o.Stacks()
	}
	if err != nil {
		return nil, err
	}
	o.callsOnly = !slices.ContainsFunc(p.stacks, func(s string) bool { return !stackspec.CallsOnly(s) })
	b := &p.base
	*b = engine.Plan{Workloads: catalogue.Table(), Iterations: o.iterations, Depth: o.depth, RecvDepth: o.recvDepth,
		QPs: o.qps, Threads: o.threads,
		Polling: o.polling, Arrivals: o.load.arrivals, Moderation: o.moderation, PostList: o.postList,
		NoWait: o.noWait, Verify: o.verify != reports.VerifyNone, VerifyAll: o.verify == reports.VerifyAll, Seed: o.seed}
	var c *workload.Common
	steps := []struct {
		flag string
		read func() error
	}{
		{"--duration", func() (err error) { b.Duration, err = o.window(); return }},
		{"--warmup", func() (err error) { b.WarmupIterations, b.WarmupDuration, err = parseWarmup(o.warmup); return }},
		{"--inline_size", func() (err error) { b.Inline, err = values.Bytes(o.inline); return }},
		{"--loop", func() (err error) { b.Loop, err = parseLoop(o.loop); return }},
		{"--nice", func() (err error) { b.Nice, err = parseNice(o.nice); return }},
		{"--timeout", func() (err error) { b.Timeout, err = values.Duration(o.timeout); return }},
		{"--pin", func() (err error) {
			p.autoPin, b.ClientCPU, b.ServerCPU, err = parsePin(o.pin, o.threads, engine.AllowedCPUs(), o.host == "")
			return
		}},
		{"--interval", func() (err error) { b.Interval, err = o.load.series(changed); return }},
		{"--size", func() (err error) { c, err = o.common(b, changed); return }},
		{"--size", func() (err error) {
			if p.points, err = o.points(c); err != nil {
				return
			}
			p.points, err = besideNeighbours(p.points, o.load.neighbours)
			p.published = c.Published
			for _, l := range c.Left {
				p.left = append(p.left, stackspec.LeftOut{Stack: l.What, Why: l.Why})
			}
			return
		}},
	}
	for _, s := range steps {
		if err := s.read(); err != nil {
			if errors.As(err, new(*reports.ExitError)) { // of a point, which it names
				return nil, err
			}
			flag := s.flag
			if of, ok := errors.AsType[*values.Error](err); ok {
				flag, err = "--"+of.Flag, of.Err
			}
			return nil, cli.Usage("read "+flag, err, "rdmaperf run --help all")
		}
	}
	switch {
	case !p.everything || changed("size") || changed("all"):
	case !changed("workload") && !changed("op"):
		p.points = catalogue.OnePoints(p.points)
	default:
		p.points = fewPoints(p.points)
	}
	if !changed("seed") {
		var random [4]byte // 32 bits, which every JSON reader keeps exactly
		rand.Read(random[:])
		b.Seed = uint64(binary.LittleEndian.Uint32(random[:]))
	}
	if !p.askOps && !o.callsOnly && (b.Polling == engine.PollingEvent || changed("nice")) {
		// Of what nobody asked for by name, calls are left out: they wait and run as their carrier does.
		p.points = slices.DeleteFunc(p.points, func(pt engine.Point) bool {
			k, ok := transports.ParseKind(pt.Op)
			return ok && k == transports.KindCall
		})
	}
	if b.Token, err = o.token.Read(); err != nil {
		return nil, err
	}
	if b.TLS, err = o.tls.Client(o.host); err != nil {
		return nil, err
	}
	if o.infinite {
		if len(p.stacks) > 1 || len(p.points) > 1 {
			return nil, cli.Usage("read --run-infinitely", fmt.Errorf("%d stacks and %d points: want one of each",
				len(p.stacks), len(p.points)), "--transport iwarp --workload latency --op send -s 64")
		}
	}
	check := *b
	check.Points = p.points
	if err := check.Validate(); err != nil {
		return nil, err
	}
	return p, nil
}

func (o *Options) checkOutputs() error {
	if !slices.Contains(Formats, o.format) {
		return cli.Usage("read command line", fmt.Errorf("--format %q: want one of %s", o.format,
			strings.Join(Formats, ", ")), "rdmaperf run --help all")
	}
	return errors.Join(o.to.check(), o.failIf.absolute(), o.metrics.check(), o.raw.check(o.to.dir, o.host))
}

const longest = 24 * time.Hour

// Exclusive are the flags that say the same thing in two ways.
var Exclusive = [][2]string{{"iters", "duration"}, {"size", "all"},
	{"rate", "rate-sweep"}, {"qp", "qp-sweep"}, {"rounds", "repeat"}, {"run-infinitely", "rounds"},
	{"run-infinitely", "iters"}, {"run-infinitely", "duration"}, {"run-infinitely", "repeat"},
	{"run-infinitely", "raw"}, {"run-infinitely", "scenario"}, {"run-infinitely", "impair"}}

func (o *Options) conflicts(changed func(string) bool) error {
	for _, pair := range Exclusive {
		if changed(pair[0]) && changed(pair[1]) {
			return fmt.Errorf("--%s and --%s exclude each other", pair[0], pair[1])
		}
	}
	for _, f := range []struct {
		name  string
		value int
	}{{"tx-depth", o.depth}, {"rx-depth", o.recvDepth}, {"qp", o.qps}, {"threads", o.threads}, {"cq-mod", o.moderation}} {
		if changed(f.name) && f.value < 1 {
			return fmt.Errorf("--%s %d: want at least 1", f.name, f.value)
		}
	}
	switch {
	case !slices.Contains([]string{reports.VerifyAll, reports.VerifySample, reports.VerifyNone}, o.verify):
		return fmt.Errorf("--verify %q: want all, sample or none", o.verify)
	case changed("iters") && o.iterations < 1:
		return fmt.Errorf("--iters %d: want at least 1", o.iterations)
	case (o.rounds != 0 || changed("rounds") || changed("repeat")) && (o.rounds < 1 || o.rounds > engine.MaxRounds):
		return fmt.Errorf("--rounds %d: want 1 to %d", o.rounds, engine.MaxRounds)
	case o.port < 1 || o.port > 65535:
		return fmt.Errorf("--port %d: want 1 to 65535", o.port)
	}
	return nil
}

// Stacks splits --transport. Without one a device means kernel verbs, and nothing the best that this machine has.
func (o *Options) Stacks() (stacks []string, err error) {
	list := o.transports
	switch {
	case list != "":
	case o.verbs.Named():
		list = stackspec.Verbs
	default:
		o.chosen = stackspec.Best()
		list = o.chosen
	}
	for _, s := range stackspec.Split(list, ',') {
		stacks = append(stacks, strings.TrimSpace(s))
	}
	if stacks, err = o.verbs.Apply(stacks); err != nil {
		return nil, err
	}
	for i, s := range stacks {
		if slices.Contains(stacks[:i], s) {
			return nil, cli.Usage("read --transport", fmt.Errorf("%q is given twice", s), "each stack once")
		}
	}
	return stacks, nil
}

func (o *Options) window() (time.Duration, error) {
	switch {
	case o.iterations > 0:
		return 0, nil
	case o.infinite:
		return longest, nil
	case o.duration == "":
		return time.Second, nil
	}
	return values.Duration(o.duration)
}
