package room

import (
	"slices"
	"strings"
	"testing"
)

var rooms = []*Room{
	{Name: "single", Standard: true, Means: [][]string{{"rate", "rate-sweep"}}},
	{Name: "stream", Standard: true, Means: [][]string{{"both"}}},
	{Name: "beside", Standard: true, Unless: func(c *Common) bool { return c.Changed("size") }},
	{Name: "calls", ForCalls: true, Means: [][]string{{"kind"}, {"outstanding"}}, Takes: []string{"rate"}},
	{Name: "store", Means: [][]string{{"mix"}}, Takes: []string{"outstanding", "rate"}},
}

func TestFlagsChooseTheWorkload(t *testing.T) {
	for _, c := range []struct {
		given     string // flags
		workloads string // of --workload
		callsOnly bool
		want      string // "": an error
		asked     bool
	}{
		{want: "single stream beside"},
		{given: "size", want: "single stream"},
		{given: "rate", want: "single", asked: true},
		{given: "rate-sweep size", want: "single", asked: true},
		{given: "rate", callsOnly: true, want: "calls", asked: true},
		{given: "both", want: "stream", asked: true},
		{given: "outstanding rate", want: "calls", asked: true}, // what fewer workloads have says more
		{given: "mix outstanding rate", want: "store", asked: true},
		{callsOnly: true, want: "calls", asked: true},
		{given: "kind mix"}, // two workloads
		{given: "workload rate", workloads: "stream"},
		{given: "workload rate", workloads: "store", want: "store", asked: true},
		{given: "workload rate", workloads: "single store", want: "single store", asked: true},
		{given: "workload size", workloads: "beside", want: "beside", asked: true},
		{given: "workload", workloads: "nonesuch"},
	} {
		given := strings.Fields(c.given)
		list := strings.Fields(c.workloads)
		if len(list) == 0 {
			list = Standard(rooms)
		}
		got, asked, err := Choose(rooms, &Common{Changed: func(f string) bool { return slices.Contains(given, f) },
			Workloads: list, CallsOnly: c.callsOnly})
		if strings.Join(got, " ") != c.want || asked != c.asked || (err == nil) != (c.want != "") {
			t.Errorf("flags %q, --workload %q: %v, asked %v, %v; want %q, asked %v", c.given, c.workloads, got, asked,
				err, c.want, c.asked)
		}
	}
}
