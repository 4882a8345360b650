package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/claims"
)

// A directory's index has the papers of this run and of earlier ones, and is not written while one is missing.
func TestTheIndexOfPapersHasThoseOfEarlierRuns(t *testing.T) {
	dir := t.TempDir()
	o := &reproduceOptions{dir: dir}
	fresh := []*claims.Report{{Paper: claims.All[0].Name, Title: "fresh"}}
	index := filepath.Join(dir, "README.md")
	for i, p := range claims.All[1:] {
		r := claims.Report{Paper: p.Name, Title: "earlier " + p.Name}
		if i == 0 {
			r.Paper = "another" // what is no report of this paper
		}
		text, err := json.Marshal(r)
		if err == nil {
			err = os.WriteFile(filepath.Join(dir, p.Name+".json"), text, 0o600)
		}
		must(t, err)
	}
	must(t, o.saveIndex(fresh))
	if _, err := os.Stat(index); err == nil {
		t.Error("an index without one of the papers")
	}
	fresh = append(fresh, &claims.Report{Paper: claims.All[1].Name, Title: "fresh, too"})
	must(t, o.saveIndex(fresh))
	text, err := os.ReadFile(index)
	if n := strings.Count(string(text), "\n- "); err != nil || n != len(claims.All) ||
		!strings.Contains(string(text), "earlier "+claims.All[2].Name) {
		t.Errorf("%d papers, %v:\n%s", n, err, text)
	}
}
