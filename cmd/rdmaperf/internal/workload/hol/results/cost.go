package results

import "github.com/rdmaperf/rdmaperf/reports"

// What the bulk and the probes beside it cost both processes in CPU.

// cpuPerGB is seconds for 10^9 bytes of bulk; 0 where it is not known.
func cpuPerGB(r *reports.Result) float64 {
	if h := Of(r); h != nil {
		return perUnit(r, float64(r.Operations)*float64(h.BulkSizeBytes)/1e9)
	}
	return 0
}

// cpuPerOp is seconds for one bulk message or probe; 0 where it is not known.
func cpuPerOp(r *reports.Result) float64 {
	if h := Of(r); h != nil {
		return perUnit(r, float64(r.Operations+max(h.Probes, h.ProbeLoaded.Count-h.ProbeLoaded.Unfinished)))
	}
	return 0
}

func perUnit(r *reports.Result, units float64) float64 {
	if r.CPU == nil || !(units > 0) {
		return 0
	}
	return (r.CPU.ClientSeconds + r.CPU.ServerSeconds) / units
}

// saturated tells that probes under load were due faster than the path answered them.
func (h *HOL) saturated() bool { return h.LoadedLoop != nil && h.LoadedLoop.Saturated }
