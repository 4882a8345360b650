package reports_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/rdmaperf/rdmaperf/reports"
)

// Repeats are pooled into all their samples; without the samples of one there is no pool.
func TestPooledHasTheSamplesOfAll(t *testing.T) {
	of := func(n int64, ns int64) *reports.Latency {
		r := reports.NewRecorder()
		r.RecordN(ns, n)
		l := r.Snapshot()
		return &l
	}
	one := of(1000, 3000)
	h := reports.Pooled([]*reports.Latency{one, of(500, 9000)})
	if h == nil || h.TotalCount() != 1500 {
		t.Fatalf("%v, want 1500 samples", h)
	}
	if h := reports.Pooled([]*reports.Latency{one, {Count: 1, P50: 9}}); h != nil {
		t.Errorf("%d samples pooled of a latency that has none", h.TotalCount())
	}
}

// A stack of two documents at the same place is two series, told apart by the documents' names, in the short form as
// well; a document of before stacks were called as they were asked for has the full name alone.
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
