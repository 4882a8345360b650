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
)

// Format is one way to write documents of results. What a format cannot do is nil.
type Format struct {
	Name    string // as --format takes it
	Summary string // what it is, in a few words for docs/reference/workloads.md
	File    string // in an output directory, in a folder unless every run writes it; empty for none
	Stdout  bool   // run --format offers it
	Silent  bool   // prints nothing for a document without results, whose error says it all

	Write   func(w io.Writer, d *reports.Document, o Options) error
	Pages   func(w io.Writer, docs []*reports.Document, o Options) error // report --format offers it
	Compare func(w io.Writer, c *reports.Comparison) error               // compare --format offers it
	// instead of one file, into the folder
	Files func(dir string, d *reports.Document) error
}

// Options are what formats take beside documents. The zero value is plain text for 100 columns with bandwidth in MiB/s.
type Options struct {
	Gbits       bool              // bandwidth in Gb/s (10^9 bits) instead of MiB/s (2^20 bytes)
	Color       bool              // ANSI bold and red; the caller knows whether it is a terminal
	Counters    bool              // all device counters, not only those that moved
	Verbose     bool              // of text: also allocations and the loop's own time
	Details     bool              // of text: every figure, and not what they show
	Width       int               // of text: columns; below one means 100
	Names       []string          // of the documents, in their order; may be shorter
	Conformance []page.CaseResult // read with page.ReadConformance

	Tables []text.OwnTables // of workloads, in texts
	Charts map[string][]page.OwnSection
}

func (o Options) page() page.Options {
	return page.Options{Names: o.Names, Conformance: o.Conformance, Own: o.Charts}
}

// Document is the name of the format that is the result document itself, as --json writes it.
const Document = "json"

// All are the formats, in the order in which a help text lists them. A new one is a
// package below this one and a row here.
func All() []Format {
	return []Format{
		{Name: "text", Summary: "tables for people", File: "text.txt", Stdout: true, Silent: true,
			Compare: text.WriteComparison,
			Write: func(w io.Writer, d *reports.Document, o Options) error {
				return text.Write(w, d, text.Options{Gbits: o.Gbits, Color: o.Color, Counters: o.Counters,
					Verbose: o.Verbose, Width: o.Width, Details: o.Details, Own: o.Tables})
			}},
		{Name: Document, Summary: "the result document", File: "result.json", Stdout: true,
			Compare: func(w io.Writer, c *reports.Comparison) error { return c.WriteJSON(w) },
			Write:   func(w io.Writer, d *reports.Document, _ Options) error { return d.WriteJSON(w) }},
		{Name: "bench", Summary: "lines of Go benchmarks, for benchstat", File: "exports/bench.txt", Stdout: true,
			Write: func(w io.Writer, d *reports.Document, o Options) error { return bench.Write(w, d) }},
		{Name: "perftest", Summary: "perftest's tables", File: "exports/perftest.txt", Stdout: true,
			Write: func(w io.Writer, d *reports.Document, o Options) error { return perftest.Write(w, d, o.Gbits) }},
		{Name: "csv", Summary: "a row for each figure", File: "exports/results.csv", Stdout: true,
			Write: func(w io.Writer, d *reports.Document, o Options) error { return csv.Write(w, d) }},
		{Name: "html", Summary: "one offline page with charts", File: "report.html",
			Pages: func(w io.Writer, docs []*reports.Document, o Options) error {
				return html.Write(w, docs, o.page())
			}},
		{Name: "markdown", Summary: "the page without its charts", Compare: markdown.WriteComparison,
			Pages: func(w io.Writer, docs []*reports.Document, o Options) error {
				return markdown.Write(w, docs, o.page())
			}},
		{Name: "latex", Summary: "tables for papers, with booktabs", File: "exports/tables.tex", Stdout: true,
			Write: func(w io.Writer, d *reports.Document, o Options) error {
				return latex.Write(w, []*reports.Document{d}, o.page())
			},
			Pages: func(w io.Writer, docs []*reports.Document, o Options) error {
				return latex.Write(w, docs, o.page())
			}},
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
	var names []string
	for _, f := range All() {
		if can(&f) {
			names = append(names, f.Name)
		}
	}
	return names
}

// Exports are the names of formats that have a file which not every run writes.
func Exports() []string {
	return Names(func(f *Format) bool { return filepath.Dir(f.File) != "." })
}

// Find is the format of that name when it can do something, else nil.
func Find(name string, can func(f *Format) bool) *Format {
	all := All()
	if i := slices.IndexFunc(all, func(f Format) bool { return f.Name == name && can(&f) }); i >= 0 {
		return &all[i]
	}
	return nil
}

// OfRun, OfReport and OfComparison are what the commands' --format need.
func OfRun(f *Format) bool        { return f.Stdout }
func OfReport(f *Format) bool     { return f.Pages != nil }
func OfComparison(f *Format) bool { return f.Compare != nil }

// WriteFiles writes the document into the directory, which must exist, in the forms that every run writes and in those
// of exports. A reader never sees a part of a file.
func WriteFiles(dir string, d *reports.Document, o Options, exports []string) error {
	var errs []error
	o.Details = true
	for _, f := range All() {
		if f.File == "" || filepath.Dir(f.File) != "." && !slices.Contains(exports, f.Name) {
			continue
		}
		if err := f.writeFile(dir, d, o); err != nil {
			errs = append(errs, fmt.Errorf("write %s: %w", f.File, err))
		}
	}
	return errors.Join(errs...)
}

func (f *Format) writeFile(dir string, d *reports.Document, o Options) (err error) {
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
		err = f.Pages(&b, []*reports.Document{d}, o)
	default:
		err = f.Write(&b, d, o)
	}
	if err != nil {
		return err
	}
	return reports.WriteFileAtomic(filepath.Join(dir, f.File), b.Bytes())
}
