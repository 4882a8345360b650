package main

import (
	"os"

	"github.com/spf13/cobra"

	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/engine"
	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/run"
	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/stackspec"
	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/wakeup"
)

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
