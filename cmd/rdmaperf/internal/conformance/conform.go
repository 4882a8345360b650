// Package conformance is the conform command: which suites check a stack, and where the verdicts go.
package conformance

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/cli"
	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/stackspec"
	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/values"
	"github.com/rdmaperf/rdmaperf/reports"
	"github.com/rdmaperf/rdmaperf/softstack/wiretest/suite"
	"github.com/rdmaperf/rdmaperf/transports/conform"
	"github.com/rdmaperf/rdmaperf/transports/memdev"
	"github.com/rdmaperf/rdmaperf/transports/rdma"
)

// Flags choose what is checked and how it is judged.
type Flags struct {
	transports string
	verbs      stackspec.VerbsFlags
	only, skip []string
	strict     bool
	seed       uint64
	ledger     string
	profile    string
	format     string
	junit      string
	jsonl      string
	timeout    time.Duration
	Timed      bool // the timeout was given
	list       bool
	explain    string
	wire       string
	hazard     bool
}

func (f *Flags) Register(fl *pflag.FlagSet) {
	values.ListVar(fl, &f.transports, "transport", "",
		"providers to check, comma separated (default "+conformDefault()+")")
	f.verbs.Register(fl)
	fl.StringSliceVar(&f.only, "only", nil, "cases to run: IDs, globs such as 'rdr/*', or groups")
	fl.StringSliceVar(&f.skip, "skip", nil, "cases to leave out, likewise")
	fl.BoolVar(&f.strict, "strict", false, "failed recommendations (should) and unexpected passes fail the run")
	fl.Uint64Var(&f.seed, "seed", 1, "seed of payloads and random choices")
	fl.StringVar(&f.ledger, "ledger", "", "JSON file of known deviations, which become xfail")
	fl.StringVar(&f.profile, "profile", "fast", "fast or full (longer loops and large transfers)")
	fl.StringVar(&f.format, "format", "text", "of stdout: text (matrix) or jsonl (one record a case)")
	fl.StringVar(&f.junit, "junit", "", "also write the verdicts as JUnit XML to this file")
	fl.StringVar(&f.jsonl, "jsonl", "", "also write one record a case to this file, for 'rdmaperf report'")
	fl.DurationVar(&f.timeout, "case-timeout", 10*time.Second,
		"deadline of one case; without the option 1m with --profile full")
	fl.BoolVar(&f.list, "list", false, "list the selected cases and run nothing")
	fl.StringVar(&f.wire, "wire", "",
		"run the wire cases against the iWARP peer at HOST:PORT: 'rdmaperf serve --target', or rping -s")
	fl.BoolVar(&f.hazard, "hazard", false,
		"with --wire: also run cases that crash unpatched kernels; always so on a loopback address")
	fl.StringVar(&f.explain, "explain", "", "print what one case requires and run nothing")
}

func (f *Flags) Run(ctx context.Context, stdout, stderr io.Writer) error {
	const operation = "check conformance"
	var stacks []string
	var err error
	if f.wire == "" {
		stacks, err = f.stacks()
	} else {
		stacks, err = f.wireTarget(operation)
	}
	if err != nil {
		return err
	}
	catalogue := f.catalogueOf(stacks)
	if f.explain != "" {
		text, err := conform.Explain(EveryCase(), f.explain)
		if err != nil {
			return cli.Usage(operation, err, "rdmaperf conform --list")
		}
		_, err = io.WriteString(stdout, text)
		return err
	}
	o, err := f.options()
	if err != nil {
		return cli.Usage(operation, err, "rdmaperf conform --help")
	}
	// Of several suites each runs what the filters leave of it, and all of them together must know every pattern.
	cases, err := conform.Select(catalogue, f.only, f.skip, o.Profile)
	if err != nil {
		return cli.Usage(operation, err, "rdmaperf conform --list")
	}
	if f.list {
		return conform.List(stdout, cases)
	}
	if f.format != "text" && f.format != "jsonl" {
		return cli.Usage(operation, fmt.Errorf("unknown format %q", f.format), "text or jsonl")
	}
	plans := make([]conform.Options, len(stacks))
	for i, spec := range stacks {
		if plans[i], err = f.narrow(spec, o, cases); err != nil {
			return err
		}
	}
	files, err := f.create()
	if err != nil {
		return cli.Usage(operation, err, "a file that can be written")
	}
	defer files.close()
	var results []conform.Report
	bar := f.count(stderr, stacks, plans)
	defer bar.End()
	for i, spec := range stacks {
		rep, err := f.check(ctx, spec, plans[i])
		if err != nil {
			return err
		}
		results = append(results, rep)
	}
	bar.End()
	if f.format == "jsonl" {
		err = conform.WriteJSONL(stdout, results...)
	} else {
		err = conform.WriteMatrix(stdout, cli.TerminalColumns(stdout), results...)
	}
	if err = errors.Join(err, files.write(results)); err != nil {
		return &reports.ExitError{Code: reports.ExitFailed, Operation: "write verdicts", Err: err}
	}
	return conformError(ctx, results)
}

// count draws how many of all cases are done.
func (f *Flags) count(stderr io.Writer, stacks []string, plans []conform.Options) *cli.Progress {
	total := 0
	for i, spec := range stacks {
		all := plans[i].Cases
		if all == nil {
			all = f.catalogueOf([]string{spec})
		}
		cases, err := conform.Select(all, plans[i].Only, plans[i].Skip, plans[i].Profile)
		if err != nil {
			continue // the run says so
		}
		total += len(cases)
	}
	bar := cli.NewProgress(stderr, false, make([]time.Duration, total))
	for i, spec := range stacks {
		red := 0
		plans[i].Progress = func(r conform.Result) {
			what := r.ID
			if r.Red(f.strict) {
				red++
			}
			if red > 0 {
				what = fmt.Sprintf("%s, %d not passed", what, red)
			}
			bar.Before(spec, what, 0)
			bar.After()
		}
	}
	return bar
}

func (f *Flags) narrow(spec string, o conform.Options, selected []conform.Case) (conform.Options, error) {
	if len(f.only)+len(f.skip) == 0 {
		return o, nil
	}
	own := f.catalogueOf([]string{spec})
	o.Only, o.Skip = nil, nil
	for _, c := range selected {
		if slices.ContainsFunc(own, func(d conform.Case) bool { return c.ID == d.ID }) {
			c.Profile = conform.Fast // it is selected, whatever its profile
			o.Cases = append(o.Cases, c)
		}
	}
	if len(o.Cases) == 0 {
		return o, cli.Usage("check conformance of "+spec, errors.New("its suite has none of the selected cases"),
			"rdmaperf conform --list --transport '"+spec+"'")
	}
	return o, nil
}

// check runs the suite of one stack. A stack that is not here is in the report and no error.
func (f *Flags) check(ctx context.Context, spec string, o conform.Options) (conform.Report, error) {
	if f.wire != "" {
		return suite.Run(ctx, spec, suite.Options{Options: o, Hazard: f.hazard || onLoopback(spec)}), nil
	}
	return suiteOf(spec).check(ctx, spec, o)
}

func checkDevice(ctx context.Context, spec string, o conform.Options) (conform.Report, error) {
	h, err := openHarness(spec)
	if err != nil {
		return notHere(spec, err, o, conform.Catalogue)
	}
	rep := conform.Run(ctx, h, o)
	if err := h.Close(); err != nil {
		return rep, &reports.ExitError{Code: reports.ExitFailed, Operation: "check conformance of " + spec, Err: err}
	}
	return rep, nil
}

// notHere is the report of a stack that cannot be opened here; an error of the command line stays one.
func notHere(spec string, err error, o conform.Options, catalogue func() []conform.Case) (conform.Report, error) {
	if reports.Code(err) == reports.ExitUsage {
		return conform.Report{}, err
	}
	if o.Cases == nil {
		o.Cases = catalogue()
	}
	return conform.NotRunReport(spec, err, o), nil
}

func (f *Flags) stacks() ([]string, error) {
	list := f.transports
	if list == "" {
		if list = conformDefault(); f.verbs.Named() {
			list = stackspec.Verbs
		}
	}
	var stacks []string
	for _, spec := range stackspec.Split(list, ',') {
		stacks = append(stacks, strings.TrimSpace(spec))
	}
	return f.verbs.Apply(stacks)
}

func conformDefault() string { return "mem," + stackspec.Embedded() }

func conformError(ctx context.Context, results []conform.Report) error {
	code := conform.ExitCode(results...)
	if ctx.Err() != nil && code == conform.ExitOK {
		code = conform.ExitFailed
	}
	if ctx.Err() != nil && code == conform.ExitFailed {
		code = reports.ExitInterrupted
	}
	if code == conform.ExitOK {
		return nil
	}
	var red []string
	var errs []error
	for i := range results {
		r := &results[i]
		if r.Err != nil {
			errs = append(errs, r.Err)
			continue
		}
		for k := range r.Results {
			if r.Results[k].Red(r.Strict) {
				red = append(red, r.Transport+" "+r.Results[k].ID)
			}
		}
	}
	if len(red) > 0 {
		const show = 5
		more := ""
		if len(red) > show {
			more = fmt.Sprintf(" and %d more", len(red)-show)
		}
		errs = append(errs, fmt.Errorf("%d not passed: %s%s", len(red), strings.Join(red[:min(show, len(red))], ", "), more))
	}
	if ctx.Err() != nil {
		errs = append(errs, errors.New("interrupted; the remaining cases are notrun"))
	}
	hint := ""
	var exit *reports.ExitError
	if len(red) > 0 {
		hint = "rdmaperf conform --explain " + red[0][strings.LastIndexByte(red[0], ' ')+1:]
	} else if errors.As(errors.Join(errs...), &exit) {
		hint = exit.Hint
	}
	return &reports.ExitError{Code: code, Operation: "check conformance", Err: errors.Join(errs...), Hint: hint}
}

func (f *Flags) options() (conform.Options, error) {
	o := conform.Options{Only: f.only, Skip: f.skip, Strict: f.strict, Seed: f.seed, CaseTimeout: f.timeout}
	var err error
	if o.Profile, err = conform.ParseProfile(f.profile); err != nil {
		return o, err
	}
	if o.Profile == conform.Full && !f.Timed {
		o.CaseTimeout = time.Minute // a case of it moves gigabytes
	}
	if f.timeout <= 0 {
		return o, fmt.Errorf("case timeout %v: want more than 0", f.timeout)
	}
	if f.ledger != "" {
		file, err := os.Open(f.ledger)
		if err != nil {
			return o, err
		}
		defer file.Close()
		if o.Ledger, err = conform.ReadLedger(file); err != nil {
			return o, fmt.Errorf("%s: %w", f.ledger, err)
		}
		if stale := o.Ledger.Stale(EveryCase()); len(stale) > 0 {
			return o, fmt.Errorf("%s: no case is called %q", f.ledger, stale[0].Case)
		}
		o.Kernel = reports.Collect().Kernel
	}
	return o, nil
}

// openHarness makes fresh pairs of a stack. The provider at the bottom dies where a case asks for that.
func openHarness(name string) (*conform.Harness, error) {
	at, err := stackspec.Survey(name)
	if err != nil {
		return nil, err
	}
	var last rdma.Device // the provider under the acceptor's device
	open := func(context.Context) (rdma.Device, rdma.Device, string, error) {
		// Reads of mem take a while, so that fences and ORD have something to hold.
		s := stackspec.Set{Mem: memdev.Config{ReadDelay: 10 * time.Microsecond}}
		a, err := s.OpenDevice(at.Spec)
		if err != nil {
			return nil, nil, "", err
		}
		var b rdma.Device
		if b, last, err = s.OpenLayers(at.Spec); err != nil {
			return nil, nil, "", errors.Join(err, a.Close())
		}
		return a, b, at.Listen, nil
	}
	path := &pathSite{at}
	h := &conform.Harness{Name: name, Open: open, Addr6: at.Listen6, OpenPath: path.overPath, NoPath: path.noPath()}
	if at.CanDie {
		h.Kill = func(rdma.Device) error { last.(stackspec.Mortal).Kill(); return nil }
	}
	return h, nil
}
