package main

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/cli"
	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/run"
	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/stackspec"
)

func newRunCommand() *cobra.Command { return runCommand(new(run.Options)) }

// runCommand is the command that runs o.
func runCommand(o *run.Options) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "run [flags] [HOST]",
		Short: "Measure latency, throughput and head-of-line blocking",
		Long: `run measures against "rdmaperf serve" on HOST, or, without a HOST, against a
server process of its own on this machine. Without any option it measures every
stack that this machine can run, side by side, in at most 45 seconds, as
--transport all does: over kernel verbs on the first RDMA device with an ACTIVE
port, or else over user-space iWARP, which other options without --transport
take. Results are saved in rdmaperf-results/TIME, unless --output or --json says
where, with report.html for reading.

Several transports are measured point by point in turn, so that a change of the
machine's load hits all of them.

--scenario FILE takes several runs, each with options of its own, into one
document. The file maps the long names of run's flags to their values:

  version: 1
  name: small-and-large
  defaults: {transport: [tcp, iwarp], duration: 3s}
  runs:
    - {name: small, workload: latency, op: send, size: 64}
    - {name: large, workload: throughput, op: write, size: 1M}

Flags on the command line win over the file. The whole file is checked before
anything is measured. A run that is not possible here is left out, with exit
code 77 at the end; any other error ends the scenario.

Exit codes: 0 done, 1 failed, 2 usage, 3 a threshold was missed, 4 data arrived changed, 5 the peer is
unreachable or incompatible, 77 not run for lack of a device or ability, 130 ended by Ctrl-C.`,
		Example: `  rdmaperf run
  rdmaperf run --transport tcp,iwarp --workload latency --op send -s 64 -D 3s
  rdmaperf run --op write -s 64 --rate-sweep 10000:50000:10000 --arrivals poisson
  rdmaperf run --transport tcp,iwarp --workload hol --bulk-size 64K,1M
  rdmaperf run --transport 'grpc(tcp),grpc(fused)+iwarp' --workload rpc -s 64 -D 3s
  rdmaperf run --transport 'grpc(tcp),grpc(fused)+iwarp' --workload kv --ycsb a,c --records 100000 --outstanding 4
  rdmaperf run --transport 'grpc(tcp),grpc(fused)+iwarp' --workload tensor --tensor exchange -s 1K,64K,1M,64M
  rdmaperf run --scenario nightly.yaml --json nightly.json
  rdmaperf run 192.0.2.7 --workload throughput --op write -s 1M -t 16 --json r.json`,
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
	cmd.RegisterFlagCompletionFunc("transport", stackspec.Complete) // the flag exists: no error is possible
	cmd.RunE = o.Run
	return cmd
}
