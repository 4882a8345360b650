package main

import (
	"fmt"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/cobra/doc"

	"github.com/rdmaperf/rdmaperf/reports"
)

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
