package run

import (
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/pflag"

	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/cli"
	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/engine"
	"github.com/rdmaperf/rdmaperf/reports"
)

// SamplesFile is the file's name in the output directory, rawBeside what stands for it where --raw has no name.
const (
	SamplesFile = "samples.csv"
	rawBeside   = "DIR/" + SamplesFile
)

const defaultRawLimit = 1_000_000

// rawOptions write every latency sample into one CSV file, in place between the windows, so that a run that dies leaves
// its samples. Rows of a result that the document does not have are of a point that failed.
type rawOptions struct {
	file  string // empty: not asked for
	limit int

	path string
	out  io.WriteCloser // what the writer writes to
	disk *os.File
	w    *reports.SampleWriter
}

func (r *rawOptions) register(f *pflag.FlagSet) {
	f.StringVar(&r.file, "raw", "",
		"write every latency sample as CSV to this file, as --raw=FILE (gzip when it ends with .gz), or without a "+
			"name to "+SamplesFile+" in the --output directory")
	f.Lookup("raw").NoOptDefVal = rawBeside
	f.IntVar(&r.limit, "raw-limit", defaultRawLimit,
		"of --raw: samples kept of one point; more are counted and left to the histogram")
}

// check finds mistakes: without an equals sign a file name behind --raw is taken for the HOST.
func (r *rawOptions) check(output, host string) error {
	switch {
	case r.limit < 1 || r.limit > engine.MaxSamples:
		return cli.Usage("read --raw-limit", fmt.Errorf("%d: want 1 to %d", r.limit, engine.MaxSamples),
			"the default of "+fmt.Sprint(defaultRawLimit))
	case r.file == rawBeside && (strings.HasSuffix(host, ".csv") || strings.HasSuffix(host, ".gz")):
		return cli.Usage("read --raw", fmt.Errorf("%q stands for a HOST here", host), "--raw="+host)
	case r.file == rawBeside && output == "":
		return cli.Usage("read --raw", errors.New("no directory to write "+SamplesFile+" to"),
			"--output DIR, or --raw=FILE")
	}
	return nil
}

// open makes the file before anything is measured.
func (r *rawOptions) open(output string) (err error) {
	if r.file == "" {
		return nil
	}
	if r.path = r.file; r.file == rawBeside {
		if err := os.MkdirAll(output, 0o755); err != nil {
			return err
		}
		r.path = filepath.Join(output, SamplesFile)
	}
	if r.disk, err = os.Create(r.path); err != nil {
		return failed("write --raw", err, "a file in a directory that is there")
	}
	r.out = r.disk
	if strings.HasSuffix(r.path, ".gz") {
		r.out = gzip.NewWriter(r.disk)
	}
	r.w, err = reports.NewSampleWriter(r.out)
	return err
}

func (r *rawOptions) keep(c *engine.Client, result int) {
	if r.w == nil {
		return
	}
	c.KeepSamples(r.limit, func(s *engine.Samples) error {
		return s.Each(func(v reports.Sample) error { return r.w.Write(result, s.Set, v, s.Open) })
	})
}

func (r *rawOptions) name(res *reports.Result) {
	for i := range res.RawSamples {
		res.RawSamples[i].File = r.path
	}
}

func (r *rawOptions) close() error {
	if r.w == nil {
		return nil
	}
	err := r.w.Flush()
	if r.out != r.disk {
		err = errors.Join(err, r.out.Close())
	}
	if err = errors.Join(err, r.disk.Close()); err != nil {
		return failed("write --raw "+r.path, err, "")
	}
	return nil
}
