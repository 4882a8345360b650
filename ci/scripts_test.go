package ci

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
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

// must ends the test with an error.
func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// need is the value of a call that must not fail.
func need[T any](v T, err error) func(*testing.T) T {
	return func(t *testing.T) T {
		t.Helper()
		must(t, err)
		return v
	}
}

func write(t *testing.T, name, text string) string {
	t.Helper()
	must(t, os.WriteFile(name, []byte(text), 0o755))
	return name
}

func TestScriptsRefuseWrongCommandLines(t *testing.T) {
	for _, line := range []string{
		"release --bogus", "release --version", "release --version a/b", "report", "report --bogus dir", "report --ledger",
		"summary", "summary title", "publish", "publish v1", "publish --dry-run", "action/install", "action/install --bogus x d", "action/install --version a/b d", "action/devices mlx5",
		"action/measure", "action/measure --bogus", "action/measure --bogus x d", "action/measure a b",
		"action/measure --ledger /none d",
		"build-lwip", "build-lwip --bogus d", "build-lwip --mss 100 d", "build-lwip --window 96K d",
		"build-lwip --window", "build-lwip a b",
	} {
		words := strings.Fields(line)
		if code, out := script(t, "", words[0], words[1:]...); code != 2 || out == "" {
			t.Errorf("%s: exit %d, output %q, want 2 and a word about it", line, code, out)
		}
	}
}

// A release is taken when it is what its checksums say, and says so of itself.
func TestInstallChecksWhatItDownloads(t *testing.T) {
	arch := map[string]string{"amd64": "amd64", "arm64": "arm64"}[runtime.GOARCH]
	if arch == "" {
		t.Skip("releases are made for amd64 and arm64")
	}
	if _, err := exec.LookPath("curl"); err != nil {
		t.Skip("curl is not here")
	}
	base := t.TempDir()
	must(t, os.Mkdir(filepath.Join(base, "v9.8.7"), 0o755))
	name := "rdmaperf-v9.8.7-linux-" + arch + "-glibc"
	publish := func(says string) {
		text := "#!/bin/sh\necho rdmaperf " + says + " go1.26\n"
		write(t, filepath.Join(base, "v9.8.7", name), text)
		write(t, filepath.Join(base, "v9.8.7", "SHA256SUMS"), fmt.Sprintf("%x  %s\n", sha256.Sum256([]byte(text)), name))
	}
	install := func(version string) (int, string, string) {
		dir := filepath.Join(t.TempDir(), "bin")
		code, out := script(t, "", "action/install", "--version", version, "--from", "file://"+base, dir)
		return code, out, filepath.Join(dir, "rdmaperf")
	}
	publish("v9.8.7")
	code, out, binary := install("v9.8.7")
	if _, err := os.Stat(binary); code != 0 || err != nil || !strings.Contains(out, "install: rdmaperf v9.8.7") {
		t.Errorf("exit %d, %v: %s", code, err, out)
	}
	if code, out, _ := install("v1.0.0"); code != 1 || !strings.Contains(out, "is v1.0.0 a release?") {
		t.Errorf("a release that is not there: exit %d: %s", code, out)
	}
	publish("v9.8.6")
	if code, out, _ := install("v9.8.7"); code != 1 || !strings.Contains(out, "says rdmaperf v9.8.6") {
		t.Errorf("another version: exit %d: %s", code, out)
	}
	write(t, filepath.Join(base, "v9.8.7", name), "#!/bin/sh\necho rdmaperf v9.8.7\n")
	if code, out, binary := install("v9.8.7"); code != 1 || !strings.Contains(out, "is not what SHA256SUMS says") {
		t.Errorf("changed: exit %d: %s", code, out)
	} else if _, err := os.Stat(binary); err == nil {
		t.Error("what was changed is installed")
	}
}

// measure asks rdmaperf for what it was asked, leaves out stacks without a device, and ends
// with the worst exit code. A stand-in notes its arguments and ends as it is told.
func TestMeasureTurnsOptionsIntoCommands(t *testing.T) {
	bin := t.TempDir()
	log := filepath.Join(bin, "log")
	write(t, filepath.Join(bin, "rdmaperf"), `#!/bin/bash
echo "$*" >>"`+log+`"
prev=
for a in "$@"; do
	case $prev in --json | --jsonl | --junit | -o) [ "$a" = - ] || echo x >"$a" ;; esac
	prev=$a
done
case $1 in run | compare) echo "${STDERR-}" >&2 ;; esac
case $1 in run) exit "${RUN_CODE-0}" ;; conform) exit "${CONFORM_CODE-0}" ;; compare) exit "${COMPARE_CODE-0}" ;; esac
`)
	t.Setenv("PATH", bin+":"+os.Getenv("PATH"))
	baseline := write(t, filepath.Join(bin, "base.json"), "x")
	for _, c := range []struct {
		name, run, conform, compare string
		args                        []string
		want                        int
		says                        []string
		err                         string // of run and compare, on stderr
		cases                       string // in thresholds.xml
	}{
		{name: "defaults on two devices", args: []string{"--devices", "a,b"},
			says: []string{"run --transport verbs:a,verbs:b,sched+verbs:a,sched+verbs:b,iwarp --workload " +
				"latency,throughput -s 64,64K --repeat 5", "conform --transport verbs:a,verbs:b,iwarp "}},
		{name: "parameters have commas", args: []string{"--devices", "a", "--transport",
			"sched(drr,weight=1,2)+verbs@,tcp", "--conform", "none"},
			says: []string{"run --transport sched(drr,weight=1,2)+verbs:a,tcp "}},
		{name: "without a device", args: []string{"--devices", ""}, says: []string{"run --transport iwarp ",
			"conform --transport iwarp "}},
		{name: "nothing is left", args: []string{"--devices", "", "--transport", "verbs@"}, want: 77},
		{name: "conditions", args: []string{"--devices", "", "--fail-if", "p99>1ms", "--fail-if", "p50>+20%",
			"--baseline", baseline}, says: []string{"--fail-if p99>1ms --quiet", "compare " + baseline,
			"result.json --fail-if p50>+20% --format markdown"}},
		{name: "a change without a baseline", args: []string{"--devices", "", "--fail-if", "p50>+20%"}, want: 2},
		{name: "no baseline yet", args: []string{"--devices", "", "--fail-if", "p50>+20%", "--baseline",
			"/none/base.json"}},
		{name: "data changed", run: "4", conform: "1", args: []string{"--devices", ""}, want: 4},
		{name: "a case failed and a threshold was missed", run: "3", conform: "1", args: []string{"--devices", ""},
			want: 1},
		{name: "another machine's baseline", compare: "2", args: []string{"--devices", "", "--baseline", baseline,
			"--fail-if", "p50>+20%"}, err: "not alike: cpu: old A, new B", says: []string{"compare "},
			cases: `<error message="not judged: exit code 2"/>`},
		{name: "a compare that fails otherwise", compare: "2", args: []string{"--devices", "", "--baseline", baseline},
			err: "rdmaperf: no", want: 2},
		{name: "a case for each threshold", run: "3", args: []string{"--devices", "", "--conform", "none", "--fail-if",
			"P99 > 1ms", "--expect", "p50<1us"}, err: "failed: p99 2ms, limit: fail if >1ms (tcp latency, 1 of 1 result)",
			want: 3, cases: `<testcase classname="thresholds" name="--fail-if P99 &gt; 1ms"><failure message="failed: ` +
				`p99 2ms, limit: fail if &gt;1ms (tcp latency, 1 of 1 result)"/></testcase>` + "\n" +
				`<testcase classname="thresholds" name="--expect p50&lt;1us"></testcase>`},
		{name: "a threshold", compare: "3", args: []string{"--devices", "", "--baseline", baseline}, want: 3},
		{name: "not run", run: "77", args: []string{"--devices", "", "--conform", "none"}, want: 77},
	} {
		t.Setenv("STDERR", c.err)
		for k, v := range map[string]string{"RUN_CODE": c.run, "CONFORM_CODE": c.conform, "COMPARE_CODE": c.compare} {
			t.Setenv(k, cmp.Or(v, "0"))
		}
		must(t, os.WriteFile(log, nil, 0o644))
		dir := filepath.Join(t.TempDir(), "out")
		code, out := script(t, "", "action/measure", append(c.args, dir)...)
		if xml, err := os.ReadFile(filepath.Join(dir, "thresholds.xml")); c.cases != "" &&
			(err != nil || !strings.Contains(string(xml), c.cases)) {
			t.Errorf("%s: %v, no\n%s\namong\n%s", c.name, err, c.cases, xml)
		}
		if code != c.want {
			t.Errorf("%s: exit %d, want %d:\n%s", c.name, code, c.want, out)
		}
		said := need(os.ReadFile(log))(t)
		for _, want := range c.says {
			if !strings.Contains(string(said), want) {
				t.Errorf("%s: no %q among\n%s", c.name, want, said)
			}
		}
	}
}

// What did not come about stands in the summary, and the limit of GitHub holds.
func TestSummary(t *testing.T) {
	dir := t.TempDir()
	here, empty := write(t, filepath.Join(dir, "here.json"), "{}"), write(t, filepath.Join(dir, "empty.jsonl"), "")
	fake := write(t, filepath.Join(dir, "fake"), "#!/bin/sh\necho \"table of $*\"\n")
	summary := write(t, filepath.Join(dir, "summary"), "what was there\n")
	code, out := script(t, summary, "summary", "--with", fake, "Some title", here, empty,
		filepath.Join(dir, "absent.json"))
	got, err := os.ReadFile(summary)
	want := "what was there\n## Some title\n\n- **not run**: there is no empty.jsonl\n- **not run**: there is no " +
		"absent.json\ntable of report --format markdown " + here + "\n"
	if code != 0 || out != "" || err != nil || string(got) != want {
		t.Errorf("exit %d, output %q, error %v, summary\n%s\nwant\n%s", code, out, err, got, want)
	}
	_, out = script(t, "", "summary", "--with", fake, "Title", here)
	if out != "## Title\n\ntable of report --format markdown "+here+"\n" {
		t.Errorf("without a job it prints %q", out)
	}
	write(t, fake, "#!/bin/sh\nseq 300000\n")
	_, out = script(t, "", "summary", "--with", fake, "Title", here)
	if !strings.HasPrefix(out, "## Title\n") || !strings.Contains(out, "\n**Cut here**") || len(out) > 1<<20 {
		t.Errorf("%d bytes, ending in %q, want fewer than 1 MiB and a word about the cut", len(out),
			out[max(0, len(out)-80):])
	}
}

// dist makes what ci/release leaves, of tiny files.
func dist(t *testing.T, version, arch, static string) string {
	t.Helper()
	dir := t.TempDir()
	var sums strings.Builder
	for _, f := range []struct{ target, text string }{{"amd64", static}, {"arm64", static + " arm"},
		{arch + "-glibc", arch}} {
		name := "rdmaperf-" + version + "-linux-" + f.target
		write(t, filepath.Join(dir, name), f.text)
		fmt.Fprintf(&sums, "%x  %s\n", sha256.Sum256([]byte(f.text)), name)
	}
	write(t, filepath.Join(dir, "SHA256SUMS-"+arch), sums.String())
	write(t, filepath.Join(dir, "BUILD-"+arch), "go\n")
	return dir
}

func TestPublishGathersOnlyWhatAgrees(t *testing.T) {
	amd64, arm64 := dist(t, "v1", "amd64", "static"), dist(t, "v1", "arm64", "static")
	out := filepath.Join(t.TempDir(), "all")
	if code, text := script(t, "", "publish", "--dry-run", out, "v1", amd64, arm64); code != 0 ||
		!strings.Contains(text, "not published") {
		t.Fatalf("exit %d\n%s", code, text)
	}
	sums, err := os.ReadFile(filepath.Join(out, "SHA256SUMS"))
	if err != nil || strings.Count(string(sums), " rdmaperf-v1-linux-") != 4 ||
		strings.Count(string(sums), " BUILD-") != 2 {
		t.Errorf("error %v, sums of\n%s", err, sums)
	}
	damaged := dist(t, "v1", "arm64", "static")
	write(t, filepath.Join(damaged, "rdmaperf-v1-linux-arm64-glibc"), "other")
	for _, test := range []struct {
		why   string
		dists []string
		want  string
	}{
		{"another machine built other bytes", []string{amd64, dist(t, "v1", "arm64", "other")},
			"not the same from every machine"},
		{"a file differs from its checksum", []string{amd64, damaged}, "is damaged"},
		{"one machine is missing", []string{amd64}, "linux-arm64-glibc is missing"},
		{"nothing was built", []string{t.TempDir()}, "no SHA256SUMS"},
	} {
		if code, text := script(t, "", "publish", append([]string{"--dry-run", t.TempDir(), "v1"},
			test.dists...)...); code != 1 || !strings.Contains(text, test.want) {
			t.Errorf("%s: exit %d, output %q, want 1 and %q", test.why, code, text, test.want)
		}
	}
}

// The tag of the major version goes where the release is, is made where there is none, and
// stays where it was behind a release candidate.
func TestPublishMovesTheMajorTag(t *testing.T) {
	moved := "api --silent -X PATCH repos/o/r/git/refs/tags/v0 -f sha=c0ffee -F force=true\n"
	for _, c := range []struct {
		version string
		isThere bool
		want    string // calls behind the release
	}{
		{"v0.3.1", true, moved},
		{"v0.3.1", false, moved + "api --silent -X POST repos/o/r/git/refs -f ref=refs/tags/v0 -f sha=c0ffee\n"},
		{"v0.3.1-rc1", true, ""},
	} {
		bin := t.TempDir()
		calls := filepath.Join(bin, "calls")
		write(t, filepath.Join(bin, "gh"),
			fmt.Sprintf("#!/bin/sh\necho \"$@\" >>%s\n[ %v = true ] || [ \"$4\" != PATCH ]\n", calls, c.isThere))
		cmd := exec.Command("./publish", c.version, dist(t, c.version, "amd64", "static"),
			dist(t, c.version, "arm64", "static"))
		cmd.Env = append(os.Environ(), "PATH="+bin+":"+os.Getenv("PATH"), "GITHUB_REPOSITORY=o/r", "GITHUB_SHA=c0ffee")
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Errorf("%s: %v\n%s", c.version, err, out)
		}
		got, _ := os.ReadFile(calls)
		made, behind, _ := strings.Cut(string(got), "\n")
		if !strings.HasPrefix(made, "release create "+c.version+" --verify-tag") || behind != c.want {
			t.Errorf("%s, v0 there %v: gh %q, then %q, want %q", c.version, c.isThere, made, behind, c.want)
		}
	}
}
