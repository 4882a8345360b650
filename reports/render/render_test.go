package render_test

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/rdmaperf/rdmaperf/reports"
	"github.com/rdmaperf/rdmaperf/reports/render"
)

func oneResult() *reports.Document {
	rec := reports.NewRecorder()
	for ns := int64(1000); ns < 3000; ns++ {
		rec.Record(ns)
	}
	l := rec.Snapshot()
	return &reports.Document{Results: []reports.Result{{Stack: "mem", Transport: "mem", Label: reports.LabelMem,
		Workload: "latency",
		Op:       "send", SizeBytes: 64, Depth: 1, QPs: 1, DurationNs: 1e9, Operations: l.Count, Latency: &l}}}
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

func TestADirectoryHasEveryFormat(t *testing.T) {
	dir := t.TempDir()
	if err := render.WriteFiles(dir, oneResult(), render.Options{}); err != nil {
		t.Fatal(err)
	}
	for _, f := range append(render.Files()[:len(render.Files())-1], "latency-mem-send-64.hlog",
		"latency-mem-send-64.hgrm") {
		if b, err := os.ReadFile(filepath.Join(dir, f)); err != nil || len(b) == 0 {
			t.Errorf("%s: %d bytes, %v", f, len(b), err)
		}
	}
	if err := render.WriteFiles(filepath.Join(dir, "none"), oneResult(), render.Options{}); err == nil {
		t.Error("a directory that does not exist: no error")
	}
}

type broken struct{}

func (broken) Write([]byte) (int, error) { return 0, errors.New("disk full") }

func TestFormatsReturnTheWritersError(t *testing.T) {
	d := oneResult()
	o := render.Options{}
	for _, f := range render.All() {
		for name, write := range map[string]func(w io.Writer) error{
			"document": func(w io.Writer) error {
				if f.Write == nil {
					return errors.New("none")
				}
				return f.Write(w, d, o)
			},
			"page": func(w io.Writer) error {
				if f.Pages == nil {
					return errors.New("none")
				}
				return f.Pages(w, []*reports.Document{d}, o)
			},
		} {
			if write(broken{}) == nil {
				t.Errorf("%s of %s: no error", name, f.Name)
			}
		}
	}
}
