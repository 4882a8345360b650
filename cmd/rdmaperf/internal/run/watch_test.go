package run

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"github.com/rdmaperf/rdmaperf/reports"
)

func TestIntervalsSayRateBandwidthAndLatency(t *testing.T) {
	stream := rates(reports.SeriesPoint{Operations: 1000}, 500*time.Millisecond, 1<<20, false)
	if stream != "2k/s, 2000.0 MiB/s" {
		t.Errorf("stream: %q", stream)
	}
	if got := rates(reports.SeriesPoint{Operations: 1000}, time.Second, 125000, true); got != "1k/s, 1.00 Gb/s" {
		t.Errorf("in Gb/s: %q", got)
	}
	if got := rates(reports.SeriesPoint{Operations: 1500000, P50: 640, P99: 6120, Max: 2.5e6}, time.Second, 0,
		false); got != "p50 640 ns, p99 6.12 us, max 2.50 ms, 1.5M/s" {
		t.Errorf("latency: %q", got)
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
	if !strings.HasPrefix(out.String(), "\x1b[4A") || first != 4 || !strings.Contains(out.String(), "worst  5.00 us") ||
		!strings.Contains(out.String(), "2s, 20 operations") {
		t.Errorf("second screen %q after %d lines", out.String(), first)
	}
}
