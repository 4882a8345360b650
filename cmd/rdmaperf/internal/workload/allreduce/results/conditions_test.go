package results

import (
	"strings"
	"testing"

	"github.com/rdmaperf/rdmaperf/reports"
)

// Segments grow where a message would have too many of them, so the size that was asked for is
// the least, and what stands above the table says so.
func TestConditionsSayThatSegmentsMayBeLarger(t *testing.T) {
	for segment, want := range map[int]string{1 << 20: "segments of 1 MiB or more",
		64 << 10: "segments of 64 KiB or more"} {
		r := reports.Result{Workload: "allreduce", Detail: &Allreduce{Ranks: 4, Eager: 8 << 10, Segment: segment,
			Waiting: "poll"}}
		Results.Apply(&r)
		got := r.Note
		if !strings.Contains(got, want) || !strings.Contains(got, "messages up to 8 KiB are sent") {
			t.Errorf("conditions: %q, want %q", got, want)
		}
	}
}
