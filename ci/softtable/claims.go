package main

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strconv"
	"strings"

	"github.com/rdmaperf/rdmaperf/ci/targets"
	"github.com/rdmaperf/rdmaperf/reports"
)

// claim is one thing that SoftRDMA's evaluation says, by its number here, and what was
// measured of it.
type claim struct {
	Name    string  `json:"name"`
	What    string  `json:"what"`
	Sets    string  `json:"sets"`              // of measurements that it comes from
	Command string  `json:"command,omitempty"` // that measured it
	Figure  string  `json:"figure"`
	Verdict verdict `json:"verdict"`
}

// verdict is how a claim stands.
type verdict string

const (
	shown     verdict = "pass"
	missed    verdict = "fail"
	undecided verdict = "undecided" // the interval of the repeats has the bound in it
	absent    verdict = "not run"
	fewCPUs   verdict = "not run: 4 CPUs" // in part: the figure says which
	figures   verdict = "figures only"    // the paper gives no bound
)

// claimed are the claims without figures.
func claimed() []claim {
	return []claim{
		{Name: "F1", Sets: "wire", What: "full iWARP: the wire suite passes against raw/xdp"},
		{Name: "F2", Sets: "verbs", What: "send, write and read by the same verbs"},
		{Name: "F3", Sets: "copies zero",
			What: "copies of a byte as counted: two, one, zero on sending; one is never behind two"},
		{Name: "F4", Sets: "threads", What: "latency c2 <= c3 < c1, streams c1 and c3 ahead of c2"},
		{Name: "F5", Sets: "drops", What: "c2 drops more as the application works, c3 about none"},
		{Name: "F6", Sets: "schemes", What: "64 and 1000 B: raw < sequential < kernel sockets"},
		{Name: "F7", Sets: "schemes", What: "short messages, and the step to many segments"},
		{Name: "F8", Sets: "schemes", What: "long messages: the gap to kernel sockets closes"},
		{Name: "F9", Sets: "schemes", What: "depth 1 and 16 apart; at depth 1 streams are size by latency"},
		{Name: "F10", Sets: "loss lossxdp vanish", What: "loss, reordering, doubling, a peer that vanishes"},
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

// logs are files that are no result documents, "" where there is none.
type logs struct {
	wire     string // what the wire suite printed
	vanished string // how long clients took whose peer vanished
	commands string // what was run, by set
}

// claims are what was measured, by claim.
func (m measures) claims(l logs) ([]claim, error) {
	all := claimed()
	by := []func() (string, verdict){m.f2, m.f3, m.f4, m.f5, m.f6, m.f7, m.f8, m.f9, m.f10, m.f11}
	for i, f := range by {
		all[i+1].Figure, all[i+1].Verdict = f()
	}
	var err error
	if all[0].Figure, all[0].Verdict, err = f1(l.wire); err != nil {
		return nil, err
	}
	ends, ended, err := vanished(l.vanished)
	if err != nil {
		return nil, err
	}
	f10 := &all[9]
	f10.Figure, f10.Verdict = f10.Figure+"; "+ends, weaker(f10.Verdict, ended)
	ran, err := commands(l.commands)
	if err != nil {
		return nil, err
	}
	for i := range all {
		var of []string
		for _, set := range strings.Fields(all[i].Sets) {
			if ran[set] != "" {
				of = append(of, ran[set])
			}
		}
		all[i].Command = strings.Join(of, "; ")
	}
	return all, nil
}

// commands are what ci/softrdma ran, by set: a set, a tab and the command a line.
func commands(file string) (map[string]string, error) {
	ran := map[string]string{}
	return ran, eachLine(file, func(text string) error {
		if set, command, ok := strings.Cut(text, "\t"); ok && ran[set] == "" {
			ran[set] = command
		}
		return nil
	})
}

// eachLine reads a file by lines; one without a name has none.
func eachLine(file string, f func(string) error) error {
	if file == "" {
		return nil
	}
	r, err := os.Open(file)
	if err != nil {
		return err
	}
	defer r.Close()
	s := bufio.NewScanner(r)
	s.Buffer(nil, 1<<20)
	for s.Scan() {
		if err := f(s.Text()); err != nil {
			return fmt.Errorf("read %s: %w", file, err)
		}
	}
	return s.Err()
}

// vanished reads how clients ended whose peer did: what happened to it, the seconds that
// the client took, those it had, and its exit code, of which 0 would be a lie.
func vanished(file string) (string, verdict, error) {
	var parts []string
	v := shown
	err := eachLine(file, func(text string) error {
		w := strings.Split(text, "\t")
		if len(w) != 4 {
			return fmt.Errorf("line %q: want 4 fields", text)
		}
		took, err1 := strconv.ParseFloat(w[1], 64)
		had, err2 := strconv.ParseFloat(w[2], 64)
		code, err3 := strconv.Atoi(w[3])
		if err := errors.Join(err1, err2, err3); err != nil {
			return err
		}
		parts = append(parts, fmt.Sprintf("%s %.1f of %g s, exit %d", w[0], took, had, code))
		if took > had || code != reports.ExitPeer && code != reports.ExitFailed {
			v = missed
		}
		return nil
	})
	if err != nil || len(parts) == 0 {
		return "vanished peers -", absent, err
	}
	return "clients of a vanished peer ended: " + strings.Join(parts, ", "), v, nil
}

// f1 reads the end of the wire suite's log: a count behind each outcome.
func f1(wire string) (string, verdict, error) {
	if wire == "" {
		return "-", absent, nil
	}
	n := map[string]int{}
	err := eachLine(wire, func(text string) error {
		if w := strings.Fields(text); len(w) > 1 && slices.Contains([]string{"pass", "fail", "unsupported", "notrun"},
			w[0]) {
			if k, err := strconv.Atoi(w[1]); err == nil {
				n[w[0]] = k
			}
		}
		return nil
	})
	if err != nil {
		return "", absent, err
	}
	figure := fmt.Sprintf("%d pass, %d fail, %d unsupported, %d not run", n["pass"], n["fail"], n["unsupported"],
		n["notrun"])
	switch {
	case n["pass"] == 0:
		return figure, absent, nil
	case n["fail"] > 0:
		return figure, missed, nil
	}
	return figure, shown, nil
}

// asked are the claims of some names, or all.
func asked(all []claim, names []string) []claim {
	if len(names) == 0 {
		return all
	}
	return slices.DeleteFunc(all, func(c claim) bool { return !slices.Contains(names, c.Name) })
}

func printClaims(w io.Writer, all []claim) {
	fmt.Fprintf(w, "\nwhat SoftRDMA (APNet'17) says, and what was measured of it here: median [interval] of the "+
		"repeats\n")
	for _, c := range all {
		fmt.Fprintf(w, "%-4s %-15s %s\n     measured: %s\n", c.Name, c.Verdict, c.What, c.Figure)
		if c.Command != "" {
			fmt.Fprintf(w, "     by: %s\n", c.Command)
		}
	}
}

// markdownClaims is the table of a page.
func markdownClaims(w io.Writer, all []claim) {
	cell := strings.NewReplacer("|", "\\|", "\n", " ")
	fmt.Fprintf(w, "| | what SoftRDMA says | verdict | measured: median [interval] of the repeats "+
		"|\n|---|---|---|---|\n")
	for _, c := range all {
		fmt.Fprintf(w, "| %s | %s | %s | %s |\n", c.Name, cell.Replace(c.What), c.Verdict, cell.Replace(c.Figure))
	}
	fmt.Fprintln(w)
	for _, c := range all {
		if c.Command != "" {
			fmt.Fprintf(w, "- %s: `%s`\n", c.Name, c.Command)
		}
	}
}

// claimsOutcome is the exit code of a list of claims, as [outcome].
func claimsOutcome(all []claim, judge bool) error {
	return targets.OfLines(all, func(c *claim) (string, targets.Verdict) {
		switch c.Verdict {
		case absent:
			return c.Name, targets.NotMeasured
		case shown, figures:
			return c.Name, targets.None
		case missed:
			if judge {
				return c.Name, targets.Fail
			}
		default:
			if judge {
				return c.Name, targets.Undecided
			}
		}
		return c.Name, targets.None
	})
}
