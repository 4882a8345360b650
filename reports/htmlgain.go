package reports

import (
	"cmp"
	"fmt"
	"slices"
)

// gainSection is how many times the throughput of plain gRPC over TCP each other carrier
// of calls has, by size.
func (c *charts) gainSection(set *sampleSet) section {
	s := section{ID: "gain", Title: "Gain over gRPC on TCP",
		Intro: "Throughput as a multiple of that of grpc(tcp) in the same run, at every size. Above 1 is faster."}
	for _, g := range groupBy(set.samples, func(x *sample) (condition, bool) {
		return x.condition(), x.RPC != nil && x.KV == nil && x.Throughput != nil && x.rate == 0
	}) {
		sizes := sizesOf(g.samples)
		arms := split(g.samples)
		at := slices.IndexFunc(arms, func(b *bySeries) bool { return b.runs[0].RPC.Form == "tcp" })
		if len(sizes) < 2 || len(arms) < 2 || at < 0 {
			continue
		}
		base := throughputLine(arms[at])
		title := capital(g.key.what())
		lines := []series{{name: base.name, short: base.short, slot: base.slot, thin: true}}
		for _, p := range base.points {
			lines[0].points = append(lines[0].points, point{x: p.x, y: 1, tip: fmt.Sprintf("%s\n%s\n1.00x", base.name, sizeLabel(int64(p.x)))})
		}
		for i, b := range arms {
			if i == at {
				continue
			}
			line := series{name: b.series, short: b.short, slot: b.slot}
			for _, p := range throughputLine(b).points {
				k, found := slices.BinarySearchFunc(base.points, p.x, func(q point, x float64) int { return cmp.Compare(q.x, x) })
				if !found || base.points[k].y == 0 {
					continue
				}
				gain := p.y / base.points[k].y
				line.points = append(line.points, point{x: p.x, y: gain, tip: fmt.Sprintf("%s\n%s\n%s, %s MiB/s against %s", b.series, sizeLabel(int64(p.x)), gainLabel(gain), digits3(p.y), digits3(base.points[k].y))})
			}
			lines = append(lines, line)
		}
		chart := &lineChart{id: c.id(), title: "Gain by size: " + title, desc: "Logarithmic axes. " + describeSeries(lines),
			yLabel: "Throughput / " + base.short, xLabel: "Message size", x: sizeScale(sizes), xTicks: sizeTicks(sizes), yUnit: gainLabel, series: lines}
		s.Figures = append(s.Figures, figure{title, g.key.describe(), chart.render(), pointTable(title, "size", "gain", lines)})
	}
	return s
}

func gainLabel(v float64) string { return number(v, 2) + "x" }
