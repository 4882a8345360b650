package reports

import "fmt"

// holLoad is what head-of-line results share beside a load; the arms, which
// differ in QPs, stand in one table.
type holLoad struct {
	probe, interval int64
}

func holLoadOf(r *Result) holLoad {
	if r.HOL == nil {
		return holLoad{}
	}
	return holLoad{r.HOL.ProbeSizeBytes, r.HOL.ProbeIntervalNs}
}

func (h holLoad) conditions() string {
	s := "probes of " + plural(h.probe, "byte")
	if h.interval == 0 {
		return s + " in a closed loop"
	}
	return s + " every " + number(float64(h.interval)/1000, -1) + " usec"
}

// holTable shows how the probes' latency grows beside the bulk stream, and what
// the probes cost the stream.
func (p *textPrinter) holTable(results []*Result) {
	unit := "MiB/sec"
	if p.Gbits {
		unit = "Gb/sec"
	}
	t := table{columns: []column{{name: "bulk", unit: "bytes"}, {name: "arm", left: true}, {name: "probes"},
		{name: "p50", unit: "usec"}, {name: "99%", unit: "usec"}, {name: "max", unit: "usec"},
		{name: "p50 growth"}, {name: "99% growth"}, {name: "bulk", unit: unit}}}
	for _, r := range results {
		h := r.HOL
		if h == nil {
			continue
		}
		arm := h.Arm
		if arm == "" {
			arm = ArmSameQP
		}
		for _, v := range []struct {
			probes   string
			l        *Latency
			p50, p99 string // growth
			bulk     float64
		}{
			{"alone", &h.ProbeAlone, "", "", h.BulkAloneBytesPerSecond},
			{"loaded", &h.ProbeLoaded, ratio(h.ProbeLoaded.P50, h.ProbeAlone.P50), ratio(h.ProbeLoaded.P99, h.ProbeAlone.P99), h.BulkLoadedBytesPerSecond},
		} {
			p50, p99 := percentileCell(v.l, "p50"), percentileCell(v.l, "p99")
			t.add(cell{text: integer(h.BulkSizeBytes)}, cell{text: printable(arm)}, cell{text: v.probes}, p50, p99,
				cell{text: usec(v.l.Max)}, cell{text: v.p50}, cell{text: v.p99}, cell{text: bandwidth(v.bulk, p.Gbits)})
		}
	}
	if len(t.rows) > 0 {
		p.table(&t)
	}
}

// holConditions are those of a head-of-line table.
func (l load) holConditions() string {
	return fmt.Sprintf("bulk depth %d, %s, %s polling, full round trip", l.depth, l.hol.conditions(), l.polling)
}
