package reports_test

import (
	"bytes"
	"math"
	"strings"
	"testing"

	"github.com/rdmaperf/rdmaperf/reports"
	paramserverkind "github.com/rdmaperf/rdmaperf/reports/kinds/paramserver"
	pages "github.com/rdmaperf/rdmaperf/reports/page"
	htmlformat "github.com/rdmaperf/rdmaperf/reports/render/html"
	textformat "github.com/rdmaperf/rdmaperf/reports/render/text"
	"github.com/rdmaperf/rdmaperf/reports/reporttest"
)

// trainDocument is a training on two stacks, in both arms at three ratios.
func trainDocument() *reports.Document {
	d := goldenDocument()
	d.Error, d.Results = nil, nil
	for _, ratio := range []float64{0, 1, 2} {
		for i, stack := range []string{"iwarp(crc)", "sched(strict,slice=auto)+iwarp(crc)"} {
			for k, arm := range []string{"fifo", "priority"} {
				ps := &paramserverkind.ParamServer{Model: "resnet50", Arm: arm, Levels: 1 + 7*i*k, Tensors: 161, Parameters: 25_557_032, TensorBytes: 4,
					ComputeRatio: ratio, ComputeNs: ratio * 100e6, CommunicationNs: 100e6, Iteration: *latency(20, 100e6*(1+ratio/(1+float64(i*k))))}
				m := ps.Iteration.P50
				ps.Iteration.Mean = m
				ps.Complete([]float64{m - 1e6, m, m + 1e6})
				d.Results = append(d.Results, reports.Result{
					Stack: stack, Label: reports.LabelSoft, Workload: "paramserver", Op: "write", SizeBytes: 4 * 25_557_032, Depth: 322, QPs: 1, Threads: 1,
					Polling: reports.PollingBusy, MeasuredBy: "client", DurationNs: 2e9, Operations: 20, Verified: true, Kind: kind("paramserver"), Detail: ps,
				})
			}
		}
	}
	return of(d)
}

// Overlap is all, nothing, and what lies between; nothing to hide has none.
func TestOverlap(t *testing.T) {
	for _, c := range []struct{ comm, comp, iteration, want float64 }{{100, 50, 100, 1}, {100, 50, 150, 0}, {100, 200, 250, 0.5}, {100, 100, 250, -0.5}} {
		ps := &paramserverkind.ParamServer{CommunicationNs: c.comm, ComputeNs: c.comp, Iteration: reports.Latency{Count: 9, P50: c.iteration}}
		ps.Complete([]float64{1, 2})
		if ps.Overlap == nil || math.Abs(*ps.Overlap-c.want) > 1e-9 || ps.IdealNs != max(c.comm, c.comp) || ps.MeanLow != 0 || ps.MeanHigh != 0 {
			t.Errorf("%+v: %+v", c, ps)
		}
	}
	ps := &paramserverkind.ParamServer{CommunicationNs: 100, Iteration: reports.Latency{Count: 9, P50: 100}}
	ps.Complete([]float64{10, 11, 12})
	// Student's factor of two degrees of freedom is 4.303.
	if half := (ps.MeanHigh - ps.MeanLow) / 2; ps.Overlap != nil || math.Abs(half-4.303/math.Sqrt(3)) > 1e-3 {
		t.Errorf("overlap %v, half width %v", ps.Overlap, half)
	}
}

// A training stands in every format, and is compared point by point.
func TestTraining(t *testing.T) {
	d := trainDocument()
	reporttest.Validate(t, encode(t, d))
	golden(t, "text-training.txt", text(t, d, textformat.Options{}))
	if b := string(bench(t, d)); !strings.Contains(b, "BenchmarkParamserver/op=write") || !strings.Contains(b, "/model=resnet50/arm=priority/compute_ratio=2/") {
		t.Errorf("no benchmark of a training:\n%s", b)
	}
	var page bytes.Buffer
	if err := htmlformat.Write(&page, []*reports.Document{d}, pages.Options{}); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{`id="training"`, "Iteration time, resnet50", "Computation / communication", "ideal", "gain over fifo", "1.50x"} {
		if !strings.Contains(page.String(), want) {
			t.Errorf("the page lacks %q", want)
		}
	}
	c, err := reports.Compare(d, trainDocument(), nil)
	if err != nil || len(c.Points) != len(d.Results) || len(c.Unlike) != 0 {
		t.Fatalf("%v: %+v", err, c)
	}
	names := map[string]bool{}
	for _, p := range c.Points {
		names[p.Point] = true
		if len(p.Changes) < 3 {
			t.Errorf("%s: %+v", p.Point, p.Changes)
		}
	}
	if len(names) != len(d.Results) {
		t.Errorf("points %v: want every one by a name of its own", names)
	}
	other := trainDocument()
	paramserverkind.Of(&other.Results[3]).Levels = 4
	if c, err = reports.Compare(d, other, nil); err != nil || len(c.OnlyNew) != 1 || !strings.Contains(c.OnlyNew[0], "levels=4") {
		t.Errorf("%v, %+v: want a point of other levels", err, c.OnlyNew)
	}
	repeated := trainDocument()
	repeated.Results = repeated.Results[:4]
	for i := range 3 {
		for _, r := range trainDocument().Results[4:8] {
			r.Repeat = i + 1
			repeated.Results = append(repeated.Results, r)
		}
	}
	repeated.Results = repeated.Results[4:]
	repeated.Repeats = reports.SummariseRepeats(repeated.Results)
	reporttest.Validate(t, encode(t, repeated))
	if got := string(text(t, repeated, textformat.Options{})); len(repeated.Repeats) != 4 || !strings.Contains(got, "priority at ratio 1: medians of 3 repeats; mean iteration spread 0.0 %") {
		t.Errorf("%d summaries of the repeats of a training:\n%s", len(repeated.Repeats), got)
	}
	slow, err := reports.ParseThreshold("iteration.p50>150ms", kinds)
	if err != nil {
		t.Fatal(err)
	}
	if lines, err := reports.CheckThresholds(d, []reports.Threshold{slow}); err != nil || len(lines) != 1 {
		t.Errorf("%q, %v, want the threshold missed", lines, err)
	}
}
