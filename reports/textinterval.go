package reports

import "slices"

// intervalTables show the means over the repeats of each point with their
// confidence intervals. Points with too few repeats have none; their note says so.
func (p *textPrinter) intervalTables(g *groupedResults) {
	_, sets := repeatSets(g.results)
	var tables []*table
	for _, set := range sets {
		if len(set.results) < intervalRepeats {
			continue
		}
		// Figure columns depend on what a result has: one table for each kind.
		names, rows := p.intervalRows(set)
		columns := g.perRow([]column{{name: "#bytes"}, {name: "repeats"}})
		if set.arm != "" {
			of := "probes"
			if set.results[0].Starvation != nil {
				of = "high load %"
			}
			if set.results[0].ParamServer != nil {
				of = "ratio"
			}
			columns = append(columns, column{name: "arm", left: true}, column{name: of})
		}
		columns = append(columns, names...)
		i := slices.IndexFunc(tables, func(t *table) bool { return slices.Equal(t.columns, columns) })
		if i < 0 {
			i = len(tables)
			tables = append(tables, &table{columns: columns})
		}
		for _, figures := range rows {
			cells := g.perRowCells(set.results[0], []cell{{text: integer(set.size)}, {text: integer(int64(len(set.results)))}})
			tables[i].add(append(cells, figures...)...)
		}
	}
	for i, t := range tables {
		if i == 0 {
			p.wrapped("mean over the repeats and its 95 % confidence interval (" + intervalMethod + "):")
		}
		p.table(t)
	}
}

// intervalRows are the figures of one point: a row, or two for probes alone and
// loaded.
func (p *textPrinter) intervalRows(set *repeatSet) (names []column, rows [][]cell) {
	all := meanIntervals(set.results)
	find := func(name string) cell {
		i := slices.IndexFunc(all, func(m MeanInterval) bool { return m.Figure == name })
		if i < 0 {
			return cell{text: "-"}
		}
		m := all[i]
		switch m.quantity() {
		case quantityTime:
			return cell{text: usec(m.Mean) + " +/- " + usec(m.halfWidth())}
		case quantityBytes:
			return cell{text: bandwidth(m.Mean, p.Gbits) + " +/- " + bandwidth(m.halfWidth(), p.Gbits)}
		}
		return cell{text: number(m.Mean/1e6, 6) + " +/- " + number(m.halfWidth()/1e6, 6)}
	}
	times := []column{{name: "t_typical", unit: "usec"}, {name: "t_avg", unit: "usec"}, {name: "99%", unit: "usec"}}
	rates := throughputColumns(p.Gbits)[2:]
	switch {
	case set.results[0].Starvation != nil:
		return []column{{name: "high", unit: rates[0].unit}, {name: "low", unit: rates[0].unit}}, [][]cell{{{text: ""}, {text: number(set.results[0].Starvation.HighLoadPercent, -1)},
			find("high.bw"), find("low.bw")}}
	case set.results[0].ParamServer != nil:
		return times, [][]cell{{{text: printable(set.results[0].ParamServer.Arm)}, {text: number(set.results[0].ParamServer.ComputeRatio, -1)},
			find("iteration.p50"), find("iteration.mean"), find("iteration.p99")}}
	case set.results[0].HOL != nil:
		arm := set.results[0].HOL.Arm
		if arm == "" {
			arm = ArmSameQP
		}
		for _, probes := range []string{"alone", "loaded"} {
			rows = append(rows, []cell{{text: printable(arm)}, {text: probes},
				find(probes + ".p50"), find(probes + ".mean"), find(probes + ".p99"), find(probes + ".bw")})
		}
		return append(times, column{name: "bulk", unit: rates[0].unit}), rows
	case set.latency:
		return times, [][]cell{{find("p50"), find("mean"), find("p99")}}
	case set.throughput:
		return rates, [][]cell{{find("bw"), find("rate")}}
	}
	return nil, nil
}
