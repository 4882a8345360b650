package main

import (
	"context"
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
		{name: "delay=2ms,loss=0", cfg: impair.Config{Delay: 2 * time.Millisecond, Seed: 9}},
		{name: "delay=2ms,loss=0.1%", cfg: impair.Config{Delay: 2 * time.Millisecond, Loss: 0.001, Seed: 9}},
		{name: "delay=2ms,loss=0.05", cfg: impair.Config{Delay: 2 * time.Millisecond, Loss: 0.05, Seed: 9}},
	}
	if len(paths) != len(want) {
		t.Fatalf("%+v", paths)
	}
	for i := range want {
		if paths[i] != want[i] {
			t.Errorf("%+v, want %+v", paths[i], want[i])
		}
	}
	for _, bad := range [][]string{{"loss"}, {"loss=2"}, {"loss=100%"}, {"loss=-1"}, {"noise=1"}, {"delay=-1s"}, {"stop=1m"}, {"cut=-1s"}, {"loss=0,1%", "dup=0,1%"}} {
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

// TestPulsesHarmAndMendInTurns: whoever ends them finds nothing harmed.
func TestPulsesHarmAndMendInTurns(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	var said []bool
	n := pulse(ctx, time.Millisecond, func(on bool) {
		said = append(said, on)
		if len(said) == 3 {
			cancel()
		}
	})
	if n != 1 || len(said) != 4 || said[3] {
		t.Errorf("%d whole pulses, harmed %v", n, said)
	}
	if n := pulse(ctx, 0, func(bool) { t.Error("harmed") }); n != 0 {
		t.Errorf("%d pulses of none", n)
	}
}

// TestARunOutlivesAStoppedServerAndACut: every byte is compared, and no deadline breaks.
func TestARunOutlivesAStoppedServerAndACut(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("namespaces need root")
	}
	r := rdmaperf(t, "run", "--transport", "iwarp", "--workload", "throughput", "--op", "write", "-s", "64K", "-D", "3s", "--no-save", "--impair", "stop=300ms", "--impair", "cut=200ms")
	for _, want := range []string{"server stopped", "path cut"} {
		if r.code != 0 || !strings.Contains(r.stderr, want) {
			t.Errorf("exit code %d, no %q:\n%s%s", r.code, want, r.stdout, r.stderr)
		}
	}
}
