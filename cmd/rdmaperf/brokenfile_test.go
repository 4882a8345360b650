package main

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/resultfile"
	"github.com/rdmaperf/rdmaperf/reports"
)

// The same broken file gives the same exit code wherever it is read: by report, by compare
// as a file, in a directory and as a named baseline.
func TestABrokenFileHasOneExitCode(t *testing.T) {
	data := t.TempDir()
	t.Setenv("XDG_DATA_HOME", data)
	t.Setenv("RDMAPERF_SAVE", "")
	t.Chdir(t.TempDir())
	base := need(resultfile.NewBaseline("broken"))(t)
	for name, text := range map[string]string{"empty": "", "no JSON": "\x7fELF", "cut off": `{"schema":`,
		"another schema": `{"schema":"other/v9"}`, "an array": "[]", "two documents": `{"schema":"other/v9"}{}`,
		"records": `{"id":"a/b","transport":"mem","verdict":"pass"}` + "\n{}\n"} {
		file := filepath.Join("dir", "x.json")
		for _, f := range []string{file, filepath.Join(base.Dir(), "x.json")} {
			must(t, os.MkdirAll(filepath.Dir(f), 0o755))
			must(t, os.WriteFile(f, []byte(text), 0o644))
		}
		for _, args := range [][]string{{"report", "-o", "-", file}, {"report", "-o", "page.html", file},
			{"compare", file, file}, {"compare", "dir", "dir"}, {"compare", "broken", "broken"}} {
			if r := rdmaperf(t, args...); r.code != reports.ExitUsage || r.stderr == "" || r.stdout != "" {
				t.Errorf("%s: %q: exit %d, stdout %q, stderr %q, want exit %d and a line", name, args, r.code, r.stdout,
					r.stderr, reports.ExitUsage)
			}
		}
	}
	if _, err := os.Stat("page.html"); err == nil {
		t.Error("a page was written from nothing")
	}
}
