package main

import (
	"strings"
	"testing"

	"github.com/rdmaperf/rdmaperf/reports"
)

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
