package claims

import (
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/rdmaperf/rdmaperf/reports"
)

// script is a runner of a shell script in the place of rdmaperf.
func script(t *testing.T, body string) *runner {
	dir := t.TempDir()
	file := filepath.Join(dir, "rdmaperf")
	if err := os.WriteFile(file, []byte("#!/bin/sh\n"+body+"\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	return &runner{program: file, dir: dir, Options: Options{Progress: func(string) {}, Announce: func(string) {}},
		ran: map[string]*outcome{}}
}

// measure makes a run of nine rounds and reads a figure.
func measure(n *runner, a At) (series, error) {
	n.look(context.Background(), a.Run, 9)
	return n.read(a, 9)
}

// What a command ends with becomes the verdict: a failure, what is not here, and what took too long are told apart.
func TestVerdictsOfCommands(t *testing.T) {
	for body, want := range map[string]Verdict{
		"exit 0": Shown,
		"echo rdmaperf: check: it is wrong >&2; exit 1": NotShown,
		"echo rdmaperf: no device >&2; exit 77":         Cannot,
	} {
		o := script(t, body).look(context.Background(), &Run{Args: "order"}, 9)
		if f := o.judgePass(Pass("x", nil)); f.Verdict != want || strings.HasPrefix(f.Why, "rdmaperf:") {
			t.Errorf("%s: %+v, want %s", body, f, want)
		}
		n := script(t, body)
		_, err := measure(n, At{Run: &Run{Args: "order"}, Figure: "p50"})
		if f := missing(err); want == Cannot && f.Verdict != Cannot || want == NotShown && f.Verdict != Undecided {
			t.Errorf("%s: %+v: a figure that is not there refutes nothing", body, f)
		}
	}
	for _, code := range []int{reports.ExitCorruption, reports.ExitUsage} {
		n := script(t, fmt.Sprintf("exit %d", code))
		if _, err := measure(n, At{Run: &Run{Args: "order"}}); missing(err).Verdict != NotShown {
			t.Errorf("exit code %d: %v", code, err)
		}
	}
	ctx, cancel := context.WithTimeout(context.Background(), 50*time.Millisecond)
	defer cancel()
	n := script(t, "exec sleep 60")
	if f := n.look(ctx, &Run{Args: "order"}, 9).judgePass(Pass("x", nil)); f.Verdict != Undecided {
		t.Errorf("late: %+v", f)
	}
	late := &Run{Args: "run"}
	n.look(ctx, late, 9)
	if _, err := n.read(At{Run: late}, 9); missing(err).Verdict != Undecided {
		t.Errorf("begun late: %v", err)
	}
	busy := &outcome{code: reports.ExitPeer, err: errors.New("no answer")}
	busy.doc = &reports.Document{}
	if _, err := (&runner{ran: map[string]*outcome{"x": busy}}).read(At{Run: &Run{Args: "x"}},
		9); missing(err).Verdict != Undecided {
		t.Errorf("no answer: %v", err)
	}
}

// Cases of conform show a claim when those that are named pass; what is not supported is not counted, and one that
// fails refutes it.
func TestVerdictsOfCases(t *testing.T) {
	const record = `echo '{"id":"a/1","transport":"x","verdict":"pass"}
{"id":"b/1","transport":"x","verdict":"unsupported"}
{"id":"c/1","transport":"x","verdict":"fail"}' >"$3"; exit 1`
	o := script(t, record).look(context.Background(), &Run{Args: "conform"}, 9)
	for pattern, want := range map[string]Verdict{"a/*": Shown, "b/*": Cannot, "c/*": NotShown, "*/1": NotShown,
		"d/*": Cannot} {
		if f := o.judgePass(Pass("x", nil, pattern)); f.Verdict != want {
			t.Errorf("%s: %+v, want %s", pattern, f, want)
		}
	}
}

// Runs with the same arguments are made once.
func TestRunsAreShared(t *testing.T) {
	n := script(t, `echo x >>"$0.ran"`)
	for range 2 {
		n.look(context.Background(), &Run{Args: "order"}, 9)
	}
	if b, err := os.ReadFile(n.program + ".ran"); err != nil || string(b) != "x\n" {
		t.Errorf("%q, %v", b, err)
	}
}

// Another provider takes the place of iwarp, except where iwarp has parameters.
func TestAnotherProvider(t *testing.T) {
	got := over("--transport 'iwarp,sched(slice=1K)+iwarp,iwarp(stack=raw)' --op write", "verbs:rxe0")
	if want := "--transport 'verbs:rxe0,sched(slice=1K)+verbs:rxe0,iwarp(stack=raw)' --op write"; got != want {
		t.Errorf("%s, want %s", got, want)
	}
}

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
