package main

import (
	"github.com/spf13/cobra"

	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/mesh"
)

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
