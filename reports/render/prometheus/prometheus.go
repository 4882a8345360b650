// Package prometheus exports results as metrics of Prometheus, for a scrape, a
// Pushgateway or a textfile. Native buckets grow by 9 %, classic ones by a factor of two.
package prometheus

import (
	"errors"
	"fmt"
	"io/fs"
	"math"
	"os"
	"slices"
	"strconv"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"
	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"

	"github.com/rdmaperf/rdmaperf/reports"
	"github.com/rdmaperf/rdmaperf/reports/view"
)

// seriesLabels tell the points of one run apart; none grows with the number of runs.
var seriesLabels = []string{"transport", "workload", "op", "size", "depth", "qps", "polling", "rate", "dims", "role"}

// percentileLabel is not quantile, which promtool refuses on gauges.
const percentileLabel = "percentile"

func seriesValues(r *reports.Result) []string {
	return []string{view.Printable(reports.TransportOf(r)), view.Printable(r.Workload), view.Printable(r.Op),
		view.Integer(r.SizeBytes), strconv.Itoa(r.Depth), strconv.Itoa(r.QPs),
		view.Printable(r.Polling), reports.Offered(r), view.Printable(reports.DimsText(r.PointDims(), ",")),
		view.Printable(r.MeasuredBy)}
}

func seriesDesc(name, help string, more ...string) *prometheus.Desc {
	return prometheus.NewDesc("rdmaperf_"+name, help, slices.Concat(seriesLabels, more), nil)
}

var (
	descDuration = seriesDesc("op_duration_seconds", "Latency of operations.")
	descQuantile = seriesDesc("op_duration_percentile_seconds",
		"Latency that the percentage of operations took at most; 100 is the longest. Percentiles with too few "+
			"samples are left out.", percentileLabel)
	descCPU         = seriesDesc("cpu_seconds_total", "Processor time inside measured windows; role is the side.")
	descCollections = seriesDesc("gc_collections_total",
		"Garbage collections inside measured windows; role is the side.")
	descInfo = seriesDesc("run_info", "Always 1: what was measured, with what, and on which machine.",
		"stack", "label", "round_trip", "threads", "verified", "version", "go", "os", "arch", "kernel", "cpu",
		"hostname")
	descResults = prometheus.NewDesc("rdmaperf_results", "Points finished so far.", nil, nil)
	descFailed  = prometheus.NewDesc("rdmaperf_run_failed", "1 when the run ended early.", nil, nil)
	descStarted = prometheus.NewDesc("rdmaperf_run_start_time_seconds", "When the run began, as seconds since 1970.",
		nil, nil)
)

// What a family has of the results of one point.
const (
	summed = iota
	greatest
	latest
)

// families have one value for each point; side is the role of one that is not of the side that measured.
var families = []struct {
	desc   *prometheus.Desc
	over   int
	of     func(r *reports.Result) (v float64, ok bool)
	side   string
	status []string // the label
}{
	{desc: seriesDesc("ops_total", "Operations completed inside measured windows."), of: figure("operations")},
	{desc: seriesDesc("bytes_total", "Payload bytes of these operations, of workloads that count them."),
		of: (*reports.Result).PayloadBytes},
	{desc: seriesDesc("op_errors_total", "Operations that failed.", "status"), of: figure("errors"),
		status: []string{"failed"}},
	{desc: seriesDesc("throughput_bytes_per_second", "Payload rate over the last measured window."), over: latest,
		of: throughput(func(t *reports.Throughput) float64 { return t.BytesPerSecond })},
	{desc: seriesDesc("throughput_ops_per_second", "Operation rate over the last measured window."), over: latest,
		of: throughput(func(t *reports.Throughput) float64 { return t.OperationsPerSecond })},
	{desc: descCPU, of: seconds(func(c *reports.CPU) float64 { return c.ClientSeconds }), side: "client"},
	{desc: descCPU, of: seconds(func(c *reports.CPU) float64 { return c.ServerSeconds }), side: "server"},
	{desc: descCollections, of: figure("gc.client"), side: "client"},
	{desc: descCollections, of: figure("gc.server"), side: "server"},
	{desc: seriesDesc("disturbed", "1 if a measurement of the point was noisy, 2 if figures contradict each other."),
		over: greatest, of: disturbed},
	{desc: seriesDesc("compared_messages_total", "Messages of measured windows that were compared byte by byte."),
		of: figure("compared.messages")},
	{desc: seriesDesc("compared_numbers_total",
		"Messages of measured windows of which at least the number was compared."), of: figure("compared.numbers")},
	{desc: seriesDesc("compared_bytes_total", "Bytes of measured windows that were compared."),
		of: figure("compared.bytes")},
	{desc: seriesDesc("due_operations_total",
		"Operations of open loops whose intended start was inside measured windows."), of: figure("load.due")},
	{desc: seriesDesc("sent_operations_total", "Of the operations that were due, those that were sent."),
		of: figure("load.sent")},
	{desc: seriesDesc("completed_operations_total",
		"Of the operations that were due, those that completed; the others are in the latencies with the time that "+
			"they had waited."), of: figure("load.completed")},
	{desc: seriesDesc("achieved_operations_per_second", "Completed operations of the last open loop over its window."),
		over: latest, of: figure("load.achieved")},
	{desc: seriesDesc("saturated",
		"1 when an open loop did not keep up with its arrivals: latencies grow with the window then."),
		over: greatest, of: figure("load.saturated")},
}

func figure(name string) func(r *reports.Result) (float64, bool) {
	return func(r *reports.Result) (float64, bool) { return r.Figure(name) }
}

// throughput is not the figure, whose name workloads without one have for their own.
func throughput(of func(t *reports.Throughput) float64) func(r *reports.Result) (float64, bool) {
	return func(r *reports.Result) (float64, bool) {
		if r.Throughput == nil {
			return 0, false
		}
		return of(r.Throughput), true
	}
}

// seconds are not the figures, which are nanoseconds.
func seconds(of func(c *reports.CPU) float64) func(r *reports.Result) (float64, bool) {
	return func(r *reports.Result) (float64, bool) {
		if r.CPU == nil {
			return 0, false
		}
		return of(r.CPU), true
	}
}

func disturbed(r *reports.Result) (float64, bool) {
	if r.Disturbance == nil {
		return 0, false // nobody looked
	}
	return map[string]float64{reports.VerdictDisturbed: 1, reports.VerdictImpossible: 2}[r.Disturbance.Verdict], true
}

// figureFamilies are the gauges of what a workload measures beside the common figures, one for each unit.
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

// NewCollector exports a document, which must not change while a scrape lasts. Results for the same point are added up;
// gauges show the last of them.
func NewCollector(d *reports.Document) prometheus.Collector { return collector{d} }

type collector struct{ d *reports.Document }

// Describe implements prometheus.Collector.
func (c collector) Describe(ch chan<- *prometheus.Desc) {
	ch <- descDuration
	ch <- descQuantile
	for i, f := range families {
		if i == 0 || f.desc != families[i-1].desc {
			ch <- f.desc
		}
	}
	for _, f := range figureFamilies {
		ch <- f.desc
	}
	for _, d := range []*prometheus.Desc{descInfo, descResults, descFailed, descStarted} {
		ch <- d
	}
}

// Collect implements prometheus.Collector.
func (c collector) Collect(ch chan<- prometheus.Metric) {
	d, e := c.d, export{c.d, ch}
	e.gauge(descResults, float64(len(d.Results)))
	e.gauge(descFailed, map[bool]float64{true: 1}[d.Error != nil])
	if !d.Started.IsZero() {
		e.gauge(descStarted, float64(d.Started.UnixMilli())/1000)
	}
	for _, g := range reports.GroupBy(reports.Pointers(d.Results), func(r *reports.Result) (string, bool) {
		return fmt.Sprintf("%q", seriesValues(r)), true
	}) {
		e.series(g.Samples)
	}
}

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

func (e export) series(results []*reports.Result) {
	labels := seriesValues(results[0])
	with := func(more ...string) []string { return slices.Concat(labels, more) }
	env := &e.d.Environment
	infos := map[string]bool{}
	for _, r := range results {
		info := with(view.Printable(r.Stack), view.Printable(r.Label), view.Printable(r.RoundTrip),
			strconv.Itoa(max(r.Threads, 1)), strconv.FormatBool(r.Verified),
			view.Printable(env.Version), view.Printable(env.Go), view.Printable(env.OS), view.Printable(env.Arch),
			view.Printable(env.Kernel), view.Printable(env.CPU), view.Printable(env.Hostname))
		if key := fmt.Sprintf("%q", info); !infos[key] {
			infos[key] = true
			e.gauge(descInfo, 1, info...)
		}
	}
	for _, f := range families {
		total, known := 0., false
		for _, r := range results {
			v, ok := f.of(r)
			switch {
			case !ok:
				continue
			case f.over == summed:
				total += v
			case f.over == latest || !known || v > total:
				total = v
			}
			known = true
		}
		of, kind := with(f.status...), prometheus.CounterValue
		if f.side != "" {
			of[len(labels)-1] = f.side
		}
		if f.over != summed {
			kind = prometheus.GaugeValue
		}
		if known {
			e.value(f.desc, kind, total, of...)
		}
	}
	last := results[len(results)-1]
	for _, f := range last.OwnFigures() {
		if last.Mark(f.Name) != "few" {
			e.gauge(figureFamilies[f.Quantity].desc, f.Value*figureFamilies[f.Quantity].by, with(f.Name)...)
		}
	}
	latencies := view.Only(view.Each(results, func(r *reports.Result) *reports.Latency { return r.Latency }),
		func(l *reports.Latency) bool { return l != nil && l.Count > 0 })
	if len(latencies) > 0 {
		e.latencies(latencies, labels)
	}
}

func (e export) latencies(all []*reports.Latency, labels []string) {
	last := all[len(all)-1]
	if len(all) == 1 {
		e.quantiles(last, labels)
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
			e.quantiles(last, labels)
		}
		return
	}
	if len(all) > 1 {
		l := reports.Summarise(merged, int64(lowest), int64(highest))
		e.quantiles(&l, labels)
	}
	m, err := newDuration(merged, sum/1e9, e.d.Started, labels)
	e.send(descDuration, m, err)
}

func (e export) quantiles(l *reports.Latency, labels []string) {
	emit := func(q string, ns float64) { e.gauge(descQuantile, ns/1e9, slices.Concat(labels, []string{q})...) }
	for _, p := range l.Percentiles() {
		if !p.TooFew {
			emit(strconv.FormatFloat(p.Percent, 'f', -1, 64), p.Ns)
		}
	}
	if l.Count > 0 {
		emit("100", l.Max)
	}
}

// Bounds of the classic buckets: 2^7 to 2^36 ns, 69 s. The HDR histogram has an edge at each of them.
const (
	firstBound = 7
	lastBound  = 36
)

const nativeSchema = 3

// duration is a histogram in both forms under one name; client_golang makes constant ones in one form only.
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

// Gather converts the document now; a scrape of it later only prints.
func Gather(d *reports.Document) (prometheus.Gatherer, error) {
	r := prometheus.NewPedanticRegistry()
	if err := r.Register(NewCollector(d)); err != nil {
		return nil, fmt.Errorf("export metrics: %w", err)
	}
	families, err := r.Gather()
	if err != nil {
		return nil, fmt.Errorf("export metrics: %w", err)
	}
	return prometheus.GathererFunc(func() ([]*dto.MetricFamily, error) { return families, nil }), nil
}

// WriteFile writes Prometheus's text format, for the textfile collector of node_exporter. It replaces the file, which
// must be a regular one.
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
