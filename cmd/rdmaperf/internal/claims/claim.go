// Package claims holds what papers say of their systems as data, runs it here, and says of each claim whether it is
// shown.
// A paper is one file with one Paper, and a line in All. A Run has the arguments of rdmaperf as a user types them; an
// At names a figure of it, as --fail-if does, by stack and dimensions; a rule compares figures and has bounds, this
// project's unless Published says otherwise. Against names the arm for which the rule must not hold: one that holds
// there decides nothing.
// The first look at a rule has the fewest rounds that give an interval, each other three times as many. The level is
// divided among rules and looks (Bonferroni), so that the verdicts of a paper hold together with 95 %.
package claims

import (
	"fmt"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"time"
)

// All are the papers, in the order of their command's help.
var All = []*Paper{&srdma, &lite, &registration, &softrdma, &rrcompound, &peers, &self}

// Has tells whether the paper has a claim.
func (p *Paper) Has(id string) bool {
	return slices.ContainsFunc(p.Claims, func(c Claim) bool { return c.ID == id })
}

// Paper is what one publication claims.
type Paper struct {
	Name   string // as the command has it
	Title  string
	Source string
	Claims []Claim
}

// Claim is one statement of a paper.
type Claim struct {
	ID        string
	Says      string   // in one sentence
	Source    string   // where the paper says so, or who does
	Published []string // its figures; empty where there are none
	Needs     Needs
	Rules     []Rule
	Curves    []Curve
}

// Needs are what a claim cannot be shown without.
type Needs struct {
	CPUs  int    // usable by this process
	Other string // what no program here has; then the claim is never run
}

func (n Needs) lacks() string {
	var all []string
	if have := runtime.NumCPU(); have < n.CPUs {
		all = append(all, fmt.Sprintf("%d CPUs: here are %d", n.CPUs, have))
	}
	if n.Other != "" {
		all = append(all, n.Other)
	}
	return strings.Join(all, "; ")
}

// Run is a command line of rdmaperf. One with a Slice or a Round has rounds, which its looks add; any other is made
// once.
type Run struct {
	Args   string        // as a user types them behind rdmaperf, with single quotes where a shell wants them
	Slice  time.Duration // of a round of a quick run; a full one has twice that
	Each   bool          // -D of its workload is the time of a round, and not of all of them
	Round  string        // what a round is, in the place of a Slice: -n 200
	Rounds int           // where a curve alone reads it, whose medians need few; 0: those of the look
	Full   string        // of a run without rounds: added to Args
	Quick  string        // the same, of a quick run
	Beside []*tool       // other programs that measure the same, in turns with it; each turn is a run of its own
}

func (r *Run) repeats() bool {
	return (r.Slice > 0 || r.Round != "" || len(r.Beside) > 0) && r.Rounds == 0
}

func (r *Run) kind() int {
	switch {
	case r.Rounds > 0:
		return kinds - 1
	case r.repeats():
		return 1
	}
	return 0
}

const kinds = 3

func (r *Run) rounds(look int) int {
	switch {
	case r.Rounds > 0:
		return r.Rounds
	case r.repeats():
		return look
	}
	return 1
}

// line is the whole command for so many rounds.
func (r *Run) line(o Options, rounds int) string {
	line := over(r.Args, o.Transport)
	slice := r.Slice
	if !o.Quick {
		slice *= 2
	}
	switch {
	case len(r.Beside) > 0:
		return line + fmt.Sprintf(" --rounds 1 -D %v --warmup 5ms", slice)
	case r.Round != "":
		return line + fmt.Sprintf(" --rounds %d %s", rounds, r.Round)
	case r.Slice > 0 && r.Each:
		return line + fmt.Sprintf(" --rounds %d -D %v", rounds, slice)
	case r.Slice > 0:
		return line + fmt.Sprintf(" --rounds %d -D %v", rounds, slice*time.Duration(rounds))
	case o.Quick:
		return strings.TrimSpace(line + " " + r.Quick)
	}
	return strings.TrimSpace(line + " " + r.Full)
}

// lines are the commands that were run, or those of a first look.
func (r *Run) lines(n *runner, look int) []string {
	all := []string{"rdmaperf " + r.line(n.Options, r.rounds(look))}
	if o := n.ran[over(r.Args, n.Transport)]; o != nil && len(o.lines) > 0 {
		all = slices.Clone(o.lines)
	}
	for _, t := range r.Beside {
		all = append(all, t.shown(n.Quick))
	}
	return all
}

var plainIWARP = regexp.MustCompile(`\biwarp($|[^(\w])`)

// over puts another provider in the place of iwarp without parameters.
func over(text, provider string) string {
	if provider == "" {
		return text
	}
	return plainIWARP.ReplaceAllString(text, strings.ReplaceAll(provider, "$", "$$")+"$1")
}

func fields(line string) (out []string) {
	word, quoted, any := "", false, false
	for _, c := range line {
		switch {
		case c == '\'':
			quoted, any = !quoted, true
		case c == ' ' && !quoted:
			if any {
				out = append(out, word)
			}
			word, any = "", false
		default:
			word, any = word+string(c), true
		}
	}
	if any {
		out = append(out, word)
	}
	return out
}

// At is a figure of the results of a run: one value for each round.
type At struct {
	Run    *Run
	Figure string // as --fail-if has it; "cpu.gb" of any result with a bandwidth
	Stack  string // as typed
	Where  string // "arm=same-qp bulk_size=1M"; also pages!=base and, for a mean, at_s=2..4
}

// with is the figure at another point: conditions of the same name are replaced.
func (a At) with(where string) At {
	for _, c := range strings.Fields(where) {
		name, _, _ := strings.Cut(c, "=")
		kept := slices.DeleteFunc(strings.Fields(a.Where), func(o string) bool {
			return strings.HasPrefix(o, name+"=") || strings.HasPrefix(o, name+"!=")
		})
		a.Where = strings.Join(append(kept, c), " ")
	}
	return a
}

func (a At) value(name string) string {
	for _, c := range strings.Fields(a.Where) {
		if n, v, _ := strings.Cut(c, "="); n == name {
			return v
		}
	}
	return ""
}

func (a At) key() string {
	where := strings.Fields(a.Where)
	slices.Sort(where)
	return strings.Join([]string{a.Run.Args, a.Figure, a.Stack, strings.Join(where, " ")}, "|")
}

// instead is the figure with the other arm in the place of the first, where the figure is of the first.
func (a At) instead(first, other At) At {
	if other.Run != nil && a.Run == first.Run {
		a.Run = other.Run
	}
	if other.Figure != "" && a.Figure == first.Figure {
		a.Figure = other.Figure
	}
	if other.Stack != "" && a.Stack == first.Stack {
		a.Stack = other.Stack
	}
	for _, c := range strings.Fields(other.Where) {
		if name, _, _ := strings.Cut(c, "="); a.value(name) == first.value(name) {
			a = a.with(c)
		}
	}
	return a
}
