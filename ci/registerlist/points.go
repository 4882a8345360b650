package main

import (
	"encoding/json"
	"fmt"

	"github.com/rdmaperf/rdmaperf/reports"
)

// latency is what the table reads of one.
type latency struct {
	P50 float64 `json:"p50"`
}

// point is a result of the workload register, by the members of its document.
type point struct {
	op   string
	size int64

	Arm, Pages, Offload, Source string
	Threads                     int
	Register, Deregister        *latency
	Use, Unmap                  *latency
	Again                       *latency         `json:"use_again"`
	Each                        float64          `json:"each_ns"`
	Registrations               int64            `json:"registrations"`
	WorkingSet                  int              `json:"working_set"`
	Capacity                    int              `json:"capacity_regions"`
	Hits                        int64            `json:"set_hits"`
	Gets                        int64            `json:"set_gets"`
	Replaced                    int64            `json:"replaced"`
	Stale                       int64            `json:"stale_hits"`
	Cache                       map[string]int64 `json:"cache"`
	Pool                        *struct {
		Revived, Flushes uint64
		Most             uint64 `json:"most_deferred_bytes"`
		Bound            uint64 `json:"deferred_bound_bytes"`
	} `json:"pool"`
	Absent map[string]string `json:"absent_arms"`
}

// points reads those of a command. why says what stands in the way of all of them.
func points(o output) (all []point, why string) {
	if o.code == reports.ExitNotRun {
		return nil, notRun + ": " + o.why()
	}
	if o.code != 0 {
		return nil, fmt.Sprintf("%s: exit code %d: %s", o.command, o.code, o.why())
	}
	if o.doc == nil {
		return nil, o.command + ": left no document"
	}
	for i := range o.doc.Results {
		r := &o.doc.Results[i]
		raw := r.Others.Get("register")
		if raw == nil {
			continue
		}
		p := point{op: r.Op, size: r.SizeBytes}
		if err := json.Unmarshal(raw, &p); err != nil {
			return nil, fmt.Sprintf("%s: %v", o.command, err)
		}
		all = append(all, p)
	}
	if len(all) == 0 {
		return nil, o.command + ": no results"
	}
	return all, ""
}

// the picks the point that is so.
func the(all []point, is func(p point) bool) (point, bool) {
	for _, p := range all {
		if is(p) {
			return p, true
		}
	}
	return point{}, false
}

// of is the median of a stage, 0 where it was not measured.
func of(l *latency) float64 {
	if l == nil {
		return 0
	}
	return l.P50
}

// repeats are the medians of the registrations of an arm, one of each repeat.
func repeats(all []point, arm, offload string, size int64) (ns []float64) {
	for _, p := range all {
		if p.Arm == arm && p.Offload == offload && p.size == size && p.Register != nil {
			ns = append(ns, p.Register.P50)
		}
	}
	return ns
}

func arm(all []point, arm, offload string, size int64) point {
	p, _ := the(all, func(p point) bool { return p.Arm == arm && p.Offload == offload && p.size == size })
	return p
}
