package main

import (
	"github.com/spf13/cobra"

	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/stackspec"
)

// newStacksTopic is "rdmaperf help stacks".
func newStacksTopic() *cobra.Command {
	return &cobra.Command{Use: "stacks", Short: "What --transport takes: layers and their parameters",
		Long: stackspec.Help()}
}
