package main

import (
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/rdmaperf/rdmaperf/ci/targets"
	"github.com/rdmaperf/rdmaperf/reports"
)

// Verdicts of a row.
const (
	pass   = "pass"
	fail   = "fail"
	notRun = "not run"
)

// line is a row that was measured.
type line struct {
	Name     string   `json:"name"`
	Claim    string   `json:"claim"`
	Commands []string `json:"commands"`
	Measured []string `json:"measured"`
	Missed   []string `json:"missed,omitempty"` // of the checks
	Verdict  string   `json:"verdict"`
	Why      string   `json:"why,omitempty"`
	Seconds  float64  `json:"seconds"`
}

type table struct {
	Schema      string              `json:"schema"`
	Started     time.Time           `json:"started"`
	Environment reports.Environment `json:"environment"`
	Rows        []line              `json:"rows"`
}

// text prints a row when it is there: all of them take minutes.
func (t *table) text(w io.Writer, l line) {
	fmt.Fprintf(w, "%-4s %s: %s\n", l.Name, l.Verdict, l.Claim)
	for _, c := range l.Commands {
		fmt.Fprintf(w, "     $ %s\n", quoted(c))
	}
	for _, m := range l.Measured {
		fmt.Fprintf(w, "     %s\n", m)
	}
	for _, m := range l.Missed {
		fmt.Fprintf(w, "     MISSED: %s\n", m)
	}
	if l.Why != "" {
		fmt.Fprintf(w, "     %s\n", l.Why)
	}
}

// quoted is a command as a shell takes it.
func quoted(command string) string {
	words := strings.Fields(command)
	for i, w := range words {
		if strings.ContainsAny(w, "^|()$") {
			words[i] = "'" + w + "'"
		}
	}
	return strings.Join(words, " ")
}

// markdown is the table for documents.
func (t *table) markdown() string {
	cell := func(list ...string) string {
		var some []string
		for _, s := range list {
			if s != "" {
				some = append(some, strings.NewReplacer("|", "\\|", "\n", " ").Replace(s))
			}
		}
		return strings.Join(some, "<br>")
	}
	var b strings.Builder
	fmt.Fprintf(&b, "`ci/register-list`, %s, %s, rdmaperf %s.\n\n", t.Started.UTC().Format("2006-01-02"), t.machine(),
		t.Environment.Version)
	b.WriteString("| | claim | command | measured | verdict |\n|---|---|---|---|---|\n")
	for _, l := range t.Rows {
		var commands []string
		for _, c := range l.Commands {
			commands = append(commands, "`"+strings.ReplaceAll(quoted(c), "|", "\\|")+"`")
		}
		var missed []string
		for _, m := range l.Missed {
			missed = append(missed, "**missed:** "+m)
		}
		fmt.Fprintf(&b, "| %s | %s | %s | %s | %s |\n", l.Name, cell(l.Claim), strings.Join(commands, "<br>"),
			cell(append(l.Measured, missed...)...), cell(l.Verdict, l.Why))
	}
	return b.String()
}

func (t *table) machine() string {
	e := t.Environment
	return fmt.Sprintf("%d x %s, Linux %s, %s", e.CPUs, e.CPU, e.Kernel, e.Go)
}

// outcome is the exit code with its reason. A row that is not run is no failure, but that
// of all rows is.
func (t *table) outcome() error {
	var missed, broken []string
	ran := 0
	for _, l := range t.Rows {
		switch {
		case l.Verdict == notRun:
			continue
		case l.Verdict == fail && len(l.Missed) == 0:
			broken = append(broken, l.Name)
		case l.Verdict == fail:
			missed = append(missed, l.Name)
		}
		ran++
	}
	switch {
	case len(broken) > 0:
		return fmt.Errorf("could not be measured: %s", strings.Join(broken, ", "))
	case len(missed) > 0:
		return &reports.ExitError{Code: reports.ExitThreshold,
			Err: fmt.Errorf("not as claimed: %s", strings.Join(missed, ", "))}
	case ran == 0:
		return &reports.ExitError{Code: reports.ExitNotRun,
			Err: errors.New("nothing that was asked for can be run here")}
	}
	return nil
}

// finding collects the checks of a row.
type finding struct{ measured, missed []string }

// note adds what was measured.
func (f *finding) note(format string, args ...any) {
	f.measured = append(f.measured, fmt.Sprintf(format, args...))
}

// want adds a check, by what it says when it fails.
func (f *finding) want(ok bool, format string, args ...any) {
	if !ok {
		f.missed = append(f.missed, fmt.Sprintf(format, args...))
	}
}

// bound adds a figure with its project's target.
func (f *finding) bound(what string, got, bound float64, least bool, unit string) {
	t := targets.Target{Bound: bound, Less: !least}
	f.want(t.Judge(got, 1) == targets.Pass, "%s %s%s, wanted %s %s%s", what, number(got), unit, t.Sign(),
		number(bound), unit)
}

// number has three digits that mean something.
func number(v float64) string {
	switch {
	case v >= 100:
		return fmt.Sprintf("%.0f", v)
	case v >= 10:
		return fmt.Sprintf("%.1f", v)
	}
	return fmt.Sprintf("%.2f", v)
}

// duration is a time of ns.
func duration(ns float64) string {
	switch {
	case ns >= 1e6:
		return number(ns/1e6) + " ms"
	case ns >= 1e3:
		return number(ns/1e3) + " us"
	}
	return fmt.Sprintf("%.0f ns", ns)
}
