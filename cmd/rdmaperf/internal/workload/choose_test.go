package workload

import (
	"slices"
	"strings"
	"testing"

	"github.com/spf13/pflag"
)

type listed struct {
	Workload
	meta  Meta
	flags []string
}

func (l listed) Meta() Meta { return l.meta }

func (l listed) Flags(set *pflag.FlagSet) {
	for _, f := range l.flags {
		set.Bool(f, false, "")
	}
}

var all = []Workload{
	listed{meta: Meta{Name: "single", Standard: true, Means: []string{"rate", "rate-sweep"}}},
	listed{meta: Meta{Name: "stream", Standard: true, Means: []string{"both"}}, flags: []string{"both"}},
	listed{meta: Meta{Name: "beside", Standard: true}, flags: []string{"bulk"}},
	listed{meta: Meta{Name: "calls", Calls: true, Means: []string{"outstanding"}, Takes: []string{"rate"}},
		flags: []string{"kind"}},
	listed{meta: Meta{Name: "store", Calls: true, Takes: []string{"outstanding", "rate"}}, flags: []string{"mix"}},
}

func TestFlagsAreListedInTheOrderOfTheirWorkloads(t *testing.T) {
	got := Register(all, pflag.NewFlagSet("", pflag.ContinueOnError))
	for i, want := range []string{"rate rate-sweep", "both", "bulk", "kind outstanding", "mix"} {
		if strings.Join(got[i], " ") != want {
			t.Errorf("flags of %s: %v, want %s", all[i].Meta().Name, got[i], want)
		}
	}
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
		{given: "bulk", want: "single stream beside"},
		{given: "rate", want: "single", asked: true},
		{given: "rate-sweep size", want: "single", asked: true},
		{given: "bulk kind"}, // two workloads
		{given: "rate", callsOnly: true, want: "calls", asked: true},
		{given: "both", want: "stream", asked: true},
		{given: "outstanding rate", want: "calls", asked: true}, // what fewer workloads have says more
		{given: "mix outstanding rate", want: "store", asked: true},
		{callsOnly: true, want: "calls", asked: true},
		{given: "kind mix"}, // two workloads
		{given: "workload rate", workloads: "stream"},
		{given: "workload rate", workloads: "store", want: "store", asked: true},
		{given: "workload rate", workloads: "single store", want: "single store", asked: true},
		{given: "workload bulk", workloads: "beside", want: "beside", asked: true},
		{given: "workload bulk", workloads: "single beside", want: "single beside", asked: true},
		{given: "workload bulk", workloads: "single"},
		{given: "workload mix", workloads: "single store", want: "single store", asked: true},
		{given: "workload rate", workloads: "stream single"}, // of the load: all have it, or none
		{given: "workload", workloads: "nonesuch"},
	} {
		given := strings.Fields(c.given)
		list := strings.Fields(c.workloads)
		if len(list) == 0 {
			list = Standard(all)
		}
		got := Common{Changed: func(f string) bool { return slices.Contains(given, f) }, Workloads: list,
			CallsOnly: c.callsOnly}
		err := got.Choose(all, Register(all, pflag.NewFlagSet("", pflag.ContinueOnError)))
		if c.want == "" && err == nil || c.want != "" && (err != nil || got.Named != c.asked ||
			strings.Join(got.Workloads, " ") != c.want) {
			t.Errorf("flags %q, --workload %q: %v, named %v, %v; want %q, named %v", c.given, c.workloads,
				got.Workloads, got.Named, err, c.want, c.asked)
		}
	}
}
