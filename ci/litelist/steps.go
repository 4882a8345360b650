package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/rdmaperf/rdmaperf/reports"
)

// runner runs the commands of one claim after the other and keeps what came of it.
type runner struct {
	program, dir, machine string

	ctx    context.Context
	line   line
	serial int
}

// errStop ends a claim whose command failed: there is nothing to go on with.
var errStop = errors.New("stop")

// broke notes a command that failed.
func (r *runner) broke(err error) {
	r.line.verdict, r.line.failed = fail, true
	r.line.why = append(r.line.why, err.Error())
}

// lacks notes that something is not here.
func (r *runner) lacks(err error) {
	if r.line.verdict == pass {
		r.line.verdict = notRun
	}
	r.line.why = append(r.line.why, err.Error())
}

// figure notes what was measured.
func (r *runner) figure(format string, args ...any) {
	r.line.figures = append(r.line.figures, fmt.Sprintf(format, args...))
}

// holds notes a figure that speaks against the claim unless ok.
func (r *runner) holds(ok bool, format string, args ...any) {
	r.figure(format, args...)
	if !ok {
		r.line.verdict = fail
		r.line.why = append(r.line.why, "against the claim: "+fmt.Sprintf(format, args...))
	}
}

// start runs a command to its end; shown is how a reader types it.
func (r *runner) start(shown string, name string, args ...string) (stdout string) {
	r.line.commands = append(r.line.commands, shown)
	cmd := exec.CommandContext(r.ctx, name, args...)
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) }
	cmd.WaitDelay = 5 * time.Second
	var out, said bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &said
	err := cmd.Run()
	var exit *exec.ExitError
	switch {
	case err == nil:
		return out.String()
	case r.ctx.Err() != nil:
		r.broke(fmt.Errorf("%s: not over in time", shown))
	case errors.As(err, &exit) && exit.ExitCode() == reports.ExitNotRun:
		r.lacks(fmt.Errorf("%s: %s", shown, last(said.String())))
	default:
		text := last(said.String())
		if text == "" {
			text = last(out.String())
		}
		r.broke(fmt.Errorf("%s: %v: %s", shown, err, text))
	}
	panic(errStop)
}

// last is the last line that says something.
func last(text string) string {
	lines := strings.Split(strings.TrimSpace(text), "\n")
	return strings.TrimSpace(lines[len(lines)-1])
}

// quoted is an argument as a shell takes it.
func quoted(args []string) string {
	var b strings.Builder
	for _, a := range args {
		b.WriteByte(' ')
		if strings.ContainsAny(a, "()+*?|$^ ") {
			a = "'" + a + "'"
		}
		b.WriteString(a)
	}
	return b.String()
}

// tool runs rdmaperf.
func (r *runner) tool(hidden []string, args ...string) string {
	return r.start("rdmaperf"+quoted(args), r.program, append(args, hidden...)...)
}

// run runs "rdmaperf run" and reads its results.
func (r *runner) run(args ...string) results {
	r.serial++
	file := filepath.Join(r.dir, fmt.Sprintf("%s-%d.json", r.line.name, r.serial))
	r.tool([]string{"--quiet", "--json", file}, append([]string{"run"}, args...)...)
	d, err := readResults(file)
	if err == nil && len(d) == 0 {
		err = errors.New("no results")
	}
	if err != nil {
		r.broke(fmt.Errorf("rdmaperf run: %w", err))
		panic(errStop)
	}
	return d
}

// conform runs cases of the tier over mem and iwarp, all of which must have passed.
func (r *runner) conform(cases ...string) {
	const over = "lite+mem,lite+iwarp"
	out := r.tool([]string{"--format", "jsonl"}, "conform", "--transport", over, "--only", strings.Join(cases, ","))
	passed := 0
	for s := bufio.NewScanner(strings.NewReader(out)); s.Scan(); {
		var c struct{ ID, Verdict string }
		if json.Unmarshal(s.Bytes(), &c) != nil || c.ID == "" {
			continue
		}
		if c.Verdict == "pass" {
			passed++
		}
	}
	want := 2 * len(cases)
	r.holds(passed == want, "%d of %d cases pass over %s", passed, want, over)
}

var (
	passLine = regexp.MustCompile(`(?m)^--- PASS: (\S+)`)
	logLine  = regexp.MustCompile(`(?m)^\s+\S+_test\.go:\d+: measured: (.*)$`)
)

// test runs tests of a package, by their names; each must have passed. What they say they
// measured is a figure.
func (r *runner) test(pkg string, names ...string) {
	run := "^(" + strings.Join(names, "|") + ")$"
	args := []string{"test", "-count=1", "-v", "-run", run, pkg}
	out := r.start("go test -v -run '"+strings.Join(names, "|")+"' "+pkg, "go", args...)
	passed := map[string]bool{}
	for _, m := range passLine.FindAllStringSubmatch(out, -1) {
		passed[m[1]] = true
	}
	n := 0
	for _, name := range names {
		if passed[name] {
			n++
		}
	}
	r.holds(n == len(names), "%d of %d tests pass", n, len(names))
	for _, m := range logLine.FindAllStringSubmatch(out, -1) {
		if !slices.Contains(r.line.figures, m[1]) { // the same on every device
			r.figure("%s", m[1])
		}
	}
}

// readResults reads a result document.
func readResults(file string) (results, error) {
	b, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	var d struct{ Results []json.RawMessage }
	if err := json.Unmarshal(b, &d); err != nil {
		return nil, err
	}
	all := make(results, len(d.Results))
	for i, raw := range d.Results {
		if err := all[i].read(raw); err != nil {
			return nil, err
		}
	}
	return all, nil
}
