package reports

import (
	"fmt"
	"math"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/rdmaperf/rdmaperf/reports/view"
)

// Dim is what tells a point from others beside stack, workload, operation, size and load.
type Dim struct {
	Name  string
	Value string // a number is in the unit
	Unit  string // B, ns, %; empty for a word or a count
}

// Short is the name without its unit, and the value with it: bulk_size 1M.
func (d Dim) Short() (name, value string) {
	n, err := strconv.ParseInt(d.Value, 10, 64)
	switch {
	case err == nil && d.Unit == "B":
		return strings.TrimSuffix(d.Name, "_bytes"), FormatSize(n)
	case err == nil && d.Unit == "ns":
		return strings.TrimSuffix(d.Name, "_ns"), time.Duration(n).String()
	}
	return d.Name, d.Value
}

// Better says which way a figure improves.
type Better int

// The ways.
const (
	Less Better = iota
	More
	Neither // it is a condition or a count that has no better
)

// String is less, more or neither.
func (b Better) String() string { return [...]string{"less", "more", "neither"}[b] }

// Figure is one measured value of a result.
type Figure struct {
	Name string // as thresholds and comparisons have it, such as loaded.p99
	Quantity
	Better
	Value float64
}

// FigureDef declares a figure by its name; Help says in a few words what it is.
type FigureDef struct {
	Name string
	Quantity
	Better
	Help string
}

// DimDef declares a dimension.
type DimDef struct{ Name, Unit, Help string }

// NamedLatency is a distribution of a result beside its latency. Its percentiles are figures NAME.p50 and so on.
type NamedLatency struct {
	Name      string
	Latency   *Latency
	SizeBytes int64 // of what its samples are of
}

// Description is what a workload says of one of its results; it follows from the detail.
type Description struct {
	Title     string // the work in words; empty for the workload
	Intro     string // of the workload
	Note      string // what else shapes its figures, in words
	Dims      []Dim
	Figures   []Figure
	Latencies []NamedLatency
	// figures of tables, comparisons and charts; stacks are compared by the first. nil: the common ones
	Shown      []string
	Impossible string // why the figures cannot be; empty where they can
	Waits      string // a value of Result.Polling, of results whose stack waits and not rdmaperf
}

// Workload is what a reader has to know of the results of one workload. It is constant.
type Workload struct {
	Name      string
	Title     string // of the work, in words
	Intro     string // what it measures and how its figures are read, in a few sentences
	Dims      []DimDef
	Latencies []DimDef // distributions beside the latency of all; without a unit
	Figures   []FigureDef
	Shown     []string

	Timed bool // its results have a latency, of operations
	Rated bool // and a throughput

	// an object with the JSON schema of each member of the detail; empty where results.schema.json has them by hand
	Schema   string
	Detail   func() Detail                // an empty one to decode into
	Describe func(w *Workload, r *Result) // fills in the description of a result that has a detail
}

// Detail is what only results of one workload have, a pointer to what stands in the document.
type Detail interface {
	// Member is the name that it has in a result of a workload; empty for a struct whose fields are members of the
	// result.
	Member(workload string) string
}

// Workloads are those that a reader knows.
type Workloads []*Workload

// Of is the workload of that name, or one that knows nothing.
func (all Workloads) Of(name string) *Workload {
	if w, ok := view.First(all, func(w *Workload) bool { return w.Name == name }); ok {
		return w
	}
	return &Workload{Name: name}
}

// Apply fills in the description of a result, from its detail where it has one. A nil workload leaves it as it is.
func (w *Workload) Apply(r *Result) {
	if w == nil {
		return
	}
	r.Description = Description{Title: w.Title, Intro: w.Intro, Shown: w.Shown}
	// a run that was cut short may have a part
	if w.Describe != nil && r.Detail != nil && reflect.TypeOf(r.Detail) == reflect.TypeOf(w.Detail()) {
		w.Describe(w, r)
	}
}

// Describe fills in the descriptions of all results.
func (all Workloads) Describe(results []Result) {
	for _, r := range Pointers(results) {
		all.Of(r.Workload).Apply(r)
	}
}

// DimsOf are the values of declared dimensions in their order; nil and "" are left out.
func DimsOf(defs []DimDef, values ...any) []Dim {
	var dims []Dim
	for i, v := range values {
		text := ""
		switch v := v.(type) {
		case nil:
		case string:
			text = v
		case float64:
			text = strconv.FormatFloat(v, 'f', -1, 64)
		default:
			text = fmt.Sprint(v)
		}
		if text != "" {
			dims = append(dims, Dim{Name: defs[i].Name, Value: text, Unit: defs[i].Unit})
		}
	}
	return dims
}

// NotZero is nil for a number that says nothing where it is 0.
func NotZero[T int | int64](n T) any {
	if n == 0 {
		return nil
	}
	return n
}

// FiguresOf are the values of declared figures in their order; what is no number is left out.
func FiguresOf(defs []FigureDef, values ...float64) []Figure {
	var figures []Figure
	for i, v := range values {
		if !math.IsNaN(v) {
			figures = append(figures, Figure{defs[i].Name, defs[i].Quantity, defs[i].Better, v})
		}
	}
	return figures
}

// LatenciesOf are the declared distributions that a result has.
func LatenciesOf(defs []DimDef, of ...*Latency) []NamedLatency {
	var all []NamedLatency
	for i, l := range of {
		if l != nil {
			all = append(all, NamedLatency{Name: defs[i].Name, Latency: l})
		}
	}
	return all
}

// Defs are the figures that results of the workload may have, with those of all.
func (w *Workload) Defs() []FigureDef {
	all := slices.Clone(commonDefs)
	for _, l := range w.Latencies {
		all = append(all, latencyDefs(l.Name+".", l.Help)...)
	}
	return append(all, w.Figures...)
}

// Measures tells whether results of the workload can have a metric; interval: they have a series.
func (w *Workload) Measures(metric string, interval bool) bool {
	if rest, ok := strings.CutPrefix(metric, intervalPrefix); ok {
		hol := w.Name == "hol" // whose intervals are of probes
		return interval && (rest == "rate" || rest == "bw" && w.Rated && !hol || rest != "bw" && (w.Timed || hol))
	}
	if !slices.ContainsFunc(commonDefs, func(d FigureDef) bool { return d.Name == metric }) {
		return slices.ContainsFunc(w.Defs(), func(d FigureDef) bool { return d.Name == metric })
	}
	prefix, last := SplitFigure(metric)
	switch {
	case slices.Contains(latencyNames, last) &&
		slices.ContainsFunc(commonLatencies, func(l commonLatency) bool { return l.prefix == prefix }):
		return w.Timed
	case metric == "rate", metric == "bw", prefix == "peak.":
		return w.Rated
	}
	return true
}

// Dim is the dimension of a result by its name; false for one without.
func (r *Result) Dim(name string) (Dim, bool) {
	return view.First(r.Dims, func(d Dim) bool { return d.Name == name })
}

// PointDims are the dimensions of the workload, behind what the path, the application and a scenario add.
func (r *Result) PointDims() []Dim {
	var dims []Dim
	if r.Impairment != "" {
		dims = append(dims, Dim{Name: "impairment", Value: r.Impairment})
	}
	if r.AppWorkNs > 0 {
		dims = append(dims, Dim{Name: "app_work_ns", Value: strconv.FormatInt(r.AppWorkNs, 10), Unit: "ns"})
	}
	if r.Neighbours > 0 {
		dims = append(dims, Dim{Name: "neighbours", Value: strconv.Itoa(r.Neighbours)})
	}
	if run, ok := r.Parameters["run"].(string); ok {
		dims = append(dims, Dim{Name: "run", Value: run})
	}
	return append(dims, r.Dims...)
}

// Differing are the dimensions in which results differ; fixed is what all share, in words.
func Differing(results []*Result) (dims []DimDef, fixed string) {
	var all []DimDef
	for _, r := range results {
		for _, d := range r.Dims {
			all = append(all, DimDef{Name: d.Name, Unit: d.Unit})
		}
	}
	var words []string
	for _, def := range view.Unique(all, func(d DimDef) DimDef { return d }) {
		first, _ := results[0].Dim(def.Name)
		if slices.ContainsFunc(results, func(r *Result) bool { d, _ := r.Dim(def.Name); return d != first }) {
			dims = append(dims, def)
		} else {
			words = append(words, first.Words())
		}
	}
	return dims, strings.Join(words, ", ")
}

// Words are the dimension in a sentence.
func (d Dim) Words() string {
	name, value := d.Short()
	return strings.ReplaceAll(name, "_", " ") + " " + value
}

func (r *Result) dimWords(defs []DimDef) string {
	var words []string
	for _, def := range defs {
		if d, ok := r.Dim(def.Name); ok {
			words = append(words, d.Words())
		}
	}
	return strings.Join(words, ", ")
}

// DimWords are all of them.
func (r *Result) DimWords() string { return strings.Join(view.Each(r.Dims, Dim.Words), ", ") }

// DimColumns are columns of a table.
func DimColumns(defs []DimDef) []view.Column {
	return view.Each(defs, func(def DimDef) view.Column {
		name, _ := Dim{Name: def.Name, Unit: def.Unit, Value: "0"}.Short()
		return view.Column{Name: strings.ReplaceAll(name, "_", " "), Left: true}
	})
}

// DimCells are the cells below them, a dash for a dimension that the result does not have.
func (r *Result) DimCells(defs []DimDef) []view.Cell {
	return view.Each(defs, func(def DimDef) view.Cell {
		text := "-"
		if d, ok := r.Dim(def.Name); ok {
			_, text = d.Short()
		}
		return view.Cell{Text: view.Printable(text)}
	})
}
