package main

import (
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/rdmaperf/rdmaperf/reports"
)

// errorsFile has a command line of each of the likely mistakes, and below it the exit code and the last line of stderr.
const errorsFile = "testdata/errors.txt"

// The wording of errors is as it was read last: one line each, with the operation, the object and the cause.
func TestErrorsReadAsWritten(t *testing.T) {
	text := need(os.ReadFile(errorsFile))(t)
	here := need(os.Getwd())(t)
	t.Chdir(t.TempDir()) // no file of a command is there
	var now strings.Builder
	errors, hints := 0, 0
	for line := range strings.Lines(string(text)) {
		words, found := strings.CutPrefix(strings.TrimSpace(line), "$ rdmaperf ")
		if !found {
			continue
		}
		errors++
		r := rdmaperf(t, shellWords(words)...)
		lines := strings.Split(strings.TrimSuffix(r.stderr, "\n"), "\n")
		last := lines[len(lines)-1]
		fmt.Fprintf(&now, "$ rdmaperf %s\n%3d %s\n", words, r.code, last)
		if r.code == 0 || !strings.HasPrefix(last, "rdmaperf: ") || strings.Contains(last, "%!") {
			t.Errorf("%s: exit %d, %q", words, r.code, last)
		}
		if strings.Contains(last, "; try ") {
			hints++
		}
	}
	if errors < 60 || hints < errors-2 {
		t.Errorf("%d errors, of which %d say what to try: want 60 and more, and all but 2", errors, hints)
	}
	fresh(t, filepath.Join(here, errorsFile), string(text), now.String())
	if t.Failed() {
		t.Log(firstDifference(string(text), now.String()))
	}
}

// Every mistake of testdata/mistakes.txt ends with its exit code and one line on stderr, and nothing was begun
// where it is of the command line. The whole lines are in errors.txt, of fewer.
func TestMistakesHaveOneLineAndTheirCode(t *testing.T) {
	l := need(net.Listen("tcp", "127.0.0.1:0"))(t)
	defer l.Close()
	_, taken, _ := net.SplitHostPort(l.Addr().String())
	rows := 0
	for line := range strings.Lines(string(need(os.ReadFile("testdata/mistakes.txt"))(t))) {
		code, rest, _ := strings.Cut(strings.TrimSpace(line), " ")
		args, want, found := strings.Cut(rest, " =>")
		if code == "#" || !found {
			continue
		}
		rows++
		r := rdmaperf(t, strings.Fields(strings.ReplaceAll(args, "TAKEN", taken))...)
		if strconv.Itoa(r.code) != code || r.code == reports.ExitUsage && r.stdout != "" ||
			!strings.HasPrefix(r.stderr, "rdmaperf: ") || strings.Count(r.stderr, "\n") != 1 ||
			!strings.Contains(r.stderr, strings.TrimSpace(want)) {
			t.Errorf("%s: exit %d, %q, %q", strings.TrimSpace(line), r.code, r.stdout, r.stderr)
		}
	}
	if rows < 300 {
		t.Errorf("%d mistakes", rows)
	}
}

// firstDifference is the first line that differs.
func firstDifference(was, is string) string {
	a, b := strings.Split(was, "\n"), strings.Split(is, "\n")
	for i := range min(len(a), len(b)) {
		if a[i] != b[i] {
			return "was " + a[i] + "\nis  " + b[i]
		}
	}
	return "another number of lines"
}

// A mistake that nobody typed says where it stands.
func TestErrorsNameTheDefaultThatTheySpeakOf(t *testing.T) {
	t.Setenv("RDMAPERF_RUN_DURATION", "soon")
	t.Setenv("RDMAPERF_RUN_QP", "2")
	r := ends(t, 2, "run", "--transport", "mem")
	if !strings.HasPrefix(r.stderr, "rdmaperf: default --duration soon, from RDMAPERF_RUN_DURATION\nrdmaperf: ") ||
		strings.Contains(r.stderr, "--qp") {
		t.Errorf("%s", r.stderr)
	}
}
