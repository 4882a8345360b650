package run

import (
	"errors"
	"io"
	"path/filepath"
	"time"

	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/answer"
	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/catalogue"
	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/cli"
	"github.com/rdmaperf/rdmaperf/reports"
	"github.com/rdmaperf/rdmaperf/reports/page"
	"github.com/rdmaperf/rdmaperf/reports/render"
	"github.com/rdmaperf/rdmaperf/reports/render/text"
)

func defaultOutput(t time.Time) string {
	return filepath.Join("rdmaperf-results", t.Format("20060102-150405.000"))
}

// Formats are the values of --format.
var Formats = render.Names(render.OfRun)

func (o *Options) write(stdout io.Writer, doc *reports.Document) error {
	var errs []error
	how := text.Options{Own: catalogue.Tables(), Gbits: o.gbits, Counters: o.counters, Verbose: o.verbose}
	if o.Show != nil {
		errs = append(errs, o.Show(stdout, doc))
	} else if f := render.Find(o.format, render.OfRun); f != nil && (len(doc.Results) > 0 || !f.Silent) {
		shown := how
		shown.Details = o.details
		shown.Color = cli.Coloured(stdout)
		shown.Width = cli.TerminalColumns(stdout)
		errs = append(errs, f.Write(stdout, doc, shown))
	}
	if o.to.json != "" && o.to.json != "-" {
		errs = append(errs, doc.WriteFile(o.to.json))
	}
	if dir := o.to.dir; dir != "" && !(o.to.chosen && len(doc.Results) == 0) {
		errs = append(errs, render.WriteFiles(dir, doc, how, page.Options{Own: catalogue.Charts()}, o.to.exported()))
		o.to.link()
	}
	if o.to.name != "" && len(doc.Results) > 0 && doc.Error == nil { // a part of a run is no baseline
		errs = append(errs, o.to.baseline().Save(doc))
	}
	o.to.discard()
	return errors.Join(errs...)
}

func failed(operation string, err error, hint string) error {
	return &reports.ExitError{Code: reports.ExitFailed, Operation: operation, Err: err, Hint: hint}
}

func (o *Options) finish(stdout io.Writer, doc *reports.Document, err error) error {
	if err != nil {
		doc.Error = reports.NewRunError(err)
	}
	doc.Repeats = reports.SummariseRepeats(doc.Results)
	doc.Answer = answer.Of(doc)
	return joined(err, o.write(stdout, doc))
}

// joined is err as it is where no other error is one.
func joined(err error, others ...error) error {
	if e := errors.Join(others...); e != nil {
		return errors.Join(err, e)
	}
	return err
}
