package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"github.com/rdmaperf/rdmaperf/reports"
)

// resultFile is the document's name inside an output directory.
const resultFile = "result.json"

func defaultOutput(t time.Time) string {
	return filepath.Join("rdmaperf-results", t.Format("20060102-150405.000"))
}

// formats are the values of --format.
var formats = []string{"text", "json", "bench", "perftest", "csv"}

// write prints the document and puts it where the user wants it.
func (o *runOptions) write(stdout io.Writer, doc *reports.Document) error {
	var errs []error
	switch o.format {
	case "json":
		errs = append(errs, doc.WriteJSON(stdout))
	case "bench":
		errs = append(errs, reports.WriteBench(stdout, doc))
	case "perftest":
		errs = append(errs, reports.WritePerftest(stdout, doc, o.gbits))
	case "csv":
		errs = append(errs, reports.WriteCSV(stdout, doc))
	default:
		if len(doc.Results) == 0 {
			break // the error line says it all
		}
		errs = append(errs, reports.WriteText(stdout, doc, reports.TextOptions{Gbits: o.gbits, Counters: o.counters, Color: coloured(stdout)}))
	}
	if o.json != "" {
		errs = append(errs, doc.WriteFile(o.json))
	}
	if o.output != "" {
		err := os.MkdirAll(o.output, 0o755)
		if err == nil {
			_, e := reports.WriteHistogramFiles(o.output, doc)
			err = errors.Join(doc.WriteFile(filepath.Join(o.output, resultFile)), e, writeReportBeside(o.output, doc),
				reports.WriteFormats(o.output, doc, reports.TextOptions{Gbits: o.gbits, Counters: o.counters}))
		}
		errs = append(errs, err)
	}
	return errors.Join(errs...)
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

func nextSteps(dir string) string {
	return fmt.Sprintf(`
Written to %s; open report.html beside it in a browser. What to try next:
  rdmaperf run --transport tcp,iwarp             the protocol's cost beside plain TCP
  rdmaperf run --workload latency --op send -a   every size from 2 bytes to 8 MiB
  rdmaperf run --op send -s 64 --rate 20000      timed from when each operation should have begun
  rdmaperf serve                                 on another host, then here: rdmaperf run HOST
`, filepath.Join(dir, resultFile))
}
