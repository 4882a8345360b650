package main

import (
	"bytes"
	"context"
	"encoding/xml"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

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

// conformed runs conform with both files and checks that they agree with each other about how many cases there were.
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

// Calls over a device in one process, over one between processes, and without any.
func TestConformOfCalls(t *testing.T) {
	r, counts, cases := conformed(t, "--transport", "grpc(dropin)+mem,grpc(fused,event,ring=64K)+sched+iwarp,grpc(tcp)",
		"--only", "interop/empty-unary,interop/jwt-token-creds,call/bidirectional,peer/killed-in-unary")
	if r.code != 0 || counts.Failures+counts.Errors != 0 || len(counts.Suites) != 3 {
		t.Fatalf("exit %d, %+v, stderr %q\n%s", r.code, counts, r.stderr, r.stdout)
	}
	want := strings.Fields("pass unsupported pass unsupported pass unsupported pass pass pass unsupported pass pass")
	for i, c := range cases {
		if string(c.Verdict) != want[i] {
			t.Errorf("%s of %s: %s, want %s", c.ID, c.Transport, c.Verdict, want[i])
		}
	}
	if !strings.Contains(r.stdout, "metadata service of Google's cloud") {
		t.Errorf("the matrix does not say why a case is unsupported:\n%s", r.stdout)
	}
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
		r, counts, cases := conformed(t, "--transport", test.transports, "--only", test.only)
		if r.code != 0 || counts.Failures+counts.Errors != 0 || len(cases) != test.cases {
			t.Errorf("exit %d, %+v, stderr %q\n%s", r.code, counts, r.stderr, r.stdout)
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
	r, _, cases := conformed(t, "--transport", "mem,grpc(fused)+mem", "--only", "ord/sig-all,interop/empty-unary")
	if r.code != 0 || len(cases) != 2 || cases[0].ID != "ord/sig-all" || cases[1].ID != "interop/empty-unary" {
		t.Errorf("exit %d, %+v, stderr %q", r.code, cases, r.stderr)
	}
	r = rdmaperf(t, "conform", "--list", "--transport", "mem,grpc(fused)+mem")
	if !strings.Contains(r.stdout, "ord/sig-all") || !strings.Contains(r.stdout, "peer/killed-client") {
		t.Errorf("list of both: %s", r.stdout)
	}
	r = rdmaperf(t, "conform", "--explain", "interop/ping-pong")
	if r.code != 0 || !strings.Contains(r.stdout, "ping_pong") {
		t.Errorf("explain: exit %d, %s", r.code, r.stdout)
	}
}

func TestConformOfCallsNotRun(t *testing.T) {
	r, counts, cases := conformed(t, "--transport", "grpc(dropin)+verbs:nosuchdevice0", "--only", "svc/health")
	if r.code != reports.ExitNotRun || counts.Errors != 0 || counts.Tests != 1 || cases[0].Verdict != "notrun" {
		t.Errorf("exit %d, %+v, %+v", r.code, counts, cases)
	}
}

// TestConformWire aims the wire cases at our own stack, with and without what changes
// the expectations: no CRC asked for, and no RFC 7306.
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

func TestConformWireIsExplained(t *testing.T) {
	if out, line, code := invoke(context.Background(), newConformCommand(), "--explain",
		"w-55/read-source"); code != reports.ExitOK || !strings.Contains(out, "RFC 5040") {
		t.Errorf("explain: exit code %d, %q, %q", code, line, out)
	}
}

// targetServer runs serve --target and returns its control address.
func targetServer(t *testing.T, args ...string) string {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	var out, errs console
	done := make(chan error, 1)
	go func() {
		done <- invokeTo(ctx, newServeCommand(), &out, &errs,
			append([]string{"--target", "--bind", "127.0.0.1", "-p", "0"}, args...)...)
	}()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Errorf("serve --target: %v", err)
		}
	})
	addr := regexp.MustCompile(`addr=(127\.0\.0\.1:\d+)`)
	for range 1000 {
		if m := addr.FindStringSubmatch(errs.String()); m != nil {
			return m[1]
		}
		select {
		case err := <-done:
			done <- err
			t.Fatalf("serve --target: %v", err)
		case <-time.After(10 * time.Millisecond):
		}
	}
	t.Fatalf("no address in %q", errs.String())
	return ""
}

// TestConformWireTarget: told what to do, our own stack passes every row, whatever it
// was told of CRC, placement and RFC 7306.
func TestConformWireTarget(t *testing.T) {
	for stack, unsupported := range map[string]int{"iwarp(nocrc,rfc5040)": 9, "sched+iwarp": 0} {
		t.Run(stack, func(t *testing.T) {
			if stack != "iwarp(nocrc,rfc5040)" { // which is expected to do least
				fulltest.Only(t, "every wire case again")
			}
			t.Parallel()
			addr := targetServer(t, "--transport", stack)
			// of a case; under the race detector one took 10 s
			out, line, code := invoke(context.Background(), newConformCommand(), "--wire", addr, "--format", "jsonl",
				"--case-timeout", "1m")
			if code != reports.ExitOK {
				t.Errorf("exit code %d, %q\n%s", code, line, out)
			}
			all, not := strings.Count(out, `"verdict"`), strings.Count(out, `"verdict":"unsupported"`)
			if all != len(suite.Catalogue()) || not != unsupported ||
				strings.Count(out, `"verdict":"pass"`) != all-not {
				t.Errorf("%d cases, %d unsupported, want %d:\n%s", all, not, unsupported, out)
			}
			if !strings.Contains(out, `"transport":"wire:`+stack+"@"+addr) {
				t.Errorf("the stack is not named: %.300s", out)
			}
		})
	}
}
