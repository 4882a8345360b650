package claims

import (
	"context"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/rdmaperf/rdmaperf/reports"
	"github.com/rdmaperf/rdmaperf/reports/view"
)

// Report is what became of the claims of a paper.
type Report struct {
	Paper       string              `json:"paper"`
	Title       string              `json:"title"`
	Source      string              `json:"source"`
	Started     time.Time           `json:"started"`
	Quick       bool                `json:"quick,omitempty"`
	Environment reports.Environment `json:"environment"`
	Claims      []Outcome           `json:"claims"`
	Runs        []Made              `json:"runs"`
}

// Made is a command that was run, and how long it took.
type Made struct {
	Command string  `json:"command"`
	Seconds float64 `json:"seconds"`
}

// Outcome is what became of one of them.
type Outcome struct {
	ID        string    `json:"id"`
	Says      string    `json:"says"`
	Source    string    `json:"source"`
	Published []string  `json:"published,omitempty"`
	Verdict   Verdict   `json:"verdict"`
	Why       string    `json:"why,omitempty"`
	Label     string    `json:"label,omitempty"` // what kind of path was measured: device, soft, model or mem
	Findings  []Finding `json:"findings,omitempty"`
	Tables    []Table   `json:"tables,omitempty"` // curves
	Commands  []string  `json:"commands,omitempty"`
}

// Options of a reproduction.
type Options struct {
	Quick     bool
	Only      []string          // IDs; empty: all
	Transport string            // a provider in the place of iwarp; empty: iwarp
	Progress  func(line string) // is called before each run
	Announce  func(line string) // what is going to be run, and how long it takes
}

// Reproduce runs the claims of a paper, with a copy of this program for each run.
func (p *Paper) Reproduce(ctx context.Context, o Options) (*Report, error) {
	program, err := os.Executable()
	if err != nil {
		return nil, err
	}
	dir, err := os.MkdirTemp("", "rdmaperf-reproduce-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	n := &runner{program: program, dir: dir, Options: o, ran: map[string]*outcome{}}
	rep := &Report{Paper: p.Name, Title: p.Title, Source: p.Source, Started: time.Now(), Quick: o.Quick,
		Environment: reports.Collect()}
	var chosen []*Claim
	for i := range p.Claims {
		if c := &p.Claims[i]; len(o.Only) == 0 || slices.Contains(o.Only, c.ID) {
			chosen = append(chosen, c)
		}
	}
	plan := p.plan(o.Quick)
	runs, cancel := context.WithTimeout(ctx, plan.most)
	defer cancel()
	rep.Claims = n.looks(runs, chosen, plan)
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	rep.Runs = n.made
	return rep, nil
}

// runsOf are those that claims need here: first those without rounds, last those of curves.
func runsOf(all []*Claim) (runs []*Run) {
	for kind := range kinds {
		for _, c := range all {
			for _, r := range c.runs() {
				if r.kind() == kind && c.Needs.lacks() == "" && !slices.Contains(runs, r) {
					runs = append(runs, r)
				}
			}
		}
	}
	return runs
}

func (c *Claim) runs() (all []*Run) {
	add := func(r *Run) {
		if !slices.Contains(all, r) {
			all = append(all, r)
		}
	}
	for _, r := range c.Rules {
		if r.pass != nil {
			add(r.pass)
		}
		for _, a := range r.ats() {
			add(a.Run)
		}
	}
	for _, curve := range c.Curves {
		for _, l := range curve.Lines {
			if l.Here.Run != nil {
				add(l.Here.Run)
			}
			if l.Also != nil {
				add(l.Also)
			}
		}
	}
	return all
}

func (c *Claim) label(n *runner) string {
	var all []string
	for _, r := range c.runs() {
		if o := n.ran[over(r.Args, n.Transport)]; o != nil {
			for i := range o.doc.Results {
				if l := o.doc.Results[i].Label; !slices.Contains(all, l) {
					all = append(all, l)
				}
			}
		}
	}
	return strings.Join(all, ", ")
}

// Count is how many claims have a verdict.
func (r *Report) Count(v Verdict) (n int) {
	for _, c := range r.Claims {
		if c.Verdict == v {
			n++
		}
	}
	return n
}

// Summary is the counts in a sentence.
func (r *Report) Summary() string {
	var parts []string
	for _, v := range []Verdict{Shown, NotShown, Undecided, Cannot} {
		if n := r.Count(v); n > 0 || v == Shown {
			parts = append(parts, fmt.Sprintf("%d %s", n, v))
		}
	}
	return fmt.Sprintf("%s: of %s %s", r.Paper, view.Plural(int64(len(r.Claims)), "claim"), strings.Join(parts, ", "))
}
