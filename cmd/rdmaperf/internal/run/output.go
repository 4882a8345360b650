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

	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/answer"
	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/catalogue"
	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/cli"
	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/engine"
	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/resultfile"
	"github.com/rdmaperf/rdmaperf/reports"
	"github.com/rdmaperf/rdmaperf/reports/page"
	"github.com/rdmaperf/rdmaperf/reports/render"
	"github.com/rdmaperf/rdmaperf/reports/render/text"
)

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

// The files of --cpu-profile, for "go tool pprof", which cover all that a process did.
const (
	clientProfile = "client.pprof"
	serverProfile = "server.pprof"
)

type profileOptions struct {
	dir  string
	file *cli.Profile
}

func (p *profileOptions) register(f *pflag.FlagSet) {
	f.StringVar(&p.dir, "cpu-profile", "",
		"write CPU profiles for go tool pprof into this directory: "+clientProfile+" of this process, and "+
			serverProfile+" of the server where there is no HOST and the stack leaves the process")
}

func (p *profileOptions) start() error {
	if p.dir == "" {
		return nil
	}
	if err := resultfile.MakeDir(p.dir, false); err != nil {
		return cli.ProfileFailed(err)
	}
	var err error
	p.file, err = cli.StartProfile(filepath.Join(p.dir, clientProfile))
	return err
}

// server is the argument of a child, nil without a profile. It makes the file, so that there is one error, not two.
func (p *profileOptions) server() ([]string, error) {
	if p.dir == "" {
		return nil, nil
	}
	name := filepath.Join(p.dir, serverProfile)
	f, err := os.Create(name)
	if err == nil {
		err = f.Close()
	}
	if err != nil {
		return nil, cli.ProfileFailed(err)
	}
	return []string{"--cpu-profile", name}, nil
}

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
	path  string
	out   io.WriteCloser // what the writer writes to
	disk  *os.File
	w     *reports.SampleWriter
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
