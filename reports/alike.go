package reports

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
)

// environments notes what of a machine shapes figures and is not the same.
func (c *Comparison) environments(prefix string, a, b *Environment) {
	for _, f := range []struct {
		what     string
		old, new any
	}{
		{"os", a.OS, b.OS}, {"architecture", a.Arch, b.Arch}, {"kernel", a.Kernel, b.Kernel}, {"cpu", a.CPU, b.CPU},
		{"cpus", a.CPUs, b.CPUs},
		{"virtual machine", a.Hypervisor, b.Hypervisor}, {"kept awake by", a.Awake, b.Awake},
		{"governors", strings.Join(a.Governors, ","), strings.Join(b.Governors, ",")},
		{"numa nodes", a.NUMANodes, b.NUMANodes}, {"clocksource", a.Clock, b.Clock},
		{"gomaxprocs", a.GOMAXPROCS, b.GOMAXPROCS}, {"gogc", a.GOGC, b.GOGC},
	} {
		if f.old != f.new {
			c.Unlike = append(c.Unlike, Difference{What: prefix + f.what, Old: fmt.Sprint(f.old),
				New: fmt.Sprint(f.new)})
		}
	}
}

// fact is one named condition of a result.
type fact struct{ what, value string }

// words are what the name of a point has of the fact.
func (f fact) words() string {
	if f.value == "" {
		return ""
	}
	return f.what + "=" + f.value
}

// conditionParameters are options that make the same point incomparable.
var conditionParameters = []string{"arrival", "target", "completion", "recv_depth", "read_depth", "inline_bytes",
	"completion_every", "post_list", "slots", "codec"}

// identity says which point a result is.
func identity(r *Result) []fact {
	facts := []fact{
		{what: "stack", value: r.Stack}, {what: "workload", value: r.Workload}, {what: "op", value: r.Op},
		{what: "size", value: FormatSize(r.SizeBytes)},
		{what: "depth", value: strconv.Itoa(r.Depth)}, {what: "qps", value: strconv.Itoa(r.QPs)},
	}
	facts = append(facts, fact{what: "rate", value: Offered(r)}, fact{what: "arrivals", value: r.Arrivals})
	for _, d := range r.PointDims() {
		name, value := d.Short()
		facts = append(facts, fact{name, value})
	}
	return facts
}

// conditions says how a point was measured.
func conditions(r *Result) []fact {
	return append([]fact{
		{what: "label", value: r.Label}, {what: "threads", value: strconv.Itoa(max(r.Threads, 1))},
		{what: "polling", value: r.Polling},
		{what: "round trip", value: r.RoundTrip}, {what: "measured by", value: r.MeasuredBy},
		{what: "loop", value: loopOf(r)}, {what: "verified", value: strconv.FormatBool(r.Verified)},
	}, parameterFacts("parameter ", r.Parameters, conditionParameters)...)
}

// parameterFacts takes the named scalars; a missing one is empty.
func parameterFacts(prefix string, all map[string]any, names []string) []fact {
	var facts []fact
	for _, name := range names {
		value := ""
		if v, ok := all[name]; ok && v != nil {
			// As JSON, so that a number means the same from memory and from a file.
			if b, err := json.Marshal(v); err == nil {
				value = strings.Trim(string(b), `"`)
			}
		}
		facts = append(facts, fact{what: prefix + name, value: value})
	}
	return facts
}
