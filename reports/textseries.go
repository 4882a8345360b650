package reports

// seriesTables show how each window went, one interval a row.
func (p *textPrinter) seriesTables(g *groupedResults) {
	for _, r := range g.results {
		s := r.Series
		if s == nil {
			continue
		}
		title := g.rowName(r)
		if r.HOL != nil {
			title += ", loaded probes"
			if r.HOL.Arm != "" {
				title += " " + printable(r.HOL.Arm)
			}
		}
		if r.Repeat > 0 {
			title += ", repeat " + integer(int64(r.Repeat))
		}
		p.wrapped(title + ", every " + number(float64(s.IntervalNs)/1e6, -1) + " msec:")
		timed := r.Latency != nil || r.HOL != nil
		t := table{columns: []column{{name: "from", unit: "sec"}, {name: "#iterations"}, {name: "MsgRate", unit: "Mpps"}}}
		if timed {
			t.columns = append(t.columns[:2], column{name: "t_typical", unit: "usec"}, column{name: "99%", unit: "usec"}, column{name: "t_max", unit: "usec"})
		}
		for _, pt := range s.Points {
			cells := []cell{{text: number(float64(pt.OffsetNs)/1e9, 3)}, {text: integer(pt.Operations)}}
			switch {
			case !timed:
				cells = append(cells, cell{text: number(float64(pt.Operations)/float64(max(s.IntervalNs, 1))*1e3, 6)})
			case pt.Operations == 0:
				cells = append(cells, cell{text: "-"}, cell{text: "-"}, cell{text: "-"})
			default:
				few := func(need int64) bool { return pt.Operations < need }
				cells = append(cells, cell{text: usec(pt.P50), mark: few(20)}, cell{text: usec(pt.P99), mark: few(1000)}, cell{text: usec(pt.Max)})
			}
			t.add(cells...)
		}
		if len(t.rows) > 0 {
			p.table(&t)
		}
	}
}
