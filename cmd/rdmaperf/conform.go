package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/rdmaperf/rdmaperf/reports"
	"github.com/rdmaperf/rdmaperf/transports/conform"
	"github.com/rdmaperf/rdmaperf/transports/memdev"
	"github.com/rdmaperf/rdmaperf/transports/rdma"
)

// conformFlags choose what is checked and how it is judged.
type conformFlags struct {
	transports string
	verbs      verbsFlags
	only, skip []string
	strict     bool
	seed       uint64
	ledger     string
	profile    string
	format     string
	junit      string
	jsonl      string
	timeout    time.Duration
	list       bool
	explain    string
}

func newConformCommand() *cobra.Command {
	var f conformFlags
	cmd := &cobra.Command{
		Use:   "conform",
		Short: "Check that a provider behaves as the specifications say",
		Long: `Run the conformance cases against providers, each case on fresh connections, and
print a matrix of verdicts. A case that a provider's declared capabilities do not
cover is "unsupported"; a declared capability that no case proved is a failure.

Exit codes: 0 all required cases pass, 1 a case failed, 2 wrong command line or
nothing selected, 77 a provider could not be opened.`,
		Example: `  rdmaperf conform --transport mem,iwarp
  rdmaperf conform --transport iwarp --only 'rdr/*,ord' --format jsonl
  rdmaperf conform --strict --ledger known.json --junit junit.xml --jsonl conform.jsonl
  rdmaperf conform --explain ord/write-then-read`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return f.run(cmd.Context(), cmd.OutOrStdout())
		},
	}
	fl := cmd.Flags()
	fl.StringVar(&f.transports, "transport", "", "providers to check, comma separated (default "+conformDefault()+")")
	f.verbs.register(fl)
	fl.StringSliceVar(&f.only, "only", nil, "cases to run: IDs, globs such as 'rdr/*', or groups")
	fl.StringSliceVar(&f.skip, "skip", nil, "cases to leave out, likewise")
	fl.BoolVar(&f.strict, "strict", false, "failed recommendations (should) and unexpected passes fail the run")
	fl.Uint64Var(&f.seed, "seed", 1, "seed of payloads and random choices")
	fl.StringVar(&f.ledger, "ledger", "", "JSON file of known deviations, which become xfail")
	fl.StringVar(&f.profile, "profile", "fast", "fast or full (longer loops and large transfers)")
	fl.StringVar(&f.format, "format", "text", "of stdout: text (matrix) or jsonl (one record a case)")
	fl.StringVar(&f.junit, "junit", "", "also write the verdicts as JUnit XML to this file")
	fl.StringVar(&f.jsonl, "jsonl", "", "also write one record a case to this file, for 'rdmaperf report'")
	fl.DurationVar(&f.timeout, "case-timeout", 10*time.Second, "deadline of one case")
	fl.BoolVar(&f.list, "list", false, "list the selected cases and run nothing")
	fl.StringVar(&f.explain, "explain", "", "print what one case requires and run nothing")
	return cmd
}

func (f *conformFlags) run(ctx context.Context, stdout io.Writer) error {
	const operation = "check conformance"
	if f.explain != "" {
		text, err := conform.Explain(f.explain)
		if err != nil {
			return usage(operation, err, "rdmaperf conform --list")
		}
		_, err = io.WriteString(stdout, text)
		return err
	}
	o, err := f.options()
	if err != nil {
		return usage(operation, err, "rdmaperf conform --help")
	}
	if f.list {
		cases, err := conform.Select(conform.Catalogue(), f.only, f.skip, o.Profile)
		if err != nil {
			return usage(operation, err, "rdmaperf conform --list")
		}
		return conform.List(stdout, cases)
	}
	if f.format != "text" && f.format != "jsonl" {
		return usage(operation, fmt.Errorf("unknown format %q", f.format), "text or jsonl")
	}
	stacks, err := f.stacks()
	if err != nil {
		return err
	}
	files, err := f.create()
	if err != nil {
		return usage(operation, err, "a file that can be written")
	}
	defer files.close()
	var results []conform.Report
	for _, spec := range stacks {
		h, err := openHarness(spec)
		if reports.Code(err) == reports.ExitUsage {
			return err
		}
		if err != nil {
			results = append(results, conform.NotRunReport(spec, err, o))
			continue
		}
		results = append(results, conform.Run(ctx, h, o))
		if err := h.Close(); err != nil {
			return &reports.ExitError{Code: reports.ExitFailed, Operation: operation + " of " + spec, Err: err}
		}
	}
	if f.format == "jsonl" {
		err = conform.WriteJSONL(stdout, results...)
	} else {
		err = conform.WriteMatrix(stdout, results...)
	}
	if err = errors.Join(err, files.write(results)); err != nil {
		return &reports.ExitError{Code: reports.ExitFailed, Operation: "write verdicts", Err: err}
	}
	return conformError(ctx, results)
}

// stacks splits --transport and puts the device flags in; a device alone means
// kernel verbs.
func (f *conformFlags) stacks() ([]string, error) {
	list := f.transports
	if list == "" {
		if list = conformDefault(); f.verbs.named() {
			list = verbsName
		}
	}
	var stacks []string
	for _, spec := range splitTop(list, ',') {
		stacks = append(stacks, strings.TrimSpace(spec))
	}
	return f.verbs.apply(stacks)
}

// conformDefault is what every machine can check: the reference and the embedded stack.
func conformDefault() string { return "mem," + embeddedStack() }

// conformError is nil when nothing required failed.
func conformError(ctx context.Context, results []conform.Report) error {
	code := conform.ExitCode(results...)
	if ctx.Err() != nil && code == conform.ExitOK {
		code = conform.ExitFailed
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

func (f *conformFlags) options() (conform.Options, error) {
	o := conform.Options{Only: f.only, Skip: f.skip, Strict: f.strict, Seed: f.seed, CaseTimeout: f.timeout}
	var err error
	if o.Profile, err = conform.ParseProfile(f.profile); err != nil {
		return o, err
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
		if stale := o.Ledger.Stale(conform.Catalogue()); len(stale) > 0 {
			return o, fmt.Errorf("%s: no case is called %q", f.ledger, stale[0].Case)
		}
		o.Kernel = reports.Collect().Kernel
	}
	return o, nil
}

// located is a provider whose devices have addresses of their own: loopback does
// not lead to an adapter.
type located interface{ ListenHost() string }

// mortal is a provider that can die on purpose.
type mortal interface{ Kill() }

// openHarness makes fresh pairs of the stack that spec names. What is wrong
// with spec is found here, once, and not by every case. It is the provider at
// the bottom that dies where a case asks for that.
func openHarness(spec string) (conform.Harness, error) {
	name := spec // as asked, which is what ledgers know
	spec, err := chooseDevice(spec, false)
	if err != nil {
		return nil, err
	}
	var probe stackSet
	dev, provider, err := probe.openLayers(spec)
	if err != nil {
		return nil, err
	}
	listen := "127.0.0.1:0"
	if dev.Caps().Label == rdma.LabelMem {
		listen = ":0"
	}
	if near, ok := provider.(located); ok && near.ListenHost() != "" {
		listen = net.JoinHostPort(near.ListenHost(), "0")
	}
	_, canDie := provider.(mortal)
	if err := dev.Close(); err != nil {
		return nil, err
	}
	var last rdma.Device // the provider under the acceptor's device
	open := func(context.Context) (rdma.Device, rdma.Device, string, error) {
		// Reads of mem take a while, so that fences and ORD have something to hold.
		s := stackSet{mem: memdev.Config{ReadDelay: 10 * time.Microsecond}}
		a, err := s.openDevice(spec)
		if err != nil {
			return nil, nil, "", err
		}
		var b rdma.Device
		if b, last, err = s.openLayers(spec); err != nil {
			return nil, nil, "", errors.Join(err, a.Close())
		}
		return a, b, listen, nil
	}
	if !canDie {
		return conform.Fresh(name, open), nil
	}
	return conform.FreshKiller(name, open, func(rdma.Device) error { last.(mortal).Kill(); return nil }), nil
}
