package main

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"regexp"
	"slices"
	"strings"
)

// report says what the runs came to: why tests were skipped, what did not run in both ways, and as
// the last line how many passed, failed and were skipped. A test that ran twice is one
// test: it failed when it failed in either run, and was skipped when it passed in none.
func report(dir string, w io.Writer) error {
	race, err := load(kind{dir: dir, race: true}.results())
	missing := errors.Is(err, os.ErrNotExist)
	if err != nil && !missing {
		return err
	}
	how := kind{dir: dir}
	plain, err := load(how.results())
	if errors.Is(err, os.ErrNotExist) && !missing {
		how.rest = true
		plain, err = load(how.results())
	}
	if err != nil {
		return err
	}
	skips(w, plain, race)
	var lost []string
	switch {
	case missing:
		fmt.Fprintln(w, "not run under the race detector: all of them")
	case how.rest:
		if lost, err = neither(w, kind{dir: dir, race: true}, plain, race); err != nil {
			return err
		}
	default:
		lost = once(w, plain, race)
	}
	slowest(w, plain, race)
	unchanged(w, plain, race)
	pass, fail, skip, _ := count(merge(plain, race))
	fail += len(lost)
	fmt.Fprintf(w, "%d passed, %d failed, %d skipped\n", pass, fail, skip)
	if fail > 0 {
		return fmt.Errorf("%d tests failed", fail)
	}
	if pass == 0 {
		return fmt.Errorf("no test ran")
	}
	return nil
}

// unchanged says how many tests did not run again in each run.
func unchanged(w io.Writer, runs ...[]*result) {
	var n, all [2]int
	for i, run := range runs {
		for _, r := range run {
			if r.Test == "" || r.Parent {
				continue
			}
			all[i]++
			if r.Kept {
				n[i]++
			}
		}
	}
	if n != [2]int{} {
		fmt.Fprintf(w, "not run again, as nothing that they depend on changed since they passed: %d of %d, and %d of %d under the race detector (ci/test --fresh runs all)\n", n[0], all[0], n[1], all[1])
	}
}

// shown is how many of the slowest tests are named. Arbitrary.
const shown = 15

// slowest names the tests that took longest, of both runs together, with what they took in
// each: whoever wants the whole to be shorter begins there.
func slowest(w io.Writer, plain, race []*result) {
	type cost struct {
		name string
		took [2]float64 // plain, race
	}
	var all []*cost
	of := map[string]*cost{}
	for i, run := range [][]*result{plain, race} {
		for _, r := range run {
			if r.Test == "" || strings.Contains(r.Test, "/") {
				continue
			}
			name := short(r.Package) + " " + r.Test
			if of[name] == nil {
				of[name] = &cost{name: name}
				all = append(all, of[name])
			}
			of[name].took[i] += r.Seconds
		}
	}
	slices.SortStableFunc(all, func(a, b *cost) int { return cmp.Compare(b.took[0]+b.took[1], a.took[0]+a.took[1]) })
	for i, c := range all[:min(shown, len(all))] {
		if c.took[0]+c.took[1] < 1 {
			break
		}
		if i == 0 {
			fmt.Fprintln(w, "slowest tests, in seconds (plain, race):")
		}
		fmt.Fprintf(w, "%7.1f %7.1f  %s\n", c.took[0], c.took[1], c.name)
	}
}

func load(name string) (all []*result, err error) {
	text, err := os.ReadFile(name)
	if err != nil {
		return nil, err
	}
	for dec := json.NewDecoder(bytes.NewReader(text)); ; {
		r := new(result)
		if err := dec.Decode(r); err == io.EOF {
			return all, nil
		} else if err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		all = append(all, r)
	}
}

// merge makes one result of those of each test.
func merge(runs ...[]*result) []*result {
	worth := map[verdict]int{skipped: 0, passed: 1, failed: 2, unended: 2}
	var all []*result
	at := map[[2]string]int{}
	for _, run := range runs {
		for _, r := range run {
			key := [2]string{r.Package, r.Test}
			i, ok := at[key]
			if !ok {
				c := *r
				at[key], all = len(all), append(all, &c)
				continue
			}
			if all[i].Parent = all[i].Parent || r.Parent; worth[r.Verdict] > worth[all[i].Verdict] {
				all[i].Verdict = r.Verdict
			}
		}
	}
	return all
}

// skips names what was skipped in any run, under its reason and its package.
func skips(w io.Writer, runs ...[]*result) {
	type group struct{ reason, pkg string }
	names := map[group][]string{}
	for _, run := range runs {
		for _, r := range run {
			if r.Verdict == skipped && !r.Parent && r.Test != "" {
				g := group{r.Reason, short(r.Package)}
				if !slices.Contains(names[g], r.Test) {
					names[g] = append(names[g], r.Test)
				}
			}
		}
	}
	groups := make([]group, 0, len(names))
	for g := range names {
		groups = append(groups, g)
	}
	slices.SortFunc(groups, func(a, b group) int {
		return strings.Compare(a.reason+"\x00"+a.pkg, b.reason+"\x00"+b.pkg)
	})
	last := ""
	for _, g := range groups {
		if g.reason != last {
			fmt.Fprintf(w, "skipped: %s\n", g.reason)
			last = g.reason
		}
		slices.Sort(names[g])
		fmt.Fprintf(w, "  %s (%d): %s\n", g.pkg, len(names[g]), strings.Join(fold(names[g]), " "))
	}
}

// fold writes subtests of one parent as parent/{a,b}.
func fold(names []string) (folded []string) {
	for i := 0; i < len(names); {
		parent, _, sub := strings.Cut(names[i], "/")
		var subs []string
		j := i
		for ; j < len(names) && sub && strings.HasPrefix(names[j], parent+"/"); j++ {
			subs = append(subs, names[j][len(parent)+1:])
		}
		switch len(subs) {
		case 0, 1:
			folded, j = append(folded, names[i]), i+1
		default:
			folded = append(folded, parent+"/{"+strings.Join(subs, ",")+"}")
		}
		i = j
	}
	return folded
}

// once tells which tests did not run again under the race detector. Those that are left
// out by their name are meant; others are a check that was lost, and returned.
func once(w io.Writer, plain, race []*result) (lost []string) {
	again := map[[2]string]bool{}
	for _, r := range race {
		again[[2]string{r.Package, r.Test}] = true
	}
	meant := regexp.MustCompile(notUnderRace)
	n := 0
	for _, r := range plain {
		switch {
		case r.Test == "" || strings.Contains(r.Test, "/") || again[[2]string{r.Package, r.Test}]:
		case meant.MatchString(r.Test):
			n++
		default:
			lost = append(lost, short(r.Package)+" "+r.Test)
		}
	}
	fmt.Fprintf(w, "without the race detector only: %d tests of allocations and in a browser (%s)\n", n, notUnderRace)
	for _, l := range lost {
		fmt.Fprintf(w, "LOST: %s did not run under the race detector\n", l)
	}
	return lost
}
