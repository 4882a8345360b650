package reports

import (
	"fmt"
	"strings"
)

// holSection shows what a bulk stream does to small probes on the same QP, and
// what the probes cost the stream.
func (c *charts) holSection(set *sampleSet) section {
	s := section{ID: "hol", Title: "Head-of-line blocking",
		Intro: "Small probes, first alone, then beside a bulk stream. Hollow is alone, filled is loaded; the line between them is the price of waiting behind bulk data."}
	for _, g := range groupBy(set.samples, func(s *sample) (condition, bool) { return s.condition(), s.HOL != nil }) {
		arms := split(g.samples)
		s.Figures = append(s.Figures, c.holPairs(g.key, arms), c.holCurves(g.key, arms), c.holBulk(g.key, arms))
	}
	return s
}

// holRows are the percentiles of the pair chart.
var holRows = []struct {
	name  string
	index int // in Percentiles
}{{"p50", 0}, {"p99", 2}, {"p99.9", 3}}

func (c *charts) holPairs(k condition, arms []*bySeries) figure {
	title := "Probe latency, " + holArm(arms[0].runs[0].HOL)
	chart := &pairChart{id: c.id(), title: title + ": " + k.extra, xLabel: "Probe latency, logarithmic", unit: nsLabel,
		legend: []legendEntry{{name: "alone", slot: arms[0].slot, thin: true}, {name: "beside bulk", slot: arms[0].slot}}}
	data := htmlTable{Caption: title, Head: headCells("series", "percentile", "alone", "loaded", "factor")}
	var words []string
	row := func(b *bySeries, first bool, name string, alone, loaded float64, few bool) {
		text := "×" + digits3(loaded/alone)
		chart.bars = append(chart.bars, bar{block: b.short, label: name, slot: b.slot, value: alone, other: loaded, text: text, few: few,
			firstOfKind: first, tip: fmt.Sprintf("%s\n%s alone %s\nloaded %s (%s)", b.series, name, nsLabel(alone), nsLabel(loaded), text)})
		data.Rows = append(data.Rows, []htmlCell{nameCell(b.series), numberCell(name), numberCell(nsLabel(alone)),
			{Text: nsLabel(loaded), Class: "n", Mark: few}, numberCell(text)})
		words = append(words, fmt.Sprintf("%s %s: %s alone, %s loaded.", b.series, name, nsLabel(alone), nsLabel(loaded)))
	}
	for _, b := range arms {
		for i, r := range holRows {
			few := b.runs[0].HOL.ProbeAlone.Percentiles()[r.index].TooFew || b.runs[0].HOL.ProbeLoaded.Percentiles()[r.index].TooFew
			row(b, i == 0, r.name, medianOf(b.runs, func(s *sample) float64 { return s.HOL.ProbeAlone.Percentiles()[r.index].Ns }),
				medianOf(b.runs, func(s *sample) float64 { return s.HOL.ProbeLoaded.Percentiles()[r.index].Ns }), few)
		}
		row(b, false, "max", medianOf(b.runs, func(s *sample) float64 { return s.HOL.ProbeAlone.Max }),
			medianOf(b.runs, func(s *sample) float64 { return s.HOL.ProbeLoaded.Max }), false)
	}
	chart.desc = strings.Join(words, " ")
	return figure{title, k.describe(), chart.render(), data}
}

func (c *charts) holCurves(k condition, arms []*bySeries) figure {
	var lines []series
	for _, b := range arms {
		alone, loaded := make([]*Latency, len(b.runs)), make([]*Latency, len(b.runs))
		for i, r := range b.runs {
			alone[i], loaded[i] = &r.HOL.ProbeAlone, &r.HOL.ProbeLoaded
		}
		lines = append(lines, percentileCurve(b, " alone", true, alone), percentileCurve(b, " loaded", false, loaded))
	}
	return c.percentileFigure("Probe latency distribution, "+holArm(arms[0].runs[0].HOL), k.describe(), lines)
}

func (c *charts) holBulk(k condition, arms []*bySeries) figure {
	title := "Bulk throughput, " + holArm(arms[0].runs[0].HOL)
	chart := &barChart{id: c.id(), title: title + ": " + k.extra, xLabel: "Bandwidth [MiB/s]", unit: digits3,
		legend: []legendEntry{{name: "alone", slot: arms[0].slot, thin: true, bar: true}, {name: "beside probes", slot: arms[0].slot, bar: true}}}
	data := htmlTable{Caption: title, Head: headCells("series", "alone", "loaded", "kept")}
	var words []string
	for _, b := range arms {
		alone := medianOf(b.runs, func(s *sample) float64 { return s.HOL.BulkAloneBytesPerSecond })
		loaded := medianOf(b.runs, func(s *sample) float64 { return s.HOL.BulkLoadedBytesPerSecond })
		for i, v := range []float64{alone, loaded} {
			name := []string{"alone", "beside probes"}[i]
			chart.bars = append(chart.bars, bar{block: b.short, slot: b.slot, value: v / (1 << 20), thin: i == 0, firstOfKind: i == 0,
				text: digits3(v / (1 << 20)), tip: fmt.Sprintf("%s\n%s: %s", b.series, name, bandwidthLabel(v))})
		}
		data.Rows = append(data.Rows, []htmlCell{nameCell(b.series), numberCell(bandwidthLabel(alone)), numberCell(bandwidthLabel(loaded)), numberCell(percentOf(loaded, alone))})
		words = append(words, fmt.Sprintf("%s: %s alone, %s beside probes.", b.series, bandwidthLabel(alone), bandwidthLabel(loaded)))
	}
	chart.desc = strings.Join(words, " ")
	return figure{title, k.describe(), chart.render(), data}
}

// percentOf prints v as a share of base.
func percentOf(v, base float64) string {
	if !(base > 0) || !finite(v) {
		return "-"
	}
	return digits3(100*v/base) + " %"
}
