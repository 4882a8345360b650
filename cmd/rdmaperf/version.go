package main

import (
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/engine"
	"github.com/rdmaperf/rdmaperf/reports"
	"github.com/rdmaperf/rdmaperf/softstack/lwip"
	"github.com/rdmaperf/rdmaperf/transports/verbs"
)

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
	commit := e.Commit
	if commit == "" {
		commit = "unknown: go build saw no repository"
	}
	with := []string{verbs.In()}
	if l := lwip.In(); l != "" {
		with = append(with, l)
	} else {
		with = append(with, "no lwIP (build with -tags lwip)")
	}
	_, err := fmt.Fprintf(w,
		"rdmaperf %s %s %s/%s\ncommit %s\nbuild %s\nwith %s\ncontrol protocol %d\nresult document %s\n",
		e.Version, e.Go, e.OS, e.Arch, commit, e.Build, strings.Join(with, ", "), engine.ControlVersion, reports.SchemaID)
	return err
}
