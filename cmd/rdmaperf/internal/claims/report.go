package claims

import (
	"context"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/answer"
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
}

// Reproduce runs the claims of a paper, with a copy of this program for each run. An error is of this machine, or the
// context's.
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
	runs := ctx
	if o.Quick {
		bounded, cancel := context.WithTimeout(ctx, quickPaper)
		defer cancel()
		runs = bounded
	}
	var chosen []*Claim
	for i := range p.Claims {
		if c := &p.Claims[i]; len(o.Only) == 0 || slices.Contains(o.Only, c.ID) {
			chosen = append(chosen, c)
		}
	}
	n.left = runsOf(chosen)
	for _, c := range chosen {
		rep.Claims = append(rep.Claims, c.reproduce(runs, n, p.level()))
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
	}
	rep.Runs = n.made
	return rep, nil
}

// level is how sure each interval of the paper is, so that all of them hold together with 95 %.
func (p *Paper) level() float64 {
	m := 0
	for _, c := range p.Claims {
		for _, r := range c.Rules {
			if !r.exact {
				m += len(r.terms)
			}
		}
	}
	return answer.Level(m)
}

// reproduce runs what a claim needs, and judges it.
func (c *Claim) reproduce(ctx context.Context, n *runner, level float64) Outcome {
	out := Outcome{ID: c.ID, Says: c.Says, Source: c.Source, Published: c.Published, Verdict: Shown}
	for _, r := range c.runs() {
		out.Commands = append(out.Commands, r.lines(n.Options)...)
	}
	if out.Why = c.Needs.lacks(); out.Why != "" {
		out.Verdict = Cannot
		return out
	}
	for _, r := range c.Rules {
		var f Finding
		if r.pass != nil {
			f = n.of(ctx, r.pass).judgePass(r)
		} else {
			f = r.judge(func(a At) (series, error) { return n.read(ctx, a) }, level)
		}
		out.Findings = append(out.Findings, f)
		if slices.Index(verdicts, f.Verdict) < slices.Index(verdicts, out.Verdict) {
			out.Verdict, out.Why = f.Verdict, f.Why
		}
	}
	for _, curve := range c.Curves {
		out.Tables = append(out.Tables, curve.table(func(a At) (series, error) { return n.read(ctx, a) }))
	}
	out.Label = c.label(n)
	return out
}

// runsOf are those that claims need here, each once.
func runsOf(all []*Claim) (runs []*Run) {
	for _, c := range all {
		for _, r := range c.runs() {
			if c.Needs.lacks() == "" && !slices.Contains(runs, r) {
				runs = append(runs, r)
			}
		}
	}
	return runs
}

// runs are those of the claim, each once.
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
		}
	}
	return all
}

// label is what kind of paths the claim was measured on.
func (c *Claim) label(n *runner) string {
	var all []string
	for _, r := range c.runs() {
		if o := n.ran[r.line(n.Options)]; o != nil && o.doc != nil {
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
