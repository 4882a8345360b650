package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/claims"
	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/stackspec"
	"github.com/rdmaperf/rdmaperf/reports"
	"github.com/rdmaperf/rdmaperf/transports/verbs"
)

// A claim is run by the commands that it prints, and its verdict is in all forms.
func TestReproduceShowsAClaim(t *testing.T) {
	dir := t.TempDir()
	r := runs(t, "reproduce", "srdma", "--quick", "--only", "S4", "-o", dir)
	if !strings.Contains(r.stdout, "S4   shown: ") || strings.Contains(r.stdout, "S5 ") {
		t.Errorf("%q, stderr %q", r.stdout, r.stderr)
	}
	for _, line := range strings.Split(r.stdout, "\n") {
		if len([]rune(line)) > 80 {
			t.Errorf("%d columns: %q", len([]rune(line)), line)
		}
	}
	for file, want := range map[string]string{"srdma.md": "| **S4** shown |", "srdma.html": `<b class="shown">shown</b>`} {
		contains(t, contents(t, dir, file), want, "rdmaperf order")
	}
	var rep claims.Report
	must(t, json.Unmarshal([]byte(contents(t, dir, "srdma.json")), &rep))
	if len(rep.Claims) != 1 || rep.Claims[0].Verdict != claims.Shown {
		t.Errorf("%+v", rep.Claims)
	}
}

// Results name an iWARP device with rdma_cm, however it was asked for.
func TestReproduceTakesAProviderAsResultsNameIt(t *testing.T) {
	list := stackspec.Devices
	t.Cleanup(func() { stackspec.Devices = list })
	stackspec.Devices = func() ([]verbs.DeviceInfo, error) {
		return []verbs.DeviceInfo{{Name: "siw0", Transport: "iWARP", Ports: []verbs.PortInfo{{Number: 1, Active: true}}}}, nil
	}
	for _, spec := range []string{"verbs", "verbs:siw0", "verbs(cm):siw0"} {
		if got, err := provider(spec); got != "verbs(cm):siw0" || err != nil {
			t.Errorf("%s: %q, %v", spec, got, err)
		}
	}
	if _, err := provider("verbs:rxe0"); reports.Code(err) != reports.ExitNotRun {
		t.Errorf("a device that is not here: %v", err)
	}
}

// A directory's index has the papers of this run and of earlier ones, and is not written while one is missing.
func TestTheIndexOfPapersHasThoseOfEarlierRuns(t *testing.T) {
	dir := t.TempDir()
	o := &reproduceOptions{dir: dir}
	fresh := []*claims.Report{{Paper: claims.All[0].Name, Title: "fresh"}}
	for i, p := range claims.All[1:] {
		r := claims.Report{Paper: p.Name, Title: "earlier " + p.Name}
		if i == 0 {
			r.Paper = "another" // what is no report of this paper
		}
		must(t, os.WriteFile(filepath.Join(dir, p.Name+".json"), need(json.Marshal(r))(t), 0o600))
	}
	must(t, o.saveIndex(fresh))
	if _, err := os.Stat(filepath.Join(dir, "README.md")); err == nil {
		t.Error("an index without one of the papers")
	}
	fresh = append(fresh, &claims.Report{Paper: claims.All[1].Name, Title: "fresh, too"})
	must(t, o.saveIndex(fresh))
	text := contents(t, dir, "README.md")
	if n := strings.Count(text, "\n- "); n != len(claims.All) || !strings.Contains(text, "earlier "+claims.All[2].Name) {
		t.Errorf("%d papers:\n%s", n, text)
	}
}
