package main

import (
	"os"
	"strings"
	"testing"
	"time"

	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/impair"
)

func TestImpairmentsArePathsInTheOrderGiven(t *testing.T) {
	paths, err := badPaths([]string{"delay=2ms", "loss=0,0.1%,0.05", "seed=9"})
	if err != nil {
		t.Fatal(err)
	}
	want := []badPath{
		{"delay=2ms,loss=0", impair.Config{Delay: 2 * time.Millisecond, Seed: 9}},
		{"delay=2ms,loss=0.1%", impair.Config{Delay: 2 * time.Millisecond, Loss: 0.001, Seed: 9}},
		{"delay=2ms,loss=0.05", impair.Config{Delay: 2 * time.Millisecond, Loss: 0.05, Seed: 9}},
	}
	if len(paths) != len(want) {
		t.Fatalf("%+v", paths)
	}
	for i := range want {
		if paths[i] != want[i] {
			t.Errorf("%+v, want %+v", paths[i], want[i])
		}
	}
	for _, bad := range [][]string{{"loss"}, {"loss=2"}, {"loss=100%"}, {"loss=-1"}, {"noise=1"}, {"delay=-1s"}, {"loss=0,1%", "dup=0,1%"}} {
		if _, err := badPaths(bad); err == nil {
			t.Errorf("%v is taken", bad)
		}
	}
}

// TestARunOverABadPathIsExactAndSaysWhatThePathDid: as root, through namespaces.
func TestARunOverABadPathIsExactAndSaysWhatThePathDid(t *testing.T) {
	args := []string{"run", "--transport", "iwarp", "--workload", "throughput", "--op", "write", "-s", "4K", "-n", "200", "--no-save", "--impair", "loss=0,1%"}
	r := rdmaperf(t, args...)
	if os.Geteuid() != 0 {
		if r.code != 77 || !strings.Contains(r.stderr, "root") {
			t.Errorf("without root: exit code %d, %s", r.code, r.stderr)
		}
		return
	}
	if r.code != 0 || !strings.Contains(r.stdout, "throughput against the path") || !strings.Contains(r.stdout, "loss=1%") || !strings.Contains(r.stdout, "verified") {
		t.Errorf("exit code %d:\n%s%s", r.code, r.stdout, r.stderr)
	}
}
