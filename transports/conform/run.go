package conform

import (
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/rdmaperf/rdmaperf/internal/freemem"
	"github.com/rdmaperf/rdmaperf/transports/rdma"
)

// Options choose what runs and how it is judged. The zero value runs the fast profile of the whole catalogue.
type Options struct {
	Only, Skip  []string      // globs, see Select
	Strict      bool          // a failed should and an unexpected pass are red
	Seed        uint64        // of payloads and random choices; 0 means 1
	Ledger      *Ledger       // known deviations; nil for none
	Kernel      string        // release under the devices, for entries that hold for some kernels only
	Profile     Profile       // Fast or Full
	CaseTimeout time.Duration // deadline of one case; 0 means 10 s, 60 s in the full profile
	Cases       []Case        // instead of Catalogue, for suites that bring their own
	// Progress, if set, sees every result as it comes.
	Progress func(Result)
}

const (
	fastCaseTimeout = 10 * time.Second
	fullCaseTimeout = 60 * time.Second
	// hangGrace is what a case gets after its deadline to fail and close its objects.
	hangGrace = 5 * time.Second
	// maxHangs ends a run: a provider that ignores deadlines would cost every remaining case its full time.
	maxHangs = 3
	// coverageID is the record of the check that declared means proven.
	coverageID = "coverage"
)

// Run executes the selected cases one after another. It returns when all have a
// result, or soon after ctx ends: the cases that are left are then notrun.
func Run(ctx context.Context, h *Harness, o Options) Report {
	r, err := NewDeviceRunner(h, o)
	if err != nil {
		return Report{Transport: h.Name, Strict: o.Strict, Err: err}
	}
	rep := r.run(ctx)
	if res, ok := r.Coverage(); ok {
		rep.Results = append(rep.Results, res)
	}
	if r.caps == nil && ctx.Err() == nil {
		rep.Err = fmt.Errorf("%s: %s: %w", rep.Transport, rep.Results[0].Evidence, ErrNotRun)
	}
	return rep
}

// NotRunReport is the report of a transport without a harness: every selected case is notrun, with the reason.
func NotRunReport(transport string, reason error, o Options) Report {
	rep := Report{Transport: transport, Strict: o.Strict, Seed: o.Seed, Err: &notRunError{transport, reason}}
	cases, err := Select(o.WithDefaults(Catalogue).Cases, o.Only, o.Skip, o.Profile)
	if err != nil {
		rep.Err = err
		return rep
	}
	for _, c := range cases {
		r := c.Record(transport, o.Seed)
		r.Verdict, r.Evidence = NotRun, reason.Error()
		rep.Results = append(rep.Results, r)
	}
	return rep
}

// notRunError is ErrNotRun of a transport. A provider without a device says "not run" itself.
type notRunError struct {
	transport string
	reason    error
}

func (e *notRunError) Error() string {
	if errors.Is(e.reason, rdma.ErrNoDevice) {
		return e.reason.Error()
	}
	return fmt.Sprintf("%s: %v: %v", e.transport, ErrNotRun, e.reason)
}

func (e *notRunError) Unwrap() []error { return []error{e.reason, ErrNotRun} }

// DeviceRunner is the Runner of cases over a harness.
type DeviceRunner struct {
	Runner
	h     *Harness
	whole bool       // the whole catalogue is selected
	caps  *rdma.Caps // of the first pair; nil until there was one
	hangs int
	grace time.Duration
}

// NewDeviceRunner checks the options; ErrUsage for a bad selection.
func NewDeviceRunner(h *Harness, o Options) (*DeviceRunner, error) {
	r := &DeviceRunner{h: h, grace: hangGrace, whole: len(o.Only)+len(o.Skip) == 0 && o.Cases == nil}
	own, err := newRunner(h.Name, o.WithDefaults(Catalogue), r.guarded)
	r.Runner = *own
	return r, err
}

// guarded gives the case its own goroutine: a provider call that never returns costs one case and not the run.
func (r *DeviceRunner) guarded(ctx context.Context, c *Case, res *Result) {
	if r.hangs >= maxHangs {
		res.Verdict, res.Evidence = NotRun, fmt.Sprintf("run ended after %d cases ignored their deadline", r.hangs)
		return
	}
	caseCtx, cancel := context.WithTimeout(ctx, r.o.CaseTimeout)
	defer cancel()
	type answer struct {
		res  Result
		caps *rdma.Caps
	}
	out := make(chan answer, 1)
	go func(res Result) {
		caps := r.attempt(caseCtx, c, &res)
		out <- answer{res, caps}
	}(*res)
	limit := time.NewTimer(r.o.CaseTimeout + r.grace)
	defer limit.Stop()
	select {
	case a := <-out:
		*res = a.res
		if r.caps == nil {
			r.caps = a.caps
		}
	case <-limit.C:
		r.hangs++
		buf := make([]byte, 64<<10)
		buf = buf[:runtime.Stack(buf, true)]
		res.Verdict = Error
		res.Got = fmt.Sprintf("a call did not return %v after the deadline", r.grace)
		res.Evidence = string(buf)
	}
}

func (r *DeviceRunner) attempt(ctx context.Context, c *Case, res *Result) *rdma.Caps {
	addr, err := r.h.pair(ctx, c)
	if err != nil {
		res.Verdict, res.Evidence = NotRun, err.Error()
		return nil
	}
	caps := common(r.h.a.Caps(), r.h.b.Caps())
	if _, hand := r.h.a.(rdma.RawQPs); !hand {
		caps.RawQP = false // a tier
	}
	if gap := r.gap(c, &caps); gap != "" {
		res.Verdict, res.Evidence = Unsupported, gap
		return &caps
	}
	if c.IPv6 {
		addr = r.h.Addr6
	}
	e := newEnv(ctx, r.h, addr, caps, r.o, caseSeed(r.o.Seed, c.ID))
	err = e.run(c)
	res.Settle(err, e.Notes())
	return &caps
}

func (r *DeviceRunner) gap(c *Case, caps *rdma.Caps) string {
	missing, declared, noPath := caps.Missing(c.Needs), caps.Features&c.Without, r.h.noPath(c)
	switch {
	case c.Lacks != "":
		return c.Lacks
	case missing != nil:
		return missing.Error()
	case c.Raw && !caps.RawQP:
		return "device has no queue pairs that are led by hand: it connects them whole"
	case declared != 0:
		return "device declares " + declared.String()
	case c.Kill && r.h.Kill == nil:
		return "harness cannot kill a device"
	case noPath != "":
		return noPath
	case c.IPv6 && r.h.Addr6 == "":
		return "harness has no address of IPv6"
	}
	if free := freemem.Bytes(); free >= 0 && uint64(free) < c.Memory {
		return fmt.Sprintf("machine has %d MiB of memory to spare, and a device may pin %d", free>>20, c.Memory>>20)
	}
	return ""
}

// caseSeed gives every case its own stream, whatever else was selected.
func caseSeed(seed uint64, id string) uint64 {
	h := fnv.New64a()
	h.Write([]byte(id))
	return seed*0x9e3779b97f4a7c15 ^ h.Sum64()
}

func common(a, b rdma.Caps) rdma.Caps {
	// FeatSinkNeedsRemoteWrite is a duty: it holds when either side has it.
	duty := (a.Features | b.Features) & rdma.FeatSinkNeedsRemoteWrite
	a.Ops &= b.Ops
	a.OnDemand = a.OnDemand && b.OnDemand
	a.Features = a.Features&b.Features | duty
	a.MaxQPWR = min(a.MaxQPWR, b.MaxQPWR)
	a.MaxCQE = min(a.MaxCQE, b.MaxCQE)
	a.MaxSGE = min(a.MaxSGE, b.MaxSGE)
	a.MaxReadSGE = min(a.MaxReadSGE, b.MaxReadSGE)
	a.MaxInline = min(a.MaxInline, b.MaxInline)
	a.MaxRDAtom = min(a.MaxRDAtom, b.MaxRDAtom)
	a.MaxSRQWR = min(a.MaxSRQWR, b.MaxSRQWR)
	a.MaxPrivate = min(a.MaxPrivate, b.MaxPrivate)
	a.MaxMsg = min(a.MaxMsg, b.MaxMsg)
	return a
}

// Coverage is the check that declared means proven: every operation and feature that the devices declare was needed by
// a case that ran to an answer. It applies to runs of the whole catalogue only, after the last case.
func (r *DeviceRunner) Coverage() (Result, bool) {
	if r.caps == nil || !r.whole {
		return Result{}, false
	}
	var proven rdma.Need
	for i := range r.cases {
		if i < len(r.done) && r.done[i].Verdict.executed() {
			proven.Ops |= r.cases[i].Needs.Ops
			proven.Features |= r.cases[i].Needs.Features
			proven.OnDemand = proven.OnDemand || r.cases[i].Needs.OnDemand
		}
	}
	res := Result{ID: coverageID, Clause: "declared means proven", Level: Must.String(),
		Transport: r.name, Verdict: Pass, Seed: r.o.Seed}
	gaps := abilities(r.caps.Ops&^proven.Ops, r.caps.Features&^proven.Features)
	if r.caps.OnDemand && !proven.OnDemand {
		gaps = append(gaps, "on-demand paging")
	}
	switch {
	case gaps != nil && slices.ContainsFunc(r.done, func(d Result) bool { return d.Verdict == NotRun }):
		res.Verdict = NotRun
		res.Evidence = "the cases that did not run may have proven " + strings.Join(gaps, ", ")
	case gaps != nil:
		res.Verdict = Fail
		res.Want = []string{"an executed case for every declared capability"}
		res.Got = "no executed case for " + strings.Join(gaps, ", ")
	}
	if r.o.Progress != nil {
		r.o.Progress(res)
	}
	return res, true
}
