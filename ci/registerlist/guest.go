package main

import (
	"fmt"
	"regexp"
	"strings"

	"github.com/rdmaperf/rdmaperf/reports"
)

var (
	// ratioLine is a line of registertable: name, median, 95 % of medians, repeats, bound, verdict.
	ratioLine = regexp.MustCompile(
		`(?m)^(\S.*?) {2,}([0-9.]+) +([0-9.]+ to [0-9.]+) +[0-9]+(?: +([<>]= [0-9.]+) +(\w+))? *$`)
	pageCase  = regexp.MustCompile(`(?m)^(acc/on-demand\S*) +must +(\w+)`)
	guestLine = regexp.MustCompile(`(?m)^== (\S+ of Linux \S+):`)
)

// demandInGuest is R9 by ci/lab/odp.sh: ratios of a guest whose code may be translated, as
// the script judges them.
func demandInGuest(f *finding, o output) string {
	if o.code == reports.ExitNotRun {
		why := o.why()
		for l := range strings.Lines(o.text) {
			if _, cause, is := strings.Cut(l, "NOT RUN: "); is {
				why = strings.TrimSpace(cause)
				break
			}
		}
		return notRun + ": no device with on-demand paging, nor a guest with one: " + why
	}
	if o.code != 0 && o.code != reports.ExitThreshold {
		return fmt.Sprintf("%s: exit code %d: %s", o.command, o.code, o.why())
	}
	var cases []string
	seen := map[string]bool{} // the script repeats some with other packets, and judges them itself
	for _, m := range pageCase.FindAllStringSubmatch(o.text, -1) {
		if !seen[m[1]] {
			cases = append(cases, m[1]+" "+m[2])
		}
		seen[m[1]] = true
	}
	guest := "a guest"
	if m := guestLine.FindStringSubmatch(o.text); m != nil {
		guest = m[1]
	}
	judged := 0
	for _, m := range ratioLine.FindAllStringSubmatch(o.text, -1) {
		f.note("%s: %s: %s (%s)", guest, m[1], m[2], m[3])
		if m[5] != "" {
			judged++
			f.want(m[5] == "pass", "%s: %s, want %s", m[1], m[2], m[4])
		}
	}
	f.note("cases: %s", strings.Join(cases, ", "))
	f.want(len(cases) > 0, "no case of on-demand paging ran")
	if judged < 4 {
		return fmt.Sprintf("%s: %d of 4 ratios were judged", o.command, judged)
	}
	return ""
}
