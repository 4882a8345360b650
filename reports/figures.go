package reports

import (
	"slices"
)

// Quantity is what a metric counts; it decides which units a limit may have.
type Quantity int

const (
	QuantityTime  Quantity = iota // ns
	QuantityRate                  // operations per second
	QuantityBytes                 // bytes per second
	QuantityCount
)

// Figure is one figure of a result by its name in thresholds and comparisons.
type Figure struct {
	Name string
	Quantity
	Higher bool                            // more of it is better
	Of     func(r *Result) (float64, bool) // false for a result without it
}

// FigureOf is a figure of a kind's detail; detail returns nil for a result without.
func FigureOf[T any](name string, q Quantity, higher bool, detail func(r *Result) *T, of func(d *T) float64) Figure {
	return Figure{name, q, higher, func(r *Result) (float64, bool) {
		d := detail(r)
		if d == nil {
			return 0, false
		}
		return of(d), true
	}}
}

// LatencyFigures are those of one distribution; of returns nil for a result
// without it.
func LatencyFigures(prefix string, of func(r *Result) *Latency) []Figure {
	var all []Figure
	add := func(name string, f func(l *Latency) float64) {
		all = append(all, Figure{prefix + name, QuantityTime, false, func(r *Result) (float64, bool) {
			l := of(r)
			if l == nil || l.Count == 0 {
				return 0, false
			}
			return f(l), true
		}})
	}
	for _, p := range PercentileTable {
		add(p.name, func(l *Latency) float64 { return *p.field(l) })
	}
	add("min", func(l *Latency) float64 { return l.Min })
	add("max", func(l *Latency) float64 { return l.Max })
	add("mean", func(l *Latency) float64 { return l.Mean })
	add("stddev", func(l *Latency) float64 { return l.StdDev })
	return all
}

// commonFigures are those that any result may have.
var commonFigures = commonFigureTable()

func commonFigureTable() []Figure {
	var all []Figure
	all = append(all, LatencyFigures("", func(r *Result) *Latency { return r.Latency })...)
	all = append(all, LatencyFigures("corrected.", func(r *Result) *Latency { return r.LatencyCorrected })...)
	all = append(all, LatencyFigures("service.", func(r *Result) *Latency { return r.LatencyService })...)
	rate := func(name string, q Quantity, of func(t *Throughput) float64) Figure {
		return Figure{name, q, true, func(r *Result) (float64, bool) {
			if r.Throughput == nil {
				return 0, false
			}
			return of(r.Throughput), true
		}}
	}
	return append(all,
		rate("rate", QuantityRate, func(t *Throughput) float64 { return t.OperationsPerSecond }),
		rate("bw", QuantityBytes, func(t *Throughput) float64 { return t.BytesPerSecond }),
		Figure{"errors", QuantityCount, false, func(r *Result) (float64, bool) { return float64(r.Errors), true }})
}

// allFigures are those that results of the kinds may have.
func allFigures(kinds []*Kind) []Figure {
	all := slices.Clone(commonFigures)
	for _, k := range kinds {
		all = append(all, k.Figures...)
	}
	return all
}

// Figure is one that results of the kind may have, by its name.
func (k *Kind) Figure(name string) (Figure, bool) {
	for _, of := range [][]Figure{commonFigures, k.Figures} {
		if i := slices.IndexFunc(of, func(m Figure) bool { return m.Name == name }); i >= 0 {
			return of[i], true
		}
	}
	return Figure{}, false
}

// Figures are all that the result has, in the order of the table.
func (r *Result) Figures() []Figure {
	var have []Figure
	for _, f := range allFigures([]*Kind{r.AnyKind()}) {
		if _, ok := f.Of(r); ok {
			have = append(have, f)
		}
	}
	return have
}

// Figure is a figure of the result by its name; false for one without.
func (r *Result) Figure(name string) (float64, bool) {
	m, ok := r.AnyKind().Figure(name)
	if !ok {
		return 0, false
	}
	return m.Of(r)
}
