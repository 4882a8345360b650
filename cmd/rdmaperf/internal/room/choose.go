package room

import (
	"cmp"
	"slices"
	"strings"

	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/values"
)

// claim is a group of flags, and the workloads that have it: the one that it means
// when none is named, and others.
type claim struct {
	flags []string
	of    *Room
	also  []string
}

// claims are those of all rows. What fewer workloads have says more, and comes first.
func claims(rooms []*Room) []claim {
	var all []claim
	for _, r := range rooms {
		for _, flags := range r.Means {
			c := claim{flags: flags, of: r}
			for _, other := range rooms {
				if slices.Contains(other.Takes, flags[0]) {
					c.also = append(c.also, other.Name)
				}
			}
			all = append(all, c)
		}
	}
	slices.SortStableFunc(all, func(a, b claim) int { return cmp.Compare(len(a.also), len(b.also)) })
	return all
}

func named(rooms []*Room, list []string) []*Room {
	return slices.DeleteFunc(slices.Clone(rooms), func(r *Room) bool { return !slices.Contains(list, r.Name) })
}

// forCalls is the workload that stacks of calls alone mean.
func forCalls(rooms []*Room) []string {
	var names []string
	for _, r := range rooms {
		if r.ForCalls {
			names = append(names, r.Name)
		}
	}
	return names
}

// Choose returns the workloads that the command line means: those named, else those
// that its flags mean, else the standard ones without those that its flags leave out.
// asked tells that the choice was the user's.
func Choose(rooms []*Room, c *Common) (list []string, asked bool, err error) {
	list, asked = c.Workloads, c.Changed("workload")
	for _, w := range list {
		if len(named(rooms, []string{w})) == 0 {
			return nil, false, values.Wrong("workload", "unknown workload %q: want one of %s", w,
				strings.Join(Names(rooms), ", "))
		}
	}
	for _, claim := range claims(rooms) {
		if !slices.ContainsFunc(claim.flags, c.Changed) {
			continue
		}
		if asked && slices.ContainsFunc(list,
			func(w string) bool { return w != claim.of.Name && !slices.Contains(claim.also, w) }) {
			given := slices.DeleteFunc(slices.Clone(claim.flags), func(f string) bool { return !c.Changed(f) })
			return nil, false, values.Wrong(strings.Join(given, ", --"), "for --workload %s", claim.of.Name)
		}
		if !asked {
			asked, list = true, []string{claim.of.Name}
			if c.CallsOnly && len(claim.also) > 0 {
				list = forCalls(rooms)
			}
		}
	}
	if c.CallsOnly && !asked {
		asked, list = true, forCalls(rooms)
	}
	if asked {
		return list, true, nil
	}
	return slices.DeleteFunc(slices.Clone(list), func(w string) bool {
		return slices.ContainsFunc(named(rooms, []string{w}),
			func(r *Room) bool { return r.Unless != nil && r.Unless(c) })
	}), false, nil
}

// Names lists the workloads.
func Names(rooms []*Room) []string {
	names := make([]string, len(rooms))
	for i, r := range rooms {
		names[i] = r.Name
	}
	return names
}

// Standard lists those that are measured when none is named.
func Standard(rooms []*Room) []string {
	return Names(slices.DeleteFunc(slices.Clone(rooms), func(r *Room) bool { return !r.Standard }))
}

// Find returns the row of a name, or nil.
func Find(rooms []*Room, name string) *Room {
	if of := named(rooms, []string{name}); len(of) > 0 {
		return of[0]
	}
	return nil
}
