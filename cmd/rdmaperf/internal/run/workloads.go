package run

import (
	"fmt"
	"slices"
	"strings"

	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/catalogue"
	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/cli"
	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/engine"
	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/stackspec"
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

// addLayers adds the stacks with the parameters of layers that points ask for, which are measured at those points
// alone.
func (p *runPlan) addLayers() error {
	type asked struct{ layer, param string }
	var all []asked
	for _, pt := range p.points {
		if a := (asked{pt.Needs.Layer, pt.Needs.Param}); a.layer != "" && !slices.Contains(all, a) {
			all = append(all, a)
		}
	}
	p.added = map[string]bool{}
	for _, a := range all {
		var stacks []string
		found := false
		for _, spec := range p.stacks {
			stacks = append(stacks, spec)
			if p.added[spec] {
				continue
			}
			layers, err := stackspec.Parse(spec)
			if err != nil {
				return err
			}
			i := slices.IndexFunc(layers, func(l stackspec.Layer) bool { return l.Name == a.layer })
			if i < 0 {
				continue
			}
			found = true
			key, _, _ := strings.Cut(a.param, "=")
			if _, given := layers[i].Param(key); given {
				continue // the user chose
			}
			layers[i] = layers[i].With(a.param)
			if more := stackspec.Format(layers); !slices.Contains(p.stacks, more) {
				p.added[more] = true
				stacks = append(stacks, more)
			}
		}
		if !found {
			return cli.Usage("read --transport",
				fmt.Errorf("none of the stacks has the layer %s, which a point asks for", a.layer),
				"--transport "+a.layer+"+"+stackspec.Embedded())
		}
		p.stacks = stacks
	}
	return nil
}

func (p *runPlan) suits(spec string, pt engine.Point) bool {
	if pt.Needs.Layer == "" {
		return !p.added[spec]
	}
	layers, err := stackspec.Parse(spec)
	return err == nil && slices.ContainsFunc(layers, func(l stackspec.Layer) bool {
		return l.Name == pt.Needs.Layer && slices.Contains(l.Params, pt.Needs.Param)
	})
}
