package reports

import (
	"bytes"
	"encoding/csv"
	"fmt"
	"io"
	"strconv"
	"time"
)

// csvColumn is one column; value is empty where a result has no such figure.
type csvColumn struct {
	name  string
	value func(d *Document, r *Result) string
}

// csvColumns is the header. New columns are added at the end only, because
// scripts count.
var csvColumns = csvTable()

func csvTable() []csvColumn {
	word := func(name string, f func(d *Document, r *Result) string) csvColumn {
		return csvColumn{name, func(d *Document, r *Result) string { return printable(f(d, r)) }}
	}
	whole := func(name string, f func(r *Result) int64) csvColumn {
		return csvColumn{name, func(_ *Document, r *Result) string { return integer(f(r)) }}
	}
	columns := []csvColumn{
		word("started", func(d *Document, _ *Result) string { return d.Started.UTC().Format(time.RFC3339Nano) }),
		word("version", func(d *Document, _ *Result) string { return d.Environment.Version }),
		word("hostname", func(d *Document, _ *Result) string { return d.Environment.Hostname }),
		word("stack", func(_ *Document, r *Result) string { return r.Stack }),
		word("transport", func(_ *Document, r *Result) string { return r.Transport }),
		word("label", func(_ *Document, r *Result) string { return r.Label }),
		word("workload", func(_ *Document, r *Result) string { return r.Workload }),
		word("op", func(_ *Document, r *Result) string { return r.Op }),
		whole("size_bytes", func(r *Result) int64 { return r.SizeBytes }),
		whole("depth", func(r *Result) int64 { return int64(r.Depth) }),
		whole("qps", func(r *Result) int64 { return int64(r.QPs) }),
		whole("threads", func(r *Result) int64 { return int64(max(r.Threads, 1)) }),
		word("polling", func(_ *Document, r *Result) string { return r.Polling }),
		word("round_trip", func(_ *Document, r *Result) string { return r.RoundTrip }),
		word("measured_by", func(_ *Document, r *Result) string { return r.MeasuredBy }),
		word("verified", func(_ *Document, r *Result) string { return strconv.FormatBool(r.Verified) }),
		whole("duration_ns", func(r *Result) int64 { return r.DurationNs }),
		whole("operations", func(r *Result) int64 { return r.Operations }),
		whole("errors", func(r *Result) int64 { return r.Errors }),
	}
	columns = append(columns, csvLatency("latency", func(r *Result) *Latency { return r.Latency })...)
	columns = append(columns, csvLatency("corrected", func(r *Result) *Latency { return r.LatencyCorrected })...)
	columns = append(columns,
		csvColumn{"bytes_per_second", func(_ *Document, r *Result) string {
			if r.Throughput == nil {
				return ""
			}
			return csvNumber(r.Throughput.BytesPerSecond)
		}},
		csvColumn{"operations_per_second", func(_ *Document, r *Result) string {
			if r.Throughput == nil {
				return ""
			}
			return csvNumber(r.Throughput.OperationsPerSecond)
		}})
	columns = append(columns, csvLatency("probe_alone", func(r *Result) *Latency {
		if r.HOL == nil {
			return nil
		}
		return &r.HOL.ProbeAlone
	})...)
	columns = append(columns, csvLatency("probe_loaded", func(r *Result) *Latency {
		if r.HOL == nil {
			return nil
		}
		return &r.HOL.ProbeLoaded
	})...)
	hol := func(name string, f func(h *HOL) string) csvColumn {
		return csvColumn{name, func(_ *Document, r *Result) string {
			if r.HOL == nil {
				return ""
			}
			return f(r.HOL)
		}}
	}
	columns = append(columns,
		hol("bulk_size_bytes", func(h *HOL) string { return integer(h.BulkSizeBytes) }),
		hol("probe_size_bytes", func(h *HOL) string { return integer(h.ProbeSizeBytes) }),
		hol("probe_interval_ns", func(h *HOL) string { return integer(h.ProbeIntervalNs) }),
		hol("bulk_alone_bytes_per_second", func(h *HOL) string { return csvNumber(h.BulkAloneBytesPerSecond) }),
		hol("bulk_loaded_bytes_per_second", func(h *HOL) string { return csvNumber(h.BulkLoadedBytesPerSecond) }),
		hol("arm", func(h *HOL) string { return printable(h.Arm) }),
		word("arrivals", func(_ *Document, r *Result) string { return r.Arrivals }),
		csvColumn{"rate", func(_ *Document, r *Result) string {
			if r.Rate == 0 {
				return ""
			}
			return csvNumber(r.Rate)
		}})
	direction := func(name string, of func(b *Bidirectional) float64) csvColumn {
		return csvColumn{name, func(_ *Document, r *Result) string {
			if r.Bidirectional == nil {
				return ""
			}
			return csvNumber(of(r.Bidirectional))
		}}
	}
	columns = append(columns, csvLatency("service", func(r *Result) *Latency { return r.LatencyService })...)
	peak := func(name string, f func(t *Throughput) string) csvColumn {
		return csvColumn{name, func(_ *Document, r *Result) string {
			if r.Throughput == nil || r.Throughput.PeakOverNs == 0 {
				return ""
			}
			return f(r.Throughput)
		}}
	}
	cpu := func(name string, f func(c *CPU) float64) csvColumn {
		return csvColumn{name, func(_ *Document, r *Result) string {
			if r.CPU == nil {
				return ""
			}
			return csvNumber(f(r.CPU))
		}}
	}
	gc := func(name string, f func(g *GC) int64) csvColumn {
		return csvColumn{name, func(_ *Document, r *Result) string {
			if r.GC == nil {
				return ""
			}
			return integer(f(r.GC))
		}}
	}
	training := func(name string, f func(ps *ParamServer) string) csvColumn {
		return csvColumn{name, func(_ *Document, r *Result) string {
			if r.ParamServer == nil {
				return ""
			}
			return f(r.ParamServer)
		}}
	}
	columns = append(columns, csvColumn{"repeat", func(_ *Document, r *Result) string {
		if r.Repeat == 0 {
			return ""
		}
		return strconv.Itoa(r.Repeat)
	}},
		peak("peak_bytes_per_second", func(t *Throughput) string { return csvNumber(t.PeakBytesPerSecond) }),
		peak("peak_over_ns", func(t *Throughput) string { return integer(t.PeakOverNs) }),
		direction("from_client_bytes_per_second", func(b *Bidirectional) float64 { return b.FromClient.BytesPerSecond }),
		direction("from_server_bytes_per_second", func(b *Bidirectional) float64 { return b.FromServer.BytesPerSecond }),
		cpu("client_cpu_seconds", func(c *CPU) float64 { return c.ClientSeconds }),
		cpu("server_cpu_seconds", func(c *CPU) float64 { return c.ServerSeconds }),
		gc("client_collections", func(g *GC) int64 { return g.ClientCollections }),
		gc("server_collections", func(g *GC) int64 { return g.ServerCollections }),
		gc("client_allocations", func(g *GC) int64 { return g.ClientAllocations }),
		gc("server_allocations", func(g *GC) int64 { return g.ServerAllocations }),
		csvFigure("slowest_client_bytes_per_second", "slowest.bw"), csvFigure("fastest_client_bytes_per_second", "fastest.bw"), csvFigure("jain", "jain"),
		hol("app_slice_bytes", func(h *HOL) string { return whenSet(h.AppSliceBytes) }),
		hol("app_window", func(h *HOL) string { return whenSet(int64(h.AppWindow)) }))
	for _, s := range connectStages {
		for _, f := range []string{"p50", "p99", "max"} {
			columns = append(columns, csvFigure("setup_"+s.name+"_"+f+"_ns", s.name+"."+f))
		}
	}
	call := func(name string, f func(c *RPC) string) csvColumn {
		return csvColumn{name, func(_ *Document, r *Result) string {
			if r.RPC == nil {
				return ""
			}
			return f(r.RPC)
		}}
	}
	store := func(name string, f func(k *KV) string) csvColumn {
		return csvColumn{name, func(_ *Document, r *Result) string {
			if r.KV == nil {
				return ""
			}
			return f(r.KV)
		}}
	}
	columns = append(columns,
		training("model", func(ps *ParamServer) string { return printable(ps.Model) }),
		training("training_arm", func(ps *ParamServer) string { return printable(ps.Arm) }),
		training("levels", func(ps *ParamServer) string { return strconv.Itoa(ps.Levels) }),
		training("tensor_bytes", func(ps *ParamServer) string { return csvNumber(ps.TensorBytes) }),
		training("compute_ratio", func(ps *ParamServer) string { return csvNumber(ps.ComputeRatio) }),
		csvFigure("iteration_mean_ns", "iteration.mean"), csvFigure("iteration_p50_ns", "iteration.p50"), csvFigure("iteration_p99_ns", "iteration.p99"),
		training("iteration_mean_low_ns", func(ps *ParamServer) string { return csvNumber(ps.MeanLow) }),
		training("iteration_mean_high_ns", func(ps *ParamServer) string { return csvNumber(ps.MeanHigh) }),
		csvFigure("communication_ns", "communication"), csvFigure("computation_ns", "computation"), csvFigure("ideal_ns", "ideal"), csvFigure("overlap", "overlap"),
		csvColumn{"high_load_percent", func(_ *Document, r *Result) string {
			if r.Starvation == nil {
				return ""
			}
			return csvNumber(r.Starvation.HighLoadPercent)
		}},
		csvFigure("high_bytes_per_second", "high.bw"), csvFigure("low_bytes_per_second", "low.bw"), csvFigure("capacity_bytes_per_second", "capacity.bw"))
	columns = append(columns, call("call", func(c *RPC) string { return printable(c.Call) }), call("response_bytes", func(c *RPC) string { return integer(c.ResponseBytes) }),
		store("mix", func(k *KV) string { return printable(k.Mix) }), store("records", func(k *KV) string { return integer(k.Records) }))
	for _, op := range kvOps {
		columns = append(columns, csvFigure(op+"_mean_ns", op+".mean"), csvFigure(op+"_p99_ns", op+".p99"), csvFigure(op+"_store_mean_ns", op+"-store.mean"))
	}
	columns = append(columns, csvColumn{"machine_cpu_seconds", func(_ *Document, r *Result) string {
		if r.CPU == nil || r.CPU.MachineSeconds == 0 {
			return ""
		}
		return csvNumber(r.CPU.MachineSeconds)
	}})
	return columns
}

// whenSet is empty for what a result does not have.
func whenSet(n int64) string {
	if n == 0 {
		return ""
	}
	return integer(n)
}

// csvFigure is a figure as thresholds name it.
func csvFigure(name, figure string) csvColumn {
	m, _ := findMetric(figure)
	return csvColumn{name, func(_ *Document, r *Result) string {
		if v, ok := m.of(r); ok {
			return csvNumber(v)
		}
		return ""
	}}
}

// csvLatency are the columns of one set of samples, times in ns.
func csvLatency(prefix string, of func(r *Result) *Latency) []csvColumn {
	column := func(name string, f func(l *Latency) string) csvColumn {
		return csvColumn{prefix + "_" + name, func(_ *Document, r *Result) string {
			if l := of(r); l != nil {
				return f(l)
			}
			return ""
		}}
	}
	columns := []csvColumn{
		column("count", func(l *Latency) string { return integer(l.Count) }),
		column("min_ns", func(l *Latency) string { return csvNumber(l.Min) }),
	}
	for _, p := range percentileTable {
		columns = append(columns, column(p.name+"_ns", func(l *Latency) string { return csvNumber(*p.field(l)) }))
	}
	return append(columns,
		column("max_ns", func(l *Latency) string { return csvNumber(l.Max) }),
		column("mean_ns", func(l *Latency) string { return csvNumber(roundTo(l.Mean)) }),
		column("stddev_ns", func(l *Latency) string { return csvNumber(roundTo(l.StdDev)) }))
}

// csvNumber is empty for what is no number.
func csvNumber(v float64) string {
	if !finite(v) {
		return ""
	}
	return strconv.FormatFloat(v, 'f', -1, 64)
}

// WriteCSV prints one row per result below a header that only grows at its end,
// in the format of RFC 4180 with CRLF. A figure that a result does not have is
// an empty field. Percentiles that rest on too few samples are not marked; the
// count stands beside them.
func WriteCSV(w io.Writer, d *Document) error {
	var out bytes.Buffer
	cw := csv.NewWriter(&out)
	cw.UseCRLF = true // RFC 4180 §2.1
	fields := make([]string, len(csvColumns))
	for i, c := range csvColumns {
		fields[i] = c.name
	}
	err := cw.Write(fields)
	for i := range d.Results {
		for j, c := range csvColumns {
			fields[j] = c.value(d, &d.Results[i])
		}
		if err == nil {
			err = cw.Write(fields)
		}
	}
	cw.Flush()
	if err == nil {
		err = cw.Error()
	}
	if err == nil {
		_, err = w.Write(out.Bytes())
	}
	if err != nil {
		return fmt.Errorf("write CSV report: %w", err)
	}
	return nil
}
