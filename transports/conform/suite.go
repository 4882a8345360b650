package conform

import (
	"context"
	"errors"
	"time"
)

// What suites of other things than devices share with this one: the selection, the order,
// the ledger, and the verdict of a case by what running it returned.

// Missing ends a case that what is checked cannot be asked, and says why.
type Missing struct{ Why string }

func (m *Missing) Error() string { return m.Why }

// WithDefaults fills in what was left to the suite, whose cases catalogue lists.
func (o Options) WithDefaults(catalogue func() []Case) Options {
	if o.CaseTimeout <= 0 {
		o.CaseTimeout = 10 * time.Second
	}
	if o.Seed == 0 {
		o.Seed = 1
	}
	if o.Cases == nil {
		o.Cases = catalogue()
	}
	return o
}

// RunCases has judge give each selected case its verdict, one after the other, and returns
// when all have one, or soon after ctx ends. The options have their defaults.
func RunCases(ctx context.Context, name string, o Options, judge func(c *Case, res *Result)) Report {
	rep := Report{Transport: name, Strict: o.Strict, Seed: o.Seed}
	cases, err := Select(o.Cases, o.Only, o.Skip, o.Profile)
	if err != nil {
		rep.Err = err
		return rep
	}
	for i := range cases {
		res := cases[i].Record(name, o.Seed)
		begun := time.Now()
		if ctx.Err() != nil {
			res.Verdict, res.Evidence = NotRun, "run ended: "+ctx.Err().Error()
		} else {
			judge(&cases[i], &res)
		}
		res.DurationNS = time.Since(begun).Nanoseconds()
		o.Ledger.Apply(&cases[i], &res, o.Kernel)
		rep.Results = append(rep.Results, res)
		if o.Progress != nil {
			o.Progress(res)
		}
	}
	return rep
}

// Settle is the verdict by what running the case returned: nil, a [Mismatch], what is
// [Missing], or what kept the case from being decided.
func (r *Result) Settle(err error) {
	var wrong *Mismatch
	var lacks *Missing
	switch {
	case err == nil:
		r.Verdict = Pass
	case errors.As(err, &lacks):
		r.Verdict, r.Evidence = Unsupported, lacks.Why
	case errors.As(err, &wrong):
		r.Verdict, r.Want, r.Got = Fail, wrong.Want, wrong.Got
	default:
		r.Verdict, r.Got = Error, err.Error()
	}
}
