package conform

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"strings"
	"time"
)

// T is what a case of any suite uses to say what it found. The methods that decide the case
// unwind to Guard, as t.Fatal does.
type T struct{ notes []string }

// Note adds a sentence to the evidence of the result.
func (t *T) Note(format string, args ...any) { t.notes = append(t.notes, fmt.Sprintf(format, args...)) }

// Notes are all notes in one line.
func (t *T) Notes() string { return strings.Join(t.notes, "; ") }

// Fail ends the case: want are the legal outcomes.
func (t *T) Fail(got string, want ...string) { panic(halt{&Mismatch{Want: want, Got: got}}) }

// Lacks ends a case that what is checked cannot be asked, and says why.
func (t *T) Lacks(why string) { panic(halt{&missing{why}}) }

// Stop ends a case that cannot be decided, unless err is nil.
func (t *T) Stop(err error) { mustRun(err) }

// Guard runs a part of a case and returns what ended it; nil when it returned.
func (t *T) Guard(f func()) (err error) {
	defer func() {
		switch v := recover().(type) {
		case nil:
		case halt:
			err = v.err
		default:
			err = &panicError{v, string(debug.Stack())}
		}
	}()
	f()
	return nil
}

type halt struct{ err error }

// mustRun ends the case as an error: the machine is at fault, and not the provider.
func mustRun(err error) {
	if err != nil {
		panic(halt{err})
	}
}

type panicError struct {
	value any
	stack string
}

func (p *panicError) Error() string { return fmt.Sprintf("panic: %v", p.value) }

type missing struct{ why string }

func (m *missing) Error() string { return m.why }

// Settle is the verdict by what Guard returned: nil, a [Mismatch], what is missing, or what
// kept the case from being decided. notes are the evidence.
func (r *Result) Settle(err error, notes string) {
	var wrong *Mismatch
	var lacks *missing
	var p *panicError
	r.Evidence = notes
	switch {
	case err == nil:
		r.Verdict = Pass
	case errors.As(err, &lacks):
		r.Verdict, r.Evidence = Unsupported, lacks.why
	case errors.As(err, &wrong):
		r.Verdict, r.Want, r.Got = Fail, wrong.Want, wrong.Got
	default:
		r.Verdict, r.Got = Error, err.Error()
		if errors.As(err, &p) {
			r.Evidence = p.stack
		}
	}
}

// Runner gives the selected cases of a suite their verdicts, one by one.
type Runner struct {
	name  string
	o     Options
	cases []Case
	judge func(ctx context.Context, c *Case, res *Result)
	done  []Result
}

// WithDefaults fills in what was left to the suite, whose cases catalogue lists.
func (o Options) WithDefaults(catalogue func() []Case) Options {
	if o.CaseTimeout <= 0 {
		o.CaseTimeout = fastCaseTimeout
		if o.Profile == Full {
			o.CaseTimeout = fullCaseTimeout
		}
	}
	o.Seed = cmp.Or(o.Seed, 1)
	if o.Cases == nil {
		o.Cases = catalogue()
	}
	return o
}

// newRunner takes options with their defaults; ErrUsage for a bad selection.
func newRunner(name string, o Options, judge func(context.Context, *Case, *Result)) (*Runner, error) {
	cases, err := Select(o.Cases, o.Only, o.Skip, o.Profile)
	return &Runner{name: name, o: o, cases: cases, judge: judge}, err
}

// Selected are the cases to run, in order.
func (r *Runner) Selected() []Case { return r.cases }

// Case runs one case to its verdict.
func (r *Runner) Case(ctx context.Context, c Case) Result {
	res := c.Record(r.name, r.o.Seed)
	start := time.Now()
	if ctx.Err() == nil {
		r.judge(ctx, &c, &res)
	}
	if err := ctx.Err(); err != nil && (res.Verdict == "" || res.Verdict == Error) {
		// Its deadline was not its own, so it found out nothing.
		res.Verdict, res.Evidence, res.Got = NotRun, "run ended: "+err.Error(), ""
	}
	r.o.Ledger.Apply(&c, &res, r.o.Kernel)
	res.DurationNS = time.Since(start).Nanoseconds()
	r.done = append(r.done, res)
	if r.o.Progress != nil {
		r.o.Progress(res)
	}
	return res
}

// RunCases has judge give each selected case its verdict, one after the other, and returns
// when all have one, or soon after ctx ends. The options have their defaults.
func RunCases(ctx context.Context, name string, o Options, judge func(context.Context, *Case, *Result)) Report {
	r, err := newRunner(name, o, judge)
	if err != nil {
		return Report{Transport: name, Strict: o.Strict, Seed: o.Seed, Err: err}
	}
	return r.run(ctx)
}

func (r *Runner) run(ctx context.Context) Report {
	for _, c := range r.cases {
		r.Case(ctx, c)
	}
	return Report{Transport: r.name, Strict: r.o.Strict, Seed: r.o.Seed, Results: r.done}
}
