package main

import (
	"os"
	"strings"
	"testing"
)

// TestARunOverABadPathIsExactAndSaysWhatThePathDid: as root, through namespaces.
func TestARunOverABadPathIsExactAndSaysWhatThePathDid(t *testing.T) {
	args := []string{"run", "--transport", "iwarp", "--workload", "throughput", "--op", "write", "-s", "4K", "-n",
		"200", "--no-save", "--impair", "loss=0,1%"}
	r := rdmaperf(t, args...)
	if os.Geteuid() != 0 {
		if r.code != 77 || !strings.Contains(r.stderr, "root") {
			t.Errorf("without root: exit code %d, %s", r.code, r.stderr)
		}
		return
	}
	if r.code != 0 || !strings.Contains(r.stdout, "throughput against the path") ||
		!strings.Contains(r.stdout, "loss=1%") || !strings.Contains(r.stdout, "verified") {
		t.Errorf("exit code %d:\n%s%s", r.code, r.stdout, r.stderr)
	}
}

// TestARunOutlivesAStoppedServerAndACut: every byte is compared, and no deadline breaks.
func TestARunOutlivesAStoppedServerAndACut(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("namespaces need root")
	}
	r := rdmaperf(t, "run", "--transport", "iwarp", "--workload", "throughput", "--op", "write", "-s", "64K", "-D",
		"3s", "--no-save", "--impair", "stop=300ms", "--impair", "cut=200ms")
	for _, want := range []string{"server stopped", "path cut"} {
		if r.code != 0 || !strings.Contains(r.stderr, want) {
			t.Errorf("exit code %d, no %q:\n%s%s", r.code, want, r.stdout, r.stderr)
		}
	}
}
