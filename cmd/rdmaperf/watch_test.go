package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/rdmaperf/rdmaperf/reports"
)

func TestLinesAreCutToTheTerminal(t *testing.T) {
	long := "2/6 grpc(fused,bpev,busy=200us,pollers=1,idle=1ms,ring=256K,watch)+iwarp(crc) rpc unary 64 B, about 3s left"
	for _, columns := range []int{46, 66, 200} {
		got := cut(long, columns)
		if n := len([]rune(got)); n > columns || !strings.HasPrefix(got, "2/6 ") || !strings.HasSuffix(got, "3s left") {
			t.Errorf("%d columns: %q has %d", columns, got, n)
		}
	}
	if cut("ÄÖÜ µs", 10) != "ÄÖÜ µs" {
		t.Error("a short line is changed")
	}
}

func TestIntervalsSayRateBandwidthAndLatency(t *testing.T) {
	stream := rates(reports.SeriesPoint{Operations: 1000}, 500*time.Millisecond, 1<<20, false)
	if stream != "2k/s, 2000.0 MiB/s" {
		t.Errorf("stream: %q", stream)
	}
	if got := rates(reports.SeriesPoint{Operations: 1000}, time.Second, 125000, true); got != "1k/s, 1.00 Gb/s" {
		t.Errorf("in Gb/s: %q", got)
	}
	if got := rates(reports.SeriesPoint{Operations: 1500000, P50: 640, P99: 6120, Max: 2.5e6}, time.Second, 0, false); got != "p50 640 ns, p99 6.12 us, max 2.50 ms, 1.5M/s" {
		t.Errorf("latency: %q", got)
	}
}

func TestIntervalsAreShownAsTheyEnd(t *testing.T) {
	p := start(t, "run", "--transport", "mem", "--workload", "throughput", "--op", "write", "-s", "64", "-D", "2s", "--interval", "200ms", "--no-save")
	p.wait(30 * time.Second)
	lines := strings.Count(p.errs.String(), " MiB/s\n")
	if lines < 5 || lines > 10 {
		t.Errorf("%d intervals shown, want about 10:\n%s", lines, p.errs.String())
	}
}

// Ctrl-C is how it is meant to end: with the result and exit code 0.
func TestInfiniteRunEndsWithItsResult(t *testing.T) {
	file := filepath.Join(t.TempDir(), "r.json")
	p := start(t, "run", "--transport", "mem", "--workload", "latency", "--op", "send", "-s", "64", "--run-infinitely", "--json", file)
	p.spins()
	p.cmd.Process.Signal(os.Interrupt)
	if code := p.wait(30 * time.Second); code != 0 {
		t.Errorf("exit %d: %s", code, p.errs.String())
	}
	raw, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	d := document(t, raw)
	if d.Error != nil || len(d.Results) != 1 || d.Results[0].Operations == 0 || d.Results[0].Series != nil {
		t.Errorf("document %+v, want one result, no error and no series", d)
	}
	for _, args := range [][]string{{"--run-infinitely", "-D", "1s"}, {"--run-infinitely", "--op", "send,write", "--workload", "latency"}, {"--run-infinitely", "--transport", "mem,tcp", "--workload", "latency", "--op", "send", "-s", "64"}} {
		if r := rdmaperf(t, append([]string{"run"}, args...)...); r.code != 2 {
			t.Errorf("%q: exit %d, %s", args, r.code, r.stderr)
		}
	}
}

// On a terminal the screen is drawn over itself.
func TestScreenIsDrawnOverItself(t *testing.T) {
	var out bytes.Buffer
	s := newScreen(&out, true, "mem latency send 64 B", 64, false)
	s.show(reports.SeriesPoint{Operations: 10, P50: 1000, P99: 2000, Max: 5000}, time.Second)
	first := strings.Count(out.String(), "\n")
	out.Reset()
	s.show(reports.SeriesPoint{OffsetNs: 1e9, Operations: 10, P50: 1000, P99: 2000, Max: 3000}, time.Second)
	if !strings.HasPrefix(out.String(), "\x1b[4A") || first != 4 || !strings.Contains(out.String(), "worst  5.00 us") || !strings.Contains(out.String(), "2s, 20 operations") {
		t.Errorf("second screen %q after %d lines", out.String(), first)
	}
}
