package stackspec

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/pflag"

	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/values"
	"github.com/rdmaperf/rdmaperf/grpcrdma/bpev"
)

// sweep is a flag that puts every stack with a layer in place of itself once for each of its values.
type sweep struct {
	flag, layer string
	param       string // "": the values are parameters themselves
	polled      bool   // of the polling mode bpev alone: other stacks stay as they are
	help        string
}

var sweeps = []sweep{
	{flag: "sched-slice", layer: "sched", param: "slice",
		help: "comma list of slices, such as 16K,64K,auto: each sched stack of --transport is run with each"},
	{flag: "sched-window", layer: "sched", param: "window", help: "likewise of windows"},
	{flag: "sched-send", layer: "sched", param: "sends",
		help: "likewise of what becomes of a send longer than a slice: " +
			"whole (the default), refuse, slice (where both ends do, else whole) or slice-or-refuse"},
	{flag: "mode-sweep", layer: GRPC,
		help: "comma list of bpev, bp, event: each stack with grpc(dropin) or grpc(fused) is run in each mode"},
	{flag: "ring-sweep", layer: GRPC, param: "ring", help: "likewise of receive rings, such as 16K,256K,4M"},
	{flag: "busy-sweep", layer: GRPC, param: "busy", polled: true,
		help: "likewise of busy times, such as 0,10us,50us, in the mode bpev"},
	{flag: "poller-sweep", layer: GRPC, param: "pollers", polled: true,
		help: "likewise of background pollers, a comma list or FROM:TO:STEP"},
}

// Sweeps are the values of all such flags.
type Sweeps [][]string

// Register adds the flags.
func (s *Sweeps) Register(f *pflag.FlagSet) {
	*s = make(Sweeps, len(sweeps))
	for i, w := range sweeps {
		f.StringSliceVar(&(*s)[i], w.flag, nil, w.help)
	}
}

// Apply multiplies the stacks. A flag that none of them has the layer for is a mistake.
func (s Sweeps) Apply(stacks []string) (_ []string, err error) {
	for i, list := range s {
		if list = values.Unique(list); len(list) == 0 {
			continue
		}
		if len(list) == 1 && strings.Contains(list[0], ":") {
			counts, err := values.Counts(sweeps[i].flag, list[0])
			if err != nil {
				return nil, err
			}
			list = nil
			for _, n := range counts {
				list = append(list, strconv.Itoa(n))
			}
		}
		if stacks, err = sweeps[i].apply(stacks, list); err != nil {
			return nil, err
		}
	}
	return stacks, nil
}

func (w *sweep) apply(stacks, list []string) (out []string, err error) {
	swept := false
	for _, spec := range stacks {
		layers, err := Parse(spec)
		if err != nil {
			return nil, err
		}
		at := slices.IndexFunc(layers, func(l Layer) bool { return l.Name == w.layer })
		over := at >= 0 && at < len(layers)-1
		swept = swept || over
		if over && w.polled {
			c, err := GRPCConfig(layers[at], true)
			over = err == nil && c.Net.Polling.Mode == bpev.BPEV
		}
		if !over {
			out = append(out, spec)
			continue
		}
		was := layers[at]
		for _, v := range list {
			if w.param == "" {
				layers[at] = was.without("bpev", "bp", "event").With(v)
			} else {
				layers[at] = was.without(w.param).With(w.param + "=" + v)
			}
			out = append(out, Format(layers))
		}
	}
	if !swept {
		with := w.layer
		if w.layer == GRPC {
			with = "grpc(dropin) or grpc(fused)"
		}
		return nil, fmt.Errorf("--%s is for a stack with %s", w.flag, with)
	}
	return out, nil
}
