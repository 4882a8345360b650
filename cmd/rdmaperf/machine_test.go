package main

import (
	"compress/gzip"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/devices"
	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/run"
	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/wakeup"
	"github.com/rdmaperf/rdmaperf/reports"
)

// Both processes of a run without a HOST leave a profile of their own code. A test in this process has one already.
func TestProfilesOfBothProcesses(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "made on the way")
	p := start(t, "run", "--transport", "iwarp", "--workload", "throughput", "--op", "write", "-s", "64", "-D",
		"1500ms", "--quiet", "--cpu-profile", dir)
	if code := p.wait(time.Minute); code != 0 {
		t.Fatalf("exit %d: %s", code, p.errs.String())
	}
	// What a worker does in a window: one side only posts, the other only takes.
	const posts, takes = "/drive.(*flowWorker).flow", "/drive.(*flowWorker).takeTurn"
	for name, c := range map[string]struct{ own, other string }{"client.pprof": {posts, takes},
		"server.pprof": {takes, posts}} {
		f := need(os.Open(filepath.Join(dir, name)))(t)
		defer f.Close()
		z := need(gzip.NewReader(f))(t) // pprof's proto/profile.proto: "gzip-compressed protocol buffer"
		profile := string(need(io.ReadAll(z))(t))
		contains(t, profile, "cpu", "nanoseconds", "github.com/rdmaperf/rdmaperf/softstack/iwarp.", c.own)
		if strings.Contains(profile, c.other) {
			t.Errorf("%s: %q is of the other side", name, c.other)
		}
	}
}

// What cannot be written is said once, before anything is measured.
func TestProfileMistakes(t *testing.T) {
	dir := t.TempDir()
	file, locked, taken := filepath.Join(dir, "file"), filepath.Join(dir, "locked"), filepath.Join(dir, "taken")
	must(t, os.WriteFile(file, nil, 0o644))
	must(t, os.Mkdir(locked, 0o555))
	must(t, os.MkdirAll(filepath.Join(taken, "server.pprof"), 0o755))
	for _, c := range []struct{ dir, want string }{
		{file, "mkdir " + file + ": not a directory"},
		{filepath.Join(file, "below"), "mkdir " + filepath.Join(file, "below") + ": not a directory"},
		{locked, "open " + filepath.Join(locked, "client.pprof") + ": permission denied"},
		{taken, "open " + filepath.Join(taken, "server.pprof") + ": is a directory"},
		{"/sys/rdmaperf", "mkdir /sys/rdmaperf: "}, // nobody can make one there
	} {
		if c.dir == locked && os.Geteuid() == 0 {
			continue // it is not locked for root
		}
		p := start(t, "run", "--transport", "iwarp", "--workload", "latency", "--op", "send", "-s", "64", "-D", "1h",
			"--json", filepath.Join(dir, "r.json"), "--cpu-profile", c.dir)
		code := p.wait(time.Minute) // an hour's window shows that none began
		line := p.errs.String()
		if code != 1 || !strings.HasPrefix(line, "rdmaperf: profile the CPU: "+c.want) ||
			!strings.HasSuffix(line, "; try --cpu-profile where files can be written\n") ||
			strings.Count(line, "\n") != 1 || p.out.Len() != 0 {
			t.Errorf("%s: exit %d, %q, want %q, stdout %q", c.dir, code, line, c.want, p.out.String())
		}
	}
}

func TestRunSaysHowTheMachineWakes(t *testing.T) {
	run.MeasureWakeup = wakeup.Measure
	defer func() { run.MeasureWakeup = nil }()
	e := measure(t, aMoment...).Environment
	if w := e.Wakeup; w == nil || w.P50 <= 0 || w.P99 < w.P50 || w.Samples < 100 || e.Awake != "" {
		t.Errorf("wake-up %+v, awake %q", w, e.Awake)
	}
	r := rdmaperf(t, append(slices.Clone(aMoment), "--details")...)
	contains(t, strings.Join(strings.Fields(r.stdout), " "), "wakes a thread in ")
}

// The run says what kept the CPUs awake; comparing it with one without is refused.
func TestAwakeStandsInTheEnvironment(t *testing.T) {
	t.Setenv(withWakeup, "1")
	p := start(t, append(aMoment, "--awake", "--format", "json")...)
	if code := p.wait(60e9); code == 77 {
		t.Skipf("not allowed here: %s", p.errs.String())
	} else if code != 0 {
		t.Fatalf("exit %d, %s", code, p.errs.String())
	}
	if e := document(t, p.out.Bytes()).Environment; e.Awake == "" || e.Wakeup == nil {
		t.Errorf("awake %q, wake-up %v", e.Awake, e.Wakeup)
	}
}

// TestARunOverABadPathIsExactAndSaysWhatThePathDid: as root, through namespaces.
func TestARunOverABadPathIsExactAndSaysWhatThePathDid(t *testing.T) {
	args := []string{"run", "--transport", "iwarp", "--workload", "throughput", "--op", "write", "-s", "4K", "-n",
		"200", "--no-save", "--impair", "loss=0,1%"}
	if os.Geteuid() != 0 {
		fails(t, 77, "root", args...)
		return
	}
	contains(t, runs(t, args...).stdout, "throughput against the path", "loss=1%", "verified")
}

// TestARunOutlivesAStoppedServerAndACut: every byte is compared, and no deadline breaks.
func TestARunOutlivesAStoppedServerAndACut(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("namespaces need root")
	}
	r := runs(t, "run", "--transport", "iwarp", "--workload", "throughput", "--op", "write", "-s", "64K", "-D", "3s",
		"--no-save", "--impair", "stop=300ms", "--impair", "cut=200ms")
	contains(t, r.stderr, "server stopped", "path cut")
}

// Soft stacks over TCP have the kernel's counters of both sides; --counters shows those that stood still, too. What
// disturbed a run is known of both sides, each of which has a thread.
func TestRunReadsCountersAndLooksAtTheMachine(t *testing.T) {
	args := []string{"run", "--transport", "tcp,mem", "--workload", "latency,throughput", "--op", "send", "-s", "64",
		"-n", "200"}
	own := func(c reports.DeviceCounters) bool { return c.Process }
	for _, res := range measure(t, args...).Results {
		c, d := res.Counters, res.Disturbance
		if res.Transport == "mem" {
			if c != nil {
				t.Errorf("counters of mem %+v, want none", c)
			}
			continue
		}
		if c == nil || len(slices.DeleteFunc(slices.Clone(c.Client), own)) != 1 || c.Client[0].Device != devices.TCPDevice ||
			len(slices.DeleteFunc(c.Server, own)) != 1 || len(c.Client[0].Counters) < 3 {
			t.Errorf("counters of tcp %+v, want the kernel's of both sides", c)
		}
		if d == nil || d.Verdict == "" || d.Client == nil || d.Client.Threads != 1 || d.Server == nil ||
			d.Server.Threads != 1 {
			t.Errorf("%s: %+v", res.Workload, d)
		}
	}
	r := rdmaperf(t, append(args, "--counters")...)
	if n := strings.Count(strings.Join(strings.Fields(r.stdout), " "),
		"64 bytes, kernel TCP (all connections) counted: InCsumErrors "); n != 2 {
		t.Errorf("--counters shows %d times what stood still, want 2:\n%s", n, r.stdout)
	}
}
