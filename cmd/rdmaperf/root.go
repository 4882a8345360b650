package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"strings"
	"sync"

	"github.com/spf13/cobra"

	"github.com/rdmaperf/rdmaperf/reports"
	"github.com/rdmaperf/rdmaperf/reports/view"
)

// execute runs one command line and returns the exit code.
func execute(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	root := newRootCommand()
	root.SetArgs(args)
	root.SetOut(stdout)
	if _, file := stderr.(*os.File); !file { // the kernel orders what goes to a file
		stderr = &lockedWriter{w: stderr}
	}
	root.SetErr(stderr)
	// Cobra reports wrong command lines before any command begins.
	begun := false
	root.PersistentPreRunE = func(cmd *cobra.Command, _ []string) error {
		begun = true
		return applyDefaults(cmd, os.Environ())
	}
	cmd, err := root.ExecuteContextC(ctx)
	if err == nil {
		return reports.ExitOK
	}
	var exit *reports.ExitError
	if !begun && !errors.As(err, &exit) {
		err = commandError(cmd, err)
	}
	line := errorLine(err)
	if reports.Code(err) == reports.ExitUsage {
		for _, s := range blamed(cmd, line) {
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
	root.SetFlagErrorFunc(flagError)
	root.Flags().BoolP("version", "V", false, "print the version")
	root.RunE = func(cmd *cobra.Command, args []string) error {
		if v, _ := cmd.Flags().GetBool("version"); v { // the flag exists: no error is possible
			return printVersion(cmd.OutOrStdout())
		}
		return cmd.Help()
	}
	root.AddCommand(newRunCommand(), newServeCommand(), newVersionCommand(), newConformCommand(), newRpingCommand(), newDevicesCommand(), newReportCommand(), newLiteCommand(), newOrderCommand())
	root.AddCommand(newCompareCommand(), newConformChildCommand(), newCallServiceCommand(), newAwakeChildCommand(), newPerftestCommand(), newStacksTopic())
	root.AddCommand(newManCommand())
	root.SetHelpCommand(newHelpCommand())
	root.InitDefaultCompletionCmd()
	for _, c := range root.Commands() {
		if !c.Runnable() {
			knowsItsCommands(c)
		}
	}
	completeValues(root)
	fitHelp(root)
	return root
}

// usage is an error of the command line.
func usage(operation string, err error, hint string) error {
	return &reports.ExitError{Code: reports.ExitUsage, Operation: operation, Err: err, Hint: hint}
}

// errorLine is what the user sees of an error: one line, whatever is in it.
func errorLine(err error) string {
	line := "rdmaperf: " + err.Error()
	var exit *reports.ExitError
	if errors.As(err, &exit) && exit.Hint != "" {
		line += "; try " + exit.Hint
	}
	return view.Printable(strings.Join(strings.FieldsFunc(line, func(r rune) bool { return r == '\n' || r == '\r' }), "; "))
}

// lockedWriter lets logs, progress and what a server says be written side by side.
type lockedWriter struct {
	mu sync.Mutex
	w  io.Writer
}

func (l *lockedWriter) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.w.Write(b)
}

// newLog writes to stderr.
func newLog(stderr io.Writer, quiet, verbose bool) *slog.Logger {
	level := slog.LevelInfo
	switch {
	case quiet:
		level = slog.LevelError
	case verbose:
		level = slog.LevelDebug
	}
	return slog.New(slog.NewTextHandler(stderr, &slog.HandlerOptions{Level: level}))
}
