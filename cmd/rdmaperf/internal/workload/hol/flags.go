package hol

import (
	"errors"
	"slices"
	"strconv"
	"time"

	"github.com/spf13/pflag"

	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/engine"
	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/values"
	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/workload"
	holresults "github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/workload/hol/results"
	"github.com/rdmaperf/rdmaperf/transports"
)

// Name is the workload's.
const Name = "hol"

// Workload implements workload.Workload. Its points need three windows: probes alone, bulk alone, both.
type Workload struct {
	bulkSizes []string
	bulkDepth int
	probeSize string
	gap       string
	interval  string
	variants  []string
	priority  uint8
	appSlice  string
	appWindow int
}

func (*Workload) Meta() workload.Meta {
	return workload.Meta{
		Name:    Name,
		Results: holresults.Results,
		Summary: "head-of-line blocking: small operations behind bulk ones",
		Examples: "rdmaperf run --transport iwarp,sched+iwarp --workload hol --bulk-size 64K,1M\n" +
			"rdmaperf run --transport iwarp,sched+iwarp --workload hol --hol-arm same-qp,two-qp,app-slicing\n" +
			"rdmaperf run --transport 'iwarp,sched(slice=16K)+iwarp,sched(slice=64K)+iwarp' --workload hol",
		Note:     "hol is skipped with --op, --size, --all, --qp, --qp-sweep, --threads or --polling event",
		Group:    "Workload hol",
		Standard: true,
		Slices:   true,
		Words:    map[string][]string{"hol-arm": {"same-qp", "two-qp", "app-slicing", "device"}},
		Ops:      []string{"write", "call"},
	}
}

func (h *Workload) Flags(f *pflag.FlagSet) {
	f.StringSliceVar(&h.variants, "hol-arm", StandardVariants(),
		"hol: comma list of same-qp, two-qp (the probes on a QP, or a connection of calls, of their own), "+
			"app-slicing (the application cuts bulk writes itself and keeps few slices outstanding), device (two-qp, "+
			"and one scheduler serves all QPs of the device: on stacks with sched, by scope=device)")
	f.StringSliceVar(&h.bulkSizes, "bulk-size", []string{"1M"}, "hol: comma list of bulk sizes")
	f.IntVar(&h.bulkDepth, "bulk-depth", defaultBulkDepth, "hol: bulk operations outstanding")
	f.StringVar(&h.probeSize, "probe-size", strconv.Itoa(defaultProbeSize), "hol: size of the probes")
	f.StringVar(&h.gap, "probe-gap", defaultProbeInterval.String(),
		"hol: one probe at a time, and between the starts of two at least this time; 0: each starts when the one "+
			"before is back")
	f.StringVar(&h.interval, "probe-interval", "",
		"hol: instead, probes are due at this interval, answered or not; 0 is --probe-gap 0. Where the path does not "+
			"keep up the point is marked saturated, and its gain not shown")
	f.Uint8Var(&h.priority, "probe-priority", 1,
		"hol: of the probes' work requests or calls, for stacks that schedule by it; bulk has 0")
	f.StringVar(&h.appSlice, "app-slice", strconv.Itoa(defaultAppSlice>>10)+"K",
		"hol: bytes of a slice in the variant app-slicing")
	f.IntVar(&h.appWindow, "app-window", defaultAppWindow, "hol: slices outstanding in the variant app-slicing")
}

// read makes the options that all points share.
func (h *Workload) read(c *workload.Common) (o Options, err error) {
	o.BulkDepth, o.ProbePriority, o.AppWindow = h.bulkDepth, h.priority, h.appWindow
	if h.bulkDepth < 1 {
		return o, values.Wrong("bulk-depth", "%d: want at least 1", h.bulkDepth)
	}
	if h.appWindow < 1 {
		return o, values.Wrong("app-window", "%d: want at least 1", h.appWindow)
	}
	if o.AppSlice, err = values.Bytes(h.appSlice); err != nil {
		return o, values.Wrong("app-slice", "%w", err)
	}
	if o.AppSlice < 1 {
		return o, values.Wrong("app-slice", "%s: it starts at 1K", h.appSlice)
	}
	if o.ProbeSize, err = values.Bytes(h.probeSize); err != nil {
		return o, values.Wrong("probe-size", "%w", err)
	}
	if o.ProbeSize < 1 {
		return o, values.Wrong("probe-size", "%s: it starts at 1 byte", h.probeSize)
	}
	given := slices.DeleteFunc([]string{"probe-gap", "probe-interval"},
		func(f string) bool { return !c.Changed(f) })
	switch {
	case len(given) > 1:
		return o, values.Wrong(given[1], "it and --%s exclude each other", given[0])
	case c.Changed("probe-interval"):
		o.ProbeInterval, err = parseInterval("probe-interval", h.interval)
	default:
		o.ProbeInterval, err = parseInterval("probe-gap", h.gap)
		o.ProbeOne = o.ProbeInterval > 0
	}
	return o, err
}

// parseInterval reads "500us", or "0" for a closed loop.
func parseInterval(flag, s string) (time.Duration, error) {
	d, err := time.ParseDuration(s)
	if err != nil || d < 0 {
		return 0, values.Wrong(flag, "%q: want a time such as 500us, or 0", s)
	}
	return d, nil
}

// Points are all bulk sizes in all variants. Nobody named the workload where it is left out.
func (h *Workload) Points(c *workload.Common) ([]engine.Point, error) {
	o, err := h.read(c)
	threads, sizes := c.AnyOf("qp", "qp-sweep", "threads"), c.AnyOf("size", "all")
	slicing := c.AnyOf("app-slice", "app-window")
	switch {
	case err != nil:
		return nil, err
	case !c.Named && (threads != "" || sizes != "" || c.Changed("op") || c.Plan.Polling == engine.PollingEvent):
		return nil, nil
	case slicing != "" && !slices.Contains(values.Unique(h.variants), AppSlicing):
		return nil, values.Wrong(slicing, "only for --hol-arm %s", AppSlicing)
	case threads != "":
		return nil, values.Wrong("workload", "%s has one thread, and a QP or two by --hol-arm", Name)
	case sizes != "" && c.Alone():
		return nil, errors.New("the sizes of " + Name + " are --bulk-size and --probe-size")
	}
	call := transports.KindCall.String()
	var points []engine.Point
	for _, op := range c.OpsOf(h.Meta().Ops) {
		for _, s := range values.Unique(h.bulkSizes) {
			n, err := values.Bytes(s)
			if err != nil {
				return nil, values.Wrong("bulk-size", "%w", err)
			}
			for _, variant := range values.Unique(h.variants) {
				if len(c.Ops) == 0 && op == call && !slices.Contains(CallVariants(), variant) {
					continue // nobody asked for calls
				}
				points = append(points, NewPoint(op, n, variant, o))
			}
		}
	}
	return workload.Checked(points, func(pt engine.Point) error {
		if pt.Call != "" {
			return checkCalls(pt)
		}
		return check(pt)
	})
}
