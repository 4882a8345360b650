package main

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/bench"
	"github.com/rdmaperf/rdmaperf/reports"
)

func newVersionCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "version",
		Short: "Print the version, and what a peer must speak",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			e := reports.Collect()
			_, err := fmt.Fprintf(cmd.OutOrStdout(), "rdmaperf %s %s %s/%s\ncontrol protocol %d\nresult document %s\n",
				e.Version, e.Go, e.OS, e.Arch, bench.ControlVersion, reports.SchemaID)
			return err
		},
	}
}
