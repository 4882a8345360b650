package render_test

import (
	"errors"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/rdmaperf/rdmaperf/reports"
	"github.com/rdmaperf/rdmaperf/reports/page"
	"github.com/rdmaperf/rdmaperf/reports/render"
	"github.com/rdmaperf/rdmaperf/reports/render/text"
)

func oneResult() *reports.Document {
	rec := reports.NewRecorder()
	for ns := int64(1000); ns < 3000; ns++ {
		rec.Record(ns)
	}
	l := rec.Snapshot()
	return &reports.Document{Results: []reports.Result{{Stack: "mem", Transport: "mem", Label: reports.LabelMem,
		Workload: "latency", Op: "send", SizeBytes: 64, Depth: 1, QPs: 1, DurationNs: 1e9, Operations: l.Count,
		Latency: &l}}}
}

// What a row promises is there: names and files of its own, and something to write.
func TestRowsOfFormatsKeepTheirWord(t *testing.T) {
	var names, files []string
	for _, f := range render.All() {
		if f.Summary == "" {
			t.Errorf("format %s has no summary", f.Name)
		}
		if f.Name == "" || slices.Contains(names, f.Name) || f.File != "" && slices.Contains(files, f.File) {
			t.Errorf("format %q with the file %q is there twice or has no name", f.Name, f.File)
		}
		names, files = append(names, f.Name), append(files, f.File)
		if f.Stdout && f.Write == nil || f.File != "" && f.Write == nil && f.Pages == nil && f.Files == nil ||
			f.Write == nil && f.Pages == nil && f.Files == nil {
			t.Errorf("format %s has nothing that writes it", f.Name)
		}
		if !f.Stdout && render.Find(f.Name, render.OfRun) != nil {
			t.Errorf("run offers %s", f.Name)
		}
	}
	if render.Find("no such", func(*render.Format) bool { return true }) != nil {
		t.Error("a format of no row was found")
	}
}

// A directory has three files, and those of the exports in folders.
func TestADirectoryHasWhatIsExported(t *testing.T) {
	always := []string{"result.json", "report.html", "text.txt"}
	for _, c := range []struct{ exports, want []string }{
		{nil, always},
		{[]string{"csv"}, append(slices.Clone(always), "exports/results.csv")},
		{render.Exports(), append(slices.Clone(always), "exports/bench.txt", "exports/perftest.txt",
			"exports/results.csv", "exports/tables.tex", "exports/metrics.prom",
			"histograms/latency-mem-send-64.hlog", "histograms/latency-mem-send-64.hgrm")},
	} {
		dir := t.TempDir()
		if err := render.WriteFiles(dir, oneResult(), text.Options{}, page.Options{}, c.exports); err != nil {
			t.Fatal(err)
		}
		var got []string
		err := filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
			if err == nil && !e.IsDir() {
				info, err := e.Info()
				if err != nil || info.Size() == 0 {
					t.Errorf("%s: %v, %v", path, info, err)
				}
				rel, _ := filepath.Rel(dir, path)
				got = append(got, rel)
			}
			return err
		})
		slices.Sort(got)
		slices.Sort(c.want)
		if err != nil || !slices.Equal(got, c.want) {
			t.Errorf("%q: %q, %v, want %q", c.exports, got, err, c.want)
		}
		if err := render.WriteFiles(filepath.Join(dir, "none"), oneResult(), text.Options{}, page.Options{},
			c.exports); err == nil {
			t.Error("a directory that does not exist: no error")
		}
	}
}

type broken struct{}

func (broken) Write([]byte) (int, error) { return 0, errors.New("disk full") }

func TestFormatsReturnTheWritersError(t *testing.T) {
	d := oneResult()
	for _, f := range render.All() {
		var errs []error
		if f.Write != nil {
			errs = append(errs, f.Write(broken{}, d, text.Options{}))
		}
		if f.Pages != nil {
			errs = append(errs, f.Pages(broken{}, []*reports.Document{d}, page.Options{}))
		}
		if f.Compare != nil {
			errs = append(errs, f.Compare(broken{}, &reports.Comparison{}))
		}
		for _, err := range errs {
			if err == nil || !strings.HasSuffix(err.Error(), "disk full") {
				t.Errorf("%s: %v, want the writer's error", f.Name, err)
			}
		}
	}
}
