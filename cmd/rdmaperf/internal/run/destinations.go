package run

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/cli"
	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/resultfile"
	"github.com/rdmaperf/rdmaperf/reports"
	"github.com/rdmaperf/rdmaperf/reports/render"
)

// saveVariable, when it is "none", keeps runs that name no destination from being saved.
const saveVariable = "RDMAPERF_SAVE"

// saveEvery is how often what is finished is saved between two points. Arbitrary.
const saveEvery = 10 * time.Second

// destinations are where the result document goes. Every one is tried before anything is measured.
type destinations struct {
	json   string // file; "-": stdout
	dir    string // with everything in it, or with exports
	export []string
	noSave bool
	force  bool
	name   string // of a baseline
	chosen bool   // nobody named one, so that dir is of rdmaperf's own choice
	made   bool   // dir was made by this run
	saved  time.Time
}

func (d *destinations) register(f *pflag.FlagSet) {
	f.StringVar(&d.json, "json", "", "write the result document to this `file`; - is stdout")
	f.StringVarP(&d.dir, "output", "o", "",
		"`directory` for the results and every export\n(default rdmaperf-results/TIME, without exports)")
	f.StringSliceVar(&d.export, "export", nil,
		"exports to write with result.json, report.html and text.txt: "+strings.Join(render.Exports(), ", "))
	f.BoolVar(&d.noSave, "no-save", false,
		"write no file that was not asked for; also "+saveVariable+"=none in the environment")
	f.StringVar(&d.name, "save", "", "save the results as baseline `NAME`\nfor rdmaperf compare NAME on this machine; "+
		"replaces results of the same stacks")
	f.BoolVar(&d.force, "force", false, "let --output write into a directory that has results")
}

// perftestOutput are values that perftest takes behind -o and --output.
var perftestOutput = []string{"bandwidth", "message_rate", "latency"}

func (d *destinations) check() error {
	const operation = "read --output"
	switch {
	case d.dir != "" && strings.Trim(d.dir, "0123456789") == "":
		return cli.Usage(operation,
			fmt.Errorf("%q is no directory that anybody names; perftest's -o, reads outstanding, is chosen by "+
				"--tx-depth here", d.dir), "./"+d.dir+" for a directory of that name")
	case slices.Contains(perftestOutput, d.dir):
		return cli.Usage(operation, fmt.Errorf("%q is no directory here; one figure alone, as perftest prints it",
			d.dir), "rdmaperf perftest ib_write_bw --output="+d.dir)
	case d.dir != "" && d.noSave:
		return cli.Usage(operation, errors.New("--no-save and --output exclude each other"), "one of them")
	case len(d.export) > 0 && d.noSave:
		return cli.Usage("read --export", errors.New("--no-save and --export exclude each other"), "one of them")
	}
	for _, name := range d.export {
		if !slices.Contains(render.Exports(), name) {
			return cli.Usage("read --export", fmt.Errorf("%q: want %s", name, strings.Join(render.Exports(), ", ")),
				"rdmaperf run --help all")
		}
	}
	if d.name != "" {
		if _, err := resultfile.NewBaseline(d.name); err != nil {
			return cli.Usage("read --save", err,
				"HOME or XDG_DATA_HOME in the environment, --save NAME, or --output DIR")
		}
	}
	return nil
}

// baseline is where --save goes; check has seen the name.
func (d *destinations) baseline() resultfile.Baseline {
	b, _ := resultfile.NewBaseline(d.name)
	return b
}

func (d *destinations) exported() []string {
	if d.dir != "" && !d.chosen && len(d.export) == 0 {
		return render.Exports()
	}
	return d.export
}

func (d *destinations) open(now time.Time) error {
	asked := len(d.export) > 0
	if d.dir == "" && (asked || d.json == "" && !d.noSave && os.Getenv(saveVariable) != "none") {
		d.dir, d.chosen = filepath.Join("rdmaperf-results", now.Format("20060102-150405.000")), true
	}
	if d.json != "" && d.json != "-" {
		if err := resultfile.TryFile(d.json); err != nil {
			return failed("open --json", err, "a file in a directory that is there and can be written to")
		}
	}
	if d.name != "" {
		if err := d.baseline().Open(); err != nil {
			return failed("open --save", err, "a directory that can be written to in XDG_DATA_HOME")
		}
	}
	if d.dir == "" {
		return nil
	}
	hint := "another --output"
	if d.chosen {
		hint = "another directory to work in, --output DIR, or --no-save"
	}
	if _, err := os.Stat(filepath.Join(d.dir, resultfile.DocumentFile)); err == nil && !d.force {
		return cli.Usage("read --output", fmt.Errorf("%s has results of another run", d.dir),
			"another directory, or --force to mix them")
	}
	_, err := os.Stat(d.dir)
	d.made = errors.Is(err, fs.ErrNotExist)
	if err := resultfile.MakeDir(d.dir, d.chosen); err != nil {
		return failed("open --output", err, hint)
	}
	if err := resultfile.TryFile(filepath.Join(d.dir, resultfile.DocumentFile)); err != nil {
		return failed("open --output", err, hint)
	}
	return nil
}

// save writes what is finished so far, at most every saveEvery, so that a run that is killed keeps its points.
func (d *destinations) save(doc *reports.Document, now time.Time) error {
	if d == nil {
		return nil
	}
	path := d.json
	if d.dir != "" {
		path = filepath.Join(d.dir, resultfile.DocumentFile)
	}
	if path == "" || path == "-" || len(doc.Results) == 0 || now.Sub(d.saved) < saveEvery {
		return nil
	}
	if info, err := os.Stat(path); err == nil && !info.Mode().IsRegular() {
		return nil // a pipe takes the whole once
	}
	d.saved = now
	return doc.WriteFile(path)
}

// latest is a link to the last saved run, beside the runs: for scripts.
const latest = "latest"

// link has latest lead to dir, where rdmaperf chose that. Where that fails, nothing is lost.
func (d *destinations) link() {
	if !d.chosen {
		return
	}
	parent, name := filepath.Split(filepath.Clean(d.dir))
	link, next := filepath.Join(parent, latest), filepath.Join(d.dir, latest)
	if info, err := os.Lstat(link); err == nil && info.Mode().Type() != fs.ModeSymlink {
		return
	}
	if os.Symlink(name, next) == nil && os.Rename(next, link) != nil {
		os.Remove(next)
	}
}

// discard removes a directory of rdmaperf's own choice that nothing was written to.
func (d *destinations) discard() {
	if d.chosen && d.made {
		os.Remove(d.dir) // fails where something lies in it, and then it stays
	}
}
