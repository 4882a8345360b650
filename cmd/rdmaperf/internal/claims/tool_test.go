package claims

import (
	"context"
	"errors"
	"math"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/rdmaperf/rdmaperf/reports"
)

// What each tool prints.
const (
	fabricPrints = `bytes   #sent   #ack     total       time     MB/sec    usec/xfer   Mxfers/sec
64      20k     =20k     2.4m        0.19s     13.54       4.72       0.21
`
	ucxPrints = `|    Stage     | # iterations | 50.0%ile | average | overall |  average |  overall |  average  |  overall  |
[thread 0]              1542      5.459   323.939   323.939        0.19       0.19        3087        3087
Final:                 20000      5.121   212.979   309.614        0.29       0.20        4695        3230
`
	floorPrints = `{"name":"latency","size_bytes":64,"count":9,"min_ns":2306.0,"p50_ns":2898.8,"p99_ns":3276.2}` + "\n"
)

// The figure of a tool is in its unit, and what prints none or 0 is an error.
func TestFiguresOfTools(t *testing.T) {
	for _, c := range []struct {
		tool *tool
		out  string
		want float64
	}{
		{pFabric, fabricPrints, 4720}, {pUCXLatency, ucxPrints, 5121}, {pUCXStream, ucxPrints, 0.2 * (1 << 20)},
		{pUCXRate, ucxPrints, 3230}, {pQperf, "latency  =  9.45 us\n", 9450},
		{pFloorLatency, floorPrints, 2898.8}, {pFloorStream, `{"bytes_per_second":4500416065}`, 4500416065},
		{pMPI, "latency = 9876.5 ns\n", 9876.5},
	} {
		if got, err := c.tool.read(c.out); err != nil || math.Abs(got-c.want) > 1e-6*c.want {
			t.Errorf("%s: %v, %v, want %v", c.tool.client, got, err, c.want)
		}
		for _, out := range []string{"", "connection refused\n", regexp.MustCompile(`[1-9]`).ReplaceAllString(c.out, "0")} {
			if got, err := c.tool.read(out); err == nil {
				t.Errorf("%s: %q is %v", c.tool.client, out, got)
			}
		}
	}
}

// A tool runs against a server of its own that listens first, and neither is left behind.
func TestToolsRun(t *testing.T) {
	for name, c := range map[string]struct {
		server, client string
		fails          bool
	}{
		"alone":             {"", "echo latency = 5 us PORT", false},
		"fails":             {"", "false", true},
		"prints nothing":    {"", "true", true},
		"server is missing": {"no-such-program PORT", "echo latency = 5 us", true},
	} {
		one := &tool{stack: "x", server: c.server, client: c.client, figure: asTime("p50"),
			value: regexp.MustCompile(`latency = ([0-9.]+) (us)`)}
		if f, err := one.measure(context.Background(), t.TempDir(),
			true); (err != nil) != c.fails || err == nil && f.Value != 5000 {
			t.Errorf("%s: %+v, %v", name, f, err)
		}
	}
	ctx, cancel := context.WithTimeout(context.Background(), 100*time.Millisecond)
	defer cancel()
	dead := &tool{stack: "x", server: "sleep 60", client: "echo latency = 5 us", value: pMPI.value}
	if _, err := dead.measure(ctx, t.TempDir(), true); err == nil || !strings.Contains(err.Error(), "does not listen") {
		t.Errorf("a server that does not listen: %v", err)
	}
}

// A tool that is not installed cannot be shown, and says its package; one that fails leaves its claim undecided.
func TestToolsThatAreMissing(t *testing.T) {
	run := &Run{Args: "order", Beside: []*tool{
		{stack: "absent", program: "no-such-program", packages: "a-package"},
		{stack: "fails", program: "sh", client: "false", value: pMPI.value},
	}}
	n := script(t, "exit 0")
	n.Quick = true
	_, err := measure(n, At{Run: run, Stack: "absent"})
	if f := missing(err); f.Verdict != Cannot || !strings.Contains(f.Why, "apt-get install a-package") {
		t.Errorf("absent: %+v", f)
	}
	if _, err = measure(n, At{Run: run, Stack: "fails"}); missing(err).Verdict != Undecided {
		t.Errorf("fails: %v", err)
	}
}

// Programs take turns, each once a round, and a round has a figure of each.
func TestTurns(t *testing.T) {
	run := &Run{Args: "order", Beside: []*tool{{stack: "five", program: "sh", client: "echo latency = 5 us",
		figure: asTime("p50"), value: regexp.MustCompile(`latency = ([0-9.]+) (us)`)}}}
	n := script(t, "exit 0")
	n.Quick = true
	s, err := measure(n, At{Run: run, Stack: "five", Figure: "p50"})
	if err != nil || len(s.Rounds) != 9 || s.Rounds[1].Value != 5000 || s.Quantity != reports.QuantityTime {
		t.Errorf("%+v, %v", s, err)
	}
	if lines := run.lines(n, 9); len(lines) != 2 || lines[1] != "echo latency = 5 us" {
		t.Errorf("%q", lines)
	}
	ctx, cancel := context.WithCancelCause(context.Background())
	cancel(errors.New("ended"))
	if o := script(t, "exit 0").look(ctx, run, 9); len(o.doc.Results) != 0 {
		t.Errorf("%d results of an ended run", len(o.doc.Results))
	}
}
