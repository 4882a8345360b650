package reports

import (
	"strconv"

	"github.com/rdmaperf/rdmaperf/reports/view"
)

// CSVColumn is one column; value is empty where a result has no such figure. New
// columns are added at the end only, because scripts count: since is the generation
// that brought a column, and a new one takes the highest there is or a higher one.
type CSVColumn struct {
	Since int
	Name  string
	Value func(d *Document, r *Result) string
}

// CSVText and csvWhole are columns of the first generation.
func CSVText(name string, f func(d *Document, r *Result) string) CSVColumn {
	return CSVColumn{0, name, func(d *Document, r *Result) string { return view.Printable(f(d, r)) }}
}

// CSVWhole is a column of whole numbers, of the first generation.
func CSVWhole(name string, f func(r *Result) int64) CSVColumn {
	return CSVColumn{0, name, func(_ *Document, r *Result) string { return view.Integer(f(r)) }}
}

// CSVDetail is a column of a part that not every result has.
func CSVDetail[T any](since int, name string, part func(r *Result) *T, f func(d *T) string) CSVColumn {
	return CSVColumn{since, name, func(_ *Document, r *Result) string {
		if d := part(r); d != nil {
			return f(d)
		}
		return ""
	}}
}

// WhenSet is empty for what a result does not have.
func WhenSet(n int64) string {
	if n == 0 {
		return ""
	}
	return view.Integer(n)
}

// CSVFigure is a figure as thresholds name it.
func CSVFigure(since int, name, figure string) CSVColumn {
	return CSVColumn{since, name, func(_ *Document, r *Result) string {
		if v, ok := r.Figure(figure); ok {
			return CSVNumber(v)
		}
		return ""
	}}
}

// CSVLatency are the columns of one set of samples, times in ns.
func CSVLatency(since int, prefix string, of func(r *Result) *Latency) []CSVColumn {
	column := func(name string, f func(l *Latency) string) CSVColumn {
		return CSVDetail(since, prefix+"_"+name, of, f)
	}
	columns := []CSVColumn{
		column("count", func(l *Latency) string { return view.Integer(l.Count) }),
		column("min_ns", func(l *Latency) string { return CSVNumber(l.Min) }),
	}
	for _, p := range PercentileTable {
		columns = append(columns, column(p.name+"_ns", func(l *Latency) string { return CSVNumber(*p.field(l)) }))
	}
	return append(columns,
		column("max_ns", func(l *Latency) string { return CSVNumber(l.Max) }),
		column("mean_ns", func(l *Latency) string { return CSVNumber(view.RoundTo(l.Mean)) }),
		column("stddev_ns", func(l *Latency) string { return CSVNumber(view.RoundTo(l.StdDev)) }))
}

// CSVNumber is empty for what is no number.
func CSVNumber(v float64) string {
	if !view.Finite(v) {
		return ""
	}
	return strconv.FormatFloat(v, 'f', -1, 64)
}
