package reports

import "fmt"

// Connect is the life of a connection in stages, in nanoseconds.
type Connect struct {
	AtOnce         int     `json:"at_once"`          // connections set up concurrently
	Create         Latency `json:"create"`           // window, queues and QP, before the first packet
	Connect        Latency `json:"connect"`          // the transport's set-up
	FirstRoundTrip Latency `json:"first_round_trip"` // a write and a read of the same bytes
	Disconnect     Latency `json:"disconnect"`       // closing, until all is given back
	Full           Latency `json:"full"`             // all of it
}

// connectStage is one stage by its name in thresholds; title is for people.
type connectStage struct {
	name, title string
	of          func(c *Connect) *Latency
}

var connectStages = []connectStage{
	{"create", "create", func(c *Connect) *Latency { return &c.Create }},
	{"connect", "connect", func(c *Connect) *Latency { return &c.Connect }},
	{"first", "first round trip", func(c *Connect) *Latency { return &c.FirstRoundTrip }},
	{"disconnect", "disconnect", func(c *Connect) *Latency { return &c.Disconnect }},
	{"full", "all of it", func(c *Connect) *Latency { return &c.Full }},
}

// stage is a latency of the result, nil when it set up no connections.
func (s connectStage) latency(r *Result) *Latency {
	if r.Connect == nil {
		return nil
	}
	return s.of(r.Connect)
}

// medianConnect has the medians of each stage over repeats.
func medianConnect(all []*Result) *Connect {
	c := *all[0].Connect
	for _, s := range connectStages {
		var ls []*Latency
		for _, r := range all {
			ls = append(ls, s.of(r.Connect))
		}
		*s.of(&c) = *medianLatency(ls)
	}
	return &c
}

// connectTable shows where the time of a connection goes.
func (p *textPrinter) connectTable(results []*Result) {
	t := table{columns: []column{{name: "at once"}, {name: "connections"}, {name: "rate", unit: "1/sec"}, {name: "stage", left: true},
		{name: "t_min", unit: "usec"}, {name: "t_typical", unit: "usec"}, {name: "t_avg", unit: "usec"}, {name: "99%", unit: "usec"}, {name: "t_max", unit: "usec"}}}
	for _, r := range results {
		c := r.Connect
		if c == nil {
			continue
		}
		rate := "-"
		if r.Throughput != nil {
			rate = number(r.Throughput.OperationsPerSecond, 0)
		}
		row := func(title string, l *Latency) {
			t.add(cell{text: integer(int64(c.AtOnce))}, cell{text: integer(r.Operations)}, cell{text: rate}, cell{text: title},
				cell{text: usec(l.Min)}, percentileCell(l, "p50"), cell{text: usec(l.Mean)}, percentileCell(l, "p99"), cell{text: usec(l.Max)})
		}
		for i, s := range connectStages {
			if i == len(connectStages)-1 && r.Latency != nil {
				row("until answered", r.Latency)
			}
			row(s.title, s.of(c))
		}
	}
	if len(t.rows) > 0 {
		p.table(&t)
	}
}

// connectSection is where the time of a connection goes, a bar for each stage.
func (c *charts) connectSection(set *sampleSet) section {
	s := section{ID: "setup", Title: "Connection set-up", Intro: "Medians of each stage of a connection's life; the first answer is there after the first three."}
	for _, g := range groupBy(set.samples, func(s *sample) (condition, bool) { return s.condition(), s.Connect != nil }) {
		title := capital(g.key.what()) + ", " + integer(int64(g.samples[0].Connect.AtOnce)) + " at once"
		chart := &barChart{id: c.id(), title: title, xLabel: "Median time [µs]", unit: digits3}
		data := htmlTable{Caption: title, Head: headCells("series", "stage", "p50", "p99", "connections a second")}
		for _, b := range split(g.samples) {
			rate := medianOf(b.runs, func(s *sample) float64 {
				if s.Throughput == nil {
					return 0
				}
				return s.Throughput.OperationsPerSecond
			})
			for _, st := range connectStages {
				p50 := medianOf(b.runs, func(s *sample) float64 { return st.of(s.Connect).P50 })
				p99 := medianOf(b.runs, func(s *sample) float64 { return st.of(s.Connect).P99 })
				chart.bars = append(chart.bars, bar{block: b.series + ", " + st.title, slot: b.slot, value: p50 / 1000, text: digits3(p50 / 1000), firstOfKind: true,
					tip: fmt.Sprintf("%s\n%s p50 %s\np99 %s", b.series, st.title, nsLabel(p50), nsLabel(p99))})
				data.Rows = append(data.Rows, []htmlCell{nameCell(b.series), textCell(st.title), numberCell(nsLabel(p50)),
					{Text: nsLabel(p99), Class: "n", Mark: st.of(b.runs[0].Connect).Percentiles()[2].TooFew}, numberCell(digits3(rate))})
				chart.desc += fmt.Sprintf("%s, %s: %s. ", b.series, st.title, nsLabel(p50))
			}
		}
		s.Figures = append(s.Figures, figure{title, g.key.describe(), chart.render(), data})
	}
	return s
}
