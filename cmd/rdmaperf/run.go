package main

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/cli"
	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/run"
	"github.com/rdmaperf/rdmaperf/reports"
)

func newRunCommand() *cobra.Command { return runCommand(new(run.Options)) }

func runCommand(o *run.Options) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "run [flags] [HOST]",
		Short: "Measure latency, throughput and head-of-line blocking",
		Long: `run measures against "rdmaperf serve" on HOST, or against a server process on this
machine. Without flags it compares every stack of this machine, in at most 45
seconds. Results are printed, and saved in rdmaperf-results/TIME: open report.html.

Without --transport, flags apply to kernel verbs on the first RDMA device with an
ACTIVE port, or else to user-space iWARP. Several stacks take turns in short
slices of time, so that a change of the machine's load affects all of them.

--scenario FILE runs several sets of flags and writes one document. The file maps
the long names of flags to their values:

  version: 1
  name: small-and-large
  defaults: {transport: [tcp, iwarp], duration: 3s}
  runs:
    - {name: small, workload: latency, op: send, size: 64}
    - {name: large, workload: throughput, op: write, size: 1M}

Flags on the command line override the file. The whole file is checked before
anything is measured. A run that this machine cannot do is skipped, and the exit
code is 77 at the end; any other error ends the scenario.

` + run.Workloads() + "\n" + reports.ExitCodes(),
		Example: `  rdmaperf run
  rdmaperf run --transport tcp,iwarp --workload latency --op send -s 64
  rdmaperf run --transport iwarp,sched+iwarp --workload hol --bulk-size 4M
  rdmaperf run --transport 'grpc(tcp),grpc(fused)+iwarp' --workload rpc
  rdmaperf run 192.0.2.7 -d mlx5_0 -x 3 --op write -s 64K,1M -D 10s`,
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) > 1 {
				return fmt.Errorf("one HOST at most, got %q", args)
			}
			return nil
		},
	}
	o.Register(cmd.Flags())
	cmd.ValidArgsFunction = completeHosts
	cli.GroupedUsage(cmd, run.FlagGroups())
	run.SetHelp(cmd)
	cmd.RunE = o.Run
	return cmd
}
