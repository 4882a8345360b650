package reports_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil/promlint"
	dto "github.com/prometheus/client_model/go"

	"github.com/rdmaperf/rdmaperf/reports"
	metrics "github.com/rdmaperf/rdmaperf/reports/render/prometheus"
)

func gather(t *testing.T, d *reports.Document) map[string]*dto.MetricFamily {
	t.Helper()
	g := must(metrics.Gather(d))(t)
	families := must(g.Gather())(t)
	byName := map[string]*dto.MetricFamily{}
	for _, f := range families {
		byName[f.GetName()] = f
	}
	return byName
}

// metricsDocument has every kind of figure.
func metricsDocument() *reports.Document {
	d := histogramDocument()
	for i := range d.Results {
		d.Results[i].CPU = &reports.CPU{ClientSeconds: 1, ServerSeconds: 0.5}
		d.Results[i].GC = &reports.GC{ServerCollections: 1}
	}
	d.Results = append(d.Results, goldenDocument().Results[5:8]...)
	all := reports.Result{Stack: "tcp", Workload: "other", Op: "write", Depth: 1, QPs: 1, Operations: 1,
		Description: reports.Description{Dims: []reports.Dim{{Name: "mix", Value: "a"}}}}
	for q := reports.QuantityTime; q <= reports.QuantityMemory; q++ {
		all.Figures = append(all.Figures, reports.Figure{Name: "of." + q.String(), Quantity: q, Value: 1})
	}
	return of(&reports.Document{Started: d.Started, Environment: d.Environment, Results: append(d.Results, all)})
}

func find(t *testing.T, f *dto.MetricFamily, labels map[string]string) *dto.Metric {
	t.Helper()
	for _, m := range f.GetMetric() {
		matched := 0
		for _, l := range m.GetLabel() {
			if v, ok := labels[l.GetName()]; ok && v == l.GetValue() {
				matched++
			}
		}
		if matched == len(labels) {
			return m
		}
	}
	t.Fatalf("%s: no metric with %v", f.GetName(), labels)
	return nil
}

// wantMetric fails unless a counter or gauge has the value; below 1, which times are, within a thousandth.
func wantMetric(t *testing.T, all map[string]*dto.MetricFamily, name string, want float64, labels map[string]string) {
	t.Helper()
	m := find(t, all["rdmaperf_"+name], labels)
	if v := m.GetCounter().GetValue() + m.GetGauge().GetValue(); v != want && (want >= 1 || math.Abs(v-want) > want/1000) {
		t.Errorf("%s is %v, want %v", name, v, want)
	}
}

func TestMetricsTextfileGolden(t *testing.T) {
	path := filepath.Join(t.TempDir(), "rdmaperf.prom")
	noError(t, os.WriteFile(path, []byte("old"), 0o644))
	noError(t, metrics.WriteFile(path, metricsDocument()))
	b := must(os.ReadFile(path))(t)
	golden(t, "metrics.prom", b)
	if left, _ := filepath.Glob(filepath.Join(filepath.Dir(path), "*")); len(left) != 1 {
		t.Errorf("files left: %q", left)
	}
	if err := metrics.WriteFile(filepath.Dir(path), metricsDocument()); err == nil {
		t.Error("a directory was replaced")
	}
	if err := metrics.WriteFile(os.DevNull, metricsDocument()); err == nil {
		t.Error("a device was replaced")
	}
}

// Both forms of the histogram hold every sample, each in the right bucket.
func TestMetricsHistogram(t *testing.T) {
	d := histogramDocument()
	d.Results = d.Results[:1]
	d.Results[0].Latency = recorded(0, 128, 129, 1000, 1024, 5_000_000)
	h := find(t, gather(t, d)["rdmaperf_op_duration_seconds"], map[string]string{"transport": "iwarp(crc, fast)",
		"op": "send", "size": "4096", "role": "client"}).GetHistogram()
	if h.GetSampleCount() != 6 || math.Abs(h.GetSampleSum()-5_002_281e-9) > 1e-12 {
		t.Errorf("count %d, sum %v, want 6 and 0.005002281", h.GetSampleCount(), h.GetSampleSum())
	}
	want := map[float64]uint64{128e-9: 2, 256e-9: 3, 512e-9: 3, 1024e-9: 5, 4_194_304e-9: 5, 8_388_608e-9: 6}
	for _, b := range h.GetBucket() {
		for bound, n := range want {
			if math.Abs(b.GetUpperBound()-bound) < bound/1e6 {
				delete(want, bound)
				if b.GetCumulativeCount() != n {
					t.Errorf("le %v: %d, want %d", bound, b.GetCumulativeCount(), n)
				}
			}
		}
	}
	if len(want) > 0 {
		t.Errorf("no buckets %v", want)
	}
	if h.GetSchema() != 3 || h.GetZeroCount() != 1 {
		t.Errorf("native schema %d, zeros %d, want 3 and 1", h.GetSchema(), h.GetZeroCount())
	}
	// Walk the spans: bucket i ends at 2^(i/8) seconds.
	var index int32
	var count, total int64
	got, n := map[int32]int64{}, 0
	for _, s := range h.GetPositiveSpan() {
		index += s.GetOffset()
		for range s.GetLength() {
			count += h.GetPositiveDelta()[n]
			total += count
			got[index] += count
			index++
			n++
		}
	}
	for _, ns := range []float64{128.5, 1000.5, 5_000_000} {
		i := int32(math.Ceil(math.Log2(ns/1e9) * 8))
		if got[i] == 0 {
			t.Errorf("no native bucket %d for %v ns in %v", i, ns, got)
		}
	}
	if total != 5 {
		t.Errorf("%d samples in native buckets, want 5", total)
	}
}

// Repeats become one series: counters add up, quantiles cover all samples.
func TestMetricsAddUpRepeats(t *testing.T) {
	d := histogramDocument()
	d.Results = d.Results[1:3]
	d.Results[0].Latency, d.Results[1].Latency = stalled(), recorded(7_000_000)
	d.Results[0].Operations, d.Results[1].Operations, d.Results[1].Errors = 1000, 1, 2
	all := gather(t, d)
	labels := map[string]string{"transport": "tcp", "op": "send"}
	wantMetric(t, all, "ops_total", 1001, labels)
	wantMetric(t, all, "op_errors_total", 2, labels)
	if n := find(t, all["rdmaperf_op_duration_seconds"], labels).GetHistogram().GetSampleCount(); n != 1001 {
		t.Errorf("%d samples, want 1001", n)
	}
	for q, want := range map[string]float64{"50": 2600e-9, "100": 7e-3} {
		wantMetric(t, all, "op_duration_percentile_seconds", want, map[string]string{"transport": "tcp", "percentile": q})
	}
	for _, m := range all["rdmaperf_op_duration_percentile_seconds"].GetMetric() {
		for _, l := range m.GetLabel() {
			if l.GetName() == "percentile" && l.GetValue() == "99.99" {
				t.Error("p99.99 of 1001 samples is exported")
			}
		}
	}
}

// promtool check metrics has nothing to say: this is its linter. ci/foreign runs the tool.
func TestPromtoolAcceptsTheMetrics(t *testing.T) {
	for name, d := range map[string]*reports.Document{"histograms": histogramDocument(),
		"without histograms": goldenDocument()} {
		var families []*dto.MetricFamily
		for _, f := range gather(t, d) {
			families = append(families, f)
		}
		problems, err := promlint.NewWithMetricFamilies(families).Lint()
		if err != nil {
			t.Error(err)
		}
		for _, p := range problems {
			t.Errorf("%s: %s: %s", name, p.Metric, p.Text)
		}
	}
}

func TestMetricsOfOddDocuments(t *testing.T) {
	d := goldenDocument() // no histograms, an early end
	all := gather(t, d)
	if v := all["rdmaperf_run_failed"].GetMetric()[0].GetGauge().GetValue(); v != 1 {
		t.Errorf("run_failed %v, want 1", v)
	}
	if all["rdmaperf_op_duration_seconds"] != nil || all["rdmaperf_op_duration_percentile_seconds"] == nil {
		t.Error("without histograms the quantiles stay and the histogram goes")
	}
	for i := range d.Results {
		d.Results[i].Transport, d.Results[i].Polling = "x\xff\x1b\n", "\""
	}
	gather(t, d) // labels of any bytes
	gather(t, &reports.Document{})
	d.Results[0].Latency.HDR = "HISTbroken"
	if _, err := metrics.Gather(d); err == nil || !strings.Contains(err.Error(), "decode latency histogram") {
		t.Errorf("a broken histogram: %v", err)
	}
}

// The dashboard asks only for what is exported.
func TestDashboard(t *testing.T) {
	b := must(os.ReadFile("dashboard.json"))(t)
	var dash struct {
		Title      string
		Templating struct {
			List []struct{ Name, Definition string }
		}
		Panels []struct {
			ID      int
			Title   string
			GridPos struct{ X, Y, W, H int }
			Targets []struct{ Expr, LegendFormat string }
		}
	}
	noError(t, json.Unmarshal(b, &dash))
	if dash.Title == "" || len(dash.Panels) < 8 {
		t.Fatalf("%q with %d panels", dash.Title, len(dash.Panels))
	}
	exported, labels := map[string]bool{}, map[string]bool{"le": true}
	for name, f := range gather(t, metricsDocument()) {
		exported[name] = true
		if f.GetType() == dto.MetricType_HISTOGRAM {
			exported[name+"_bucket"], exported[name+"_sum"], exported[name+"_count"] = true, true, true
		}
		for _, m := range f.GetMetric() {
			for _, l := range m.GetLabel() {
				labels[l.GetName()] = true
			}
		}
	}
	name := regexp.MustCompile(`rdmaperf_[a-z_]+`)
	label := regexp.MustCompile(`([a-z_]+)=~?"`)
	legend := regexp.MustCompile(`\{\{([a-z_]+)\}\}`)
	asked := map[string]bool{}
	check := func(where, expr string) {
		for _, n := range name.FindAllString(expr, -1) {
			asked[n] = true
			if !exported[n] {
				t.Errorf("%s asks for %s, which is not exported", where, n)
			}
		}
		for _, m := range label.FindAllStringSubmatch(expr, -1) {
			if !labels[m[1]] {
				t.Errorf("%s selects by %s, which is no label", where, m[1])
			}
		}
		if !name.MatchString(expr) {
			t.Errorf("%s asks for nothing: %q", where, expr)
		}
	}
	ids := map[int]bool{}
	for _, p := range dash.Panels {
		if ids[p.ID] || p.GridPos.W == 0 || p.GridPos.H == 0 || p.GridPos.X+p.GridPos.W > 24 || len(p.Targets) == 0 {
			t.Errorf("panel %q: id %d, place %+v, %d targets", p.Title, p.ID, p.GridPos, len(p.Targets))
		}
		ids[p.ID] = true
		for _, target := range p.Targets {
			check(p.Title, target.Expr)
			for _, m := range legend.FindAllStringSubmatch(target.LegendFormat, -1) {
				if !labels[m[1]] {
					t.Errorf("%s: legend with %s, which is no label", p.Title, m[1])
				}
			}
		}
	}
	for _, v := range dash.Templating.List {
		if v.Definition != "" {
			check("variable "+v.Name, v.Definition)
		}
	}
	for n := range gather(t, metricsDocument()) {
		if !slices.ContainsFunc(slices.Collect(maps.Keys(asked)), func(a string) bool { return strings.HasPrefix(a, n) }) {
			t.Errorf("no panel shows %s", n)
		}
	}
}

// The names and labels are an interface: they change by intent only.
func TestMetricNames(t *testing.T) {
	var b bytes.Buffer
	ch := make(chan *prometheus.Desc)
	go func() {
		defer close(ch)
		metrics.NewCollector(nil).Describe(ch)
	}()
	for d := range ch {
		fmt.Fprintln(&b, d)
	}
	golden(t, "metrics-names.txt", b.Bytes())
}
