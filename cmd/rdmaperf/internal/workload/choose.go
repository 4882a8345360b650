package workload

import (
	"cmp"
	"slices"
	"strings"

	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/values"
)

// claim is a flag and the workloads that have it.
type claim struct {
	flag  string
	of    []string // the first is the one that the flag is of
	means bool     // it chooses that workload
	every bool     // all named workloads must have it
}

// claims are those of all workloads, whose flags Register has returned. What fewer have says more, and comes first.
func claims(all []Workload, flags [][]string) (list []claim) {
	for i, w := range all {
		m := w.Meta()
		for _, f := range flags[i] {
			every := slices.Contains(m.Means, f)
			c := claim{flag: f, of: []string{m.Name}, every: every, means: every || !m.Standard}
			for _, other := range all {
				if o := other.Meta(); slices.Contains(o.Takes, f) {
					c.of = append(c.of, o.Name)
				}
			}
			list = append(list, c)
		}
	}
	slices.SortStableFunc(list, func(a, b claim) int { return cmp.Compare(len(a.of), len(b.of)) })
	return list
}

// Choose decides which workloads the command line means: those named, else those that its flags mean, else the standard
// ones. A flag that the chosen ones do not have is refused.
func (c *Common) Choose(all []Workload, flags [][]string) error {
	for _, name := range c.Workloads {
		if Find(all, name) == nil {
			return values.Wrong("workload", "unknown workload %q: want one of %s", name, strings.Join(Names(all), ", "))
		}
	}
	given := slices.DeleteFunc(claims(all, flags), func(f claim) bool { return !c.Changed(f.flag) })
	c.Named = c.Changed("workload")
	if i := slices.IndexFunc(given, func(f claim) bool { return f.means }); i >= 0 && !c.Named {
		c.Named, c.Workloads = true, given[i].of[:1]
		if c.CallsOnly && len(given[i].of) > 1 {
			c.Workloads = Names([]Workload{ForCalls(all)})
		}
	}
	if c.CallsOnly && !c.Named {
		c.Named, c.Workloads = true, Names([]Workload{ForCalls(all)})
	}
	for _, f := range given {
		lacks := func(name string) bool { return !slices.Contains(f.of, name) }
		has := func(name string) bool { return !lacks(name) }
		if c.Named && (f.every && slices.ContainsFunc(c.Workloads, lacks) || !slices.ContainsFunc(c.Workloads, has)) {
			return values.Wrong(f.flag, "only for --workload %s", f.of[0])
		}
	}
	return nil
}
