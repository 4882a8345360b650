package reports

import (
	"cmp"
	"slices"
)

// trainSection is the time of an iteration against the ratio of computation to
// communication.
func (c *charts) trainSection(set *sampleSet) section {
	s := section{ID: "training", Title: "Training with a parameter server",
		Intro: "One worker pushes the gradient of each tensor as the backward pass has it and pulls the updated one; a layer of the next forward pass waits for its tensor. The thin line is the ideal: the longer of computation and communication. In the arm priority, work requests say which tensor is needed first."}
	for _, g := range groupBy(set.samples, func(x *sample) (load, bool) { return loadOf(x.Result), x.ParamServer != nil }) {
		var ratios []float64
		for _, x := range g.samples {
			ratios = append(ratios, x.ParamServer.ComputeRatio)
		}
		slices.Sort(ratios)
		ratios = slices.Compact(ratios)
		x := scale{lo: ratios[0], hi: ratios[len(ratios)-1]}
		ticks := make([]tick, len(ratios))
		for i, r := range ratios {
			ticks[i] = tick{r, number(r, -1)}
		}
		title := "Iteration time, " + visible(g.key.train.model)
		var lines []series
		data := htmlTable{Caption: title, Head: headCells("series", "ratio", "levels", "iterations", "mean", "95 % interval", "p50", "p99", "communication", "computation", "ideal", "overlap", "gain over fifo")}
		for i, b := range split(g.samples) {
			arms := groupBy(b.runs, func(x *sample) (string, bool) { return x.ParamServer.Arm, true })
			var all []*ParamServer
			for _, x := range b.runs {
				all = append(all, x.ParamServer)
			}
			for k, arm := range arms {
				name := b.series + " " + visible(arm.key)
				line := series{name: name, short: b.short + " " + visible(arm.key), slot: i*len(arms) + k}
				for _, at := range groupBy(arm.samples, func(x *sample) (float64, bool) { return x.ParamServer.ComputeRatio, true }) {
					p50 := medianOf(at.samples, func(x *sample) float64 { return x.ParamServer.Iteration.P50 })
					p99 := medianOf(at.samples, func(x *sample) float64 { return x.ParamServer.Iteration.P99 })
					line.points = append(line.points, point{x: at.key, y: p50, high: p99, few: at.samples[0].ParamServer.Iteration.Percentiles()[2].TooFew,
						tip: name + "\nratio " + number(at.key, -1) + "\np50 " + nsLabel(p50) + "\np99 " + nsLabel(p99)})
				}
				slices.SortStableFunc(line.points, func(a, b point) int { return cmp.Compare(a.x, b.x) })
				lines = append(lines, line)
				for _, x := range arm.samples {
					data.Rows = append(data.Rows, trainRow(x, all))
				}
			}
			ideal := series{name: b.series + " ideal", short: b.short + " ideal", slot: i * len(arms), thin: true}
			for _, at := range groupBy(b.runs, func(x *sample) (float64, bool) { return x.ParamServer.ComputeRatio, true }) {
				ideal.points = append(ideal.points, point{x: at.key, y: medianOf(at.samples, func(x *sample) float64 { return x.ParamServer.IdealNs })})
			}
			slices.SortStableFunc(ideal.points, func(a, b point) int { return cmp.Compare(a.x, b.x) })
			lines = append(lines, ideal)
		}
		chart := &lineChart{id: c.id(), title: title, desc: "The time is logarithmic. " + describeSeries(lines), yLabel: "Iteration, median to p99",
			xLabel: "Computation / communication", x: x, xTicks: ticks, yUnit: nsLabel, series: lines}
		s.Figures = append(s.Figures, figure{title, visible(g.key.conditions()), chart.render(), data})
	}
	return s
}

func trainRow(x *sample, all []*ParamServer) []htmlCell {
	ps := x.ParamServer
	interval, overlap := "-", "-"
	if ps.MeanHigh > ps.MeanLow {
		interval = nsLabel(ps.MeanLow) + " to " + nsLabel(ps.MeanHigh)
	}
	if o, ok := ps.overlap(); ok && finite(o) {
		overlap = number(o*100, 1) + " %"
	}
	percentiles := ps.Iteration.Percentiles()
	return []htmlCell{nameCell(x.name() + " " + ps.Arm), numberCell(number(ps.ComputeRatio, -1)), numberCell(integer(int64(ps.Levels))), numberCell(integer(ps.Iteration.Count)),
		numberCell(nsLabel(ps.Iteration.Mean)), numberCell(interval), {Text: nsLabel(percentiles[0].Ns), Class: "n", Mark: percentiles[0].TooFew},
		{Text: nsLabel(percentiles[2].Ns), Class: "n", Mark: percentiles[2].TooFew}, numberCell(nsLabel(ps.CommunicationNs)), numberCell(nsLabel(ps.ComputeNs)),
		numberCell(nsLabel(ps.IdealNs)), numberCell(overlap), numberCell(fasterThanFIFO(ps, all))}
}
