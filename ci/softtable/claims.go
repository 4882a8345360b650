package main

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"slices"
	"strconv"
	"strings"

	"github.com/rdmaperf/rdmaperf/ci/targets"
)

// claim is one thing that SoftRDMA's evaluation says, by its number here, and what was
// measured of it.
type claim struct {
	Name    string  `json:"name"`
	What    string  `json:"what"`
	Sets    string  `json:"sets"` // of measurements that it comes from
	Figure  string  `json:"figure"`
	Verdict verdict `json:"verdict"`
}

// verdict is how a claim stands.
type verdict string

const (
	shown     verdict = "shown"
	missed    verdict = "missed"
	undecided verdict = "undecided"
	absent    verdict = "not measured"
	fewCPUs   verdict = "needs 4 CPUs"
	figures   verdict = "figures only" // the paper gives no bound
)

// claimed are the claims without figures.
func claimed() []claim {
	return []claim{
		{Name: "F1", Sets: "wire", What: "full iWARP: the wire suite passes against raw/xdp"},
		{Name: "F2", Sets: "verbs", What: "send, write and read by the same verbs"},
		{Name: "F3", Sets: "copies", What: "one copy is never behind two"},
		{Name: "F4", Sets: "threads", What: "latency c2 <= c3 < c1, streams c1 and c3 ahead of c2"},
		{Name: "F5", Sets: "drops", What: "c2 drops more as the application works, c3 about none"},
		{Name: "F6", Sets: "schemes", What: "64 and 1000 B: raw < sequential < kernel sockets"},
		{Name: "F7", Sets: "schemes", What: "short messages, and the step to many segments"},
		{Name: "F8", Sets: "schemes", What: "long messages: the gap to kernel sockets closes"},
		{Name: "F9", Sets: "schemes", What: "depth 1 and 16 apart; at depth 1 streams are size by latency"},
		{Name: "F10", Sets: "loss", What: "loss and reordering: exact data, throughput falls"},
		{Name: "F11", Sets: "schemes", What: "no system call a message in the loop of raw/shm"},
	}
}

// weaker is the worse of two verdicts.
func weaker(a, b verdict) verdict {
	order := []verdict{absent, missed, undecided, fewCPUs, shown}
	if slices.Index(order, a) < slices.Index(order, b) {
		return a
	}
	return b
}

// of is the verdict of a judged figure.
func of(v targets.Verdict) verdict {
	switch v {
	case targets.Pass:
		return shown
	case targets.Undecided:
		return undecided
	case targets.Fail:
		return missed
	}
	return absent
}

// atMost judges a figure that must not be above bound.
func atMost(xs []float64, bound float64) verdict {
	return of(targets.Target{Bound: bound, Less: true}.JudgeAll(xs))
}

// interval is a median with where it lies.
func interval(xs []float64, format string) string {
	if len(xs) == 0 {
		return "-"
	}
	lo, hi := targets.Interval(xs)
	return fmt.Sprintf(format+" ["+format+"–"+format+"]", targets.Median(xs), lo, hi)
}

// claims are what was measured, by claim. wire is the log of the wire suite, or "".
func (m measures) claims(wire string) ([]claim, error) {
	all := claimed()
	by := []func() (string, verdict){m.f2, m.f3, m.f4, m.f5, m.f6, m.f7, m.f8, m.f9, m.f10, m.f11}
	for i, f := range by {
		all[i+1].Figure, all[i+1].Verdict = f()
	}
	var err error
	all[0].Figure, all[0].Verdict, err = f1(wire)
	return all, err
}

// f1 reads the end of the wire suite's log: a count behind each outcome.
func f1(wire string) (string, verdict, error) {
	if wire == "" {
		return "-", absent, nil
	}
	f, err := os.Open(wire)
	if err != nil {
		return "", absent, err
	}
	defer f.Close()
	n := map[string]int{}
	for s := bufio.NewScanner(f); s.Scan(); {
		if w := strings.Fields(s.Text()); len(w) > 1 && slices.Contains([]string{"pass", "fail", "unsupported", "notrun"}, w[0]) {
			if k, err := strconv.Atoi(w[1]); err == nil {
				n[w[0]] = k
			}
		}
	}
	figure := fmt.Sprintf("%d pass, %d fail, %d unsupported, %d not run", n["pass"], n["fail"], n["unsupported"], n["notrun"])
	switch {
	case n["pass"] == 0:
		return figure, absent, nil
	case n["fail"] > 0:
		return figure, missed, nil
	}
	return figure, shown, nil
}

func printClaims(w io.Writer, all []claim) {
	fmt.Fprintf(w, "\n%-4s %-62s %-13s %s\n", "", "what SoftRDMA (APNet'17) says", "verdict", "measured here: median [interval] of the repeats")
	for _, c := range all {
		fmt.Fprintf(w, "%-4s %-62s %-13s %s\n", c.Name, c.What, c.Verdict, c.Figure)
	}
}
