package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/claims"
	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/cli"
	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/stackspec"
	"github.com/rdmaperf/rdmaperf/reports"
)

type reproduceOptions struct {
	quick       bool
	only        []string
	dir, format string
	transport   string
}

var reproduceFormats = map[string]func(*claims.Report, io.Writer) error{
	"text":     (*claims.Report).WriteText,
	"markdown": (*claims.Report).WriteMarkdown,
	"json": func(r *claims.Report, w io.Writer) error {
		e := json.NewEncoder(w)
		e.SetIndent("", "  ")
		return e.Encode(r)
	},
}

func newReproduceCommand() *cobra.Command {
	var o reproduceOptions
	var names []string
	for _, p := range claims.All {
		names = append(names, p.Name)
	}
	cmd := &cobra.Command{
		Use:   "reproduce [flags] PAPER",
		Short: "Run a paper's experiments here, and say of each claim whether it is shown",
		Long: `reproduce runs the experiments behind what a paper claims, on this machine, each by
the command of rdmaperf that it prints. It says of each claim: shown, not shown,
undecided (its interval has the bound in it, or the time ran out), or cannot be shown
here, and what it would need.

A verdict is computed from the rounds of a run, up to three times: at the fewest that
give an interval, and where that is undecided at 3 and 9 times as many (--quick: 3),
while there is time. The looks of all rules of a paper share 5 %, so that its verdicts
hold together with 95 %. Each rule is computed for an arm that must break it, too:
one that holds there decides nothing. A paper takes at most 5 minutes (--quick: 1).

PAPER is ` + strings.Join(names, ", ") + ` or all.

Exit codes: 0 no claim is refuted, 1 a claim is not shown, 2 usage, 77 nothing could
be run here, 130 ended by Ctrl-C.`,
		Example: `  rdmaperf reproduce srdma --quick
  rdmaperf reproduce srdma --only S5,S10 -o d
  rdmaperf reproduce srdma --transport verbs:rxe0
  rdmaperf reproduce peers
  rdmaperf reproduce all --quick --format markdown`,
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) != 1 || args[0] != "all" && !slices.Contains(names, args[0]) {
				return fmt.Errorf("want one of %s, all; got %q", strings.Join(names, ", "), args)
			}
			return nil
		},
		ValidArgs: append(slices.Clone(names), "all"),
		RunE: func(cmd *cobra.Command, args []string) error {
			return o.run(cmd.Context(), args[0], cmd.OutOrStdout(), cmd.ErrOrStderr())
		},
	}
	cmd.Flags().BoolVar(&o.quick, "quick", false, "at most a minute for each paper: shorter windows, fewer rounds")
	cmd.Flags().StringSliceVar(&o.only, "only", nil, "comma list of claims, such as S5,S6")
	cmd.Flags().StringVar(&o.transport, "transport", "", "a provider in the place of iwarp, such as verbs:rxe0")
	cmd.Flags().StringVarP(&o.dir, "output", "o", "",
		"write PAPER.md, PAPER.html and PAPER.json into this directory, and README.md if it has all")
	cmd.Flags().StringVar(&o.format, "format", "text", "of stdout: text, json, markdown")
	return cmd
}

func provider(spec string) (string, error) {
	if spec == "" {
		return "", nil
	}
	if _, err := stackspec.ResolveDevice(spec); err != nil {
		return "", err
	}
	return stackspec.ChooseDevice(spec, false)
}

func (o *reproduceOptions) run(ctx context.Context, name string, stdout, stderr io.Writer) error {
	write := reproduceFormats[o.format]
	if write == nil {
		return cli.Usage("read --format", fmt.Errorf("%q: want text, json or markdown", o.format),
			"rdmaperf reproduce --help")
	}
	papers := slices.Clone(claims.All)
	if name != "all" {
		papers = slices.DeleteFunc(papers, func(p *claims.Paper) bool { return p.Name != name })
	}
	for _, id := range o.only {
		if !slices.ContainsFunc(papers, func(p *claims.Paper) bool { return p.Has(id) }) {
			return cli.Usage("read --only", fmt.Errorf("%s: no such claim", id), "rdmaperf reproduce "+name+" --quick")
		}
	}
	transport, err := provider(o.transport)
	if err != nil {
		return err
	}
	if o.dir != "" {
		if err := os.MkdirAll(o.dir, 0o755); err != nil {
			return err
		}
	}
	var refuted []string
	var all []*claims.Report
	ran := false
	for _, p := range papers {
		if len(o.only) > 0 && !slices.ContainsFunc(o.only, p.Has) {
			continue
		}
		r, err := p.Reproduce(ctx, claims.Options{Quick: o.quick, Only: o.only, Transport: transport,
			Announce: func(line string) { fmt.Fprintf(stderr, "%s: %s\n", p.Name, line) },
			Progress: func(line string) {
				if cli.TerminalColumns(stderr) > 0 {
					fmt.Fprintln(stderr, cli.Cut(line, cli.Width(stderr)))
				}
			}})
		if err != nil {
			return err
		}
		for _, c := range r.Claims {
			if c.Verdict == claims.NotShown {
				refuted = append(refuted, c.ID)
			}
			ran = ran || c.Verdict != claims.Cannot
		}
		if err := errors.Join(write(r, stdout), o.save(r)); err != nil {
			return err
		}
		all = append(all, r)
	}
	if err := o.saveIndex(all); err != nil {
		return err
	}
	switch {
	case len(refuted) > 0:
		return &reports.ExitError{Code: reports.ExitFailed, Operation: "reproduce " + name,
			Err: fmt.Errorf("not shown: %s", strings.Join(refuted, ", "))}
	case !ran:
		return &reports.ExitError{Code: reports.ExitNotRun, Operation: "reproduce " + name,
			Err: errors.New("nothing of it can be run here")}
	}
	return nil
}

// saveIndex writes README.md where all papers are in the directory, from earlier runs, too.
func (o *reproduceOptions) saveIndex(fresh []*claims.Report) error {
	if o.dir == "" || len(o.only) > 0 {
		return nil
	}
	var all []*claims.Report
	for _, p := range claims.All {
		i := slices.IndexFunc(fresh, func(r *claims.Report) bool { return r.Paper == p.Name })
		if i >= 0 {
			all = append(all, fresh[i])
			continue
		}
		r := new(claims.Report)
		text, err := os.ReadFile(filepath.Join(o.dir, p.Name+".json"))
		if err != nil || json.Unmarshal(text, r) != nil || r.Paper != p.Name {
			return nil // of some papers nothing was measured
		}
		all = append(all, r)
	}
	var b bytes.Buffer
	if err := claims.WriteIndex(&b, all); err != nil {
		return err
	}
	return reports.WriteFileAtomic(filepath.Join(o.dir, "README.md"), b.Bytes())
}

func (o *reproduceOptions) save(r *claims.Report) error {
	if o.dir == "" {
		return nil
	}
	for ending, write := range map[string]func(*claims.Report, io.Writer) error{".md": reproduceFormats["markdown"],
		".json": reproduceFormats["json"], ".html": (*claims.Report).WriteHTML} {
		var b bytes.Buffer
		if err := write(r, &b); err != nil {
			return err
		}
		if err := reports.WriteFileAtomic(filepath.Join(o.dir, r.Paper+ending), b.Bytes()); err != nil {
			return err
		}
	}
	return nil
}
