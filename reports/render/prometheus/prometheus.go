package prometheus

import (
	"errors"
	"fmt"
	"io/fs"
	"math"
	"os"
	"strconv"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"
	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"

	"github.com/rdmaperf/rdmaperf/reports"
	"github.com/rdmaperf/rdmaperf/reports/view"
)

// seriesLabels tell the points of one run apart. None of them grows with the
// number of runs; what does, such as the version, is in rdmaperf_run_info.
var seriesLabels = []string{"transport", "workload", "op", "size", "depth", "qps", "polling", "rate", "dims", "role"}

// percentileLabel is not quantile, which belongs to summaries: promtool check metrics
// refuses it on gauges.
const percentileLabel = "percentile"

func seriesValues(r *reports.Result) []string {
	return []string{view.Printable(reports.TransportOf(r)), view.Printable(r.Workload), view.Printable(r.Op),
		view.Integer(r.SizeBytes), strconv.Itoa(r.Depth), strconv.Itoa(r.QPs),
		view.Printable(r.Polling), reports.Offered(r), view.Printable(reports.DimsText(r.PointDims(), ",")),
		view.Printable(r.MeasuredBy)}
}

func seriesDesc(name, help string, more ...string) *prometheus.Desc {
	return prometheus.NewDesc("rdmaperf_"+name, help, append(append([]string(nil), seriesLabels...), more...), nil)
}

var (
	descDuration = seriesDesc("op_duration_seconds", "Latency of operations.")
	descQuantile = seriesDesc("op_duration_percentile_seconds",
		"Latency that the percentage of operations took at most; 100 is the longest. Percentiles with too few "+
			"samples are left out.", percentileLabel)
	descOps         = seriesDesc("ops_total", "Operations completed inside measured windows.")
	descBytes       = seriesDesc("bytes_total", "Payload bytes of these operations, of workloads that count them.")
	descErrors      = seriesDesc("op_errors_total", "Operations that failed.", "status")
	descByteRate    = seriesDesc("throughput_bytes_per_second", "Payload rate over the last measured window.")
	descOpRate      = seriesDesc("throughput_ops_per_second", "Operation rate over the last measured window.")
	descCPU         = seriesDesc("cpu_seconds_total", "Processor time inside measured windows; role is the side.")
	descCollections = seriesDesc("gc_collections_total",
		"Garbage collections inside measured windows; role is the side.")
	descDisturbed = seriesDesc("disturbed",
		"1 if a measurement of the point was noisy, 2 if figures contradict each other.")
	descWhole = seriesDesc("compared_messages_total",
		"Messages of measured windows that were compared byte by byte.")
	descNumbers = seriesDesc("compared_numbers_total",
		"Messages of measured windows of which at least the number was compared.")
	descCompared = seriesDesc("compared_bytes_total", "Bytes of measured windows that were compared.")
	descDue      = seriesDesc("due_operations_total",
		"Operations of open loops whose intended start was inside measured windows.")
	descSent      = seriesDesc("sent_operations_total", "Of the operations that were due, those that were sent.")
	descCompleted = seriesDesc("completed_operations_total",
		"Of the operations that were due, those that completed; the others are in the latencies with the time that "+
			"they had waited.")
	descAchieved = seriesDesc("achieved_operations_per_second",
		"Completed operations of the last open loop over its window.")
	descSaturated = seriesDesc("saturated",
		"1 when an open loop did not keep up with its arrivals: latencies grow with the window then.")
	descInfo = seriesDesc("run_info", "Always 1: what was measured, with what, and on which machine.",
		"stack", "label", "round_trip", "threads", "verified", "version", "go", "os", "arch", "kernel", "cpu",
		"hostname")
	descResults = prometheus.NewDesc("rdmaperf_results", "Points finished so far.", nil, nil)
	descFailed  = prometheus.NewDesc("rdmaperf_run_failed", "1 when the run ended early.", nil, nil)
	descStarted = prometheus.NewDesc("rdmaperf_run_start_time_seconds", "When the run began, as seconds since 1970.",
		nil, nil)

	pointDescs = []*prometheus.Desc{descDuration, descQuantile, descOps, descBytes, descErrors, descByteRate,
		descOpRate, descCPU, descCollections, descDisturbed, descWhole, descNumbers, descCompared, descDue, descSent,
		descCompleted, descAchieved, descSaturated}
	runDescs = []*prometheus.Desc{descInfo, descResults, descFailed, descStarted}
)

// figureFamilies are the gauges of what a workload measures beside the common figures, one for each unit; figure is a
// name as thresholds have it.
var figureFamilies = [...]struct {
	desc *prometheus.Desc
	by   float64 // from the document's unit
}{
	reports.QuantityTime: {figureDesc("seconds", "A time of the last measurement, by the figure's name."), 1e-9},
	reports.QuantityRate: {figureDesc("per_second", "A rate of the last measurement, by the figure's name."), 1},
	reports.QuantityBytes: {figureDesc("bytes_per_second",
		"A bandwidth of the last measurement, by the figure's name."), 1},
	reports.QuantityCount: {figureDesc("value", "A count of the last measurement, by the figure's name."), 1},
	reports.QuantityRatio: {figureDesc("ratio", "A ratio of the last measurement, by the figure's name."), 1},
	reports.QuantityMemory: {figureDesc("bytes",
		"An amount of memory of the last measurement, by the figure's name."), 1},
}

func figureDesc(unit, help string) *prometheus.Desc {
	return seriesDesc("figure_"+unit, help, "figure")
}

// NewCollector exports a document to Prometheus. doc is called at each scrape
// and may return nil, for no run; the document it returns must not change while
// the scrape lasts. Histograms are converted then, so that measuring never meets
// Prometheus. Results for the same point, such as repeats, are added up; gauges
// show the last of them.
func NewCollector(doc func() *reports.Document) prometheus.Collector { return collector{doc} }

type collector struct{ doc func() *reports.Document }

// Describe implements prometheus.Collector.
func (c collector) Describe(ch chan<- *prometheus.Desc) {
	for _, d := range pointDescs {
		ch <- d
	}
	for _, f := range figureFamilies {
		ch <- f.desc
	}
	for _, d := range runDescs {
		ch <- d
	}
}

// Collect implements prometheus.Collector.
func (c collector) Collect(ch chan<- prometheus.Metric) {
	d := c.doc()
	if d == nil {
		return
	}
	e := export{d, ch}
	e.gauge(descResults, float64(len(d.Results)))
	failed := 0.
	if d.Error != nil {
		failed = 1
	}
	e.gauge(descFailed, failed)
	if !d.Started.IsZero() {
		e.gauge(descStarted, float64(d.Started.UnixMilli())/1000)
	}
	var order []string
	groups := map[string][]*reports.Result{}
	for i := range d.Results {
		r := &d.Results[i]
		key := fmt.Sprintf("%q", seriesValues(r))
		if groups[key] == nil {
			order = append(order, key)
		}
		groups[key] = append(groups[key], r)
	}
	for _, key := range order {
		e.series(groups[key])
	}
}

// export sends the metrics of one document.
type export struct {
	d  *reports.Document
	ch chan<- prometheus.Metric
}

func (e export) send(desc *prometheus.Desc, m prometheus.Metric, err error) {
	if err != nil {
		m = prometheus.NewInvalidMetric(desc, err)
	}
	e.ch <- m
}

func (e export) value(desc *prometheus.Desc, t prometheus.ValueType, v float64, labels ...string) {
	m, err := prometheus.NewConstMetric(desc, t, v, labels...)
	e.send(desc, m, err)
}

func (e export) gauge(desc *prometheus.Desc, v float64, labels ...string) {
	e.value(desc, prometheus.GaugeValue, v, labels...)
}

// series exports all results with the same labels.
func (e export) series(results []*reports.Result) {
	labels := seriesValues(results[0])
	with := func(more ...string) []string { return append(append([]string(nil), labels...), more...) }
	side := func(role string) []string { return append(with()[:len(labels)-1], role) }

	var ops, failures, bytes, clientCPU, serverCPU, clientGC, serverGC float64
	var due, sent, completed, saturated, whole, numbers, octets float64
	var verification *reports.Verification
	disturbed := -1. // nobody looked
	var loop *reports.OpenLoop
	var latencies []*reports.Latency
	var throughput *reports.Throughput
	var cpu, gc, payload bool
	infos := map[string]bool{}
	for _, r := range results {
		ops += float64(r.Operations)
		if b, ok := r.PayloadBytes(); ok {
			payload, bytes = true, bytes+b
		}
		failures += float64(r.Errors)
		if r.Latency != nil && r.Latency.Count > 0 {
			latencies = append(latencies, r.Latency)
		}
		if r.Throughput != nil {
			throughput = r.Throughput
		}
		if d := r.Disturbance; d != nil {
			disturbed = max(disturbed, map[string]float64{reports.VerdictDisturbed: 1, reports.VerdictImpossible: 2}[d.Verdict])
		}
		if v := r.Verification; v != nil {
			verification, whole, numbers, octets = v, whole+float64(v.Whole), numbers+float64(v.Numbers),
				octets+float64(v.Bytes)
		}
		if o := r.OpenLoop; o != nil {
			loop, due, sent, completed = o, due+float64(o.Due), sent+float64(o.Sent), completed+float64(o.Completed)
			if o.Saturated {
				saturated = 1
			}
		}
		if r.CPU != nil {
			cpu, clientCPU, serverCPU = true, clientCPU+r.CPU.ClientSeconds, serverCPU+r.CPU.ServerSeconds
		}
		if r.GC != nil {
			gc, clientGC, serverGC = true, clientGC+float64(r.GC.ClientCollections),
				serverGC+float64(r.GC.ServerCollections)
		}
		env := &e.d.Environment
		info := with(view.Printable(r.Stack), view.Printable(r.Label), view.Printable(r.RoundTrip),
			strconv.Itoa(max(r.Threads, 1)), strconv.FormatBool(r.Verified),
			view.Printable(env.Version), view.Printable(env.Go), view.Printable(env.OS), view.Printable(env.Arch),
			view.Printable(env.Kernel), view.Printable(env.CPU), view.Printable(env.Hostname))
		if key := fmt.Sprintf("%q", info); !infos[key] {
			infos[key] = true
			e.gauge(descInfo, 1, info...)
		}
	}
	e.value(descOps, prometheus.CounterValue, ops, labels...)
	if payload {
		e.value(descBytes, prometheus.CounterValue, bytes, labels...)
	}
	e.value(descErrors, prometheus.CounterValue, failures, with("failed")...)
	if throughput != nil {
		e.gauge(descByteRate, throughput.BytesPerSecond, labels...)
		e.gauge(descOpRate, throughput.OperationsPerSecond, labels...)
	}
	if disturbed >= 0 {
		e.gauge(descDisturbed, disturbed, labels...)
	}
	if verification != nil {
		e.value(descWhole, prometheus.CounterValue, whole, labels...)
		e.value(descNumbers, prometheus.CounterValue, numbers, labels...)
		e.value(descCompared, prometheus.CounterValue, octets, labels...)
	}
	if loop != nil {
		e.value(descDue, prometheus.CounterValue, due, labels...)
		e.value(descSent, prometheus.CounterValue, sent, labels...)
		e.value(descCompleted, prometheus.CounterValue, completed, labels...)
		e.gauge(descAchieved, loop.AchievedPerSecond, labels...)
		e.gauge(descSaturated, saturated, labels...)
	}
	if cpu {
		e.value(descCPU, prometheus.CounterValue, clientCPU, side("client")...)
		e.value(descCPU, prometheus.CounterValue, serverCPU, side("server")...)
	}
	if gc {
		e.value(descCollections, prometheus.CounterValue, clientGC, side("client")...)
		e.value(descCollections, prometheus.CounterValue, serverGC, side("server")...)
	}
	last := results[len(results)-1]
	for _, f := range last.OwnFigures() {
		if last.Mark(f.Name) != "few" {
			e.gauge(figureFamilies[f.Quantity].desc, f.Value*figureFamilies[f.Quantity].by, with(f.Name)...)
		}
	}
	if len(latencies) > 0 {
		e.latencies(latencies, labels)
	}
}

// latencies exports the histogram of all samples and its quantiles.
func (e export) latencies(all []*reports.Latency, labels []string) {
	last := all[len(all)-1]
	if len(all) == 1 {
		e.quantiles(descQuantile, last, labels)
	}
	var merged *hdrhistogram.Histogram
	var sum float64
	lowest, highest := math.Inf(1), 0.
	for _, l := range all {
		if l.HDR == "" {
			continue
		}
		h, err := l.Histogram()
		if err != nil {
			e.send(descDuration, nil, err)
			return
		}
		if merged == nil {
			merged = hdrhistogram.New(reports.LowestNs, reports.HighestNs, reports.Digits)
		}
		if n := merged.Merge(h); n > 0 {
			e.send(descDuration, nil, fmt.Errorf("merge latency histograms: %d samples are outside %d ns", n,
				int64(reports.HighestNs)))
			return
		}
		sum += l.Mean * float64(l.Count)
		lowest, highest = min(lowest, l.Min), max(highest, l.Max)
	}
	if merged == nil {
		if len(all) > 1 { // without histograms nothing can be added up
			e.quantiles(descQuantile, last, labels)
		}
		return
	}
	if len(all) > 1 {
		l := reports.Summarise(merged, int64(lowest), int64(highest))
		e.quantiles(descQuantile, &l, labels)
	}
	m, err := newDuration(merged, sum/1e9, e.d.Started, labels)
	e.send(descDuration, m, err)
}

// quantiles leaves out what rests on too few samples.
func (e export) quantiles(desc *prometheus.Desc, l *reports.Latency, labels []string) {
	emit := func(q string, ns float64) { e.gauge(desc, ns/1e9, append(append([]string(nil), labels...), q)...) }
	for _, p := range l.Percentiles() {
		if !p.TooFew {
			emit(strconv.FormatFloat(p.Percent, 'f', -1, 64), p.Ns)
		}
	}
	if l.Count > 0 {
		emit("100", l.Max)
	}
}

// Bounds of the classic buckets: powers of two from 128 ns to 2^36 ns, 69 s. The
// HDR histogram has an edge at each of them.
const (
	firstBound = 7
	lastBound  = 36
)

// nativeSchema gives buckets that grow by 2^(1/8), 9 %.
const nativeSchema = 3

// duration is a histogram in both forms under one name, as a scrape of a live
// histogram has it; client_golang makes constant ones in one form only.
type duration struct{ classic, native prometheus.Metric }

func newDuration(h *hdrhistogram.Histogram, seconds float64, created time.Time, labels []string) (prometheus.Metric,
	error) {
	count := uint64(h.TotalCount())
	classic := map[float64]uint64{}
	native := map[int]int64{}
	var zeros uint64
	bars := h.Distribution()
	for bound := firstBound; bound <= lastBound; bound++ {
		classic[math.Ldexp(1, bound)/1e9] = 0
	}
	for _, bar := range bars {
		if bar.Count == 0 {
			continue
		}
		for bound := lastBound; bound >= firstBound && bar.To <= 1<<bound; bound-- {
			classic[math.Ldexp(1, bound)/1e9] += uint64(bar.Count)
		}
		if bar.To == 0 {
			zeros += uint64(bar.Count)
			continue
		}
		middle := (float64(bar.From) + float64(bar.To)) / 2 / 1e9
		native[int(math.Ceil(math.Log2(middle)*(1<<nativeSchema)))] += bar.Count
	}
	c, err := prometheus.NewConstHistogram(descDuration, count, seconds, classic, labels...)
	if err != nil {
		return nil, err
	}
	n, err := prometheus.NewConstNativeHistogram(descDuration, count, seconds, native, nil, zeros, nativeSchema, 0,
		created, labels...)
	if err != nil {
		return nil, err
	}
	return duration{c, n}, nil
}

// Desc implements prometheus.Metric.
func (d duration) Desc() *prometheus.Desc { return descDuration }

// Write implements prometheus.Metric.
func (d duration) Write(out *dto.Metric) error {
	var n dto.Metric
	if err := errors.Join(d.classic.Write(out), d.native.Write(&n)); err != nil {
		return err
	}
	h := out.Histogram
	h.Schema, h.ZeroThreshold, h.ZeroCount = n.Histogram.Schema, n.Histogram.ZeroThreshold, n.Histogram.ZeroCount
	h.PositiveSpan, h.PositiveDelta = n.Histogram.PositiveSpan, n.Histogram.PositiveDelta
	return nil
}

// Gather converts the document now and returns what it found: a scrape of it
// later only prints.
func Gather(d *reports.Document) (prometheus.Gatherer, error) {
	r := prometheus.NewPedanticRegistry()
	if err := r.Register(NewCollector(func() *reports.Document { return d })); err != nil {
		return nil, fmt.Errorf("export metrics: %w", err)
	}
	families, err := r.Gather()
	if err != nil {
		return nil, fmt.Errorf("export metrics: %w", err)
	}
	return prometheus.GathererFunc(func() ([]*dto.MetricFamily, error) { return families, nil }), nil
}

// WriteFile writes the document in Prometheus's text format, for the
// textfile collector of node_exporter, which sees the old file or the new one.
// The file is replaced, so that it must be a regular one.
func WriteFile(path string, d *reports.Document) error {
	switch info, err := os.Stat(path); {
	case err == nil && !info.Mode().IsRegular():
		return fmt.Errorf("write metrics %s: not a regular file", path)
	case err != nil && !errors.Is(err, fs.ErrNotExist):
		return fmt.Errorf("write metrics: %w", err)
	}
	g, err := Gather(d)
	if err != nil {
		return err
	}
	if err := prometheus.WriteToTextfile(path, g); err != nil {
		return fmt.Errorf("write metrics %s: %w", path, err)
	}
	return nil
}
