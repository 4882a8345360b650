package main

import (
	"context"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/cli"
	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/perftest"
	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/run"
	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/serve"
	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/stackspec"
	"github.com/rdmaperf/rdmaperf/reports"
)

const perftestName = "perftest"

func newPerftestCommand() *cobra.Command {
	return &cobra.Command{
		Use:   perftestName + " TEST [perftest's options] [HOST]",
		Short: "Take the command lines of perftest, and print what it prints",
		Long: `Be ` + strings.Join(perftest.Names(), ", ") + `:
take that tool's options and print its tables. Without a HOST it is the server, which
ends when its client has left. A link to rdmaperf with one of these names does the
same: ln -s rdmaperf ib_write_bw.

Both sides must be rdmaperf: perftest's tools speak a protocol of their own. Without a
device it measures what run would; --transport says otherwise. Options that are not done
are refused with the reason: rdmaperf perftest TEST -h lists all. As with perftest,
nothing is compared, and whatever fails ends with exit code 1.`,
		Example: `  rdmaperf perftest ib_write_bw -d mlx5_0                    # the server
  rdmaperf perftest ib_write_bw -d mlx5_0 --report_gbits HOST
  rdmaperf perftest ib_send_lat --transport iwarp -s 64 -n 10000 HOST`,
		DisableFlagParsing: true,
		ValidArgsFunction:  completePerftest,
		RunE:               func(cmd *cobra.Command, args []string) error { return asPerftestExits(perftestMain(cmd, args)) },
	}
}

func asPerftestExits(err error) error {
	if code := reports.Code(err); code == reports.ExitOK || code == reports.ExitInterrupted {
		return err
	}
	failed := reports.ExitError{Err: err}
	if e := new(reports.ExitError); errors.As(err, &e) {
		failed = *e
	}
	if failed.Code == reports.ExitPeer && strings.HasPrefix(failed.Hint, "rdmaperf serve ") {
		failed.Hint = "the same command without a host on the other one: rdmaperf, not perftest's own tool"
	}
	failed.Code = reports.ExitFailed
	return &failed
}

func perftestMain(cmd *cobra.Command, args []string) error {
	if len(args) == 0 || slices.Contains([]string{"-h", "--help"}, args[0]) {
		return cmd.Help()
	}
	t, ok := perftest.Find(args[0])
	if !ok {
		return cli.Usage("read command line", fmt.Errorf("no test %q", args[0]),
			"one of "+strings.Join(perftest.Names(), ", "))
	}
	c, err := perftest.Parse(t, args[1:])
	if err != nil {
		hint := "rdmaperf perftest " + t.Name + " -h"
		if errors.Is(err, perftest.ErrRefused) {
			hint = "rdmaperf run, which has more"
		}
		return cli.Usage(t.Name, err, hint)
	}
	p := &perftestRun{Command: c, stdout: cmd.OutOrStdout(), stderr: cmd.ErrOrStderr()}
	switch {
	case c.Help:
		perftestHelp(p.stdout, t.Name)
		return nil
	case c.Version:
		e := reports.Collect()
		_, err := fmt.Fprintf(p.stdout, "Version: rdmaperf %s\n", e.Version)
		return err
	}
	for _, r := range c.Remarks {
		fmt.Fprintln(p.stderr, "rdmaperf: "+r)
	}
	if err := p.Warn(p.stdout); err != nil {
		return err
	}
	if c.Server() {
		return p.serve(cmd.Context())
	}
	return p.measure(cmd.Context())
}

type perftestRun struct {
	*perftest.Command
	stdout, stderr io.Writer
	samples        string // file of every sample; "": not asked for
	link           perftest.Link
}

func (p *perftestRun) serve(ctx context.Context) error {
	if err := p.check(); err != nil {
		return err
	}
	if p.Output == "" {
		io.WriteString(p.stdout, perftest.Waiting) // nobody has to see it
	}
	var results []reports.Result
	var reached perftest.Limits
	var failed error
	o := &serve.Options{Results: func(host string, more []reports.Result) {
		if results == nil {
			p.link = perftestLink(p.Command, p.Transport(stackspec.Best()), host)
			failed = p.Banner(p.stdout, &p.link)
			if p.ServerRows() {
				failed = errors.Join(failed, p.Head(p.stdout))
			}
		}
		results = append(results, more...)
		for i := range more {
			if p.ServerRows() {
				failed = errors.Join(failed, p.Result(p.stdout, &more[i], &reached))
			}
		}
	}}
	command := serveCommand(o)
	p.prepare(command)
	command.SetArgs(append(p.ServeArgs(), "--once"))
	if err := command.ExecuteContext(ctx); err != nil || results == nil { // its client's own error says why
		return err
	}
	if err := errors.Join(failed, p.End(p.stdout)); err != nil || !p.ServerRows() {
		return err
	}
	if p.JSON {
		return p.writeJSON(results)
	}
	return nil
}

// check refuses at the server what its client would refuse, as the server learns the options from its client.
func (p *perftestRun) check() error {
	o := &run.Options{}
	command := runCommand(o)
	if err := command.ParseFlags(p.RunArgs(stackspec.Best(), "")); err != nil {
		return cli.Usage(p.Test.Name, err, "rdmaperf perftest "+p.Test.Name+" -h")
	}
	_, err := o.Stacks()
	return err
}

func (p *perftestRun) prepare(c *cobra.Command) {
	c.SetOut(p.stdout)
	c.SetErr(p.stderr)
	c.SilenceErrors, c.SilenceUsage = true, true
}

func (p *perftestRun) measure(ctx context.Context) error {
	if p.Unsorted || p.Histogram {
		dir, err := os.MkdirTemp("", "rdmaperf-*")
		if err != nil {
			return err
		}
		defer os.RemoveAll(dir)
		p.samples = filepath.Join(dir, run.SamplesFile)
	}
	args := p.RunArgs(stackspec.Best(), p.samples)
	p.link = perftestLink(p.Command, args[slices.Index(args, "--transport")+1], p.Host)
	if err := p.Banner(p.stdout, &p.link); err != nil {
		return err
	}
	o := &run.Options{Show: p.show}
	command := runCommand(o)
	p.prepare(command)
	command.SetArgs(args)
	return command.ExecuteContext(ctx)
}

// show prints the results, which is all that goes to stdout behind the banner.
func (p *perftestRun) show(stdout io.Writer, doc *reports.Document) error {
	if len(doc.Results) == 0 {
		return nil // the error says why
	}
	if err := p.Head(stdout); err != nil {
		return err
	}
	if p.samples != "" {
		inOrder, err := readSamples(p.samples)
		if err != nil {
			return err
		}
		if err := p.Samples(stdout, inOrder, slices.Sorted(slices.Values(inOrder))); err != nil {
			return err
		}
	}
	var reached perftest.Limits
	for i := range doc.Results {
		if err := p.Result(stdout, &doc.Results[i], &reached); err != nil {
			return err
		}
	}
	if err := p.End(stdout); err != nil {
		return err
	}
	if p.JSON {
		if err := p.writeJSON(doc.Results); err != nil {
			return err
		}
	}
	if missed := p.Missed(reached); missed != "" {
		return &reports.ExitError{Code: reports.ExitFailed, Operation: "Error", Err: errors.New(missed)}
	}
	return nil
}

func (p *perftestRun) writeJSON(results []reports.Result) error {
	f, err := os.Create(p.JSONFile)
	if err != nil {
		return err
	}
	return errors.Join(p.WriteJSON(f, &p.link, results), f.Close())
}

// readSamples returns the latencies of --raw's file in us, in the order of time.
func readSamples(path string) ([]float64, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	r := csv.NewReader(f)
	head, err := r.Read()
	if err != nil {
		return nil, fmt.Errorf("read samples: %w", err)
	}
	column := slices.Index(head, "latency_ns")
	var us []float64
	for {
		record, err := r.Read()
		switch {
		case err == io.EOF:
			return us, nil
		case err != nil || column < 0:
			return nil, fmt.Errorf("read samples: column %d: %w", column, err)
		}
		ns, err := strconv.ParseFloat(record[column], 64)
		if err != nil {
			return nil, fmt.Errorf("read samples: %w", err)
		}
		us = append(us, ns/1e3)
	}
}
