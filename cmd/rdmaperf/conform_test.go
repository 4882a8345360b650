package main

import (
	"context"
	"encoding/xml"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rdmaperf/rdmaperf/internal/fulltest"
	"github.com/rdmaperf/rdmaperf/reports"
	"github.com/rdmaperf/rdmaperf/reports/page"
	"github.com/rdmaperf/rdmaperf/softstack/wiretest/suite"
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

// conformed runs conform with both files, which have to agree about how many cases there were, and wants an exit code.
func conformed(t *testing.T, code int, args ...string) (ran, junitCounts, []page.CaseResult) {
	t.Helper()
	dir := t.TempDir()
	r := ends(t, code, append([]string{"conform", "--junit", filepath.Join(dir, "junit.xml"), "--jsonl",
		filepath.Join(dir, "conform.jsonl")}, args...)...)
	var counts junitCounts
	must(t, xml.Unmarshal([]byte(contents(t, dir, "junit.xml")), &counts))
	cases := need(page.ReadConformance(strings.NewReader(contents(t, dir, "conform.jsonl"))))(t)
	if counts.Tests != len(cases) {
		t.Errorf("%d cases in JUnit, %d records", counts.Tests, len(cases))
	}
	return r, counts, cases
}

// From the verdicts to the page and the summary of a pipeline.
func TestConformWritesFilesThatReportReads(t *testing.T) {
	dir := t.TempDir()
	jsonl := filepath.Join(dir, "conform.jsonl")
	r := runs(t, "conform", "--transport", "mem", "--only", "dev,atm", "--jsonl", jsonl)
	if !strings.HasPrefix(r.stdout, "case ") {
		t.Fatalf("conform: stdout %q, stderr %q", r.stdout, r.stderr)
	}
	if r := runs(t, "report", jsonl, "-o", filepath.Join(dir, "x.html")); r.stdout+r.stderr != "" {
		t.Errorf("report: stdout %q, stderr %q", r.stdout, r.stderr)
	}
	contains(t, contents(t, dir, "x.html"), `id="conformance"`, "atm/fetch-add", "Conformance of mem")
	contains(t, runs(t, "report", jsonl, "--format", "markdown").stdout, "| atm | ")
}

// The exit code and the JUnit file are red together.
func TestConformLedgerAndStrict(t *testing.T) {
	ledger := filepath.Join(t.TempDir(), "ledger.json")
	entry := `{"entries":[{"case":"ord/sig-all","transport":"mem","reason":"for the test","source":"here","confirmed":"2026-01-31"}]}`
	must(t, os.WriteFile(ledger, []byte(entry), 0o644))
	args := []string{"--transport", "mem", "--only", "ord/sig-all", "--ledger", ledger}
	_, counts, cases := conformed(t, 0, args...)
	if counts.Failures != 0 || cases[0].Verdict != "xpass" || !strings.Contains(cases[0].Ledger, "for the test") {
		t.Errorf("%+v, %+v, want an xpass that is not red", counts, cases)
	}
	if _, counts, _ := conformed(t, 1, append(args, "--strict")...); counts.Failures != 1 {
		t.Errorf("--strict: %+v, want a failure", counts)
	}
}

func TestConformNotRunIsOneSkippedCaseInJUnit(t *testing.T) {
	for _, args := range [][]string{{"--transport", "mem,verbs:nosuchdevice0", "--only", "ord/sig-all"},
		{"--transport", "grpc(tcp),grpc(dropin)+verbs:nosuchdevice0", "--only", "svc/health"}} {
		_, counts, cases := conformed(t, reports.ExitNotRun, args...)
		if counts.Errors != 0 || counts.Tests != 2 || len(counts.Suites) != 2 || cases[1].Verdict != "notrun" {
			t.Errorf("%+v, %+v, want no error", counts, cases)
		}
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
		failsInALine(t, reports.ExitUsage, test.want, append([]string{"conform", "--transport", "mem", "--only",
			"ord/sig-all"}, test.args...)...)
	}
}

// Calls over a device in one process, over one between processes, and without any.
func TestConformOfCalls(t *testing.T) {
	r, counts, cases := conformed(t, 0, "--transport",
		"grpc(dropin)+mem,grpc(fused,event,ring=64K)+sched+iwarp,grpc(tcp)",
		"--only", "interop/empty-unary,interop/jwt-token-creds,call/bidirectional,peer/killed-in-unary")
	if counts.Failures+counts.Errors != 0 || len(counts.Suites) != 3 {
		t.Fatalf("%+v, stderr %q\n%s", counts, r.stderr, r.stdout)
	}
	want := strings.Fields("pass unsupported pass unsupported pass unsupported pass pass pass unsupported pass pass")
	for i, c := range cases {
		if string(c.Verdict) != want[i] {
			t.Errorf("%s of %s: %s, want %s", c.ID, c.Transport, c.Verdict, want[i])
		}
	}
	contains(t, r.stdout, "metadata service of Google's cloud") // why a case is unsupported
}

// The sudden death of either process, between processes as it happens; and what is set up besides calls.
func TestConformOfPeersThatDieAndOfSetUps(t *testing.T) {
	for _, test := range []struct {
		transports, only string
		cases            int
	}{
		{"grpc(dropin)+iwarp,grpc(dropin,event)+iwarp,grpc(fused,bp)+iwarp,grpc(fused)+iwarp,grpc(fused,event)+iwarp",
			"peer", 20},
		{"grpc(dropin)+iwarp,grpc(dropin)+mem,grpc(fused)+iwarp",
			"svc,tls,chan/interceptors,chan/keepalive-idle,chan/keepalive-silent", 24},
	} {
		r, counts, cases := conformed(t, 0, "--transport", test.transports, "--only", test.only)
		if counts.Failures+counts.Errors != 0 || len(cases) != test.cases {
			t.Errorf("%+v, stderr %q\n%s", counts, r.stderr, r.stdout)
		}
		for _, c := range cases {
			if c.Verdict != "pass" {
				t.Errorf("%s of %s: %s", c.ID, c.Transport, c.Verdict)
			}
		}
	}
}

// Both suites in one run; what one does not know is no mistake while the other does.
func TestConformOfBothSuites(t *testing.T) {
	_, _, cases := conformed(t, 0, "--transport", "mem,grpc(fused)+mem", "--only", "ord/sig-all,interop/empty-unary")
	if len(cases) != 2 || cases[0].ID != "ord/sig-all" || cases[1].ID != "interop/empty-unary" {
		t.Errorf("%+v", cases)
	}
	contains(t, runs(t, "conform", "--list", "--transport", "mem,grpc(fused)+mem").stdout, "ord/sig-all",
		"peer/killed-client")
	contains(t, runs(t, "conform", "--explain", "interop/ping-pong").stdout, "ping_pong")
	contains(t, runs(t, "conform", "--explain", "w-55/read-source").stdout, "RFC 5040")
}

// Our own stack passes the wire cases, also without CRC and without RFC 7306, which change what they expect.
func TestConformWire(t *testing.T) {
	for _, stack := range []string{"iwarp", "iwarp(nocrc,rfc5040)", "iwarp(checked,rfc7306)"} {
		t.Run(stack, func(t *testing.T) {
			if stack != "iwarp" {
				fulltest.Only(t, "every wire case again")
			}
			t.Parallel()
			port, _ := rpingServer(t, new(console), "--transport", stack)
			out, line, code := invoke(context.Background(), newConformCommand(), "--wire", "127.0.0.1:"+port,
				"--format", "jsonl")
			if code != reports.ExitOK {
				t.Errorf("exit code %d, %q\n%s", code, line, out)
			}
			if n := strings.Count(out, `"verdict":"pass"`); n < 50 {
				t.Errorf("%d cases passed:\n%s", n, out)
			}
		})
	}
}

// As a target our own stack passes every row, with any settings of CRC, placement and RFC 7306.
func TestConformWireTarget(t *testing.T) {
	for stack, unsupported := range map[string]int{"iwarp(nocrc,rfc5040)": 9, "sched+iwarp": 0} {
		t.Run(stack, func(t *testing.T) {
			if stack != "iwarp(nocrc,rfc5040)" { // which is expected to do least
				fulltest.Only(t, "every wire case again")
			}
			t.Parallel()
			port, _ := serving(t, newServeCommand(), new(console), "--target", "--bind", "127.0.0.1", "-p", "0",
				"--transport", stack)
			// of a case; under the race detector one took 10 s
			out, line, code := invoke(context.Background(), newConformCommand(), "--wire", "127.0.0.1:"+port,
				"--format", "jsonl", "--case-timeout", "1m")
			if code != reports.ExitOK {
				t.Errorf("exit code %d, %q\n%s", code, line, out)
			}
			all, not := strings.Count(out, `"verdict"`), strings.Count(out, `"verdict":"unsupported"`)
			if all != len(suite.Catalogue()) || not != unsupported ||
				strings.Count(out, `"verdict":"pass"`) != all-not {
				t.Errorf("%d cases, %d unsupported, want %d:\n%s", all, not, unsupported, out)
			}
			contains(t, out, `"transport":"wire:`+stack+"@127.0.0.1:"+port)
		})
	}
}
