// Package render lists the formats in which documents of results are written. A new one is a package below and a row.
package render

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"github.com/rdmaperf/rdmaperf/reports"
	"github.com/rdmaperf/rdmaperf/reports/page"
	"github.com/rdmaperf/rdmaperf/reports/render/bench"
	"github.com/rdmaperf/rdmaperf/reports/render/csv"
	"github.com/rdmaperf/rdmaperf/reports/render/hlog"
	"github.com/rdmaperf/rdmaperf/reports/render/html"
	"github.com/rdmaperf/rdmaperf/reports/render/latex"
	"github.com/rdmaperf/rdmaperf/reports/render/markdown"
	"github.com/rdmaperf/rdmaperf/reports/render/perftest"
	"github.com/rdmaperf/rdmaperf/reports/render/prometheus"
	"github.com/rdmaperf/rdmaperf/reports/render/text"
	"github.com/rdmaperf/rdmaperf/reports/view"
)

// Format is one way to write documents of results. What a format cannot do is nil.
type Format struct {
	Name    string // as --format takes it
	Summary string // what it is, in a few words for docs/reference/workloads.md
	File    string // in an output directory, in a folder unless every run writes it; empty for none
	Stdout  bool   // run --format offers it
	Silent  bool   // prints nothing for a document without results, whose error says it all

	Write   func(w io.Writer, d *reports.Document, o text.Options) error
	Pages   func(w io.Writer, docs []*reports.Document, o page.Options) error // report --format offers it
	Compare func(w io.Writer, c *reports.Comparison) error                    // compare --format offers it
	// instead of one file, into the folder
	Files func(dir string, d *reports.Document) error
}

// Document is the name of the format that is the result document itself, as --json writes it.
const Document = "json"

// All are the formats, in the order in which a help text lists them.
func All() []Format {
	type writer = func(w io.Writer, d *reports.Document, o text.Options) error
	plain := func(write func(w io.Writer, d *reports.Document) error) writer {
		return func(w io.Writer, d *reports.Document, _ text.Options) error { return write(w, d) }
	}
	return []Format{
		{Name: "text", Summary: "tables for people", File: "text.txt", Stdout: true, Silent: true,
			Compare: text.WriteComparison, Write: text.Write},
		{Name: Document, Summary: "the result document", File: "result.json", Stdout: true,
			Compare: func(w io.Writer, c *reports.Comparison) error { return c.WriteJSON(w) },
			Write:   plain(func(w io.Writer, d *reports.Document) error { return d.WriteJSON(w) })},
		{Name: "bench", Summary: "lines of Go benchmarks, for benchstat", File: "exports/bench.txt", Stdout: true,
			Write: plain(bench.Write)},
		{Name: "perftest", Summary: "perftest's tables", File: "exports/perftest.txt", Stdout: true,
			Write: func(w io.Writer, d *reports.Document, o text.Options) error {
				return perftest.Write(w, d, o.Gbits)
			}},
		{Name: "csv", Summary: "a row for each figure", File: "exports/results.csv", Stdout: true,
			Write: plain(csv.Write)},
		{Name: "html", Summary: "one offline page with charts", File: "report.html", Pages: html.Write},
		{Name: "markdown", Summary: "the page without its charts", Compare: markdown.WriteComparison,
			Pages: markdown.Write},
		{Name: "latex", Summary: "tables for papers, with booktabs", File: "exports/tables.tex", Stdout: true,
			Pages: latex.Write, Write: plain(func(w io.Writer, d *reports.Document) error {
				return latex.Write(w, []*reports.Document{d}, page.Options{})
			})},
		{Name: "prometheus", Summary: "metrics for a node exporter", File: "exports/metrics.prom",
			Files: func(dir string, d *reports.Document) error {
				return prometheus.WriteFile(filepath.Join(dir, "metrics.prom"), d)
			}},
		{Name: "hlog", Summary: "HDR histograms, as their tools read them", File: "histograms/*.hlog, *.hgrm",
			Files: func(dir string, d *reports.Document) error {
				_, err := hlog.WriteFiles(dir, d)
				return err
			}},
	}
}

// Names are those of the formats that can do something, in the table's order.
func Names(can func(f *Format) bool) []string {
	return view.Each(view.Only(All(), func(f Format) bool { return can(&f) }), func(f Format) string { return f.Name })
}

// Exports are the names of formats that have a file which not every run writes.
func Exports() []string {
	return Names(func(f *Format) bool { return filepath.Dir(f.File) != "." })
}

// Find is the format of that name when it can do something, else nil.
func Find(name string, can func(f *Format) bool) *Format {
	if f, ok := view.First(All(), func(f Format) bool { return f.Name == name && can(&f) }); ok {
		return &f
	}
	return nil
}

// OfRun, OfReport and OfComparison are what the commands' --format need.
func OfRun(f *Format) bool        { return f.Stdout }
func OfReport(f *Format) bool     { return f.Pages != nil }
func OfComparison(f *Format) bool { return f.Compare != nil }

// WriteFiles writes the document into the directory, which must exist, in the forms of every run and of exports.
func WriteFiles(dir string, d *reports.Document, o text.Options, pages page.Options, exports []string) error {
	var errs []error
	o.Details = true
	for _, f := range All() {
		if f.File == "" || filepath.Dir(f.File) != "." && !slices.Contains(exports, f.Name) {
			continue
		}
		if err := f.writeFile(dir, d, o, pages); err != nil {
			errs = append(errs, fmt.Errorf("write %s: %w", f.File, err))
		}
	}
	return errors.Join(errs...)
}

func (f *Format) writeFile(dir string, d *reports.Document, o text.Options, pages page.Options) (err error) {
	if folder := filepath.Dir(f.File); folder != "." {
		if err := os.Mkdir(filepath.Join(dir, folder), 0o755); err != nil && !errors.Is(err, fs.ErrExist) {
			return err
		}
	}
	var b bytes.Buffer
	switch {
	case f.Files != nil:
		return f.Files(filepath.Join(dir, filepath.Dir(f.File)), d)
	case f.Pages != nil:
		err = f.Pages(&b, []*reports.Document{d}, pages)
	default:
		err = f.Write(&b, d, o)
	}
	if err != nil {
		return err
	}
	return reports.WriteFileAtomic(filepath.Join(dir, f.File), b.Bytes())
}
