package claims

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/answer"
	"github.com/rdmaperf/rdmaperf/reports/view"
)

const (
	quickPaper = 51 * time.Second // all runs of a quick paper together: seven papers take less than six minutes
	fullPaper  = 5 * time.Minute
	lookGrowth = 3 // a look has so many times the rounds of the one before it

	quickLooks, fullLooks = 2, 3
)

type plan struct {
	rounds []int   // of each look, those of the looks before it included
	level  float64 // of each interval of each look
	most   time.Duration
}

// plan divides 5 % among the rules with an interval and the looks at them (Bonferroni), before anything is measured.
func (p *Paper) plan(quick bool) plan {
	m := 0
	for _, c := range p.Claims {
		for _, r := range c.Rules {
			if r.bounded() && !r.exact && c.Needs.lacks() == "" {
				m += len(r.terms)
			}
		}
	}
	looks, most := fullLooks, fullPaper
	if quick {
		looks, most = quickLooks, quickPaper
	}
	x := plan{level: answer.Level(max(m, 1) * looks), most: most}
	for rounds := answer.RoundsFor(x.level); len(x.rounds) < looks; rounds *= lookGrowth {
		x.rounds = append(x.rounds, rounds)
	}
	return x
}

type open struct {
	rule Rule
	f    *Finding
}

func (o open) runs() (all []*Run) {
	for _, t := range o.rule.terms {
		for _, a := range []*At{&t.of, t.to} {
			if a != nil && a.Run.repeats() && !slices.Contains(all, a.Run) {
				all = append(all, a.Run)
			}
		}
	}
	return all
}

// looks makes the first look at all claims, and further ones at undecided rules while there is time.
func (n *runner) looks(ctx context.Context, chosen []*Claim, x plan) []Outcome {
	n.left = runsOf(chosen)
	n.Announce(fmt.Sprintf("%s by %s, at most %v", view.Plural(int64(len(chosen)), "claim"),
		view.Plural(int64(len(n.left)), "run"), x.most))
	began := time.Now()
	for _, r := range slices.Clone(n.left) {
		n.look(ctx, r, x.rounds[0])
	}
	all := make([]Outcome, len(chosen))
	var todo []open
	for i, c := range chosen {
		all[i] = c.outcome(n, x)
		for k := range all[i].Findings {
			if f := &all[i].Findings[k]; f.Verdict == Undecided && f.more > 0 {
				todo = append(todo, open{c.Rules[k], f})
			}
		}
	}
	for k := 1; k < len(x.rounds) && len(todo) > 0; k++ {
		todo = n.further(ctx, todo, x, k, began)
	}
	for i, c := range chosen {
		all[i].conclude(c, n, x)
	}
	return all
}

func (c *Claim) outcome(n *runner, x plan) Outcome {
	out := Outcome{ID: c.ID, Says: c.Says, Source: c.Source, Published: c.Published, Verdict: Shown}
	if out.Why = c.Needs.lacks(); out.Why != "" {
		out.Verdict = Cannot
		return out
	}
	for _, r := range c.Rules {
		if r.pass == nil {
			out.Findings = append(out.Findings, r.judge(n.upTo(x.rounds[0]), x.level))
		} else {
			out.Findings = append(out.Findings, n.look(context.Background(), r.pass, 1).judgePass(r))
		}
	}
	return out
}

// conclude gives the claim the first of the verdicts of its rules.
func (out *Outcome) conclude(c *Claim, n *runner, x plan) {
	for _, f := range out.Findings {
		if slices.Index(verdicts, f.Verdict) < slices.Index(verdicts, out.Verdict) {
			out.Verdict, out.Why = f.Verdict, f.Why
		}
	}
	for _, r := range c.runs() {
		out.Commands = append(out.Commands, r.lines(n, x.rounds[0])...)
	}
	if len(out.Findings) == 0 {
		return
	}
	for _, curve := range c.Curves {
		out.Tables = append(out.Tables, curve.table(n.upTo(math.MaxInt)))
	}
	out.Label = c.label(n)
}

// further looks again at undecided rules, as far as the time allows: those that it should decide first, the cheapest of
// them ahead. It returns those that are still undecided.
func (n *runner) further(ctx context.Context, todo []open, x plan, k int, began time.Time) (still []open) {
	rounds := x.rounds[k]
	cost := func(o open) (t time.Duration) {
		for _, r := range o.runs() {
			t += n.cost(r, rounds)
		}
		return t
	}
	slow := func(o open) int {
		if o.f.more > float64(rounds-x.rounds[k-1]) {
			return 1
		}
		return 0
	}
	slices.SortStableFunc(todo, func(a, b open) int {
		return cmp.Or(cmp.Compare(slow(a), slow(b)), cmp.Compare(cost(a), cost(b)))
	})
	end, _ := ctx.Deadline()
	n.Announce(fmt.Sprintf("%v gone, %s undecided: up to %d rounds of their runs, at most %v",
		time.Since(began).Round(time.Second), view.Plural(int64(len(todo)), "rule"), rounds,
		time.Until(end).Round(time.Second)))
	for _, o := range todo {
		if t := cost(o); ctx.Err() != nil || t > time.Until(end) || len(o.runs()) == 0 {
			still = append(still, o)
			continue
		}
		for _, r := range o.runs() {
			n.look(ctx, r, rounds)
		}
		if *o.f = o.rule.judge(n.upTo(rounds), x.level); o.f.Verdict == Undecided && o.f.more > 0 {
			still = append(still, o)
		}
	}
	return still
}

func (n *runner) upTo(rounds int) reader {
	return func(a At) (series, error) { return n.read(a, rounds) }
}
