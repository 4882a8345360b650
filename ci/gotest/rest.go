package main

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"regexp"
	"slices"
	"strings"
)

// left is what a run under the race detector leaves to one without it: tests that are left out
// there by their names, that were skipped there because of it, that are not in its binaries,
// and those of properties, which are tried ten times less often there (raceChecks). All others
// have passed, or failed, and prove nothing more without the detector, but for what its slowness
// hides: ci/test --twice runs them both ways.
func left(packs []pack, race kind) ([]pack, error) {
	done, err := load(race.results())
	if err != nil {
		return nil, fmt.Errorf("run with -race first: %w", err)
	}
	type test struct{ pkg, name string }
	ended := map[test]bool{}
	skips := map[test]bool{} // in part or whole
	for _, r := range done {
		top, _, _ := strings.Cut(r.Test, "/")
		key := test{r.Package, top}
		ended[key] = true
		// A machine without a device has none in another build either.
		if r.Verdict == skipped && strings.Contains(r.Reason, "race detector") {
			skips[key] = true
		}
	}
	var rest []pack
	for _, p := range packs {
		for _, name := range p.Tests {
			key := test{p.Path, name}
			if !ended[key] || skips[key] || slices.Contains(p.Wide, name) {
				p.Only = append(p.Only, "^"+name+"$")
			} else {
				p.Only = append(p.Only, partsOut(name)...)
			}
		}
		if p.Only != nil {
			rest = append(rest, p)
		}
	}
	return rest, nil
}

// partsOut are the patterns of those parts of a test that are left out under the race detector.
func partsOut(name string) (parts []string) {
	for pattern := range strings.SplitSeq(notUnderRace, "|") {
		if top, _, below := strings.Cut(pattern, "/"); below && regexp.MustCompile(top).MatchString(name) {
			parts = append(parts, pattern)
		}
	}
	return parts
}

// neither tells how many tests ran without the race detector only, and returns those that no
// run had.
func neither(w io.Writer, race kind, runs ...[]*result) (lost []string, err error) {
	var packs []pack
	text, err := os.ReadFile(race.packs())
	if err != nil {
		return nil, err
	}
	if err := json.Unmarshal(text, &packs); err != nil {
		return nil, fmt.Errorf("%s: %w", race.packs(), err)
	}
	ran := map[[2]string]bool{}
	for _, run := range runs {
		for _, r := range run {
			ran[[2]string{r.Package, r.Test}] = true
		}
	}
	tops := 0
	for _, r := range runs[0] {
		if r.Test != "" && !strings.Contains(r.Test, "/") {
			tops++
		}
	}
	fmt.Fprintf(w, "without the race detector: %d tests that it leaves out, skips, or tries less often; all others under it only (ci/test --twice: all both ways)\n", tops)
	for _, p := range packs {
		for _, name := range p.Tests {
			if !ran[[2]string{p.Path, name}] {
				lost = append(lost, short(p.Path)+" "+name)
				fmt.Fprintf(w, "LOST: %s %s did not run\n", short(p.Path), name)
			}
		}
	}
	return lost, nil
}
