package reports_test

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	"github.com/rdmaperf/rdmaperf/reports"
	callskind "github.com/rdmaperf/rdmaperf/reports/kinds/calls"
	pages "github.com/rdmaperf/rdmaperf/reports/page"
	htmlformat "github.com/rdmaperf/rdmaperf/reports/render/html"
	textformat "github.com/rdmaperf/rdmaperf/reports/render/text"
	"github.com/rdmaperf/rdmaperf/reports/reporttest"
)

// callResult is one stack's calls; a call takes us microseconds.
func callResult(stack, form, mode string, us float64, conns int) reports.Result {
	r := reports.NewRecorder()
	for i := range 2000 {
		r.Record(int64(us*1e3) + int64(i%100)*10)
	}
	l := r.Snapshot()
	res := reports.Result{
		Stack: stack, Label: reports.LabelSoft, Workload: "rpc", Op: "call", SizeBytes: 64, Depth: 2, QPs: conns, RoundTrip: reports.RoundTripFull,
		MeasuredBy: "client", DurationNs: 1e9, Operations: 2000, Verified: true, Latency: &l,
		Throughput: &reports.Throughput{BytesPerSecond: 2000 * 72 / us * 100, OperationsPerSecond: 2000 / us * 100},
		CPU:        &reports.CPU{ClientSeconds: 0.5, ServerSeconds: 0.25},
		Kind:       kind("rpc"), Detail: &callskind.RPC{Call: "unary", RequestBytes: 64, ResponseBytes: 8, Connections: conns, Outstanding: 2, Form: form, Mode: mode,
			Idle:     &callskind.IdleCPU{DurationNs: 250e6, ClientSeconds: 0.001, ServerSeconds: 0.02},
			Resident: &callskind.Resident{ClientBytes: 30 << 20, ServerBytes: 20 << 20, ClientPerConnection: 100 << 10, ServerPerConnection: 50 << 10}},
		Parameters: map[string]any{"verify": true, "codec": "bytes"},
	}
	if mode == "bpev" {
		callskind.Of(&res).BusyNs, callskind.Of(&res).Pollers, callskind.Of(&res).RingBytes, callskind.Of(&res).RegisteredBytes = 50e3, 1, 256<<10, 385<<10
	}
	return res
}

func fusedStack(busy string, pollers int, ring string) string {
	return fmt.Sprintf("grpc(fused,bpev,busy=%s,pollers=%d,idle=1ms,ring=%s,watch)+iwarp(crc)", busy, pollers, ring)
}

// callDocument is two stacks at two numbers of connections, and a sweep of each
// parameter.
func callDocument() *reports.Document {
	d := goldenDocument()
	d.Error, d.Results = nil, nil
	for _, n := range []int{1, 8} {
		d.Results = append(d.Results, callResult("grpc(tcp)", "tcp", "", 60*float64(n), n), callResult(fusedStack("50us", 1, "256K"), "fused", "bpev", 12*float64(n), n))
	}
	busy := callResult(fusedStack("0s", 1, "256K"), "fused", "bpev", 40, 1)
	callskind.Of(&busy).BusyNs = 0
	pollers := callResult(fusedStack("50us", 4, "256K"), "fused", "bpev", 11, 1)
	callskind.Of(&pollers).Pollers = 4
	ring := callResult(fusedStack("50us", 1, "1M"), "fused", "bpev", 13, 1)
	callskind.Of(&ring).RingBytes = 1 << 20
	d.Results = append(d.Results, busy, pollers, ring)
	return of(d)
}

// Calls stand in every format, are compared point by point, and each sweep is a curve.
func TestCalls(t *testing.T) {
	d := callDocument()
	reporttest.Validate(t, encode(t, d))
	golden(t, "text-calls.txt", text(t, d, textformat.Options{}))
	if b := string(bench(t, d)); !strings.Contains(b, "/call=unary/response_bytes=8-1 ") {
		t.Errorf("no benchmark of calls:\n%s", b)
	}
	var page bytes.Buffer
	if err := htmlformat.Write(&page, []*reports.Document{d}, pages.Options{}); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{`id="calls"`, "latency by connections", "memory by connections", "latency by busy time", "rate by pollers", "latency by ring", "Busy time before a caller sleeps", "Processor time and memory"} {
		if !strings.Contains(page.String(), want) {
			t.Errorf("the page lacks %q", want)
		}
	}
	if strings.Contains(page.String(), "by calls outstanding") {
		t.Error("a chart of what was not swept")
	}
	c, err := reports.Compare(d, callDocument(), nil)
	if err != nil || len(c.Points) != 7 || len(c.Unlike) != 0 {
		t.Fatalf("%v: %+v", err, c)
	}
	other := callDocument()
	for i := range other.Results {
		callskind.Of(&other.Results[i]).Call = "stream"
	}
	if _, err := reports.Compare(d, other, nil); err == nil {
		t.Error("unary calls were compared with streams")
	}
	other = callDocument()
	other.Results[0].Verified = false
	if c, err := reports.Compare(d, other, nil); err != nil || len(c.Unlike) != 1 {
		t.Errorf("%v: verified calls beside unverified ones: %+v", err, c.Unlike)
	}
}
