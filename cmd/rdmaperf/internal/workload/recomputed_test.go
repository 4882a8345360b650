package workload_test

import (
	"bytes"
	"encoding/csv"
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/catalogue"
	"github.com/rdmaperf/rdmaperf/reports"
	"github.com/rdmaperf/rdmaperf/reports/render/bench"
	csvformat "github.com/rdmaperf/rdmaperf/reports/render/csv"
	metrics "github.com/rdmaperf/rdmaperf/reports/render/prometheus"
)

// follows requires that the figures of every result follow from its samples and counters, that each format has these
// figures, and that every point has labels of its own there.
func follows(t *testing.T, d *reports.Document) {
	t.Helper()
	points := map[string]bool{}
	for i := range d.Results {
		r := &d.Results[i]
		points[fmt.Sprint(r.Stack, r.Workload, r.Op, r.SizeBytes, r.Depth, r.QPs, r.Rate, r.PointDims())] = true
		if w := catalogue.Results().Of(r.Workload); r.Latency != nil && !w.Timed || r.Throughput != nil && !w.Rated {
			t.Errorf("%s does not declare its latency or throughput", r.Workload)
		}
		for _, f := range r.AllFigures() {
			w := catalogue.Results().Of(r.Workload)
			declared := slices.ContainsFunc(w.Defs(), func(d reports.FigureDef) bool { return d.Name == f.Name })
			if declared && !w.Measures(f.Name, false) { // a threshold of it would be refused
				t.Errorf("%s does not declare %s", r.Workload, f.Name)
			}
		}
		for _, l := range r.Distributions() {
			ofSamples(t, r.Workload+" "+l.Name, l.Latency)
		}
		ofCounters(t, r)
	}
	inPrometheus(t, d, len(points))
	inBench(t, d, len(points))
	inCSV(t, d, len(points))
}

// rounded is equal but for rounding.
func rounded(a, b float64) bool { return math.Abs(a-b) <= 1e-6*max(math.Abs(a), math.Abs(b), 1) }

// ofSamples counts percentiles and mean again in the bars of a histogram.
func ofSamples(t *testing.T, name string, l *reports.Latency) {
	t.Helper()
	if l == nil || l.Count == 0 || l.HDR == "" {
		return
	}
	h, err := l.Histogram()
	if err != nil {
		t.Fatal(err)
	}
	var low, high float64
	var n int64
	percentiles := l.Percentiles()
	for _, bar := range h.Distribution() {
		n += bar.Count
		low, high = low+float64(bar.From*bar.Count), high+float64(bar.To*bar.Count)
		for len(percentiles) > 0 && n >= int64(math.Ceil(percentiles[0].Percent/100*float64(l.Count)-1e-9)) {
			if p := percentiles[0]; p.Ns < float64(bar.From) || p.Ns > float64(bar.To) {
				t.Errorf("%s: %s is %v, the sample of its rank is in %d to %d", name, p.Name, p.Ns, bar.From, bar.To)
			}
			percentiles = percentiles[1:]
		}
	}
	if sum := l.Mean * float64(n); n != l.Count || sum < low || sum > high {
		t.Errorf("%s: %d samples with a mean of %v, the histogram has %d", name, l.Count, l.Mean, n)
	}
}

// ofCounters divides operations and bytes by the window again.
func ofCounters(t *testing.T, r *reports.Result) {
	t.Helper()
	name := fmt.Sprint(r.Workload, " ", r.Op, " ", r.SizeBytes)
	if r.Throughput == nil || r.Operations == 0 {
		return
	}
	own := map[string]float64{}
	for _, f := range r.Figures {
		own[f.Name] = f.Value
	}
	if _, both := own["from_client.bw"]; both { // each direction has a window of its own
		if bw := own["from_client.bw"] + own["from_server.bw"]; !rounded(bw, r.Throughput.BytesPerSecond) {
			t.Errorf("%s: both directions %v, the sum is %v", name, bw, r.Throughput.BytesPerSecond)
		}
	} else if rate := float64(r.Operations) * 1e9 / float64(r.DurationNs); !rounded(rate, r.Throughput.OperationsPerSecond) {
		t.Errorf("%s: %v operations a second, want %v", name, r.Throughput.OperationsPerSecond, rate)
	}
	want := float64(r.Operations * r.SizeBytes)
	dim := func(name string) (n float64) {
		d, _ := r.Dim(name)
		n, _ = strconv.ParseFloat(d.Value, 64)
		return n
	}
	switch r.Workload {
	case "rpc", "tensor":
		want += float64(r.Operations) * dim("response_bytes")
	case "connect":
		want = 0
	case "mixed", "kv":
		want = 0
		if v := r.Verification; r.Workload == "kv" { // of reads and scans alone
			want = float64(v.Bytes)
		}
		b, _ := json.Marshal(r.Detail)
		var d struct {
			Reads, Writes struct {
				Blocks []struct{ Size_bytes, Operations int64 }
			}
		}
		if err := json.Unmarshal(b, &d); err != nil {
			t.Fatal(err)
		}
		for _, b := range append(d.Reads.Blocks, d.Writes.Blocks...) {
			want += float64(b.Size_bytes * b.Operations)
		}
	}
	if got, ok := r.PayloadBytes(); !ok || got != want {
		t.Errorf("%s: %v bytes of payload, want %v", name, got, want)
	}
}

func inPrometheus(t *testing.T, d *reports.Document, points int) {
	t.Helper()
	g, err := metrics.Gather(d)
	if err != nil {
		t.Fatal(err)
	}
	families, err := g.Gather()
	if err != nil {
		t.Fatal(err)
	}
	var operations, bytes float64
	for i := range d.Results {
		r := &d.Results[i]
		operations += float64(r.Operations)
		if b, ok := r.PayloadBytes(); ok {
			bytes += b
		}
	}
	for _, f := range families {
		sum := 0.
		for _, m := range f.Metric {
			sum += m.GetCounter().GetValue()
		}
		switch want := map[string]float64{"rdmaperf_ops_total": operations, "rdmaperf_bytes_total": bytes}; f.GetName() {
		case "rdmaperf_ops_total":
			if len(f.Metric) != points {
				t.Errorf("%d points have labels of their own in Prometheus, of %d", len(f.Metric), points)
			}
			fallthrough
		case "rdmaperf_bytes_total":
			if !rounded(sum, want[f.GetName()]) {
				t.Errorf("%s is %v, want %v", f.GetName(), sum, want[f.GetName()])
			}
		}
	}
}

func inBench(t *testing.T, d *reports.Document, points int) {
	t.Helper()
	var out bytes.Buffer
	if err := bench.Write(&out, d); err != nil {
		t.Fatal(err)
	}
	names, n := map[string]bool{}, 0
	for line := range strings.Lines(out.String()) {
		fields := strings.Fields(line)
		if len(fields) == 0 || !strings.HasPrefix(fields[0], "Benchmark") {
			continue
		}
		for d.Results[n].Operations == 0 {
			n++
		}
		r := &d.Results[n]
		n++
		names[fields[0]] = true
		want := float64(r.DurationNs) / float64(r.Operations)
		if r.Latency != nil {
			want = r.Latency.Mean
		}
		if ns, err := strconv.ParseFloat(fields[2], 64); err != nil || fields[3] != "ns/op" || math.Abs(ns-want) > 1e-3 {
			t.Errorf("%s: %s %s, want %v", fields[0], fields[2], fields[3], want)
		}
	}
	if len(names) != points {
		t.Errorf("%d points have names of their own in the benchmark format, of %d", len(names), points)
	}
}

func inCSV(t *testing.T, d *reports.Document, points int) {
	t.Helper()
	var out bytes.Buffer
	if err := csvformat.Write(&out, d); err != nil {
		t.Fatal(err)
	}
	rows, err := csv.NewReader(&out).ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	column := func(name string) int { return slices.Index(rows[0], name) }
	names, n := map[string]bool{}, 1
	for i := range d.Results {
		for _, f := range d.Results[i].AllFigures() {
			if d.Results[i].Mark(f.Name) == "few" {
				continue // no row
			}
			row := rows[n]
			n++
			if v, err := strconv.ParseFloat(row[column("value")], 64); err != nil || row[column("figure")] != f.Name ||
				math.Abs(v-f.Value) > 1e-3 {
				t.Errorf("row %d has %s %v, want %s %v", n, row[column("figure")], v, f.Name, f.Value)
			}
			row[column("repeat")] = ""
			names[strings.Join(row[:column("verified")], ",")] = true
		}
	}
	if n != len(rows) || len(names) != points {
		t.Errorf("%d points have rows of their own, of %d; %d rows, want %d", len(names), points, len(rows), n)
	}
}

// Operations of different sizes count their own bytes.
func TestBytesOfMixedSizesAreCounted(t *testing.T) {
	for _, f := range []frozen{
		{name: "mixed-sizes", args: "--rwmix 70 --bssplit 512/50:16K/50 --span 64K"},
		{name: "kv-scan", args: "--ycsb e --records 20 --fields 2 --field-bytes 16 --max-scan 3"},
	} {
		follows(t, f.document(t, f.run(t)))
	}
}
