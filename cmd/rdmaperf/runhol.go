package main

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/bench"
)

// holFlags are those of the head-of-line workload, as given.
type holFlags struct {
	bulkSizes []string
	bulkDepth int
	probeSize string
	interval  string
	rate      float64
	arms      []string
	priority  uint8
	appSlice  string
	appWindow int
}

func (h *holFlags) register(f *pflag.FlagSet) {
	f.StringSliceVar(&h.bulkSizes, "bulk-size", []string{"1M"}, "hol: comma list of bulk sizes")
	f.IntVar(&h.bulkDepth, "bulk-depth", bench.DefaultBulkDepth, "hol: bulk operations outstanding")
	f.StringVar(&h.probeSize, "probe-size", strconv.Itoa(bench.DefaultProbeSize), "hol: size of the probes")
	f.StringVar(&h.interval, "probe-interval", bench.DefaultProbeInterval.String(), "hol: between the starts of two probes; 0 is a closed loop")
	f.Float64Var(&h.rate, "probe-rate", 0, "hol: probes a second, instead of --probe-interval")
	f.StringSliceVar(&h.arms, "hol-arm", bench.StandardArms(), "hol: comma list of same-qp, two-qp (the probes on a QP of their own), app-slicing (the application cuts bulk writes itself and keeps few slices outstanding)")
	f.StringVar(&h.appSlice, "app-slice", strconv.Itoa(bench.DefaultAppSlice>>10)+"K", "hol: bytes of a slice in the arm app-slicing")
	f.IntVar(&h.appWindow, "app-window", bench.DefaultAppWindow, "hol: slices outstanding in the arm app-slicing")
	f.Uint8Var(&h.priority, "probe-priority", 1, "hol: of the probes' work requests, for stacks that schedule by it; bulk has 0")
}

// plan fills in what all head-of-line points share.
func (h *holFlags) plan(b *bench.Plan, changed func(string) bool) (err error) {
	if h.bulkDepth < 1 {
		return wrong("bulk-depth", "%d: want at least 1", h.bulkDepth)
	}
	b.BulkDepth, b.ProbePriority = h.bulkDepth, h.priority
	if h.appWindow < 1 {
		return wrong("app-window", "%d: want at least 1", h.appWindow)
	}
	b.AppWindow = h.appWindow
	if b.AppSlice, err = parseBytes(h.appSlice); err != nil {
		return wrong("app-slice", "%w", err)
	}
	if b.AppSlice < 1 {
		return wrong("app-slice", "%s: it starts at 1K", h.appSlice)
	}
	if b.ProbeSize, err = parseBytes(h.probeSize); err != nil {
		return wrong("probe-size", "%w", err)
	}
	if b.ProbeSize < 1 {
		return wrong("probe-size", "%s: it starts at 1 byte", h.probeSize)
	}
	if !changed("probe-rate") {
		b.ProbeInterval, err = parseInterval(h.interval)
		return err
	}
	if !(h.rate >= 1 && h.rate <= 1e9) {
		return wrong("probe-rate", "%v: want 1 to 1e9 a second", h.rate)
	}
	b.ProbeInterval = time.Duration(1e9 / h.rate)
	return nil
}

// parseInterval reads "500us", or "0" for a closed loop.
func parseInterval(s string) (time.Duration, error) {
	d, err := time.ParseDuration(s)
	if err != nil || d < 0 {
		return 0, wrong("probe-interval", "%q: want a time such as 500us, or 0", s)
	}
	return d, nil
}

// points are all bulk sizes in all arms.
func (h *holFlags) points(ops []string) ([]bench.Point, error) {
	if len(ops) == 0 {
		ops = []string{"write"}
	}
	var points []bench.Point
	for _, op := range ops {
		for _, s := range unique(h.bulkSizes) {
			n, err := parseBytes(s)
			if err != nil {
				return nil, wrong("bulk-size", "%w", err)
			}
			for _, arm := range unique(h.arms) {
				points = append(points, bench.Point{Workload: bench.WorkloadHOL, Op: op, Size: n, Arm: arm})
			}
		}
	}
	return points, nil
}

// onlyFor are the flags that choose a workload, when none is named.
var onlyFor = []struct {
	flags    []string
	workload string
	also     []string // may be named beside it, or instead
}{
	{[]string{"bidirectional"}, bench.WorkloadThroughput, nil},
	{[]string{"clients"}, bench.WorkloadIncast, nil},
	{[]string{"concurrency"}, bench.WorkloadConnect, nil},
	{trainFlagNames, bench.WorkloadParamServer, nil},
	{[]string{"high-load", "high-priority"}, bench.WorkloadStarvation, nil},
	{rpcFlagNames, bench.WorkloadRPC, nil},
	{kvFlagNames, bench.WorkloadKV, nil},
	{tensorFlagNames, bench.WorkloadTensor, nil},
	// What several workloads have, behind what chooses one of them.
	{[]string{"outstanding"}, bench.WorkloadRPC, callWorkloads},
	{[]string{"rate", "rate-sweep"}, bench.WorkloadLatency, callWorkloads},
}

var callWorkloads = []string{bench.WorkloadRPC, bench.WorkloadKV, bench.WorkloadTensor}

// ownThreads are the workloads that have as many threads as connections, and the
// flag that says how many.
var ownThreads = map[string]string{bench.WorkloadIncast: "clients", bench.WorkloadConnect: "concurrency"}

// workloadsFor leaves the head-of-line workload out where nobody asked for it and
// the other flags describe something it does not do.
func (o *runOptions) workloadsFor(changed func(string) bool) ([]string, error) {
	list := unique(o.workloads)
	asked := changed("workload")
	other := ""
	for _, f := range []string{"op", "size", "all", "qp", "qp-sweep", "threads"} {
		if changed(f) {
			other = f
		}
	}
	for _, only := range onlyFor {
		if !slices.ContainsFunc(only.flags, changed) {
			continue
		}
		if asked && slices.ContainsFunc(list, func(w string) bool { return w != only.workload && !slices.Contains(only.also, w) }) {
			return nil, wrong(strings.Join(only.flags, ", --"), "for --workload %s", only.workload)
		}
		if !asked {
			asked, list = true, []string{only.workload}
			if o.callsOnly && len(only.also) > 0 {
				list[0] = bench.WorkloadRPC
			}
		}
	}
	if o.callsOnly && !asked {
		asked, list = true, []string{bench.WorkloadRPC}
	}
	if !asked {
		if other != "" || o.polling == bench.PollingEvent {
			list = slices.DeleteFunc(list, func(w string) bool { return w == bench.WorkloadHOL })
		}
		return list, nil
	}
	if slices.Contains(list, bench.WorkloadParamServer) {
		if err := checkTrain(list, changed); err != nil {
			return nil, err
		}
	}
	for _, w := range list {
		if !bench.CallWorkload(w) {
			continue
		}
		if err := o.rpc.check(w, list, changed); err != nil {
			return nil, err
		}
	}
	if slices.Equal(list, []string{bench.WorkloadKV}) && (changed("size") || changed("all")) {
		return nil, wrong("size", "records of the workload %s have --fields of --field-bytes", bench.WorkloadKV)
	}
	if slices.Contains(list, bench.WorkloadStarvation) && (changed("qp") || changed("qp-sweep") || changed("threads")) {
		return nil, wrong("workload", "%s has two classes on one QP and one thread", bench.WorkloadStarvation)
	}
	for w, instead := range ownThreads {
		if !slices.Contains(list, w) {
			continue
		}
		for _, f := range []string{"qp", "qp-sweep", "threads"} {
			if changed(f) {
				return nil, wrong(f, "the connections and threads of the workload %s are its --%s", w, instead)
			}
		}
		if changed("pin") && o.pin != "auto" && o.pin != "none" {
			return nil, wrong("pin", "%s: one CPU cannot hold all threads of the workload %s", o.pin, w)
		}
	}
	if !slices.Contains(list, bench.WorkloadHOL) {
		for _, f := range []string{"bulk-size", "bulk-depth", "probe-size", "probe-interval", "probe-rate", "hol-arm", "probe-priority", "app-slice", "app-window"} {
			if changed(f) {
				return nil, wrong(f, "for --workload %s", bench.WorkloadHOL)
			}
		}
		return list, nil
	}
	for _, f := range []string{"app-slice", "app-window"} {
		if changed(f) && !slices.Contains(unique(o.hol.arms), bench.ArmAppSlicing) {
			return nil, wrong(f, "for --hol-arm %s", bench.ArmAppSlicing)
		}
	}
	if changed("qp") || changed("qp-sweep") || changed("threads") {
		return nil, wrong("workload", "%s has one thread, and a QP or two by --hol-arm", bench.WorkloadHOL)
	}
	if len(list) == 1 && (other == "size" || other == "all") {
		return nil, fmt.Errorf("the sizes of %s are --bulk-size and --probe-size", strings.Join(list, ""))
	}
	return list, nil
}
