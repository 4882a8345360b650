package main

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/term"

	"github.com/rdmaperf/rdmaperf/reports"
	"github.com/rdmaperf/rdmaperf/reports/render"
)

// resultFile is the document's name inside an output directory.
const resultFile = "result.json"

func defaultOutput(t time.Time) string {
	return filepath.Join("rdmaperf-results", t.Format("20060102-150405.000"))
}

// formats are the values of --format.
var formats = render.Names(render.OfRun)

// write prints the document and puts it where the user wants it.
func (o *runOptions) write(stdout io.Writer, doc *reports.Document) error {
	var errs []error
	how := render.Options{Gbits: o.gbits, Counters: o.counters, Verbose: o.verbose}
	if o.show != nil {
		errs = append(errs, o.show(stdout, doc))
	} else if f := render.Find(o.format, render.OfRun); f != nil && (len(doc.Results) > 0 || !f.Silent) {
		shown := how
		shown.Color = coloured(stdout)
		shown.Width = terminalColumns(stdout)
		errs = append(errs, f.Write(stdout, doc, shown))
	}
	if o.to.json != "" && o.to.json != "-" {
		errs = append(errs, doc.WriteFile(o.to.json))
	}
	if dir := o.to.dir; dir != "" && !(o.to.chosen && len(doc.Results) == 0) {
		errs = append(errs, render.WriteFiles(dir, doc, how))
	}
	if o.to.name != "" && len(doc.Results) > 0 && doc.Error == nil { // a part of a run is no baseline
		errs = append(errs, o.to.baseline().save(doc))
	}
	o.to.discard()
	return errors.Join(errs...)
}

// terminalColumns is the room for tables and sentences on a terminal; 0 for anything else.
func terminalColumns(w io.Writer) int {
	if f, ok := w.(*os.File); ok && term.IsTerminal(int(f.Fd())) {
		return min(max(width(w), 60), 120) // a longer line is hard to read
	}
	return 0
}

// coloured tells whether w is a terminal that wants colour (no-color.org).
func coloured(w io.Writer) bool {
	f, ok := w.(*os.File)
	if !ok || os.Getenv("NO_COLOR") != "" || os.Getenv("TERM") == "dumb" {
		return false
	}
	info, err := f.Stat()
	return err == nil && info.Mode()&os.ModeCharDevice != 0
}

const nextSteps = `
What to try next:
  rdmaperf run --transport tcp,iwarp             the protocol's cost beside TCP
  rdmaperf run --workload latency --op send -a   every size from 2 B to 8 MiB
  rdmaperf run --op send -s 64 --rate 20000      timed from when each was due
  rdmaperf serve                                 there; here: rdmaperf run HOST
`
