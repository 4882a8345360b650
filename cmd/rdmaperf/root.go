package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/cobra/doc"

	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/cli"
	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/conformance"
	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/defaults"
	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/engine"
	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/liteapps"
	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/run"
	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/stackspec"
	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/wakeup"
	"github.com/rdmaperf/rdmaperf/reports"
	"github.com/rdmaperf/rdmaperf/softstack/lwip"
	"github.com/rdmaperf/rdmaperf/transports/verbs"
)

func execute(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	root := newRootCommand()
	if len(args) > 0 && strings.HasPrefix(args[0], cobra.ShellCompRequestCmd) {
		completeValues(root)
	}
	root.SetArgs(args)
	root.SetOut(stdout)
	if _, file := stderr.(*os.File); !file { // the kernel orders what goes to a file
		stderr = &cli.LockedWriter{W: stderr}
	}
	root.SetErr(stderr)
	// Cobra reports wrong command lines before any command begins.
	begun := false
	root.PersistentPreRunE = func(cmd *cobra.Command, _ []string) error {
		if err := cmd.ValidateRequiredFlags(); err != nil { // cobra would ask later
			return err
		}
		begun = true
		if err := cli.NoEmptyLists(cmd); err != nil {
			return err
		}
		return defaults.Apply(cmd, os.Environ(), run.Exclusive)
	}
	cmd, err := root.ExecuteContextC(ctx)
	if err == nil {
		return reports.ExitOK
	}
	var exit *reports.ExitError
	if !begun && !errors.As(err, &exit) {
		err = cli.CommandError(cmd, err)
	}
	if ctx.Err() != nil && errors.Is(err, context.Canceled) && reports.Code(err) == reports.ExitFailed {
		// What the interrupt ended has no error of its own.
		err = &reports.ExitError{Code: reports.ExitInterrupted, Operation: cmd.CommandPath(), Err: errors.New("interrupted")}
	}
	line := cli.ErrorLine(err)
	if reports.Code(err) == reports.ExitUsage {
		for _, s := range defaults.Named(cmd, line) {
			fmt.Fprintln(stderr, s)
		}
	}
	fmt.Fprintln(stderr, line)
	return reports.Code(err)
}

func newRootCommand() *cobra.Command {
	root := &cobra.Command{
		Use:   "rdmaperf",
		Short: "How fast is this RDMA path, and does it behave as specified?",
		Long: `rdmaperf measures latency and throughput of RDMA paths with verified data, and
checks providers against the specifications. It runs on any path with the same
workloads: "rdmaperf run" needs no hardware, no host and no options.`,
		SilenceUsage:  true,
		SilenceErrors: true,
	}
	root.SetFlagErrorFunc(cli.FlagError)
	root.Flags().BoolP("version", "V", false, "print the version")
	root.RunE = func(cmd *cobra.Command, args []string) error {
		if v, _ := cmd.Flags().GetBool("version"); v { // the flag exists: no error is possible
			return printVersion(cmd.OutOrStdout())
		}
		return cmd.Help()
	}
	root.AddCommand(newRunCommand(), newServeCommand(), newMeshCommand(), newDoctorCommand(), newVersionCommand(),
		newConformCommand(), newRpingCommand(),
		newDevicesCommand(), newReportCommand(), liteapps.NewCommand(), newOrderCommand())
	root.AddCommand(newCompareCommand(), newReproduceCommand(), conformance.NewChildCommand(),
		newCallServiceCommand(), newAwakeChildCommand(), newNeighbourChildCommand(),
		newPerftestCommand(), newStacksTopic())
	root.AddCommand(newManCommand())
	root.SetHelpCommand(cli.NewHelpCommand())
	root.InitDefaultCompletionCmd()
	for _, c := range root.Commands() {
		if !c.Runnable() {
			cli.KnowsItsCommands(c)
		}
	}
	cli.FitHelp(root)
	return root
}

func newStacksTopic() *cobra.Command {
	return &cobra.Command{Use: "stacks", Short: "What --transport takes: layers and their parameters",
		Long: stackspec.Help()}
}

func newCallServiceCommand() *cobra.Command {
	var spec string
	cmd := &cobra.Command{
		Use: stackspec.CallService, Hidden: true, Args: cobra.NoArgs,
		Short: "The process of grpc(service)+X that has the device",
		RunE:  func(cmd *cobra.Command, _ []string) error { return stackspec.RunCallService(cmd.Context(), spec) },
	}
	cmd.Flags().StringVar(&spec, "transport", "", "the stack")
	return cmd
}

func newNeighbourChildCommand() *cobra.Command {
	return &cobra.Command{
		Use: run.NeighbourChild, Hidden: true, Args: cobra.NoArgs,
		Short: "A process of 'rdmaperf run --neighbours'",
		Run:   func(*cobra.Command, []string) { run.Spin() },
	}
}

func newAwakeChildCommand() *cobra.Command {
	return &cobra.Command{
		Use: run.AwakeChild, Hidden: true, Args: cobra.NoArgs,
		Short: "A process of 'rdmaperf run --awake'",
		RunE: func(cmd *cobra.Command, _ []string) error {
			return wakeup.Spin(cmd.Context(), os.Stdin, engine.AllowedCPUs())
		},
	}
}

// newManCommand is for packages: ci/release calls it.
func newManCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "man DIR",
		Short: "Write the manual pages of all commands into a directory",
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) != 1 {
				return fmt.Errorf("want one directory, got %d", len(args))
			}
			return nil
		},
		Hidden: true,
		RunE: func(cmd *cobra.Command, args []string) error {
			root := cmd.Root()
			root.DisableAutoGenTag = true // the same source has the same pages
			epoch := time.Unix(0, 0).UTC()
			err := doc.GenManTree(root, &doc.GenManHeader{Title: "RDMAPERF", Section: "1",
				Source: "rdmaperf " + reports.Collect().Version, Manual: "rdmaperf", Date: &epoch}, args[0])
			if err != nil {
				return &reports.ExitError{Code: reports.ExitFailed, Operation: "write manual pages", Err: err,
					Hint: "a directory that is there"}
			}
			return nil
		},
	}
}

func newVersionCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "version",
		Short: "Print version, commit, build and what is in it, and what a peer must speak",
		Args:  cobra.NoArgs,
		RunE:  func(cmd *cobra.Command, _ []string) error { return printVersion(cmd.OutOrStdout()) },
	}
}

// printVersion is also --version and -V, as perftest has it.
func printVersion(w io.Writer) error {
	e := reports.Collect()
	_, err := fmt.Fprintf(w,
		"rdmaperf %s %s %s/%s\ncommit %s\nbuild %s\nwith %s, %s\ncontrol protocol %d\nresult document %s\n",
		e.Version, e.Go, e.OS, e.Arch, cmp.Or(e.Commit, "unknown: go build saw no repository"), e.Build, verbs.In(),
		cmp.Or(lwip.In(), "no lwIP (build with -tags lwip)"), engine.ControlVersion, reports.SchemaID)
	return err
}
