package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/claims"
)

// A claim is run by the commands that it prints, and its verdict is in all forms.
func TestReproduceShowsAClaim(t *testing.T) {
	dir := t.TempDir()
	r := rdmaperf(t, "reproduce", "srdma", "--quick", "--only", "S4", "-o", dir)
	if r.code != 0 || !strings.Contains(r.stdout, "S4   shown: ") || strings.Contains(r.stdout, "S5 ") {
		t.Errorf("exit %d, %q, stderr %q", r.code, r.stdout, r.stderr)
	}
	for _, line := range strings.Split(r.stdout, "\n") {
		if len([]rune(line)) > 80 {
			t.Errorf("%d columns: %q", len([]rune(line)), line)
		}
	}
	for file, want := range map[string]string{"srdma.md": "| **S4** shown |", "srdma.html": `<b class="shown">shown</b>`} {
		b, err := os.ReadFile(filepath.Join(dir, file))
		if err != nil || !strings.Contains(string(b), want) || !strings.Contains(string(b), "rdmaperf order") {
			t.Errorf("%s: %v, %q lacks %q", file, err, b, want)
		}
	}
	b, err := os.ReadFile(filepath.Join(dir, "srdma.json"))
	var rep claims.Report
	if err == nil {
		err = json.Unmarshal(b, &rep)
	}
	if err != nil || len(rep.Claims) != 1 || rep.Claims[0].Verdict != claims.Shown {
		t.Errorf("%v, %+v", err, rep.Claims)
	}
}

// What is asked for has to exist.
func TestReproduceRefuses(t *testing.T) {
	for want, args := range map[string][]string{
		"want one of":   {"reproduce", "bogus"},
		"no such claim": {"reproduce", "srdma", "--only", "S99"},
		"want text":     {"reproduce", "srdma", "--format", "csv"},
	} {
		if r := rdmaperf(t, args...); r.code != 2 || !strings.Contains(r.stderr, want) {
			t.Errorf("%v: exit %d, %q, want 2 and %q", args, r.code, r.stderr, want)
		}
	}
}
