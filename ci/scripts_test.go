package ci

import (
	"bytes"
	"crypto/sha256"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// script runs one of this directory; summary is the job's summary file, or empty.
func script(t *testing.T, summary, name string, args ...string) (code int, output string) {
	t.Helper()
	cmd := exec.Command("./"+name, args...)
	for _, v := range os.Environ() {
		if !strings.HasPrefix(v, "GITHUB_") {
			cmd.Env = append(cmd.Env, v)
		}
	}
	if summary != "" {
		cmd.Env = append(cmd.Env, "GITHUB_STEP_SUMMARY="+summary)
	}
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	if err := cmd.Run(); err != nil && cmd.ProcessState == nil {
		t.Fatal(err)
	}
	return cmd.ProcessState.ExitCode(), out.String()
}

func write(t *testing.T, name, text string) string {
	t.Helper()
	if err := os.WriteFile(name, []byte(text), 0o755); err != nil {
		t.Fatal(err)
	}
	return name
}

func TestScriptsRefuseWrongCommandLines(t *testing.T) {
	for _, line := range []string{
		"compare-base", "compare-base a b", "compare-base --repeats 0 HEAD", "compare-base --seconds x HEAD", "compare-base --repeats",
		"compare-base --bogus HEAD", "compare-base no-such-branch", "release --bogus", "release --version", "release --version a/b",
		"grpc-ratio --bogus", "grpc-ratio --repeats 0", "grpc-ratio --seconds 0", "grpc-ratio --only tcp",
		"grpc-profile --bogus", "grpc-profile --size x", "grpc-profile --seconds 0",
		"report", "report --bogus dir", "report --ledger", "summary", "summary title", "publish", "publish v1", "publish --dry-run", "test --bogus",
		"register --bogus", "register --repeats 0", "register --window 1s", "register --only all", "register --json",
		"awake --bogus", "awake --repeats 0", "awake --seconds", "mutants --bogus", "mutants --for", "mutants --for 0m", "mutants --for 5", "mutants --only", "mutants ./no/such",
		"lite-ratio --bogus", "lite-ratio --repeats 0", "lite-ratio --seconds 0", "lite-ratio --json",
		"sched-ratio --bogus", "sched-ratio --repeats 0", "sched-ratio --seconds x", "sched-ratio --seconds 0", "sched-ratio --json", "sched-ratio --only sends", "sched-ratio --only bulk,",
	} {
		words := strings.Fields(line)
		if code, out := script(t, "", words[0], words[1:]...); code != 2 || out == "" {
			t.Errorf("%s: exit %d, output %q, want 2 and a word about it", line, code, out)
		}
	}
}

// What did not come about stands in the summary, and the limit of GitHub holds.
func TestSummary(t *testing.T) {
	dir := t.TempDir()
	here, empty := write(t, filepath.Join(dir, "here.json"), "{}"), write(t, filepath.Join(dir, "empty.jsonl"), "")
	fake := write(t, filepath.Join(dir, "fake"), "#!/bin/sh\necho \"table of $*\"\n")
	summary := write(t, filepath.Join(dir, "summary"), "what was there\n")
	code, out := script(t, summary, "summary", "--with", fake, "Some title", here, empty, filepath.Join(dir, "absent.json"))
	got, err := os.ReadFile(summary)
	want := "what was there\n## Some title\n\n- **not run**: there is no empty.jsonl\n- **not run**: there is no absent.json\ntable of report --format markdown " + here + "\n"
	if code != 0 || out != "" || err != nil || string(got) != want {
		t.Errorf("exit %d, output %q, error %v, summary\n%s\nwant\n%s", code, out, err, got, want)
	}
	if _, out := script(t, "", "summary", "--with", fake, "Title", here); out != "## Title\n\ntable of report --format markdown "+here+"\n" {
		t.Errorf("without a job it prints %q", out)
	}
	write(t, fake, "#!/bin/sh\nseq 300000\n")
	_, out = script(t, "", "summary", "--with", fake, "Title", here)
	if !strings.HasPrefix(out, "## Title\n") || !strings.Contains(out, "\n**Cut here**") || len(out) > 1<<20 {
		t.Errorf("%d bytes, ending in %q, want fewer than 1 MiB and a word about the cut", len(out), out[max(0, len(out)-80):])
	}
}

// dist makes what ci/release leaves, of tiny files.
func dist(t *testing.T, arch string, static string) string {
	t.Helper()
	dir := t.TempDir()
	var sums strings.Builder
	for _, f := range []struct{ target, text string }{{"amd64", static}, {"arm64", static + " arm"}, {arch + "-glibc", arch}} {
		name := "rdmaperf-v1-linux-" + f.target
		write(t, filepath.Join(dir, name), f.text)
		fmt.Fprintf(&sums, "%x  %s\n", sha256.Sum256([]byte(f.text)), name)
	}
	write(t, filepath.Join(dir, "SHA256SUMS-"+arch), sums.String())
	write(t, filepath.Join(dir, "BUILD-"+arch), "go\n")
	return dir
}

func TestPublishGathersOnlyWhatAgrees(t *testing.T) {
	amd64, arm64 := dist(t, "amd64", "static"), dist(t, "arm64", "static")
	out := filepath.Join(t.TempDir(), "all")
	if code, text := script(t, "", "publish", "--dry-run", out, "v1", amd64, arm64); code != 0 || !strings.Contains(text, "not published") {
		t.Fatalf("exit %d\n%s", code, text)
	}
	sums, err := os.ReadFile(filepath.Join(out, "SHA256SUMS"))
	if err != nil || strings.Count(string(sums), " rdmaperf-v1-linux-") != 4 || strings.Count(string(sums), " BUILD-") != 2 {
		t.Errorf("error %v, sums of\n%s", err, sums)
	}
	damaged := dist(t, "arm64", "static")
	write(t, filepath.Join(damaged, "rdmaperf-v1-linux-arm64-glibc"), "other")
	for _, test := range []struct {
		why   string
		dists []string
		want  string
	}{
		{"another machine built other bytes", []string{amd64, dist(t, "arm64", "other")}, "not the same from every machine"},
		{"a file differs from its checksum", []string{amd64, damaged}, "is damaged"},
		{"one machine is missing", []string{amd64}, "linux-arm64-glibc is missing"},
		{"nothing was built", []string{t.TempDir()}, "no SHA256SUMS"},
	} {
		if code, text := script(t, "", "publish", append([]string{"--dry-run", t.TempDir(), "v1"}, test.dists...)...); code != 1 || !strings.Contains(text, test.want) {
			t.Errorf("%s: exit %d, output %q, want 1 and %q", test.why, code, text, test.want)
		}
	}
}
