package reports_test

import (
	"strings"
	"testing"

	"bytes"

	"github.com/rdmaperf/rdmaperf/reports"
)

// workloads are those that the tests read: one with a detail under the names of the schema, and others without any.
var workloads = reports.Workloads{holWorkload,
	{Name: "latency", Title: "Latency", Shown: []string{"p50", "p99", "mean"}}, bothWays}

// probes is a detail with dimensions, distributions and figures.
type probes struct {
	Arm                      string            `json:"arm,omitempty"`
	BulkSizeBytes            int64             `json:"bulk_size_bytes"`
	ProbeSizeBytes           int64             `json:"probe_size_bytes"`
	ProbeIntervalNs          int64             `json:"probe_interval_ns,omitempty"`
	ProbeAlone               reports.Latency   `json:"probe_alone"`
	ProbeLoaded              reports.Latency   `json:"probe_loaded"`
	BulkAloneBytesPerSecond  float64           `json:"bulk_alone_bytes_per_second"`
	BulkLoadedBytesPerSecond float64           `json:"bulk_loaded_bytes_per_second"`
	LoadedLoop               *reports.OpenLoop `json:"loaded_loop,omitempty"`
}

func (*probes) Member(string) string { return "hol" }

// withProbes gives a result of any workload that detail.
func withProbes(r *reports.Result, h *probes) {
	r.Detail = h
	holWorkload.Apply(r)
}

func probesOf(r *reports.Result) *probes { return reports.DetailOf[probes](r) }

var holWorkload = &reports.Workload{
	Name: "hol", Title: "Head-of-line",
	Dims: []reports.DimDef{{Name: "arm"}, {Name: "bulk_size_bytes", Unit: "B"},
		{Name: "probe_size_bytes", Unit: "B"}, {Name: "probe_interval_ns", Unit: "ns"}},
	Latencies: []reports.DimDef{{Name: "alone"}, {Name: "loaded"}},
	Figures: []reports.FigureDef{
		{Name: "alone.bw", Quantity: reports.QuantityBytes, Better: reports.More},
		{Name: "loaded.bw", Quantity: reports.QuantityBytes, Better: reports.More},
		{Name: "loaded.due", Quantity: reports.QuantityCount, Better: reports.Neither},
		{Name: "loaded.sent", Quantity: reports.QuantityCount, Better: reports.Neither},
		{Name: "loaded.completed", Quantity: reports.QuantityCount, Better: reports.Neither},
		{Name: "loaded.achieved", Quantity: reports.QuantityRate, Better: reports.More},
		{Name: "loaded.saturated", Quantity: reports.QuantityCount},
	},
	Shown: []string{"loaded.p50", "loaded.mean", "loaded.p99", "alone.p50", "alone.mean", "alone.p99", "loaded.bw",
		"alone.bw"},
	Detail: func() reports.Detail { return new(probes) },
	Describe: func(w *reports.Workload, r *reports.Result) {
		h := probesOf(r)
		r.Dims = reports.DimsOf(w.Dims, h.Arm, reports.NotZero(h.BulkSizeBytes), reports.NotZero(h.ProbeSizeBytes),
			reports.NotZero(h.ProbeIntervalNs))
		r.Latencies = reports.LatenciesOf(w.Latencies, &h.ProbeAlone, &h.ProbeLoaded)
		r.Figures = reports.FiguresOf(w.Figures,
			append([]float64{h.BulkAloneBytesPerSecond, h.BulkLoadedBytesPerSecond}, h.LoadedLoop.Figures()...)...)
	},
}

type ways struct {
	FromClient way `json:"from_client"`
	FromServer way `json:"from_server"`
}

type way struct {
	Operations          int64   `json:"operations"`
	DurationNs          int64   `json:"duration_ns"`
	BytesPerSecond      float64 `json:"bytes_per_second"`
	OperationsPerSecond float64 `json:"operations_per_second"`
}

func (*ways) Member(string) string { return "bidirectional" }

var bothWays = &reports.Workload{
	Name: "throughput", Title: "Throughput",
	Figures: []reports.FigureDef{{Name: "from_client.bw", Quantity: reports.QuantityBytes, Better: reports.More},
		{Name: "from_server.bw", Quantity: reports.QuantityBytes, Better: reports.More}},
	Shown:  []string{"bw", "rate", "from_client.bw", "from_server.bw"},
	Detail: func() reports.Detail { return new(ways) },
	Describe: func(w *reports.Workload, r *reports.Result) {
		b := reports.DetailOf[ways](r)
		r.Figures = reports.FiguresOf(w.Figures, b.FromClient.BytesPerSecond, b.FromServer.BytesPerSecond)
	},
}

// of describes every result that is not described yet.
func of(d *reports.Document) *reports.Document {
	for i := range d.Results {
		if r := &d.Results[i]; r.Figures == nil {
			workloads.Of(r.Workload).Apply(r)
		}
	}
	return d
}

// Members of workloads that a reader does not know survive it.
func TestUnknownMembersSurvive(t *testing.T) {
	const foreign = `{"schema":"rdmaperf/v1","started":"2026-03-04T05:06:07Z","command":[],"environment":{},"results":[
		{"stack":"a","label":"soft","workload":"WORKLOAD","op":"","size_bytes":1,"depth":1,"qps":1,"duration_ns":1,"operations":1,"errors":0,"verified":true,
		"ring":{"z":1,"a":[1,2]},"hol":{"arm":"two-qp"},"tree":7}]}`
	for name, known := range map[string]bool{"other": false, "hol": true} {
		d, err := reports.ReadDocument(strings.NewReader(strings.Replace(foreign, "WORKLOAD", name, 1)), workloads)
		if err != nil {
			t.Fatal(name, err)
		}
		if h := probesOf(&d.Results[0]); (h != nil) != known || known && h.Arm != "two-qp" {
			t.Errorf("%s: detail %+v", name, h)
		}
		out := string(bytes.Join(bytes.Fields(encode(t, d)), nil))
		for _, want := range []string{`"ring":{"z":1,"a":[1,2]}`, `"arm":"two-qp"`, `"tree":7`} {
			if strings.Count(out, want) != 1 {
				t.Errorf("%s: %s is not there once:\n%s", name, want, out)
			}
		}
	}
	if _, err := reports.ReadDocument(
		strings.NewReader(`{"schema":"rdmaperf/v1","results":[{"workload":"other"},{"workload":"hol","hol":7}]}`), workloads); err == nil || !strings.Contains(err.Error(), "result 1") {
		t.Errorf("a detail of the wrong type: %v, want an error that names the result", err)
	}
}
