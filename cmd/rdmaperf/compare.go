package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/cli"
	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/engine"
	meshresults "github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/mesh/results"
	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/resultfile"
	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/run"
	"github.com/rdmaperf/rdmaperf/reports"
	"github.com/rdmaperf/rdmaperf/reports/render"
	"github.com/rdmaperf/rdmaperf/reports/view"
)

var compareFormats = render.Names(render.OfComparison)

func newCompareCommand() *cobra.Command {
	var limits run.FailIf
	var format string
	var force, medians, turns bool
	var rounds int
	cmd := &cobra.Command{
		Use:   "compare [flags] OLD [NEW] | --run PROGRAM PROGRAM -- OPTIONS",
		Short: "Compare two result documents point by point",
		Long: `compare shows how two result documents of "rdmaperf run" differ, by the
medians of a point's rounds. Rounds of one run share the machine's pace: they
differ only where no two of both runs overlap. Use "run --json FILE" to write a
document. A directory is all documents (*.json) in it, each a sample of one run:
the Mann-Whitney test says whether the difference could be chance, which takes 4 of
them a side. A NAME is what "run --save NAME" saved on this machine; without NEW,
the newest run in rdmaperf-results is compared.

Runs that were taken under different conditions, such as another CPU, kernel or
way of polling, are not compared unless --force is given; what differs is said.

A change in % misses its threshold when the medians differ by more and the
difference is significant, of 4 rounds or runs a side at least. What is beyond by
chance, or could be, is said and misses nothing; --medians goes by medians alone. A
limit such as p99>10us holds the median of the new run.

With --run, two programs, such as two builds, run the same options in turns: A B,
B A, and so on. Each pair of runs gives a ratio, and what is said of all of them
holds together with 95 %. That is the way to compare two builds, kernels or
settings: whole runs that are minutes apart differ by the machine's pace. Without
-D or -n each run takes 300 ms a point. Another --format than text has the table
of the documents instead of the answer.

Exit codes: 0 compared, 1 failed, 2 usage, a file that is no result document, or
runs that are not comparable, 3 a threshold was missed.`,
		Example: `  rdmaperf compare old.json new.json
  rdmaperf compare old.json new.json --fail-if 'p99>+10%' --fail-if 'bw<-5%'
  rdmaperf run --repeat 10 --save before; rdmaperf run --repeat 10; rdmaperf compare before
  rdmaperf compare --run ./before ./after -- --transport tcp,iwarp --op write -D 500ms
  rdmaperf compare --run ./base ./head --fail-if 'p50>+60%' --format markdown -- -D 1s >> "$GITHUB_STEP_SUMMARY"`,
		Args: func(cmd *cobra.Command, args []string) error {
			if dash := cmd.ArgsLenAtDash(); turns && (dash == 2 || dash < 0 && len(args) == 2) {
				return nil
			} else if turns {
				return errors.New("--run wants two programs, and their options behind --")
			}
			if len(args) != 1 && len(args) != 2 {
				return fmt.Errorf("want one or two result documents, OLD and NEW, got %d", len(args))
			}
			return nil
		},
	}
	limits.Register(cmd.Flags(),
		`exit 3 when this holds, such as 'p99>+10%' (change), 'p99>10us' or 'bw<1GB/s' (new run), `+
			"or disturbed (a point of either); repeatable")
	cmd.Flags().StringVar(&format, "format", "text", "of stdout: "+strings.Join(compareFormats, ", "))
	cmd.Flags().BoolVar(&force, "force", false, "compare runs that are not alike")
	cmd.Flags().BoolVar(&medians, "medians", false, "judge --fail-if by medians alone, also what could be chance")
	cmd.Flags().BoolVar(&turns, "run", false, "run two programs in turns, and compare what they measure")
	cli.Ranged(cmd.Flags(), &rounds, "rounds", run.DefaultTurns, 1, engine.MaxRounds,
		"of --run: how many runs each program makes")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if !slices.Contains(compareFormats, format) {
			return cli.Usage("read --format", fmt.Errorf("%q: want one of %s", format,
				strings.Join(compareFormats, ", ")), "rdmaperf compare --help")
		}
		if turns {
			return compareInTurns(cmd, args, &limits, format, medians, rounds)
		}
		if len(args) == 1 {
			newest, err := resultfile.NewestRun()
			if err != nil {
				return err
			}
			args = append(args, newest)
		}
		return cli.Computes(cmd.Context(), "compare", func() error {
			return compareDocuments(cmd, args[0], args[1], &limits, format, force, medians)
		})
	}
	return cmd
}

// compareInTurns judges what two programs measured like documents, but lets them differ in how a point is measured.
func compareInTurns(cmd *cobra.Command, args []string, limits *run.FailIf, format string, medians bool,
	rounds int) error {
	dir, err := os.MkdirTemp("", "rdmaperf-turns-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	stdout, table := cmd.OutOrStdout(), io.Discard
	if format != "text" {
		stdout, table = table, stdout
	}
	dirs := [2]string{filepath.Join(dir, "old"), filepath.Join(dir, "new")}
	if err := run.Turns(cmd.Context(), stdout, cmd.ErrOrStderr(), [2]string(args[:2]), dirs, args[2:],
		rounds); err != nil {
		return err
	}
	if format == "text" && !limits.Any() {
		return nil
	}
	cmd.SetOut(table)
	return compareDocuments(cmd, dirs[0], dirs[1], limits, format, true, medians)
}

func compareDocuments(cmd *cobra.Command, oldName, newName string, limits *run.FailIf, format string, force,
	medians bool) error {
	old, err := resultfile.Read(oldName)
	if err != nil {
		return err
	}
	new, err := resultfile.Read(newName)
	if err != nil {
		return err
	}
	if medians {
		limits.ByMedians()
	}
	c, err := reports.Compare(old, new, limits.Thresholds)
	if err != nil {
		return cli.Usage("compare "+oldName+" with "+newName, err, "two runs of the same points")
	}
	if len(c.Unlike) > 0 && !force {
		for _, d := range c.Unlike {
			fmt.Fprintf(cmd.ErrOrStderr(), "not alike: %s\n", d)
		}
		return cli.Usage("compare "+oldName+" with "+newName, errors.New("the runs are not alike"),
			"--force, if that is meant")
	}
	if worse := meshresults.Worse(old, new); format == "text" && len(worse) > 0 {
		for _, line := range worse {
			fmt.Fprintln(cmd.OutOrStdout(), strings.Join(view.Wrap(line, 80, "  "), "\n"))
		}
		fmt.Fprintln(cmd.OutOrStdout())
	}
	if err := render.Find(format, render.OfComparison).Compare(cmd.OutOrStdout(), c); err != nil {
		return err
	}
	for _, l := range c.Undecided {
		fmt.Fprintln(cmd.ErrOrStderr(), l)
	}
	return errors.Join(limits.Disturbed(cmd.ErrOrStderr(), slices.Concat(c.Old.Disturbed, c.New.Disturbed)),
		limits.Missed(cmd.ErrOrStderr(), c.Missed))
}
