// Package curves describes results that are points of curves: what text, page, CSV and
// comparisons show of a workload that measures some values against one number.
//
// # Ownership
//
// A kind is constant and shared; a [Point] is its result's.
//
// # Limitations
//
// A point has a median of each value over repeats, and no distribution.
package curves

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/rdmaperf/rdmaperf/reports"
	"github.com/rdmaperf/rdmaperf/reports/charts"
	"github.com/rdmaperf/rdmaperf/reports/view"
)

// Point is one point of all curves of an operation.
type Point struct {
	X      float64            `json:"x"`
	Arm    string             `json:"arm,omitempty"` // of several lines of one stack
	Values map[string]float64 `json:"values"`
}

// Member implements reports.Detail.
func (*Point) Member(workload string) string { return workload }

// Of is the detail of such a result, nil for any other.
func Of(r *reports.Result) *Point { return reports.DetailOf[Point](r) }

// Value is something that is measured.
type Value struct {
	Name   string // in files
	Column string // in tables
	Unit   string // likewise
	Per    float64
	Digits int // behind the point in tables
	Label  string
	Text   func(v float64) string // in charts
	reports.Quantity
	reports.Better
	Linear bool // its chart begins at zero
	Table  bool // it has no chart
}

// Curve is what an operation of the workload is.
type Curve struct {
	Op, Title string
	XColumn   string
	XName     string // of the dimension
	XUnit     string
	XLabel    string
	XText     func(v float64) string
	LinearX   bool
	Sized     bool     // the size of an operation is another condition
	Values    []string // those that it has
}

// Set is everything about a workload of curves.
type Set struct {
	Workload, Called string
	Title, Intro     string
	Rank             int    // of the section of the page
	Lead             string // above tables
	Given            string // what else shapes all figures
	Curves           []Curve
	Values           []Value
}

func (s *Set) curve(op string) *Curve {
	i := slices.IndexFunc(s.Curves, func(c Curve) bool { return c.Op == op })
	return &s.Curves[max(i, 0)]
}

func (s *Set) value(name string) *Value {
	i := slices.IndexFunc(s.Values, func(v Value) bool { return v.Name == name })
	return &s.Values[i]
}

// Kind describes the results.
func (s *Set) Kind() *reports.Kind {
	what := func(l reports.Load) string { return s.curve(l.Op).Title }
	k := &reports.Kind{
		Workload: s.Workload, Called: s.Called, Results: s.results(),
		What: what, Title: what,
		Conditions: func(reports.Load) string { return s.Given },
		OwnThreads: true, AnyQPs: true,
		Variant:    func(r *reports.Result) string { return Of(r).Arm + " " + s.curve(r.Op).XText(Of(r).X) },
		Shape:      func(r *reports.Result) string { return s.curve(r.Op).XText(Of(r).X) },
		Medians:    medians,
		OwnLatency: true, OwnRate: true, OwnTable: true, OwnCharts: true, OwnSideBySide: true, PageBlocks: true,
		Tables:   s.tables,
		Sections: []*reports.PageSection{{Rank: s.Rank, Of: s.section}},
	}
	return k
}

// results declare the dimensions and figures.
func (s *Set) results() *reports.Workload {
	w := &reports.Workload{Name: s.Workload, Schema: s.schema(), Detail: func() reports.Detail { return new(Point) }, Describe: s.describe}
	for _, c := range s.Curves {
		if d := (reports.DimDef{Name: c.XName, Unit: c.XUnit, Help: c.XLabel}); !slices.Contains(w.Dims, d) {
			w.Dims = append(w.Dims, d)
		}
	}
	w.Dims = append(w.Dims, reports.DimDef{Name: "arm", Help: "of several lines of one stack"})
	for _, v := range s.Values {
		w.Figures = append(w.Figures, reports.FigureDef{Name: v.Name, Quantity: v.Quantity, Better: v.Better, Help: cmp.Or(v.Label, v.Column)})
		w.Shown = append(w.Shown, v.Name)
	}
	return w
}

func (s *Set) describe(w *reports.Workload, r *reports.Result) {
	p, c := Of(r), s.curve(r.Op)
	r.Title, r.Note = c.Title, s.Given
	r.Dims = reports.DimsOf([]reports.DimDef{{Name: c.XName, Unit: c.XUnit}, {Name: "arm"}}, p.X, p.Arm)
	for _, f := range w.Figures {
		if v, ok := p.Values[f.Name]; ok {
			r.Figures = append(r.Figures, reports.Figure{Name: f.Name, Quantity: f.Quantity, Better: f.Better, Value: v})
		}
	}
}

// schema describes the member of the set's results.
func (s *Set) schema() string {
	var values strings.Builder
	for i, v := range s.Values {
		if i > 0 {
			values.WriteString(",")
		}
		fmt.Fprintf(&values, "\n          %q: {\"type\": \"number\"}", v.Name)
	}
	return fmt.Sprintf(`{
  %q: {
    "type": "object",
    "description": %q,
    "required": ["x", "values"],
    "properties": {
      "x": {"type": "number", "description": "where on the axis that op names"},
      "arm": {"type": "string", "description": "of several lines of one stack"},
      "values": {
        "type": "object",
        "properties": {%s
        },
        "additionalProperties": false
      }
    }
  }
}
`, s.Workload, "a point of the curves of the workload "+s.Workload+"; times are nanoseconds, medians of their repeats", values.String())
}

// medians has the median of each value over repeats.
func medians(all []*reports.Result) any {
	d := *Of(all[0])
	d.Values = map[string]float64{}
	for name := range Of(all[0]).Values {
		d.Values[name] = reports.MedianOver(all, func(r *reports.Result) float64 { return Of(r).Values[name] })
	}
	return &d
}

// tables have a row for each point.
func (s *Set) tables(_ *reports.Grouped, rows []*reports.Result, _ view.Units) []reports.Block {
	c := s.curve(rows[0].Op)
	arms := slices.ContainsFunc(rows, func(r *reports.Result) bool { return Of(r).Arm != "" })
	t := &view.Table{}
	if c.Sized {
		t.Columns = append(t.Columns, view.Column{Name: "#bytes"})
	}
	if arms {
		t.Columns = append(t.Columns, view.Column{Name: "arm", Left: true})
	}
	t.Columns = append(t.Columns, view.Column{Name: c.XColumn})
	for _, name := range c.Values {
		v := s.value(name)
		t.Columns = append(t.Columns, view.Column{Name: v.Column, Unit: v.Unit})
	}
	rows = slices.Clone(rows)
	slices.SortStableFunc(rows, func(a, b *reports.Result) int {
		return cmp.Or(cmp.Compare(a.SizeBytes, b.SizeBytes), cmp.Compare(Of(a).Arm, Of(b).Arm), cmp.Compare(Of(a).X, Of(b).X))
	})
	for _, r := range rows {
		d := Of(r)
		var cells []view.Cell
		if c.Sized {
			cells = append(cells, view.Cell{Text: view.Integer(r.SizeBytes)})
		}
		if arms {
			cells = append(cells, view.Cell{Text: d.Arm})
		}
		cells = append(cells, view.Cell{Text: c.XText(d.X)})
		for _, name := range c.Values {
			v, text := s.value(name), "-"
			if n, ok := d.Values[name]; ok {
				text = view.Number(n/v.Per, v.Digits)
			}
			cells = append(cells, view.Cell{Text: text})
		}
		t.Add(cells...)
	}
	return []reports.Block{{Lead: s.Lead, Table: t}}
}

// section is a chart for each curve, size and value.
func (s *Set) section(set *reports.Set) view.Section {
	out := view.Section{ID: s.Workload, Title: s.Title, Intro: s.Intro}
	type key struct {
		op   string
		size int64
	}
	for _, c := range s.Curves {
		for _, g := range reports.GroupBy(set.Samples, func(x *reports.Measured) (key, bool) {
			if x.Workload != s.Workload || Of(x.Result) == nil || x.Op != c.Op {
				return key{}, false
			}
			k := key{op: x.Op}
			if c.Sized {
				k.size = x.SizeBytes
			}
			return k, true
		}) {
			title := c.Title
			if c.Sized {
				title += ", " + reports.SizeLabel(g.Key.size)
			}
			for _, name := range c.Values {
				if v := s.value(name); !v.Table {
					if f, ok := s.figure(&c, v, title, g.Samples); ok {
						out.Figures = append(out.Figures, f)
					}
				}
			}
		}
	}
	return out
}

// figure draws one line for each stack and arm.
func (s *Set) figure(c *Curve, v *Value, title string, samples []*reports.Measured) (view.Figure, bool) {
	var lines []view.Series
	var xs []float64
	for _, b := range reports.Split(samples) {
		for slot, of := range reports.GroupBy(b.Runs, func(x *reports.Measured) (string, bool) {
			_, ok := Of(x.Result).Values[v.Name]
			return Of(x.Result).Arm, ok
		}) {
			line := view.Series{Name: b.Series, Slot: b.Slot + slot}
			if of.Key != "" {
				line.Name, line.Short = b.Series+" "+of.Key, of.Key
			}
			for _, at := range reports.GroupBy(of.Samples, func(x *reports.Measured) (float64, bool) { return Of(x.Result).X, true }) {
				y := reports.MedianOf(at.Samples, func(x *reports.Measured) float64 { return Of(x.Result).Values[v.Name] })
				if y <= 0 && !v.Linear {
					continue
				}
				line.Points = append(line.Points, view.Point{X: at.Key, Y: y, Tip: line.Name + "\n" + c.XText(at.Key) + "\n" + v.Text(y)})
				xs = append(xs, at.Key)
			}
			slices.SortStableFunc(line.Points, func(a, b view.Point) int { return cmp.Compare(a.X, b.X) })
			if len(line.Points) > 0 {
				lines = append(lines, line)
			}
		}
	}
	if len(lines) == 0 {
		return view.Figure{}, false
	}
	slices.Sort(xs)
	xs = slices.Compact(xs)
	var ticks []view.Tick
	for i, x := range xs {
		if step := (len(xs) + 7) / 8; i%step == 0 { // eight labels fit
			ticks = append(ticks, view.Tick{At: x, Label: c.XText(x)})
		}
	}
	title += ": " + v.Label
	chart := &view.LineChart{Title: title, Desc: charts.DescribeSeries(lines), YLabel: v.Label, XLabel: c.XLabel,
		X: view.Scale{Log: !c.LinearX, Lo: xs[0], Hi: xs[len(xs)-1]}, XTicks: ticks, YUnit: v.Text, Linear: v.Linear, Series: lines}
	data := view.Grid{Caption: title, Head: view.HeadCells("series", c.XLabel, v.Label)}
	for _, l := range lines {
		for _, p := range l.Points {
			data.Rows = append(data.Rows, []view.GridCell{view.NameCell(l.Name), view.NumberCell(c.XText(p.X)), view.NumberCell(v.Text(p.Y))})
		}
	}
	return view.Figure{Title: title, Caption: "repeats as their median", Chart: chart, Data: data}, true
}
