package main

import (
	"strings"
	"testing"

	"github.com/rdmaperf/rdmaperf/ci/targets"
	"github.com/rdmaperf/rdmaperf/reports"
)

func latency(us float64) *reports.Result {
	return &reports.Result{Latency: &reports.Latency{P50: us * 1000}}
}

// TestRatiosAreTakenInsideARepeat: a machine that gets slower from repeat to repeat
// changes no ratio.
func TestRatiosAreTakenInsideARepeat(t *testing.T) {
	m := measures{
		key{"schemes", raw, "latency", 64, 1, 0}:    {latency(1), latency(2), latency(4)},
		key{"schemes", kernel, "latency", 64, 1, 0}: {latency(4), latency(8), latency(16)},
	}
	for _, l := range m.lines(nil) {
		switch l.What {
		case "64 B over raw/shm by kernel sockets":
			if l.Median != 0.25 || l.Verdict != targets.Pass {
				t.Errorf("%+v", l)
			}
		case "64 B over raw/shm":
			if l.Median != 2 || l.Verdict != targets.Undecided && l.Verdict != targets.Fail {
				t.Errorf("%+v", l)
			}
		default:
			if l.Verdict != targets.NotMeasured {
				t.Errorf("%s was judged %s without a measurement", l.What, l.Verdict)
			}
		}
	}
}

// TestCopiesAndCallsComeFromCounters of the side that copies and calls.
func TestCopiesAndCallsComeFromCounters(t *testing.T) {
	r := &reports.Result{Operations: 10, SizeBytes: 100, Throughput: &reports.Throughput{}, Counters: &reports.Counters{
		Client: []reports.DeviceCounters{{Device: "lwip", Counters: map[string]int64{"tx_copied": 1000,
			"tx_octets": 1000, "bell_calls": 5}}},
		Server: []reports.DeviceCounters{{Device: "iwarp copies", Counters: map[string]int64{"octets_placed": 1000,
			"octets_staged": 500}}},
	}}
	var out strings.Builder
	measures{key{"schemes", raw, "throughput", 100, 16, 0}: {r}}.accounts(&out)
	if s := out.String(); !strings.Contains(s, "2.00       1.50        0.500        0.000") {
		t.Errorf("%s", s)
	}
}

// TestWhatWasNotAskedForIsNotJudged: a part of the script is no incomplete whole.
func TestWhatWasNotAskedForIsNotJudged(t *testing.T) {
	m := measures{}
	if n := len(m.lines([]string{"loss"})); n != 0 {
		t.Errorf("%d lines", n)
	}
	if a, b := len(m.lines([]string{"xdp"})), len(m.lines(nil)); a == 0 || a >= b {
		t.Errorf("%d lines of xdp, %d in all", a, b)
	}
}

func TestSchemesAreStacksWithoutWhatAllHave(t *testing.T) {
	for in, want := range map[string]string{"iwarp(crc)": kernel, "iwarp(crc,stack=raw,link=shm)": raw,
		"iwarp(crc,stack=raw,link=shm,ring=64,threads=c3)": modelC3,
		"iwarp(crc,stack=raw,link=shm,threads=c1,ring=64)": modelC1,
		"iwarp(crc,stack=raw,link=shm,threads=c1,ring=16)": modelC1, "iwarp(crc,stack=raw,link=shm,threads=c2)": raw} {
		if got := scheme(in); got != want {
			t.Errorf("%s is %s, want %s", in, got, want)
		}
	}
}
