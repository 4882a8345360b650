package reports

import "github.com/rdmaperf/rdmaperf/reports/view"

// SideBlock is one table of stacks side by side.
type SideBlock struct {
	Title, Conditions string
	Lines             []string
	Table             *view.Table
}

// PercentileCell prints one percentile, a dash where it rests on too few samples.
func PercentileCell(l *Latency, name string) view.Cell {
	for _, p := range l.Percentiles() {
		if p.Name == name {
			return view.Cell{Text: p.Text()}
		}
	}
	panic("reports: no percentile " + name)
}

// IntervalTimes are the columns of means of latencies.
var IntervalTimes = []view.Column{{Name: "p50", Unit: "us"}, {Name: "mean", Unit: "us"}, {Name: "p99", Unit: "us"}}
