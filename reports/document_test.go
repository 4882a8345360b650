package reports_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/rdmaperf/rdmaperf/reports"
	"github.com/rdmaperf/rdmaperf/reports/reporttest"
)

func encode(t *testing.T, d *reports.Document) []byte {
	t.Helper()
	return render(t, d.WriteJSON)
}

// measuredDocument holds every optional part, filled the way a run fills it.
func measuredDocument() *reports.Document {
	r := reports.NewRecorder()
	for ns := int64(1); ns < 40_000; ns += 7 {
		r.Record(ns)
	}
	r.Record(5_000_000)
	r.Record(-1)
	raw, corrected := r.Snapshot(), r.Corrected(2300)
	throughput := reports.NewThroughput(64*r.Count(), r.Count(), 3*time.Second)
	throughput.PeakBytesPerSecond, throughput.PeakOverNs = 2*throughput.BytesPerSecond, 1e6
	counters := []reports.DeviceCounters{{Device: "siw0", Port: 1, Counters: map[string]int64{"port_xmit_packets": 5}}}
	e := reports.Collect()
	e.Details = map[string]string{"driver": "siw"}
	return of(&reports.Document{
		Started: time.Date(2026, 3, 4, 5, 6, 7, 89, time.UTC), Command: []string{"rdmaperf", "run"},
		Environment: e, ServerEnvironment: &e,
		Error: reports.NewRunError(&reports.ExitError{Code: reports.ExitPeer, Operation: "wait",
			Err: errors.New("peer gone"), Hint: "look at its log"}),
		Results: []reports.Result{{
			Stack: "sched(strict)+iwarp(crc)", Transport: "sched+iwarp", Label: reports.LabelSoft, Workload: "hol",
			Op: "send", SizeBytes: 64, Depth: 1, QPs: 1, Threads: 1, Polling: reports.PollingBusy,
			RoundTrip: reports.RoundTripHalf, MeasuredBy: "client", DurationNs: 3e9, Operations: r.Count(),
			Verified: true, Latency: &raw, LatencyCorrected: &corrected, Rate: 20000, Arrivals: "poisson", Repeat: 1,
			LatencyService: &raw, Throughput: throughput,
			Series: &reports.Series{IntervalNs: 1e9,
				Points: []reports.SeriesPoint{{OffsetNs: 1e9, Operations: 5, P50: 1, P99: 2, Max: 3}}},
			RawSamples: []reports.RawSamples{{Set: reports.SamplesLatency, File: "samples.csv", Count: 1, Dropped: 2,
				Limit: 1}},
			Counters: &reports.Counters{Client: counters, Server: counters},
			Detail: &probes{BulkSizeBytes: 1 << 20, ProbeSizeBytes: 64, ProbeIntervalNs: 1e5, ProbeAlone: raw,
				ProbeLoaded: corrected, BulkAloneBytesPerSecond: 6e9, BulkLoadedBytesPerSecond: 5.5e9},
			CPU: &reports.CPU{ClientSeconds: 3, ServerSeconds: 2.9}, GC: &reports.GC{ClientCollections: 1},
			Parameters: map[string]any{"crc": true, "port": 18515.0},
		}, {
			Stack: "tcp", Label: reports.LabelSoft, Workload: "throughput", Op: "send", Depth: 1, QPs: 1,
			Detail: &ways{FromClient: way{Operations: 1, DurationNs: 2, BytesPerSecond: 3, OperationsPerSecond: 4}},
		}},
		Repeats: []reports.RepeatSummary{{Stack: "tcp", Workload: "hol", Op: "send", SizeBytes: 64, QPs: 1, Rate: 20000,
			Variant: reports.Members{}.With("arm", "same-qp"), Results: []int{0, 1, 2}, N: 3,
			Method: "Student's t, two-sided", Confidence: 0.95,
			Figures: []reports.MeanInterval{{Figure: "p50", Unit: "ns", Mean: 2, Low: 1, High: 3}},
			Absent:  "never with figures"}},
	})
}

func TestEveryDocumentFollowsTheSchema(t *testing.T) {
	empty := reports.NewRecorder().Snapshot()
	for name, d := range map[string]*reports.Document{
		"zero value": {Environment: reports.Collect()},
		"error only": {Environment: reports.Collect(), Error: reports.NewRunError(errors.New("no route"))},
		"everything": measuredDocument(),
		"no samples": {Environment: reports.Collect(), Results: []reports.Result{{
			Stack: "tcp", Label: reports.LabelSoft, Workload: "latency", Op: "send", Depth: 1, QPs: 1,
			Latency: &empty, LatencyCorrected: &empty, Throughput: reports.NewThroughput(0, 0, 0),
		}}},
	} {
		t.Run(name, func(t *testing.T) {
			b := encode(t, d)
			reporttest.Validate(t, b)
			if bytes.Contains(b, []byte("null")) {
				t.Errorf("the document contains null:\n%s", b)
			}
		})
	}
}

func TestDocumentRoundTrip(t *testing.T) {
	want := measuredDocument()
	got := must(reports.ReadDocument(bytes.NewReader(encode(t, want)), workloads))(t)
	want.Schema = reports.SchemaID
	same(t, "written and read again", want, got)
}

func TestReadDocumentIsStrictAboutTheSchema(t *testing.T) {
	good := string(encode(t, &reports.Document{Environment: reports.Collect()}))
	added := strings.Replace(good, `"results"`, `"added_later": {"x": 1}, "results"`, 1)
	if _, err := reports.ReadDocument(strings.NewReader(added), workloads); err != nil {
		t.Errorf("an added field: %v, want it ignored", err)
	}
	for _, c := range []struct{ name, text, reason string }{
		{"another version with other types", `{"schema": "rdmaperf/v2", "results": {}}`,
			`schema is "rdmaperf/v2", want "rdmaperf/v1"`},
		{"no schema", `{}`, `schema is ""`},
		{"a wrong type", strings.Replace(good, `"results": []`, `"results": 7`, 1), "results"},
		{"cut short", good[:len(good)/2], "ends in the middle"},
		{"two documents", good + good, "more behind the document"},
		{"nothing", "", "it is empty"},
	} {
		_, err := reports.ReadDocument(strings.NewReader(c.text), workloads)
		if err == nil || !strings.HasPrefix(err.Error(), "read result document: ") ||
			!strings.Contains(err.Error(), c.reason) {
			t.Errorf("%s: %v, want an error with %q", c.name, err, c.reason)
		}
	}
}

func TestNotANumberIsNeverWritten(t *testing.T) {
	for _, v := range []float64{math.NaN(), math.Inf(1), math.Inf(-1)} {
		d := &reports.Document{Results: []reports.Result{{Throughput: &reports.Throughput{BytesPerSecond: v}}}}
		var b bytes.Buffer
		if err := d.WriteJSON(&b); err == nil || b.Len() != 0 {
			t.Errorf("WriteJSON with %v: error %v after %d bytes, want an error and nothing written", v, err, b.Len())
		}
	}
	same(t, "throughput of an empty window", &reports.Throughput{}, reports.NewThroughput(100, 10, 0))
	same(t, "throughput", &reports.Throughput{BytesPerSecond: 1000, OperationsPerSecond: 10},
		reports.NewThroughput(3000, 30, 3*time.Second))
}

func TestNewRunError(t *testing.T) {
	exit := &reports.ExitError{Code: reports.ExitPeer, Operation: "connect", Err: errors.New("refused"),
		Hint: "start serve"}
	for _, c := range []struct {
		err  error
		want *reports.RunError
	}{
		{nil, nil},
		{errors.New("boom"), &reports.RunError{Operation: "run", Message: "boom", ExitCode: 1}},
		{exit, &reports.RunError{Operation: "connect", Message: "refused", Hint: "start serve", ExitCode: 5}},
		{fmt.Errorf("worker 2: %w", exit),
			&reports.RunError{Operation: "connect", Message: "worker 2: connect: refused", Hint: "start serve",
				ExitCode: 5}},
		{&reports.ExitError{Code: 77}, &reports.RunError{Operation: "run", Message: "", ExitCode: 77}},
	} {
		same(t, fmt.Sprintf("NewRunError(%v)", c.err), c.want, reports.NewRunError(c.err))
	}
}

func TestWriteFileWritesAllOrNothing(t *testing.T) {
	dir := t.TempDir()
	broken := &reports.Document{
		Results: []reports.Result{{Throughput: &reports.Throughput{BytesPerSecond: math.NaN()}}}}
	kept := filepath.Join(dir, "kept.json")
	noError(t, os.WriteFile(kept, []byte("old"), 0o600))
	if err := broken.WriteFile(kept); err == nil {
		t.Error("a document with NaN: no error")
	}
	if got, err := os.ReadFile(kept); err != nil || string(got) != "old" {
		t.Errorf("after a failed write the file holds %q, want the old content", got)
	}
	for _, path := range []string{filepath.Join(dir, "missing", "r.json"), dir} {
		if err := new(reports.Document).WriteFile(path); err == nil || !strings.Contains(err.Error(), path) {
			t.Errorf("WriteFile(%s): %v, want an error that names the file", path, err)
		}
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) != 1 {
		t.Errorf("the directory holds %v, want kept.json alone", left)
	}
	d := measuredDocument()
	noError(t, d.WriteFile(kept))
	if got, err := os.ReadFile(kept); err != nil || !bytes.Equal(got, encode(t, d)) {
		t.Errorf("the file differs from WriteJSON (read error %v)", err)
	}
}

// The names in the document are an interface: a Go field must be in the schema.
func TestSchemaDescribesEveryField(t *testing.T) {
	var schema, doc map[string]any
	noError(t, json.Unmarshal(reports.Schema(), &schema))
	noError(t, json.Unmarshal(encode(t, measuredDocument()), &doc))
	defs := schema["$defs"].(map[string]any)
	var walk func(path string, node map[string]any, value any)
	walk = func(path string, node map[string]any, value any) {
		if ref, ok := node["$ref"].(string); ok {
			node = defs[strings.TrimPrefix(ref, "#/$defs/")].(map[string]any)
		}
		switch v := value.(type) {
		case []any:
			for _, item := range v {
				walk(path+"[]", node["items"].(map[string]any), item)
			}
		case map[string]any:
			properties, ok := node["properties"].(map[string]any)
			if !ok { // parameters and details hold any name
				return
			}
			for name, field := range v {
				described, ok := properties[name].(map[string]any)
				if !ok {
					t.Errorf("%s.%s is written but not in the schema", path, name)
					continue
				}
				walk(path+"."+name, described, field)
			}
		}
	}
	walk("document", schema, doc)
}

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
