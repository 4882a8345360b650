package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// Every application finds on local nodes what a single machine does, and says so.
func TestLiteApplicationsAgreeWithASingleMachine(t *testing.T) {
	edges := filepath.Join(t.TempDir(), "edges")
	must(t, os.WriteFile(edges, []byte("a b\nb c\nc a\na c\n"), 0o600))
	for _, c := range []struct{ args, want string }{
		{"log --records 50 --size 40", "150 records"},
		{"wordcount root.go main.go", "files taken by each node"},
		{"pagerank --iterations 5 --edges " + edges, "3 vertices, 4 edges"},
		{"dsm --pages 4 --accesses 100 --writes 0.5", "pages fetched"},
	} {
		r := rdmaperf(t, append([]string{"lite", "--nodes", "3", "--transport", "mem"}, strings.Fields(c.args)...)...)
		if r.code != 0 || !strings.Contains(r.stdout, c.want) ||
			!strings.Contains(r.stdout, "the same as on a single machine") ||
			!strings.Contains(r.stdout, "of them use LITE") {
			t.Errorf("lite %s: exit code %d\n%s%s", c.args, r.code, r.stdout, r.stderr)
		}
	}
}
