package main

import (
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/engine"
	"github.com/rdmaperf/rdmaperf/reports"
)

func newVersionCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "version",
		Short: "Print version, commit and build, and what a peer must speak",
		Args:  cobra.NoArgs,
		RunE:  func(cmd *cobra.Command, _ []string) error { return printVersion(cmd.OutOrStdout()) },
	}
}

// printVersion is also --version and -V, as perftest has it.
func printVersion(w io.Writer) error {
	e := reports.Collect()
	commit := e.Commit
	if commit == "" {
		commit = "unknown: go build saw no repository"
	}
	_, err := fmt.Fprintf(w, "rdmaperf %s %s %s/%s\ncommit %s\nbuild %s\ncontrol protocol %d\nresult document %s\n",
		e.Version, e.Go, e.OS, e.Arch, commit, e.Build, engine.ControlVersion, reports.SchemaID)
	return err
}
