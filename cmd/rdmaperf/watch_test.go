package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

func TestIntervalsAreShownAsTheyEnd(t *testing.T) {
	p := start(t, "run", "--transport", "mem", "--workload", "throughput", "--op", "write", "-s", "64", "-D", "2s",
		"--interval", "200ms", "--no-save")
	p.wait(30 * time.Second)
	lines := strings.Count(p.errs.String(), " MiB/s\n")
	if lines < 5 || lines > 10 {
		t.Errorf("%d intervals shown, want about 10:\n%s", lines, p.errs.String())
	}
}

// Ctrl-C is how it is meant to end: with the result and exit code 0.
func TestInfiniteRunEndsWithItsResult(t *testing.T) {
	file := filepath.Join(t.TempDir(), "r.json")
	p := start(t, "run", "--transport", "mem", "--workload", "latency", "--op", "send", "-s", "64", "--run-infinitely",
		"--json", file)
	p.spins()
	p.cmd.Process.Signal(os.Interrupt)
	if code := p.wait(30 * time.Second); code != 0 {
		t.Errorf("exit %d: %s", code, p.errs.String())
	}
	d := documentOf(t, file)
	if d.Error != nil || len(d.Results) != 1 || d.Results[0].Operations == 0 || d.Results[0].Series != nil {
		t.Errorf("document %+v, want one result, no error and no series", d)
	}
}
