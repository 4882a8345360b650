package conformance

import (
	"errors"
	"io"
	"os"

	"github.com/rdmaperf/rdmaperf/transports/conform"
)

type conformFiles []conformFile

type conformFile struct {
	*os.File
	form func(io.Writer, ...conform.Report) error
}

// create opens the files before the first case runs, so that a bad name costs no run.
func (f *Flags) create() (conformFiles, error) {
	var files conformFiles
	for _, want := range []struct {
		name string
		form func(io.Writer, ...conform.Report) error
	}{{f.junit, conform.WriteJUnit}, {f.jsonl, conform.WriteJSONL}} {
		if want.name == "" {
			continue
		}
		file, err := os.Create(want.name)
		if err != nil {
			files.close()
			return nil, err
		}
		files = append(files, conformFile{file, want.form})
	}
	return files, nil
}

func (files conformFiles) write(results []conform.Report) error {
	var errs []error
	for _, f := range files {
		errs = append(errs, f.form(f, results...), f.Close())
	}
	return errors.Join(errs...)
}

func (files conformFiles) close() {
	for _, f := range files {
		f.Close()
	}
}
