package main

import (
	"bytes"
	"encoding/xml"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rdmaperf/rdmaperf/reports"
	"github.com/rdmaperf/rdmaperf/reports/page"
)

// junitCounts is what a pipeline reads first.
type junitCounts struct {
	Tests    int `xml:"tests,attr"`
	Failures int `xml:"failures,attr"`
	Errors   int `xml:"errors,attr"`
	Suites   []struct {
		Name string `xml:"name,attr"`
	} `xml:"testsuite"`
}

// conformed runs conform with both files and checks that they agree with each
// other about how many cases there were.
func conformed(t *testing.T, args ...string) (ran, junitCounts, []page.CaseResult) {
	t.Helper()
	dir := t.TempDir()
	junit, jsonl := filepath.Join(dir, "junit.xml"), filepath.Join(dir, "conform.jsonl")
	r := rdmaperf(t, append([]string{"conform", "--junit", junit, "--jsonl", jsonl}, args...)...)
	b := need(os.ReadFile(junit))(t)
	var counts junitCounts
	if err := xml.Unmarshal(b, &counts); err != nil {
		t.Fatalf("%v\n%s", err, b)
	}
	b = need(os.ReadFile(jsonl))(t)
	cases := need(page.ReadConformance(bytes.NewReader(b)))(t)
	if counts.Tests != len(cases) {
		t.Errorf("%d cases in JUnit, %d records", counts.Tests, len(cases))
	}
	return r, counts, cases
}

// From the verdicts to the page and the summary of a pipeline.
func TestConformWritesFilesThatReportReads(t *testing.T) {
	dir := t.TempDir()
	jsonl := filepath.Join(dir, "conform.jsonl")
	r := rdmaperf(t, "conform", "--transport", "mem", "--only", "dev,atm", "--jsonl", jsonl)
	if r.code != 0 || !strings.HasPrefix(r.stdout, "case ") {
		t.Fatalf("conform: exit %d, stdout %q, stderr %q", r.code, r.stdout, r.stderr)
	}
	page := filepath.Join(dir, "x.html")
	if r := rdmaperf(t, "report", jsonl, "-o", page); r.code != 0 || r.stdout+r.stderr != "" {
		t.Fatalf("report: exit %d, stderr %q", r.code, r.stderr)
	}
	b := need(os.ReadFile(page))(t)
	contains(t, string(b), `id="conformance"`, "atm/fetch-add", "Conformance of mem")
	r = rdmaperf(t, "report", jsonl, "--format", "markdown")
	if r.code != 0 || !strings.Contains(r.stdout, "| atm | ") {
		t.Errorf("markdown: exit %d, stdout %q, stderr %q", r.code, r.stdout, r.stderr)
	}
}

// The exit code and the JUnit file are red together.
func TestConformLedgerAndStrict(t *testing.T) {
	ledger := filepath.Join(t.TempDir(), "ledger.json")
	entry := `{"entries":[{"case":"ord/sig-all","transport":"mem","reason":"for the test","source":"here","confirmed":"2026-01-31"}]}`
	must(t, os.WriteFile(ledger, []byte(entry), 0o644))
	args := []string{"--transport", "mem", "--only", "ord/sig-all", "--ledger", ledger}
	r, counts, cases := conformed(t, args...)
	if r.code != 0 || counts.Failures != 0 || cases[0].Verdict != "xpass" ||
		!strings.Contains(cases[0].Ledger, "for the test") {
		t.Errorf("exit %d, %+v, %+v, want an xpass that is not red", r.code, counts, cases)
	}
	if r, counts, _ := conformed(t, append(args, "--strict")...); r.code != 1 || counts.Failures != 1 {
		t.Errorf("--strict: exit %d, %+v, want exit 1 and a failure", r.code, counts)
	}
}

func TestConformNotRunIsOneSkippedCaseInJUnit(t *testing.T) {
	r, counts, cases := conformed(t, "--transport", "mem,verbs:nosuchdevice0", "--only", "ord/sig-all")
	if r.code != reports.ExitNotRun || counts.Errors != 0 || counts.Tests != 2 || len(counts.Suites) != 2 ||
		cases[1].Verdict != "notrun" {
		t.Errorf("exit %d, %+v, %+v, want %d and no error", r.code, counts, cases, reports.ExitNotRun)
	}
}

func TestConformRefusesFilesAndLedgers(t *testing.T) {
	dir := t.TempDir()
	ledger := filepath.Join(dir, "ledger.json")
	entry := `{"entries":[{"case":"ord/no-such-case","transport":"mem","reason":"r","source":"s","confirmed":"2026-01-31"}]}`
	must(t, os.WriteFile(ledger, []byte(entry), 0o644))
	absent := filepath.Join(dir, "absent", "file")
	for _, test := range []struct {
		args []string
		want string
	}{
		{[]string{"--junit", absent}, absent},
		{[]string{"--jsonl", absent}, absent},
		{[]string{"--ledger", absent}, absent},
		{[]string{"--ledger", ledger}, `no case is called "ord/no-such-case"`},
	} {
		r := rdmaperf(t, append([]string{"conform", "--transport", "mem", "--only", "ord/sig-all"}, test.args...)...)
		if r.code != reports.ExitUsage || r.stdout != "" || strings.Count(r.stderr, "\n") != 1 ||
			!strings.Contains(r.stderr, test.want) {
			t.Errorf("%q: exit %d, stderr %q, want exit 2 and one line with %q", test.args, r.code, r.stderr, test.want)
		}
	}
}
