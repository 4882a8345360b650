package main

import (
	"math"
	"strings"
	"testing"

	"github.com/rdmaperf/rdmaperf/ci/targets"
)

func find(t *testing.T, lines []targets.Line, part string) targets.Line {
	t.Helper()
	for _, l := range lines {
		if strings.Contains(l.Name, part) {
			return l
		}
	}
	t.Fatalf("no line has %q", part)
	return targets.Line{}
}

// Ratios are taken inside a repeat, and bounds judge in their own direction.
func TestLines(t *testing.T) {
	m := measures{
		"lite+iwarp/write/64/trip": {105, 210, 104}, "iwarp/write/64/trip": {100, 200, 100},
		"lite+iwarp/write/1048576/rate": {90, 91, 90}, "iwarp/write/1048576/rate": {100, 100, 100},
		"lite+iwarp/call/64/trip": {20_000, 21_000, 19_000}, "iwarp/send/64/trip": {10_000, 10_000, 10_000},
		"grpc(tcp)/call/64/trip": {130_000, 130_000, 130_000},
	}
	m.bench("goos: linux\nBenchmarkLookup/regions=1-2  \t1000\t 12.5 ns/op\t 0 B/op\nBenchmarkLookup/regions=1  " +
		"\t1000\t 13.5 ns/op\nBenchmarkLookup/regions=1-2 1000 13 ns/op\n" +
		"BenchmarkRead/iwarp-2 \t 18\t 40000000 ns/op\t 10900 ns/many\t 10000 ns/one\t 2 B/op\nBenchmarkRead/iwarp-2 " +
		"1 4 ns/op 10900 ns/many 8000 ns/one\nBenchmarkRead/iwarp-2 1 4 ns/op 10500 ns/many 10000 ns/one\n")
	lines := m.lines()
	for _, c := range []struct {
		part    string
		value   float64
		verdict targets.Verdict
	}{
		{"64 B write through", 1.05, targets.Pass},
		{"1 MiB writes", 0.90, targets.Fail},
		{"over a bare send", 2.0, targets.Fail},
		{"grpc(tcp) over", 6.5, targets.Pass},
		{"us of a 64 B call, callers", 20, ""},
		{"look-up and permission, one", 13, targets.Pass},
		{"read over iwarp, 10,000", 1.09, targets.Pass},
		{"read over mem", 0, targets.NotMeasured},
		{"look-up and permission, 10,000", 0, targets.NotMeasured},
	} {
		l := find(t, lines, c.part)
		if math.Abs(l.Value-c.value) > 1e-9 || l.Verdict != c.verdict {
			t.Errorf("%s: %v, %q; want %v, %q", l.Name, l.Value, l.Verdict, c.value, c.verdict)
		}
	}
}
