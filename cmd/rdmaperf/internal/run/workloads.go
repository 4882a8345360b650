package run

import (
	"fmt"
	"strings"

	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/catalogue"
	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/engine"
	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/values"
	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/workload"
	"github.com/rdmaperf/rdmaperf/reports"
	"github.com/rdmaperf/rdmaperf/transports"
)

func workloadHelp() string {
	var names, notes []string
	for _, w := range catalogue.All() {
		m := w.Meta()
		names = append(names, m.Name)
		if m.Note != "" {
			notes = append(notes, m.Note)
		}
	}
	return "comma list of " + strings.Join(names, ", ") + "\nwithout it: " + strings.Join(notes, "; ")
}

// Workloads is what each workload measures, a line each, for help.
func Workloads() string {
	var b strings.Builder
	b.WriteString("Workloads:\n\n")
	for _, w := range catalogue.All() {
		m := w.Meta()
		fmt.Fprintf(&b, "  %-12s %s\n", m.Name, m.Summary)
	}
	return b.String()
}

func defaultsHelp(of func(m workload.Meta) string) string {
	var parts []string
	for _, w := range catalogue.All() {
		if m := w.Meta(); m.Standard && of(m) != "" {
			parts = append(parts, m.Name+" "+of(m))
		}
	}
	return "(default " + strings.Join(parts, ", ") + ")"
}

func defaultOps(m workload.Meta) string {
	switch n := len(m.Ops); n {
	case 0:
		return ""
	case 1:
		return "of " + m.Ops[0]
	default:
		return "of " + strings.Join(m.Ops[:n-1], ", ") + " and " + m.Ops[n-1]
	}
}

func defaultSizes(m workload.Meta) string {
	var sizes []string
	for _, n := range m.Sizes {
		sizes = append(sizes, reports.FormatSize(int64(n)))
	}
	return strings.Join(sizes, ",")
}

func opNames() string {
	var names []string
	for k := transports.KindSend; k <= transports.KindCall; k++ {
		names = append(names, k.String())
	}
	return strings.Join(names, ", ")
}

func (o *Options) common(p *engine.Plan, changed func(string) bool) (*workload.Common, error) {
	sizes, err := values.Sizes(o.sizes)
	if err != nil {
		return nil, err
	}
	for _, op := range o.ops {
		if _, known := transports.ParseKind(op); !known {
			return nil, values.Wrong("op", "unknown operation %q: want one of %s", op, opNames())
		}
	}
	for n := 2; o.all && n <= maxAll; n *= 2 {
		sizes = append(sizes, n)
	}
	return &workload.Common{Changed: changed, Plan: p, Workloads: values.Unique(o.workloads), CallsOnly: o.callsOnly,
		Pin: o.pin, Ops: values.Unique(o.ops), Sizes: sizes, All: o.all}, nil
}

// maxAll is the largest size of --all, perftest's.
const maxAll = 8 << 20

func (o *Options) points(c *workload.Common) (points []engine.Point, err error) {
	if err := c.Choose(o.work, o.workFlags); err != nil {
		return nil, err
	}
	if err := o.load.axes(c); err != nil {
		return nil, err
	}
	for _, name := range c.Workloads {
		of, err := workload.Find(o.work, name).Points(c)
		if err != nil {
			return nil, err
		}
		points = append(points, of...)
	}
	return points, nil
}

func metaOf(pt engine.Point) (m workload.Meta) {
	if w := workload.Find(catalogue.All(), pt.Workload); w != nil {
		m = w.Meta()
	}
	return m
}

// ofCalls tells points that only stacks which carry calls can run.
func ofCalls(pt engine.Point) bool { return metaOf(pt).Calls }
