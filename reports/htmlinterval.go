package reports

// intervalTable shows the means over repeats with their confidence intervals,
// and where there are too few repeats for one.
func intervalTable(of condition, samples []*sample) htmlTable {
	t := htmlTable{Caption: of.title() + ": mean over repeats with its 95 % confidence interval (" + intervalMethod + ")", Note: of.describe(),
		Head: headCells("stack", "size", "repeats", "figure", "mean", "from", "to", "half width")}
	for _, s := range split(samples) {
		var repeats []*Result
		for _, r := range s.runs {
			repeats = append(repeats, r.Result)
		}
		_, sets := repeatSets(repeats)
		for _, set := range sets {
			n := len(set.results)
			name, size, count := nameCell(s.series), numberCell(sizeLabel(set.size)), numberCell(integer(int64(n)))
			if n < 2 {
				continue
			}
			if n < intervalRepeats {
				t.Rows = append(t.Rows, []htmlCell{name, size, count, {Text: "! " + tooFewRepeats(n), Class: "warn"}, numberCell("-"), numberCell("-"), numberCell("-"), numberCell("-")})
				continue
			}
			for _, m := range meanIntervals(set.results) {
				half := "-"
				if m.Mean > 0 {
					half = number(m.halfWidth()/m.Mean*100, 1) + " %"
				}
				t.Rows = append(t.Rows, []htmlCell{name, size, count, textCell(m.Figure), numberCell(quantityLabel(m.quantity(), m.Mean)),
					numberCell(quantityLabel(m.quantity(), m.Low)), numberCell(quantityLabel(m.quantity(), m.High)), numberCell(half)})
			}
		}
	}
	return t
}

// quantityLabel is a figure in the page's units; an interval may reach below zero.
func quantityLabel(q quantity, v float64) string {
	if v < 0 {
		return "−" + quantityLabel(q, -v)
	}
	switch q {
	case quantityTime:
		return nsLabel(v)
	case quantityBytes:
		return bandwidthLabel(v)
	}
	return rateLabel(v)
}
