package targets

import (
	"bufio"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"github.com/rdmaperf/rdmaperf/reports"
)

// Usage is err as a wrong command line.
func Usage(err error) error { return &reports.ExitError{Code: reports.ExitUsage, Err: err} }

// Parse reads a command line, whose flags and arguments good judges; usage says what they
// should be.
func Parse(flags *flag.FlagSet, args []string, usage string, good func() bool) error {
	if err := flags.Parse(args); err != nil {
		return Usage(err)
	}
	if !good() {
		return Usage(errors.New("usage: " + flags.Name() + " " + usage))
	}
	return nil
}

// Sets splits comma lists of names, all of which must be known.
func Sets(known []string, lists ...string) (split [][]string, err error) {
	for _, l := range lists {
		names := strings.FieldsFunc(l, func(r rune) bool { return r == ',' })
		for _, n := range names {
			if !slices.Contains(known, n) {
				return nil, Usage(fmt.Errorf("set %q: want some of %v", n, known))
			}
		}
		split = append(split, names)
	}
	return split, nil
}

// ReadDocument reads a result document.
func ReadDocument(name string) (*reports.Document, error) {
	f, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	d, err := reports.ReadDocument(f, nil)
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", name, err)
	}
	return d, nil
}

// Measures are the values of each series in the order of the repeats.
type Measures map[string][]float64

// Row is one line as data: how two series are compared, or one alone, and the bound of that.
type Row struct {
	Set            string // by which lines are chosen; "" where all are
	Name           string
	Series, Beside string  // Beside "": the series itself
	Unit           float64 // of a series alone: how many of its own make one; 0: one
	Minus          bool    // the difference, else the ratio
	Target
	Shown bool // and not judged
}

// Line is one measured row. Value is the median of Values, one for each repeat in
// ascending order, and Interval where that lies with this scatter.
type Line struct {
	Name     string     `json:"name"`
	Series   string     `json:"series"`
	Beside   string     `json:"beside,omitempty"`
	Values   []float64  `json:"values"`
	Value    float64    `json:"value"`
	Interval [2]float64 `json:"interval"`
	Target   string     `json:"target,omitempty"`
	Verdict  Verdict    `json:"verdict,omitempty"`
}

// Lines measures rows. The arms of a repeat ran in turn, so that ratios are taken inside a
// repeat, and drift of a busy machine cancels out.
func (m Measures) Lines(rows []Row) (all []Line) {
	for _, w := range rows {
		l := Line{Name: w.Name, Series: w.Series, Beside: w.Beside, Values: []float64{}}
		unit := w.Unit
		if unit == 0 {
			unit = 1
		}
		for repeat, x := range m[w.Series] {
			switch beside := m[w.Beside]; {
			case w.Beside == "":
				l.Values = append(l.Values, x/unit)
			case repeat >= len(beside) || beside[repeat] <= 0:
			case w.Minus:
				l.Values = append(l.Values, x-beside[repeat])
			default:
				l.Values = append(l.Values, x/beside[repeat])
			}
		}
		if w.Shown {
			w.Target = Target{}
		}
		if w.Bound > 0 {
			l.Target = fmt.Sprintf("%s %v", w.Sign(), w.Bound)
		}
		slices.Sort(l.Values)
		l.Value = Median(l.Values)
		l.Interval[0], l.Interval[1] = Interval(l.Values)
		l.Verdict = w.JudgeAll(l.Values)
		all = append(all, l)
	}
	return all
}

// WriteLines prints the table.
func WriteLines(w io.Writer, lines []Line) {
	out := bufio.NewWriter(w)
	defer out.Flush()
	name := len("measure")
	for _, l := range lines {
		name = max(name, len(l.Name))
	}
	fmt.Fprintf(out, "%-*s %9s  %-21s %3s  %-8s %s\n", name, "measure", "median", "95 % of medians", "of", "target",
		"verdict")
	for _, l := range lines {
		value, interval := "-", "-"
		if len(l.Values) > 0 {
			value, interval = digits(l.Value), digits(l.Interval[0])+" to "+digits(l.Interval[1])
		}
		fmt.Fprintf(out, "%-*s %9s  %-21s %3d  %-8s %s\n", name, l.Name, value, interval, len(l.Values), l.Target,
			l.Verdict)
	}
}

// digits are as many as mean something.
func digits(x float64) string {
	if x >= 1000 {
		return fmt.Sprintf("%.0f", x)
	}
	return fmt.Sprintf("%.2f", x)
}

// OfLines is the exit code of a table with its reason, as [Outcome.Err].
func OfLines[L any](lines []L, of func(*L) (what string, v Verdict)) error {
	var o Outcome
	for i := range lines {
		o.Add(of(&lines[i]))
	}
	return o.Err()
}

// Report ends a program whose table is of Lines: they go to stdout, with their schema's name
// to the file of JSON if there is one, and the verdicts into the exit code.
func Report(schema, jsonFile string, lines []Line) error {
	if err := WriteJSON(jsonFile, map[string]any{"schema": schema, "lines": lines}); err != nil {
		return err
	}
	WriteLines(os.Stdout, lines)
	return OfLines(lines, (*Line).judged)
}

func (l *Line) judged() (string, Verdict) { return l.Name, l.Verdict }
