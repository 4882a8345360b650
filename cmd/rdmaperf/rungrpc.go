package main

import (
	"github.com/spf13/pflag"

	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/values"
)

// grpcFlags multiply the stacks with grpc, as given.
type grpcFlags struct {
	sweeps  grpcSweeps
	pollers string
}

func (g *grpcFlags) register(f *pflag.FlagSet) {
	f.StringSliceVar(&g.sweeps.modes, "mode-sweep", nil, "comma list of bpev, bp, event: each stack with grpc(dropin) or grpc(fused) is run in each mode")
	f.StringSliceVar(&g.sweeps.busy, "busy-sweep", nil, "likewise of busy times, such as 0,10us,50us, in the mode bpev")
	f.StringVar(&g.pollers, "poller-sweep", "", "likewise of background pollers, a comma list or FROM:TO:STEP")
	f.StringSliceVar(&g.sweeps.rings, "ring-sweep", nil, "likewise of receive rings, such as 16K,256K,4M")
}

// any tells whether one of them was given.
func (g *grpcFlags) any() bool { return g.sweeps.any() || g.pollers != "" }

// multiply puts every value of the sweeps into the stacks.
func (g *grpcFlags) multiply(stacks []string) (_ []string, err error) {
	s := grpcSweeps{modes: values.Unique(g.sweeps.modes), busy: values.Unique(g.sweeps.busy), rings: values.Unique(g.sweeps.rings)}
	if s.pollers, err = pollerCounts(g.pollers); err != nil {
		return nil, err
	}
	return s.sweep(stacks)
}
