package reports_test

import (
	"bytes"
	"io"
	"strings"
	"testing"

	"github.com/rdmaperf/rdmaperf/reports"
	callskind "github.com/rdmaperf/rdmaperf/reports/kinds/calls"
	kvkind "github.com/rdmaperf/rdmaperf/reports/kinds/kv"
	pages "github.com/rdmaperf/rdmaperf/reports/page"
	htmlformat "github.com/rdmaperf/rdmaperf/reports/render/html"
	textformat "github.com/rdmaperf/rdmaperf/reports/render/text"
	"github.com/rdmaperf/rdmaperf/reports/reporttest"
)

// latencyOf has n samples around mean.
func latencyOf(mean int64, n int) reports.Latency {
	r := reports.NewRecorder()
	for i := range n {
		r.Record(mean + int64(i%11-5)*mean/100)
	}
	return r.Snapshot()
}

// kvDocument is two mixes on two carriers, the second of which is 2.5 times as fast.
func kvDocument() *reports.Document {
	d := goldenDocument()
	d.Error, d.Results = nil, nil
	for _, mix := range []struct {
		name, title, op, request string
		share                    int
	}{{"a", "update heavy", "update", "zipfian", 2}, {"d", "read latest", "insert", "latest", 20}} {
		for i, stack := range []string{"grpc(tcp)", "grpc(fused,bpev)+iwarp(crc)"} {
			const n = 2200
			mean := int64(50_000 / (1 + 1.5*float64(i)))
			all := latencyOf(mean, n)
			op := func(name string, n int, store int64) kvkind.Operation {
				return kvkind.Operation{Op: name, Operations: int64(n), PerSecond: float64(n), Latency: latencyOf(mean, n), Store: latencyOf(store, n)}
			}
			kv := &kvkind.KV{Mix: mix.name, Title: mix.title, Requests: mix.request, Records: 100_000, Fields: 10, FieldBytes: 100, Store: "bbolt",
				Operations: []kvkind.Operation{op("read", n-n/mix.share, 2000), op(mix.op, n/mix.share, 10_000)}}
			if mix.op == "insert" {
				kv.Inserted = n / 20
			}
			d.Results = append(d.Results, reports.Result{
				Stack: stack, Transport: stack, Label: reports.LabelSoft, Workload: "kv", Op: "call", SizeBytes: 1000, Depth: 4, QPs: 2, RoundTrip: reports.RoundTripFull,
				MeasuredBy: "client", DurationNs: 1e9, Operations: n, Verified: true, Latency: &all,
				Throughput: &reports.Throughput{BytesPerSecond: 1e9 / float64(mean) * 1000, OperationsPerSecond: 1e9 / float64(mean)},
				Kind:       kind("kv"), Detail: &kvkind.Detail{Calls: callskind.RPC{Call: "unary", Connections: 2, Outstanding: 4, Form: []string{"tcp", "fused"}[i]}, KV: *kv},
			})
		}
	}
	return of(d)
}

// Mixes stand in every format with the store's part, side by side, and are compared mix
// by mix.
func TestKV(t *testing.T) {
	d := kvDocument()
	reporttest.Validate(t, encode(t, d))
	golden(t, "text-kv.txt", text(t, d, textformat.Options{}))
	if b := string(bench(t, d)); !strings.Contains(b, "/call=unary/mix=d/requests=") {
		t.Errorf("no benchmark of a mix:\n%s", b)
	}
	if c := string(comma(t, d)); !strings.Contains(c, ",update-store.mean,time,ns,") {
		t.Errorf("no column for the store:\n%s", c)
	}
	var page bytes.Buffer
	if err := htmlformat.Write(&page, []*reports.Document{d}, pages.Options{}); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{`id="ycsb"`, "Operations a second by mix", "Mix a, update heavy: mean latency", "2.50x", "-60.0 %", "KV YCSB d"} {
		if !strings.Contains(page.String(), want) {
			t.Errorf("the page lacks %q", want)
		}
	}
	c, err := reports.Compare(d, kvDocument(), nil)
	if err != nil || len(c.Points) != 4 || len(c.Unlike) != 0 {
		t.Fatalf("%v: %+v", err, c)
	}
	other := kvDocument()
	for i := range other.Results {
		kvkind.Of(&other.Results[i]).Records = 1000
	}
	if c, err := reports.Compare(d, other, nil); err == nil && len(c.Points) > 0 {
		t.Errorf("100 times fewer records are the same points: %+v", c.Points)
	}
	repeated := kvDocument()
	repeated.Results = nil
	for i := range 3 {
		for _, r := range kvDocument().Results {
			r.Repeat = i + 1
			kvkind.Of(&r).Operations[0].Store = latencyOf(int64(1000*(i+1)), 100)
			repeated.Results = append(repeated.Results, r)
		}
	}
	repeated.Repeats = reports.SummariseRepeats(repeated.Results)
	reporttest.Validate(t, encode(t, repeated))
	if got := string(text(t, repeated, textformat.Options{})); len(repeated.Repeats) != 4 || string(repeated.Repeats[3].Variant.Get("mix")) != `"d"` || !strings.Contains(got, "medians of 3 repeats") || !strings.Contains(got, "a: grpc(tcp)\n") {
		t.Errorf("%d summaries of repeats:\n%s", len(repeated.Repeats), got)
	}
	for text, missed := range map[string]string{"update.p99>1s": "", "update-store.mean>5us": "missed by 2 of 2 results", "read.p50>30us": "missed by 2 of 4 results", "scan.p50>1ns": "no result has"} {
		limit, err := reports.ParseThreshold(text, kinds)
		if err != nil {
			t.Fatal(err)
		}
		if lines, err := reports.CheckThresholds(d, []reports.Threshold{limit}); err != nil || (missed == "") != (len(lines) == 0) || !strings.Contains(strings.Join(lines, ""), missed) {
			t.Errorf("%s: %q, %v, want %q", text, lines, err, missed)
		}
	}
}

// tensorDocument is pushes of three sizes by two carriers.
func tensorDocument(stacks ...string) *reports.Document {
	d := goldenDocument()
	d.Error, d.Results = nil, nil
	for i, stack := range stacks {
		for k, size := range []int64{1 << 10, 64 << 10, 1 << 20} {
			bw := float64(size) * 1000 * float64(1+i*(k+1))
			l := latencyOf(int64(1e9*float64(size)/bw), 2000)
			form := "fused"
			if stack == "grpc(tcp)" {
				form = "tcp"
			}
			d.Results = append(d.Results, reports.Result{
				Stack: stack, Label: reports.LabelSoft, Workload: "tensor", Op: "call", SizeBytes: size, Depth: 1, QPs: 1, RoundTrip: reports.RoundTripFull,
				MeasuredBy: "client", DurationNs: 1e9, Operations: 2000, Verified: true, Latency: &l,
				Throughput: &reports.Throughput{BytesPerSecond: bw, OperationsPerSecond: bw / float64(size)},
				Kind:       kind("tensor"), Detail: &callskind.RPC{Call: "push", RequestBytes: size, ResponseBytes: 8, Connections: 1, Outstanding: 1, Form: form},
			})
		}
	}
	return of(d)
}

// The gain over plain gRPC on TCP is drawn where there is such a run.
func TestTensorsShowTheirGain(t *testing.T) {
	d := tensorDocument("grpc(tcp)", "grpc(fused,bpev)+iwarp(crc)")
	reporttest.Validate(t, encode(t, d))
	page := func(d *reports.Document) string {
		return string(render(t, func(w io.Writer) error {
			return htmlformat.Write(w, []*reports.Document{d}, pages.Options{})
		}))
	}
	for _, want := range []string{`id="gain"`, "Gain by size: Tensor push", "4.00x", "a tensor to the server, answered by a note"} {
		if got := page(d); !strings.Contains(got, want) {
			t.Errorf("the page lacks %q", want)
		}
	}
	parts := tensorDocument("grpc(tcp)")
	parts.Results[2].Parameters = map[string]any{"compared": "one of 64 parts"}
	if !strings.Contains(page(parts), "Data was compared, of long tensors a part in turn.") {
		t.Error("the page says that all was compared")
	}
	if strings.Contains(page(tensorDocument("grpc(unix)", "grpc(fused,bpev)+iwarp(crc)")), `id="gain"`) {
		t.Error("a gain over what was not measured")
	}
	if got := string(text(t, d, textformat.Options{})); !strings.Contains(got, "tensor push") || !strings.Contains(got, "1 call outstanding on each connection") {
		t.Errorf("no tensors in:\n%s", got)
	}
}
