package reports

import (
	"fmt"
	"slices"
	"strings"
)

// A scheduling stack that was measured with several slices, or several windows, in
// one place gives a curve: what is gained for the probes, and what it costs the bulk.

// sliceKey is what the points of one curve share: all but one parameter.
type sliceKey struct {
	condition
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
		n, err := ParseSize(strings.TrimPrefix(parts[k], name+"="))
		if err != nil || n < 1 {
			return 0, "", false
		}
		layers[i] = "sched(" + strings.Join(slices.Delete(parts, k, k+1), ",") + ")"
		return n, strings.Join(layers, "+"), true
	}
	return 0, "", false
}

// sliceSection draws them.
func (c *charts) sliceSection(set *sampleSet) section {
	s := section{ID: "slices", Title: "Slice and window of the scheduler",
		Intro: "The same probes beside the same bulk, with another slice or window of the scheduler at each point. Small ones let a probe through sooner; too small ones cost the bulk."}
	for _, parameter := range []string{"slice", "window"} {
		sizeOf := func(x *sample) int64 {
			n, _, _ := schedParameter(x.Stack, parameter)
			return n
		}
		groups := groupBy(set.samples, func(x *sample) (sliceKey, bool) {
			_, rest, ok := schedParameter(x.Stack, parameter)
			return sliceKey{x.condition(), parameter, rest}, ok && x.HOL != nil
		})
		for _, g := range groups {
			var sizes []int64
			for _, x := range g.samples {
				sizes = append(sizes, sizeOf(x))
			}
			slices.Sort(sizes)
			if sizes = slices.Compact(sizes); len(sizes) < 2 {
				continue
			}
			caption := visible(g.key.rest) + ", " + g.key.describe()
			title := capital(parameter) + " of the scheduler, " + g.key.extra
			add := func(what, yLabel string, unit func(float64) string, lines ...series) {
				chart := &lineChart{id: c.id(), title: what + " by " + parameter + ": " + g.key.extra, desc: "Logarithmic axes. " + describeSeries(lines),
					yLabel: yLabel, xLabel: capital(parameter), x: sizeScale(sizes), xTicks: sizeTicks(sizes), yUnit: unit, series: lines}
				s.Figures = append(s.Figures, figure{title + ": " + what, caption, chart.render(), pointTable(title, parameter, what, lines)})
			}
			line := func(name string, slot int, label func(float64) string, of func(*sample) float64) series {
				l := series{name: name, slot: slot}
				for _, n := range sizes {
					var at []*sample
					for _, x := range g.samples {
						if sizeOf(x) == n {
							at = append(at, x)
						}
					}
					y := medianOf(at, of)
					l.points = append(l.points, point{x: float64(n), y: y, tip: fmt.Sprintf("%s\n%s %s\n%s", name, parameter, sizeLabel(n), label(y))})
				}
				return l
			}
			add("probe latency", "Probe beside bulk", nsLabel,
				line("p99", 0, nsLabel, func(x *sample) float64 { return x.HOL.ProbeLoaded.P99 }),
				line("p50", 1, nsLabel, func(x *sample) float64 { return x.HOL.ProbeLoaded.P50 }))
			mib := func(f func(h *HOL) float64) func(*sample) float64 {
				return func(x *sample) float64 { return f(x.HOL) / (1 << 20) }
			}
			rate := func(v float64) string { return digits3(v) + " MiB/s" }
			add("bulk throughput", "Bandwidth [MiB/s]", digits3, line("alone", 0, rate, mib(bulkAlone)), line("beside probes", 1, rate, mib(bulkLoaded)))
		}
	}
	return s
}
