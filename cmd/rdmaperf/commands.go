package main

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/cli"
	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/conformance"
	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/mesh"
	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/run"
	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/serve"
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

func newServeCommand() *cobra.Command { return serveCommand(new(serve.Options)) }

func serveCommand(o *serve.Options) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "serve",
		Short: "Be the other side of rdmaperf run HOST",
		Long: `serve waits for clients and plays the target of whatever they measure. It needs
no options of the test, survives its clients, and measures for one at a time: others wait, unless --shared. Its log has
a line for each point. It ends with SIGINT or SIGTERM, and exits with code 1 when its port is in use. SIGUSR1 makes
it log what it holds: clients, descriptors, goroutines, threads, mappings, memory.

With --target it measures nothing: it is the application of a device under test that
'rdmaperf conform --wire HOST:PORT' drives over this port.

Kernel verbs take the device that the client names where this machine has it with
an ACTIVE port, else the first device that has one. -d, -i and -x choose here.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return o.Run(cmd.Context(), cmd.ErrOrStderr())
		},
	}
	o.Register(cmd.Flags())
	return cmd
}

func newMeshCommand() *cobra.Command {
	var o mesh.Options
	cmd := &cobra.Command{
		Use:   "mesh",
		Short: "Measure all pairs of many ranks, and name what is slow",
		Long: `mesh is started once a rank by an existing launcher: mpirun, mpiexec, srun, torchrun,
a Kubernetes job, or by hand. Ranks find each other by what the launcher puts into
the environment, and rank 0 hands out pairs. Each pair has its latency and the
bandwidth of both directions measured, with verified data, as run and serve do.
What is far worse than good pairs is measured again, and rank 0 says whether it is
a host, one direction of it, a path, or all paths between two groups of hosts.

Exit codes of rank 0: 0 nothing is slow, 3 something is, 4 data corruption, 5 ranks
are missing; the others exit with 0, so that no launcher ends the rest.`,
		Example: `  mpirun -n 8 rdmaperf mesh --transport iwarp
  srun -N 8 rdmaperf mesh --quick --fail-if 'bandwidth<80%'
  for r in 0 1 2 3; do RANK=$r WORLD_SIZE=4 MASTER_ADDR=127.0.0.1 MASTER_PORT=7000 rdmaperf mesh & done; wait`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return o.Run(cmd.Context(), cmd.OutOrStdout(), cmd.ErrOrStderr())
		},
	}
	o.Register(cmd.Flags())
	return cmd
}

func newConformCommand() *cobra.Command {
	var f conformance.Flags
	cmd := &cobra.Command{
		Use:   "conform",
		Short: "Check that a provider behaves as the specifications say",
		Long: `Run the conformance cases against providers, each case on fresh connections, and
print a matrix of verdicts. A case that a provider's declared capabilities do not
cover is "unsupported"; a declared capability that no case proved is a failure.

Exit codes: 0 all required cases pass, 1 a case failed, 2 wrong command line or
nothing selected, 77 a provider could not be opened.`,
		Example: `  rdmaperf conform --transport mem,iwarp
  rdmaperf conform --transport iwarp --only 'rdr/*,ord' --format jsonl
  rdmaperf conform --strict --ledger known.json --junit junit.xml --jsonl conform.jsonl
  rdmaperf conform --explain ord/write-then-read
  rdmaperf conform --wire 192.0.2.7:7174 --format jsonl`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			f.Timed = cmd.Flags().Changed("case-timeout")
			return f.Run(cmd.Context(), cmd.OutOrStdout(), cmd.ErrOrStderr())
		},
	}
	f.Register(cmd.Flags())
	return cmd
}
