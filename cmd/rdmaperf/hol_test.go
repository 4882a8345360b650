package main

import (
	"strings"
	"testing"
)

// The head-of-line workload over two transports: every size in both arms.
func TestRunMeasuresHeadOfLine(t *testing.T) {
	args := []string{"run", "--transport", "iwarp,mem", "--workload", "hol", "--bulk-size", "4K,64K", "--bulk-depth", "4", "--probe-size", "32", "--probe-rate", "20000",
		"-n", "40", "--warmup", "5", "--probe-priority", "2"}
	r := rdmaperf(t, append(args, "--format", "json")...)
	if r.code != 0 || r.stderr != "" {
		t.Fatalf("exit %d, stderr %q", r.code, r.stderr)
	}
	d := document(t, []byte(r.stdout))
	if len(d.Results) != 2*2*2 {
		t.Fatalf("%d results, want 8", len(d.Results))
	}
	seen := map[string]bool{}
	for _, res := range d.Results {
		h := res.HOL
		if h == nil || h.ProbeSizeBytes != 32 || h.ProbeIntervalNs != 50_000 || h.ProbeLoaded.Count != 40 || !res.Verified || res.Depth != 4 {
			t.Fatalf("result %+v", res)
		}
		if res.Parameters["arm"] != h.Arm || res.Parameters["probe_priority"] != 2.0 {
			t.Errorf("parameters %v", res.Parameters)
		}
		seen[h.Arm] = true
	}
	if !seen["same-qp"] || !seen["two-qp"] {
		t.Errorf("arms %v, want both", seen)
	}
	r = rdmaperf(t, args...)
	for _, want := range []string{"iwarp(crc) [soft]: hol write", "probes of 32 bytes every 50 usec", "same-qp", "two-qp", "growth"} {
		if !strings.Contains(r.stdout, want) {
			t.Errorf("the table lacks %q:\n%s", want, r.stdout)
		}
	}
}

// Bulk sends, and a closed loop.
func TestRunMeasuresHeadOfLineOfSends(t *testing.T) {
	r := rdmaperf(t, "run", "--transport", "tcp", "--workload", "hol,latency", "--op", "send", "-s", "64", "--bulk-size", "64K", "--hol-arm", "same-qp", "--probe-interval", "0", "-n", "40", "--format", "json")
	if r.code != 0 {
		t.Fatalf("exit %d, stderr %q", r.code, r.stderr)
	}
	d := document(t, []byte(r.stdout))
	if len(d.Results) != 2 || d.Results[0].HOL == nil || d.Results[0].Op != "send" || d.Results[0].HOL.ProbeIntervalNs != 0 || d.Results[1].Workload != "latency" {
		t.Errorf("results %+v", d.Results)
	}
}
