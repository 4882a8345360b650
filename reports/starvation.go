package reports

import (
	"cmp"
	"slices"
	"strconv"
)

// Starvation is what two classes of one QP got: a high one, which offers a share of
// the capacity, and a low one, which takes what is left.
type Starvation struct {
	HighLoadPercent        float64    `json:"high_load_percent"` // offered, of the capacity
	HighPriority           int        `json:"high_priority"`     // the low class has 0
	CapacityBytesPerSecond float64    `json:"capacity_bytes_per_second"`
	High                   ClassShare `json:"high"`
	Low                    ClassShare `json:"low"`
}

// ClassShare is what one class completed in the window.
type ClassShare struct {
	Operations     int64   `json:"operations"`
	BytesPerSecond float64 `json:"bytes_per_second"`
}

// point tells the points of one curve apart, repeats aside.
func (s *Starvation) point() string { return "high load " + number(s.HighLoadPercent, -1) + " %" }

func starvationMetric(name string, of func(s *Starvation) float64) metric {
	return metric{name, quantityBytes, func(r *Result) (float64, bool) {
		if r.Starvation == nil {
			return 0, false
		}
		return of(r.Starvation), true
	}}
}

// medianStarvation has the medians of the repeats.
func medianStarvation(all []*Result) *Starvation {
	of := func(figure func(s *Starvation) float64) float64 {
		values := make([]float64, len(all))
		for i, r := range all {
			values[i] = figure(r.Starvation)
		}
		return median(values)
	}
	s := *all[0].Starvation
	s.CapacityBytesPerSecond = of(func(s *Starvation) float64 { return s.CapacityBytesPerSecond })
	s.High.BytesPerSecond = of(func(s *Starvation) float64 { return s.High.BytesPerSecond })
	s.Low.BytesPerSecond = of(func(s *Starvation) float64 { return s.Low.BytesPerSecond })
	return &s
}

// starvationTable shows both classes against the load of the high one.
func (p *textPrinter) starvationTable(results []*Result) {
	unit := throughputColumns(p.Gbits)[2].unit
	t := table{columns: []column{{name: "#bytes"}, {name: "high load", unit: "%"}, {name: "offered", unit: unit}, {name: "high", unit: unit},
		{name: "low", unit: unit}, {name: "low", unit: "% of capacity"}, {name: "capacity", unit: unit}}}
	var rows []*Result
	for _, r := range results {
		if r.Starvation != nil {
			rows = append(rows, r)
		}
	}
	slices.SortStableFunc(rows, func(a, b *Result) int {
		return cmp.Or(cmp.Compare(a.SizeBytes, b.SizeBytes), cmp.Compare(a.Starvation.HighLoadPercent, b.Starvation.HighLoadPercent))
	})
	for _, r := range rows {
		s := r.Starvation
		t.add(cell{text: integer(r.SizeBytes)}, cell{text: number(s.HighLoadPercent, -1)}, cell{text: bandwidth(s.CapacityBytesPerSecond*s.HighLoadPercent/100, p.Gbits)},
			cell{text: bandwidth(s.High.BytesPerSecond, p.Gbits)}, cell{text: bandwidth(s.Low.BytesPerSecond, p.Gbits)},
			cell{text: number(100*s.Low.BytesPerSecond/s.CapacityBytesPerSecond, 1)}, cell{text: bandwidth(s.CapacityBytesPerSecond, p.Gbits)})
	}
	if len(t.rows) == 0 {
		return
	}
	p.wrapped("two classes on one QP: the high one at priority " + strconv.Itoa(rows[0].Starvation.HighPriority) + " offers a share of what one class alone carries (capacity), the low one takes what it gets:")
	p.table(&t)
}

// starvationSection is the throughput of both classes against the load of the high one.
func (c *charts) starvationSection(set *sampleSet) section {
	s := section{ID: "starvation", Title: "Starvation",
		Intro: "A high class offers a share of what the stack carries, and a low class on the same QP takes what it gets. The thin line is the low class: what the high one leaves to it is the rule of the policy."}
	type key struct {
		load
		size int64
	}
	for _, g := range groupBy(set.samples, func(x *sample) (key, bool) { return key{loadOf(x.Result), x.SizeBytes}, x.Starvation != nil }) {
		var loads []float64
		for _, x := range g.samples {
			loads = append(loads, x.Starvation.HighLoadPercent)
		}
		slices.Sort(loads)
		loads = slices.Compact(loads)
		ticks := make([]tick, len(loads))
		for i, l := range loads {
			ticks[i] = tick{l, number(l, -1)}
		}
		title := "Throughput by class, " + sizeLabel(g.key.size)
		data := htmlTable{Caption: title, Head: headCells("series", "high load %", "high MiB/s", "low MiB/s", "capacity MiB/s")}
		var lines []series
		for _, b := range split(g.samples) {
			for _, class := range []struct {
				name string
				thin bool
				of   func(s *Starvation) float64
			}{{" high", false, func(s *Starvation) float64 { return s.High.BytesPerSecond }}, {" low", true, func(s *Starvation) float64 { return s.Low.BytesPerSecond }}} {
				line := series{name: b.series + class.name, short: b.short + class.name, slot: b.slot, thin: class.thin}
				for _, at := range groupBy(b.runs, func(x *sample) (float64, bool) { return x.Starvation.HighLoadPercent, true }) {
					y := medianOf(at.samples, func(x *sample) float64 { return class.of(x.Starvation) })
					line.points = append(line.points, point{x: at.key, y: y / (1 << 20), tip: line.name + "\nhigh load " + number(at.key, -1) + " %\n" + bandwidthLabel(y)})
				}
				slices.SortStableFunc(line.points, func(a, b point) int { return cmp.Compare(a.x, b.x) })
				lines = append(lines, line)
			}
			for _, x := range b.runs {
				data.Rows = append(data.Rows, []htmlCell{nameCell(x.name()), numberCell(number(x.Starvation.HighLoadPercent, -1)), numberCell(bandwidth(x.Starvation.High.BytesPerSecond, false)),
					numberCell(bandwidth(x.Starvation.Low.BytesPerSecond, false)), numberCell(bandwidth(x.Starvation.CapacityBytesPerSecond, false))})
			}
		}
		chart := &lineChart{id: c.id(), title: title, linear: true, desc: describeSeries(lines), yLabel: "Bandwidth [MiB/s]", xLabel: "Load of the high class [% of capacity]",
			x: scale{lo: loads[0], hi: loads[len(loads)-1]}, xTicks: ticks, yUnit: digits3, series: lines}
		s.Figures = append(s.Figures, figure{title, g.key.conditions(), chart.render(), data})
	}
	return s
}
