// Package workload says what a workload is, and which workloads a command line means.
package workload

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/engine"
	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/values"
	"github.com/rdmaperf/rdmaperf/reports"
	"github.com/rdmaperf/rdmaperf/transports"
)

// A Workload is everything that tells it from the others. Its sides read no flags: what they need is in the point.
type Workload interface {
	Meta() Meta

	// Flags adds those of the workload.
	Flags(*pflag.FlagSet)

	// Points are what to measure. It is the only check of the workload's flags.
	Points(*Common) ([]engine.Point, error)

	Client(ctx context.Context, r *engine.Run) error
	Server(ctx context.Context, s *engine.Serve) error
}

type Meta struct {
	Name    string // as --workload and Result.Workload spell it
	Summary string // what it measures, in a few words for the help
	Note    string // for the help: when it is measured although nobody named it, or not
	// Examples are command lines for the help and the reference.
	Examples string
	Group    string            // title of its flags in the help; neighbours of the catalogue may share one
	Results  *reports.Workload // declares its results; nil: its points are those of other workloads

	Standard bool // measured when no workload is named
	Calls    bool // made of calls, so that only stacks that carry calls run it
	Slices   bool // keeps its sessions from slice to slice: see engine.Measurement.Again

	// OwnThreads: it has as many threads as connections, whose CPUs nobody can name.
	OwnThreads bool

	// Over is asked before anything starts for why a stack cannot do a point, beyond its operation, size and Needs.
	Over func(transports.Stack, engine.Point) error

	// Means are flags of the load that mean this workload when none is named; Takes are flags of others that it has.
	Means []string
	Takes []string

	Words map[string][]string // that the shell offers for flags of its own

	// Ops and Sizes are those measured when none are given, as the help shows them.
	Ops   []string
	Sizes []int
}

// Table is what the engine knows of workloads.
func Table(all ...Workload) engine.Table {
	t := engine.Table{}
	for _, w := range all {
		if m := w.Meta(); m.Results != nil {
			t[m.Name] = engine.Entry{Runner: w, Results: m.Results}
		}
	}
	return t
}

// Register adds the flags of all workloads to set, and returns the names of those that each added or that mean it.
func Register(all []Workload, set *pflag.FlagSet) (flags [][]string) {
	sorted := set.SortFlags
	set.SortFlags = false
	defer func() { set.SortFlags = sorted }()
	before := len(names(set))
	for _, w := range all {
		w.Flags(set)
		now := names(set)
		own := now[before:]
		for _, f := range w.Meta().Means {
			if !slices.Contains(own, f) {
				own = append(own, f)
			}
		}
		flags, before = append(flags, own), len(now)
	}
	return flags
}

func names(set *pflag.FlagSet) (list []string) {
	set.VisitAll(func(f *pflag.Flag) { list = append(list, f.Name) })
	return list
}

func Names(all []Workload) []string {
	list := make([]string, len(all))
	for i, w := range all {
		list[i] = w.Meta().Name
	}
	return list
}

// Standard lists those that are measured when none is named.
func Standard(all []Workload) []string {
	return Names(slices.DeleteFunc(slices.Clone(all), func(w Workload) bool { return !w.Meta().Standard }))
}

// Find returns the workload of a name, or nil.
func Find(all []Workload, name string) Workload {
	if i := slices.Index(Names(all), name); i >= 0 {
		return all[i]
	}
	return nil
}

// ForCalls is the workload that stacks of calls alone mean: the first of calls.
func ForCalls(all []Workload) Workload {
	return all[slices.IndexFunc(all, func(w Workload) bool { return w.Meta().Calls })]
}

type claim struct {
	flag  string
	of    []string // the first is the one that the flag is of
	means bool     // it chooses that workload
	every bool     // all named workloads must have it
}

// claims are those of all workloads, whose flags Register has returned. What fewer have says more, and comes first.
func claims(all []Workload, flags [][]string) (list []claim) {
	for i, w := range all {
		m := w.Meta()
		for _, f := range flags[i] {
			every := slices.Contains(m.Means, f)
			c := claim{flag: f, of: []string{m.Name}, every: every, means: every || !m.Standard}
			for _, other := range all {
				if o := other.Meta(); slices.Contains(o.Takes, f) {
					c.of = append(c.of, o.Name)
				}
			}
			list = append(list, c)
		}
	}
	slices.SortStableFunc(list, func(a, b claim) int { return cmp.Compare(len(a.of), len(b.of)) })
	return list
}

// Choose decides which workloads the command line means: those named, else those that its flags mean, else the standard
// ones. A flag that the chosen ones do not have is refused.
func (c *Common) Choose(all []Workload, flags [][]string) error {
	for _, name := range c.Workloads {
		if Find(all, name) == nil {
			return values.Wrong("workload", "unknown workload %q: want one of %s", name, strings.Join(Names(all), ", "))
		}
	}
	given := slices.DeleteFunc(claims(all, flags), func(f claim) bool { return !c.Changed(f.flag) })
	c.Named = c.Changed("workload")
	if i := slices.IndexFunc(given, func(f claim) bool { return f.means }); i >= 0 && !c.Named {
		c.Named, c.Workloads = true, given[i].of[:1]
		if c.CallsOnly && len(given[i].of) > 1 {
			c.Workloads = Names([]Workload{ForCalls(all)})
		}
	}
	if c.CallsOnly && !c.Named {
		c.Named, c.Workloads = true, Names([]Workload{ForCalls(all)})
	}
	for _, f := range given {
		lacks := func(name string) bool { return !slices.Contains(f.of, name) }
		has := func(name string) bool { return !lacks(name) }
		if c.Named && (f.every && slices.ContainsFunc(c.Workloads, lacks) || !slices.ContainsFunc(c.Workloads, has)) {
			return values.Wrong(f.flag, "only for --workload %s", f.of[0])
		}
	}
	return nil
}

// Common are the flags that all workloads share, as given.
type Common struct {
	Changed func(flag string) bool // the user gave it
	Plan    *engine.Plan           // all but its transport and its points; only read

	Workloads []string // --workload, or its default; Choose sets those that are measured
	Named     bool     // by the user, also by other flags of theirs; set by Choose
	CallsOnly bool     // every stack carries calls and does nothing else
	Pin       string

	Ops   []string // none: the workload's own
	Sizes []int    // none: the workload's own
	All   bool     // --all: Sizes are those from 2 bytes to 8 MiB

	Rates       []float64       // of open loops; one of 0 is the closed loop
	AppWork     []time.Duration // of the receiving application for each message; one of 0 is none
	QPs         []int           // of a sweep; one of 0 stands for the plan's
	Outstanding []int           // calls on a connection; one of 0 stands for the plan's depth

	// What workloads add: what they leave out, and published figures that their results are read against.
	Left      []Left
	Published []reports.Published
}

// Left is something that was asked for and is not measured.
type Left struct{ What, Why string }

// Alone tells that no other workload is measured.
func (c *Common) Alone() bool { return len(c.Workloads) == 1 }

// AnyOf returns the first of the flags that was given, or "".
func (c *Common) AnyOf(flags ...string) string {
	if i := slices.IndexFunc(flags, c.Changed); i >= 0 {
		return flags[i]
	}
	return ""
}

// OpsOf are the operations: those given, else the workload's.
func (c *Common) OpsOf(own []string) []string {
	if len(c.Ops) > 0 {
		return c.Ops
	}
	return own
}

// SizesOf are the sizes of one operation: those given, else the workload's.
func (c *Common) SizesOf(op string, own []int) []int {
	k, _ := transports.ParseKind(op)
	switch {
	case engine.IsAtomic(k) && (c.All || len(c.Sizes) == 0):
		return []int{engine.AtomicSize}
	case len(c.Sizes) > 0:
		return c.Sizes
	}
	return own
}

// Product is every operation with every size, as most workloads have it; each makes the points of one.
func (c *Common) Product(ops []string, sizes []int, each func(op string, size int) []engine.Point) []engine.Point {
	var points []engine.Point
	for _, op := range c.OpsOf(ops) {
		for _, n := range c.SizesOf(op, sizes) {
			points = append(points, each(op, n)...)
		}
	}
	return points
}

// Worked are a workload's own operations, or with application work, which only messages have, those of messages.
func (c *Common) Worked(ops []string) []string {
	if c.Changed("app-work") {
		return []string{transports.KindSend.String()}
	}
	return ops
}

// Checked are the points that check takes, which is what their server does, too; else the error of the first other.
func Checked(points []engine.Point, check func(engine.Point) error) ([]engine.Point, error) {
	for _, pt := range points {
		if err := check(pt); err != nil {
			return nil, pt.Wrong(err)
		}
	}
	return points, nil
}

// OfCalls are a point for each rate, number of connections, and number of calls outstanding.
func (c *Common) OfCalls(pt engine.Point) (points []engine.Point) {
	for _, rate := range c.Rates {
		for _, q := range c.QPs {
			for _, t := range c.Outstanding {
				pt.Rate, pt.QPs, pt.Outstanding = rate, q, t
				points = append(points, pt)
			}
		}
	}
	return points
}

// NoEvents refuses event polling for the reason why.
func (c *Common) NoEvents(why string) error {
	if c.Plan.Polling == engine.PollingEvent {
		return values.Wrong("polling", "%s: %s", c.Plan.Polling, why)
	}
	return nil
}

// CheckCalls refuses what describes another workload than one of calls. The flag instead says which calls it makes.
func (c *Common) CheckCalls(workload, instead string) error {
	if f := c.AnyOf("threads", "rx-depth", "inline_size", "cq-mod"); f != "" && c.Alone() {
		return values.Wrong(f, "the workload %s has a goroutine for each call outstanding, and gRPC's own buffers",
			workload)
	}
	if c.Changed("tx-depth") && c.Changed("outstanding") {
		return values.Wrong("outstanding", "it and --tx-depth exclude each other")
	}
	call := transports.KindCall.String()
	if slices.ContainsFunc(c.Ops, func(op string) bool { return op != call }) {
		return values.Wrong("op", "%s: the operation of the workload %s is %s, and --%s says which",
			strings.Join(c.Ops, ","), workload, call, instead)
	}
	return nil
}

// Rank is the percentile q of samples, which it sorts: that of rank ceil(n·q/100).
func Rank(samples []int64, q int) float64 {
	slices.Sort(samples)
	return float64(samples[max((len(samples)*q+99)/100, 1)-1])
}

// OwnThreads are the counts of the flag of a workload that has as many connections and threads as that says. It refuses
// other flags of theirs, and event polling for the reason noEvents.
func (c *Common) OwnThreads(workload, flag, text, noEvents string) ([]int, error) {
	if f := c.AnyOf("qp", "qp-sweep", "threads"); f != "" {
		return nil, values.Wrong(f, "the connections and threads of the workload %s are its --%s", workload, flag)
	}
	if c.Changed("pin") && c.Pin != "auto" && c.Pin != "none" {
		return nil, values.Wrong("pin", "%s: one CPU cannot hold all threads of the workload %s", c.Pin, workload)
	}
	counts, err := values.Counts(flag, text)
	if err != nil {
		return nil, err
	}
	return counts, c.NoEvents(noEvents)
}
