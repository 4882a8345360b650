package results

import (
	"strings"
	"testing"

	"github.com/rdmaperf/rdmaperf/reports"
	"github.com/rdmaperf/rdmaperf/reports/view"
)

// Of several stacks each has charts of its own, in which every line has another name, and an
// arm looks the same in all of them.
func TestStacksHaveChartsOfTheirOwn(t *testing.T) {
	sectionOf := func(stacks ...string) view.Section {
		d := &reports.Document{}
		for _, stack := range stacks {
			for _, arm := range []string{"none", "cache"} {
				for _, size := range []int64{4096, 65536} {
					l := &reports.Latency{Count: 1000, P50: 100, P99: 200}
					d.Results = append(d.Results, reports.Result{Stack: stack, Workload: "register", Op: "repeated", SizeBytes: size, Operations: 1000, Kind: Kind,
						Detail: &Register{Arm: arm, Pages: "base", Offload: "none", Threads: 1, Operations: 1000, Register: l}})
				}
			}
		}
		return section(reports.NewSet([]*reports.Document{d}, nil))
	}
	one, two := sectionOf("iwarp(crc)"), sectionOf("iwarp(crc)", "regcache+iwarp(crc)")
	if len(one.Figures) == 0 || len(two.Figures) != 2*len(one.Figures) {
		t.Fatalf("%d charts of one stack, %d of two", len(one.Figures), len(two.Figures))
	}
	slots := map[string]int{}
	for _, f := range two.Figures {
		if !strings.HasSuffix(f.Title, "iwarp(crc)") {
			t.Errorf("%q names no stack", f.Title)
		}
		seen := map[string]bool{}
		for _, s := range f.Chart.(*view.LineChart).Series {
			if slot, ok := slots[s.Short]; seen[s.Short] || ok && slot != s.Slot {
				t.Errorf("%q: line %q twice, or looks otherwise elsewhere", f.Title, s.Short)
			}
			seen[s.Short], slots[s.Short] = true, s.Slot
		}
		if len(seen) != 2 {
			t.Errorf("%q: lines %v", f.Title, seen)
		}
	}
}
