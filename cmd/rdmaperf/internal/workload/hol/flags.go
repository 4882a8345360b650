package hol

import (
	"errors"
	"slices"
	"strconv"
	"time"

	"github.com/spf13/pflag"

	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/engine"
	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/room"
	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/values"
	holresults "github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/workload/hol/results"
	"github.com/rdmaperf/rdmaperf/transports"
)

// Name is the workload's.
const Name = "hol"

// Room is its row of the table. Its points need three windows: probes alone, bulk
// alone, both.
var Room = &room.Room{
	Name:    Name,
	Runner:  new(flags),
	Results: holresults.Results,
	Summary: "small probes beside a bulk stream, or small calls beside large ones",
	Note: "hol is left out where --op, --size, --all, --qp, --qp-sweep, --threads or --polling event describe " +
		"another test",
	Group:    "Workload hol",
	Standard: true,
	Own: []string{"bulk-size", "bulk-depth", "probe-size", "probe-gap", "probe-interval", "probe-rate", "hol-arm",
		"probe-priority", "app-slice", "app-window"},
	Words: map[string]func() []string{"hol-arm": room.Fixed("same-qp", "two-qp", "app-slicing", "device")},
	Names: []string{"hol-arm", "bulk-size", "bulk-depth", "probe-size", "probe-gap", "probe-interval", "probe-rate",
		"probe-priority", "app-slice", "app-window"},
	Unless: func(c *room.Common) bool {
		return c.AnyOf("op", "size", "all", "qp", "qp-sweep", "threads") != "" || c.Polling == engine.PollingEvent
	},
	Ops:   []string{"write", "call"},
	Flags: func() room.Flags { return new(flags) },
}

type flags struct {
	bulkSizes []string
	bulkDepth int
	probeSize string
	gap       string
	interval  string
	rate      float64
	arms      []string
	priority  uint8
	appSlice  string
	appWindow int
	options   Options // of all points
}

func (h *flags) Register(f *pflag.FlagSet) {
	f.StringSliceVar(&h.bulkSizes, "bulk-size", []string{"1M"}, "hol: comma list of bulk sizes")
	f.IntVar(&h.bulkDepth, "bulk-depth", defaultBulkDepth, "hol: bulk operations outstanding")
	f.StringVar(&h.probeSize, "probe-size", strconv.Itoa(defaultProbeSize), "hol: size of the probes")
	f.StringVar(&h.gap, "probe-gap", defaultProbeInterval.String(),
		"hol: one probe at a time, and between the starts of two at least this time; 0: each starts when the one "+
			"before is back")
	f.StringVar(&h.interval, "probe-interval", "",
		"hol: instead, probes are due at this interval, answered or not; 0 is --probe-gap 0. Where the path does not "+
			"keep up the point is marked saturated, and its gain not shown")
	f.Float64Var(&h.rate, "probe-rate", 0, "hol: probes a second, instead of --probe-interval")
	f.StringSliceVar(&h.arms, "hol-arm", StandardArms(),
		"hol: comma list of same-qp, two-qp (the probes on a QP, or a connection of calls, of their own), "+
			"app-slicing (the application cuts bulk writes itself and keeps few slices outstanding), device (two-qp, "+
			"and one scheduler serves all QPs of the device: on stacks with sched, by scope=device)")
	f.StringVar(&h.appSlice, "app-slice", strconv.Itoa(defaultAppSlice>>10)+"K",
		"hol: bytes of a slice in the arm app-slicing")
	f.IntVar(&h.appWindow, "app-window", defaultAppWindow, "hol: slices outstanding in the arm app-slicing")
	f.Uint8Var(&h.priority, "probe-priority", 1,
		"hol: of the probes' work requests or calls, for stacks that schedule by it; bulk has 0")
}

// Plan reads what all points share.
func (h *flags) Plan(_ *engine.Plan, c *room.Common) (err error) {
	p := &h.options
	if h.bulkDepth < 1 {
		return values.Wrong("bulk-depth", "%d: want at least 1", h.bulkDepth)
	}
	p.BulkDepth, p.ProbePriority = h.bulkDepth, h.priority
	if h.appWindow < 1 {
		return values.Wrong("app-window", "%d: want at least 1", h.appWindow)
	}
	p.AppWindow = h.appWindow
	if p.AppSlice, err = values.Bytes(h.appSlice); err != nil {
		return values.Wrong("app-slice", "%w", err)
	}
	if p.AppSlice < 1 {
		return values.Wrong("app-slice", "%s: it starts at 1K", h.appSlice)
	}
	if p.ProbeSize, err = values.Bytes(h.probeSize); err != nil {
		return values.Wrong("probe-size", "%w", err)
	}
	if p.ProbeSize < 1 {
		return values.Wrong("probe-size", "%s: it starts at 1 byte", h.probeSize)
	}
	given := slices.DeleteFunc([]string{"probe-gap", "probe-interval", "probe-rate"},
		func(f string) bool { return !c.Changed(f) })
	if len(given) > 1 {
		return values.Wrong(given[1], "it and --%s exclude each other", given[0])
	}
	if c.Changed("probe-interval") {
		p.ProbeInterval, err = parseInterval("probe-interval", h.interval)
		return err
	}
	if !c.Changed("probe-rate") {
		p.ProbeInterval, err = parseInterval("probe-gap", h.gap)
		p.ProbeOne = p.ProbeInterval > 0
		return err
	}
	if !(h.rate >= 1 && h.rate <= 1e9) {
		return values.Wrong("probe-rate", "%v: want 1 to 1e9 a second", h.rate)
	}
	p.ProbeInterval = time.Duration(1e9 / h.rate)
	return nil
}

// parseInterval reads "500us", or "0" for a closed loop.
func parseInterval(flag, s string) (time.Duration, error) {
	d, err := time.ParseDuration(s)
	if err != nil || d < 0 {
		return 0, values.Wrong(flag, "%q: want a time such as 500us, or 0", s)
	}
	return d, nil
}

// Check refuses threads, queue pairs and sizes, which the workload has by itself.
func (h *flags) Check(c *room.Common) error {
	if f := c.AnyOf("app-slice", "app-window"); f != "" && !slices.Contains(values.Unique(h.arms), ArmAppSlicing) {
		return values.Wrong(f, "for --hol-arm %s", ArmAppSlicing)
	}
	if c.AnyOf("qp", "qp-sweep", "threads") != "" {
		return values.Wrong("workload", "%s has one thread, and a QP or two by --hol-arm", Name)
	}
	if c.Alone() && c.AnyOf("size", "all") != "" {
		return errors.New("the sizes of " + Name + " are --bulk-size and --probe-size")
	}
	return nil
}

// Points are all bulk sizes in all arms.
func (h *flags) Points(_ *engine.Plan, c *room.Common) ([]engine.Point, error) {
	ops := c.Ops
	if len(ops) == 0 {
		ops = Room.Ops
	}
	call := transports.KindCall.String()
	var points []engine.Point
	for _, op := range ops {
		for _, s := range values.Unique(h.bulkSizes) {
			n, err := values.Bytes(s)
			if err != nil {
				return nil, values.Wrong("bulk-size", "%w", err)
			}
			for _, arm := range values.Unique(h.arms) {
				if len(c.Ops) == 0 && op == call && !slices.Contains(CallArms(), arm) {
					continue // nobody asked for calls
				}
				points = append(points, NewPoint(op, n, arm, h.options))
			}
		}
	}
	return room.Checked(points, func(pt engine.Point) error {
		if pt.Call != "" {
			return checkCalls(pt)
		}
		return check(pt)
	})
}
