package reports

import "strconv"

// The latencies of an open loop have their offered rate in front: a sweep of rates
// reads as a curve from top to bottom.

func (g resultGroup) latencyColumns() []column {
	if g.arrivals == "" {
		return latencyColumns
	}
	return append([]column{{name: "rate", unit: "1/sec"}}, latencyColumns...)
}

func (g resultGroup) latencyCells(r *Result, l *Latency) []cell {
	cells := latencyCells(r.SizeBytes, l)
	if g.arrivals == "" {
		return cells
	}
	return append([]cell{{text: rateText(r.Rate)}}, cells...)
}

// rateText is a rate without needless digits.
func rateText(perSecond float64) string { return strconv.FormatFloat(perSecond, 'f', -1, 64) }
