package stackspec

import (
	"errors"

	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/cli"
	"github.com/rdmaperf/rdmaperf/sched"
	"github.com/rdmaperf/rdmaperf/transports/rdma"
)

const scopeParam = "scope"

var schedParams = params[sched.Config]{
	policyParam(sched.Strict, "on", "the most urgent class first"),
	policyParam(sched.Aging, "", "as strict, but a waiting request rises one class per every="),
	policyParam(sched.DRR, "", "deficit round robin: classes share the bytes by weights="),
	policyParam(sched.EDF, "", "the earliest deadline first, by deadlines="),
	policyParam(sched.FIFO, "", "post order, which shows what a layer costs"),
	{paramDoc{scopeParam, wordOf(string(sched.ScopeQP), string(sched.ScopePeer), string(sched.ScopeDevice)),
		string(sched.ScopeQP), "which queue pairs share a window: each has its own, all to one host, or all of the " +
			"device"},
		func(c *sched.Config, v value) { c.Scope = sched.Scope(v.text) }},
	{paramDoc{"slice", orAuto(sizeOf), "auto", "bytes of a slice; auto is a quarter of the window"},
		func(c *sched.Config, v value) { c.Slice = v.n }},
	{paramDoc{"window", orAuto(sizeOf), "auto",
		"bytes outstanding of a class; auto follows the measured bandwidth-delay product"},
		func(c *sched.Config, v value) { c.Window = v.n }},
	{paramDoc{"adaptive", switchOf, "on where both are auto", "widen window and slice while no urgent request is posted"},
		func(c *sched.Config, v value) { c.Adaptive, c.Steady = true, false }},
	{paramDoc{"steady", switchOf, "", "keep window and slice as they are"},
		func(c *sched.Config, v value) { c.Adaptive, c.Steady = false, true }},
	{paramDoc{"sends", wordOf(string(sched.WholeSends), string(sched.RefuseSends), string(sched.CutSends),
		string(sched.CutOrRefuseSends)), string(sched.WholeSends),
		"a send longer than a slice goes whole, is refused, or is cut into slices"},
		func(c *sched.Config, v value) { c.Sends = sched.Sends(v.text) }},
	{paramDoc{"room", sizeOf, "4M", "with sends=slice: buffer for a peer's cut sends, per connection"},
		func(c *sched.Config, v value) { c.Room = v.n }},
	{paramDoc{"imm", wordOf(string(sched.WholeImmediates), string(sched.LastImmediates)), string(sched.WholeImmediates),
		"a write with immediate longer than a slice goes whole, or cut with the immediate in the last slice"},
		func(c *sched.Config, v value) { c.Immediates = sched.Immediates(v.text) }},
	{paramDoc{"every", timeOf, "1ms", "of aging: time for one class"},
		func(c *sched.Config, v value) { c.AgeEvery = v.d }},
	{paramDoc{"weights", listOf(countOf(1, 1<<16), sched.Priorities), "1:2:4:…",
		"of drr, by class from 0; the last holds for the rest"},
		func(c *sched.Config, v value) { eachClass(v, func(i int, v value) { c.Weights[i] = v.n }) }},
	{paramDoc{"deadlines", listOf(timeOf, sched.Priorities), "128ms:64ms:…", "of edf, likewise"},
		func(c *sched.Config, v value) { eachClass(v, func(i int, v value) { c.Deadlines[i] = v.d }) }},
}

func policyParam(p sched.Policy, def, help string) param[sched.Config] {
	return param[sched.Config]{paramDoc{string(p), switchOf, def, help}, func(c *sched.Config, _ value) { c.Policy = p }}
}

// eachClass gives set the values of a list for classes 0 and up. Classes beyond the list take its last value.
func eachClass(v value, set func(i int, v value)) {
	for i := range sched.Priorities {
		set(i, v.list[min(i, len(v.list)-1)])
	}
}

// OpenTapped opens a stack with what tap returns right below its outermost layer, which is sched.
func OpenTapped(spec string, tap func(below rdma.Device) rdma.Device) (rdma.Device, error) {
	layers, err := Resolve(spec)
	if err != nil {
		return nil, err
	}
	if layers[0].Name != "sched" || len(layers) < 2 {
		return nil, cli.Usage(Opening(spec), errors.New("the outermost layer has to be sched, whose order is shown"),
			"--transport 'sched(strict,slice=64K,window=64K)+"+Embedded()+"'")
	}
	var stacks Set
	below, _, err := stacks.build(spec, layers, 1)
	if err != nil {
		return nil, err
	}
	dev, err := Find("sched").wrap(layers[0], tap(below))
	if err != nil {
		return nil, OpenError(spec, layers, layers[0], errors.Join(err, below.Close()))
	}
	return dev, nil
}
