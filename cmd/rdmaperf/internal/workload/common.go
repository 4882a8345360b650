package workload

import (
	"slices"
	"strings"
	"time"

	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/engine"
	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/values"
	"github.com/rdmaperf/rdmaperf/reports"
	"github.com/rdmaperf/rdmaperf/transports"
)

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
