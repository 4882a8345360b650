package reports

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"path/filepath"
)

// WriteFormats writes the document in every printed form into the directory, which
// must exist: text.txt, bench.txt, perftest.txt, results.csv and metrics.prom. A
// reader never sees a part of a file.
func WriteFormats(dir string, d *Document, o TextOptions) error {
	errs := []error{WriteMetricsFile(filepath.Join(dir, "metrics.prom"), d)}
	for _, f := range []struct {
		name  string
		write func(w io.Writer) error
	}{
		{"text.txt", func(w io.Writer) error { return WriteText(w, d, o) }},
		{"bench.txt", func(w io.Writer) error { return WriteBench(w, d) }},
		{"perftest.txt", func(w io.Writer) error { return WritePerftest(w, d, o.Gbits) }},
		{"results.csv", func(w io.Writer) error { return WriteCSV(w, d) }},
	} {
		var b bytes.Buffer
		err := f.write(&b)
		if err == nil {
			err = writeFileAtomic(filepath.Join(dir, f.name), b.Bytes())
		}
		if err != nil {
			errs = append(errs, fmt.Errorf("write %s: %w", f.name, err))
		}
	}
	return errors.Join(errs...)
}
