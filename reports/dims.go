package reports

import (
	"slices"
	"strconv"
	"strings"

	"github.com/rdmaperf/rdmaperf/reports/view"
)

// Dim is the dimension of a result by its name; false for one without.
func (r *Result) Dim(name string) (Dim, bool) {
	if i := slices.IndexFunc(r.Dims, func(d Dim) bool { return d.Name == name }); i >= 0 {
		return r.Dims[i], true
	}
	return Dim{}, false
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
