package main

import (
	"bytes"
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

// Both processes of a run without a HOST leave a profile of their own code. The run is
// a process, because a profiled test has its one profile already.
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
		z, err := gzip.NewReader(f) // pprof's proto/profile.proto: "gzip-compressed protocol buffer"
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		b, err := io.ReadAll(z)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		for _, s := range []string{"cpu", "nanoseconds", "github.com/rdmaperf/rdmaperf/softstack/iwarp.", c.own} {
			if !bytes.Contains(b, []byte(s)) {
				t.Errorf("%s: %d bytes without %q", name, len(b), s)
			}
		}
		if bytes.Contains(b, []byte(c.other)) {
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
		document := filepath.Join(dir, "r.json")
		p := start(t, "run", "--transport", "iwarp", "--workload", "latency", "--op", "send", "-s", "64", "-D", "1h",
			"--json", document, "--cpu-profile", c.dir)
		code := p.wait(time.Minute) // an hour's window shows that none began
		line := p.errs.String()
		if code != 1 || !strings.HasPrefix(line, "rdmaperf: profile the CPU: "+c.want) ||
			!strings.HasSuffix(line, "; try --cpu-profile where files can be written\n") ||
			strings.Count(line, "\n") != 1 {
			t.Errorf("%s: exit %d, %q, want %q", c.dir, code, line, c.want)
		}
		if p.out.Len() != 0 {
			t.Errorf("%s: stdout %q", c.dir, p.out.String())
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
	if r := rdmaperf(t, append(slices.Clone(aMoment), "--details")...); !strings.Contains(
		strings.Join(strings.Fields(r.stdout), " "),
		"wakes a thread in ") {
		t.Errorf("the table does not say so:\n%s", r.stdout)
	}
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

// ofDevices is how many devices have counters, beside the process itself.
func ofDevices(all []reports.DeviceCounters) (n int) {
	for _, c := range all {
		if !c.Process {
			n++
		}
	}
	return n
}

// Soft stacks over TCP have the kernel's counters of both sides in the document;
// --counters shows those that stood still, too.
func TestRunReadsCounters(t *testing.T) {
	args := []string{"run", "--transport", "tcp,mem", "--workload", "latency", "--op", "send", "-s", "64", "-n", "50"}
	d := measure(t, args...)
	if c := d.Results[0].Counters; c == nil || ofDevices(c.Client) != 1 || ofDevices(c.Server) != 1 ||
		c.Client[0].Device != devices.TCPDevice || len(c.Client[0].Counters) < 3 {
		t.Errorf("counters of tcp %+v, want the kernel's of both sides", c)
	}
	if c := d.Results[1].Counters; c != nil {
		t.Errorf("counters of mem %+v, want none", c)
	}
	if r := rdmaperf(t, append(args, "--counters")...); strings.Count(strings.Join(strings.Fields(r.stdout), " "),
		"64 bytes, kernel TCP (all connections) counted: InCsumErrors ") != 1 {
		t.Errorf("--counters does not show what stood still:\n%s", r.stdout)
	}
}

// What was disturbed is known of both sides and all workloads of sessions; a real run has threads on both.
func TestRunsLookAtTheMachine(t *testing.T) {
	d := measure(t, "run", "--transport", "tcp", "--workload", "latency,throughput", "--op", "send", "-s", "64", "-n",
		"200")
	for _, res := range d.Results {
		d := res.Disturbance
		if d == nil || d.Verdict == "" || d.Client == nil || d.Client.Threads != 1 || d.Server == nil ||
			d.Server.Threads != 1 {
			t.Errorf("%s: %+v", res.Workload, d)
		}
	}
}
