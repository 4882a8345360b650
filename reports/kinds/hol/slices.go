package hol

import (
	"fmt"
	"slices"
	"strings"

	"github.com/rdmaperf/rdmaperf/reports"
	"github.com/rdmaperf/rdmaperf/reports/charts"
	"github.com/rdmaperf/rdmaperf/reports/view"
)

// A scheduling stack that was measured with several slices, or several windows, in
// one place gives a curve: what is gained for the probes, and what it costs the bulk.

// sliceKey is what the points of one curve share: all but one parameter.
type sliceKey struct {
	reports.Condition
	parameter string // slice or window
	rest      string // the stack without the parameter
}

// schedParameter reads a size out of a sched layer in a stack's name, and returns the
// name without it. false for a stack without, and for a size that is measured.
func schedParameter(stack, name string) (value int64, rest string, ok bool) {
	layers := topLayers(stack)
	for i, l := range layers {
		inside, found := strings.CutPrefix(l, "sched(")
		if !found || !strings.HasSuffix(inside, ")") {
			continue
		}
		parts := strings.Split(strings.TrimSuffix(inside, ")"), ",")
		k := slices.IndexFunc(parts, func(p string) bool { return strings.HasPrefix(p, name+"=") })
		if k < 0 {
			return 0, "", false
		}
		n, err := reports.ParseSize(strings.TrimPrefix(parts[k], name+"="))
		if err != nil || n < 1 {
			return 0, "", false
		}
		layers[i] = "sched(" + strings.Join(slices.Delete(parts, k, k+1), ",") + ")"
		return n, strings.Join(layers, "+"), true
	}
	return 0, "", false
}

// sliceSection draws them.
func sliceSection(set *reports.Set) view.Section {
	s := view.Section{ID: "slices", Title: "Slice and window of the scheduler",
		Intro: "The same probes beside the same bulk, with another slice or window of the scheduler at each point. Small ones let a probe through sooner; too small ones cost the bulk."}
	for _, parameter := range []string{"slice", "window"} {
		sizeOf := func(x *reports.Measured) int64 {
			n, _, _ := schedParameter(x.Stack, parameter)
			return n
		}
		groups := reports.GroupBy(set.Samples, func(x *reports.Measured) (sliceKey, bool) {
			_, rest, ok := schedParameter(x.Stack, parameter)
			return sliceKey{x.Condition(), parameter, rest}, ok && Of(x.Result) != nil
		})
		for _, g := range groups {
			var sizes []int64
			for _, x := range g.Samples {
				sizes = append(sizes, sizeOf(x))
			}
			slices.Sort(sizes)
			if sizes = slices.Compact(sizes); len(sizes) < 2 {
				continue
			}
			caption := view.Visible(g.Key.rest) + ", " + g.Key.Describe()
			title := view.Capital(parameter) + " of the scheduler, " + g.Key.Extra
			add := func(what, yLabel string, unit func(float64) string, lines ...view.Series) {
				chart := &view.LineChart{Title: what + " by " + parameter + ": " + g.Key.Extra, Desc: "Logarithmic axes. " + charts.DescribeSeries(lines),
					YLabel: yLabel, XLabel: view.Capital(parameter), X: charts.SizeScale(sizes), XTicks: charts.SizeTicks(sizes), YUnit: unit, Series: lines}
				s.Figures = append(s.Figures, view.Figure{Title: title + ": " + what, Caption: caption, Chart: chart, Data: charts.PointTable(title, parameter, what, lines)})
			}
			line := func(name string, slot int, label func(float64) string, of func(*reports.Measured) float64) view.Series {
				l := view.Series{Name: name, Slot: slot}
				for _, n := range sizes {
					var at []*reports.Measured
					for _, x := range g.Samples {
						if sizeOf(x) == n {
							at = append(at, x)
						}
					}
					y := reports.MedianOf(at, of)
					l.Points = append(l.Points, view.Point{X: float64(n), Y: y, Tip: fmt.Sprintf("%s\n%s %s\n%s", name, parameter, reports.SizeLabel(n), label(y))})
				}
				return l
			}
			add("probe latency", "Probe beside bulk", view.NsLabel,
				line("p99", 0, view.NsLabel, func(x *reports.Measured) float64 { return Of(x.Result).ProbeLoaded.P99 }),
				line("p50", 1, view.NsLabel, func(x *reports.Measured) float64 { return Of(x.Result).ProbeLoaded.P50 }))
			mib := func(f func(h *HOL) float64) func(*reports.Measured) float64 {
				return func(x *reports.Measured) float64 { return f(Of(x.Result)) / (1 << 20) }
			}
			rate := func(v float64) string { return view.Digits3(v) + " MiB/s" }
			add("bulk throughput", "Bandwidth [MiB/s]", view.Digits3, line("alone", 0, rate, mib(bulkAlone)), line("beside probes", 1, rate, mib(bulkLoaded)))
		}
	}
	return s
}
