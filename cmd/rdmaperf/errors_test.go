package main

import (
	"fmt"
	"os"
	"strings"
	"testing"
)

// errorsFile has a command line of each of the likely mistakes, and below it the exit code and the last line of stderr.
const errorsFile = "testdata/errors.txt"

// The wording of errors is as it was read last: one line each, with the operation, the object and the cause.
func TestErrorsReadAsWritten(t *testing.T) {
	text, err := os.ReadFile(errorsFile)
	if err != nil {
		t.Fatal(err)
	}
	here, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
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
		now.WriteString("$ rdmaperf " + words + "\n" + fmt.Sprintf("%3d ", r.code) + last + "\n")
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
	switch {
	case now.String() == string(text):
	case *update:
		if err := os.WriteFile(here+"/"+errorsFile, []byte(now.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	default:
		t.Errorf("errors read otherwise: run go test ./cmd/rdmaperf -run TestErrorsRead -update, and read the change:\n%s",
			firstDifference(string(text), now.String()))
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
