package reports_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/rdmaperf/rdmaperf/reports"
)

// Repeats are pooled into all their samples; without the samples of one there is no pool.
func TestPooledHasTheSamplesOfAll(t *testing.T) {
	one := stalled()
	if h := reports.Pooled([]*reports.Latency{one, recorded(9000, 9000)}); h == nil || h.TotalCount() != 1002 {
		t.Errorf("%v, want 1002 samples", h)
	}
	if h := reports.Pooled([]*reports.Latency{one, {Count: 1, P50: 9}}); h != nil {
		t.Errorf("%d samples pooled of a latency that has none", h.TotalCount())
	}
}

// A stack of two documents at the same place is two series; an older document has the full name alone.
func TestShortNamesKeepDocumentsApart(t *testing.T) {
	long := "iwarp(crc,window=" + strings.Repeat("9", 40) + ")"
	documents := func(transport string) *reports.Set {
		one := func() *reports.Document {
			return of(&reports.Document{Results: []reports.Result{{Stack: long, Transport: transport,
				Workload: "latency", Op: "send", SizeBytes: 64, Depth: 1, QPs: 1, Latency: latency(10, 1)}}})
		}
		return reports.NewSet([]*reports.Document{one(), one()}, []string{"a.json", "b.json"})
	}
	if s := documents("iwarp"); !slices.Equal(s.Short, []string{"iwarp · a.json", "iwarp · b.json"}) {
		t.Errorf("%q", s.Short)
	}
	for _, name := range documents("").Short {
		if !strings.HasPrefix(name, "iwarp(crc,") {
			t.Errorf("%q is not the stack's name", name)
		}
	}
}
