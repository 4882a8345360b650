package run

import (
	"github.com/spf13/pflag"

	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/stackspec"
	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/values"
)

// grpcFlags multiply the stacks with grpc, as given.
type grpcFlags struct {
	sweeps  stackspec.GRPCSweeps
	pollers string
}

func (g *grpcFlags) register(f *pflag.FlagSet) {
	f.StringSliceVar(&g.sweeps.Modes, "mode-sweep", nil, "comma list of bpev, bp, event: each stack with grpc(dropin) or grpc(fused) is run in each mode")
	f.StringSliceVar(&g.sweeps.Busy, "busy-sweep", nil, "likewise of busy times, such as 0,10us,50us, in the mode bpev")
	values.ListVar(f, &g.pollers, "poller-sweep", "", "likewise of background pollers, a comma list or FROM:TO:STEP")
	f.StringSliceVar(&g.sweeps.Rings, "ring-sweep", nil, "likewise of receive rings, such as 16K,256K,4M")
}

// any tells whether one of them was given.
func (g *grpcFlags) any() bool { return g.sweeps.Any() || g.pollers != "" }

// multiply puts every value of the sweeps into the stacks.
func (g *grpcFlags) multiply(stacks []string) (_ []string, err error) {
	s := stackspec.GRPCSweeps{Modes: values.Unique(g.sweeps.Modes), Busy: values.Unique(g.sweeps.Busy), Rings: values.Unique(g.sweeps.Rings)}
	if s.Pollers, err = stackspec.PollerCounts(g.pollers); err != nil {
		return nil, err
	}
	return s.Sweep(stacks)
}
