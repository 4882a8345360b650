package main

import (
	"bytes"
	"compress/gzip"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
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
