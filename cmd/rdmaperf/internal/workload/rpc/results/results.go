// Package results describes results of calls, of the workload rpc and of others that stand on calls.
package results

import (
	"fmt"
	"math"
	"slices"

	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/drive"
	"github.com/rdmaperf/rdmaperf/reports"
	"github.com/rdmaperf/rdmaperf/reports/charts"
	"github.com/rdmaperf/rdmaperf/reports/view"
)

// Of is what calls were, of any workload that stands on them; else nil.
func Of(r *reports.Result) *RPC {
	switch d := r.Detail.(type) {
	case *RPC:
		return d
	case interface{ CallDetail() *RPC }:
		return d.CallDetail()
	}
	return nil
}

// RPC is the detail of calls.
type RPC = drive.RPC

// Waits is event where a carrier waits for each message in the kernel; other modes poll for some time first.
func Waits(r *reports.Result) string {
	if m := Of(r).Mode; m == "" || m == "event" {
		return reports.PollingEvent
	}
	return ""
}

var Dims = []reports.DimDef{
	{Name: "call", Help: "unary; stream: exchanges on one; oneway: messages to the server"},
	{Name: "response_bytes", Unit: "B", Help: "an answer"},
}

// FigureDefs are the figures of any workload of calls.
var FigureDefs = []reports.FigureDef{
	{Name: "cpu.call", Quantity: reports.QuantityTime, Help: "processor time of both sides for a call"},
	{Name: "idle.client", Quantity: reports.QuantityRatio,
		Help: "part of a CPU that the client uses while nothing is called"},
	{Name: "idle.server", Quantity: reports.QuantityRatio,
		Help: "part of a CPU that the server uses while nothing is called"},
	{Name: "resident.client", Quantity: reports.QuantityMemory,
		Help: "resident memory of the client behind the window"},
	{Name: "resident.server", Quantity: reports.QuantityMemory,
		Help: "resident memory of the server behind the window"},
	{Name: "resident.client_each", Quantity: reports.QuantityMemory, Help: "of it, with each connection"},
	{Name: "resident.server_each", Quantity: reports.QuantityMemory, Help: "of it, with each connection"},
	{Name: "registered.each", Quantity: reports.QuantityMemory,
		Help: "registered memory of one connection on one side"},
	{Name: "busy", Quantity: reports.QuantityTime, Better: reports.Neither,
		Help: "for which a caller polls before it sleeps"},
	{Name: "pollers", Quantity: reports.QuantityCount, Better: reports.Neither, Help: "background pollers"},
	{Name: "ring", Quantity: reports.QuantityMemory, Better: reports.Neither, Help: "receive ring of a connection"},
}

const intro = "Latency is that of the whole call. Idle CPU is that of both processes while all connections stay and " +
	"nothing is called; memory is what became resident with each connection."

var shown = []string{"mean", "p50", "p99", "rate", "bw", "cpu.call", "idle.client", "idle.server",
	"resident.client_each", "resident.server_each", "registered.each"}

func declare(name, title string, describe func(w *reports.Workload, r *reports.Result)) *reports.Workload {
	return &reports.Workload{Name: name, Title: title, Timed: true, Rated: true, Intro: intro, Dims: Dims,
		Figures: FigureDefs, Shown: shown, Detail: func() reports.Detail { return new(RPC) }, Describe: describe}
}

// Results and TensorResults declare the dimensions and figures of calls of one size and of calls that carry tensors.
var (
	Results       = declare("rpc", "Calls", Describe)
	TensorResults = declare("tensor", "Tensors", func(w *reports.Workload, r *reports.Result) {
		Describe(w, r)
		r.Note = map[string]string{
			"push":     "a tensor to the server, answered by a note",
			"pull":     "a tensor to the client, asked for by a note",
			"exchange": "a tensor each way, bandwidth of both directions",
		}[Of(r).Call]
	})
)

// Describe is what all calls have.
func Describe(w *reports.Workload, r *reports.Result) {
	c := Of(r)
	r.Waits = Waits(r)
	r.Dims = reports.DimsOf(w.Dims, c.Call, c.ResponseBytes)
	r.Figures = reports.FiguresOf(w.Figures, Values(r)...)
}

// Values are those of the figures of any workload of calls.
func Values(r *reports.Result) []float64 {
	c, v := Of(r), slices.Repeat([]float64{math.NaN()}, len(FigureDefs))
	set := func(i int, value float64) {
		if value > 0 {
			v[i] = value
		}
	}
	if r.CPU != nil && r.Operations > 0 {
		set(0, r.BothCPU()*1e9/float64(r.Operations))
	}
	if i := c.Idle; i != nil && i.DurationNs > 0 {
		v[1], v[2] = i.ClientSeconds*1e9/float64(i.DurationNs), i.ServerSeconds*1e9/float64(i.DurationNs)
	}
	if m := c.Resident; m != nil {
		v[3], v[4], v[5], v[6] = float64(m.ClientBytes), float64(m.ServerBytes), m.ClientPerConnection,
			m.ServerPerConnection
	}
	set(7, float64(c.RegisteredBytes))
	if c.Mode == "bpev" {
		v[8], v[9] = float64(c.BusyNs), float64(c.Pollers)
	}
	set(10, float64(c.RingBytes))
	return v
}

// Gain is how many times the throughput of plain gRPC over TCP each other carrier of calls has, by size.
func Gain(set *reports.Set) view.Section {
	s := view.Section{ID: "gain", Title: "Gain over gRPC on TCP",
		Intro: "Throughput as a multiple of that of grpc(tcp) in the same run, at every size. Above 1 is faster."}
	for _, g := range reports.GroupBy(set.Samples, func(x *reports.Measured) (reports.Condition, bool) {
		return x.Condition(), x.Workload == Results.Name && Of(x.Result) != nil && x.Throughput != nil && x.Rate == 0
	}) {
		sizes := reports.SizesOf(g.Samples)
		arms := reports.Split(g.Samples)
		at := slices.IndexFunc(arms, func(b *reports.BySeries) bool { return Of(b.Runs[0].Result).Form == "tcp" })
		if len(sizes) < 2 || len(arms) < 2 || at < 0 {
			continue
		}
		base := charts.ThroughputLine(arms[at])
		title := g.Key.Title()
		lines := []view.Series{{Name: base.Name, Short: base.Short, Slot: base.Slot, Thin: true}}
		of := map[float64]float64{} // the base's, by size
		for _, p := range base.Points {
			of[p.X] = p.Y
			lines[0].Points = append(lines[0].Points,
				view.Point{X: p.X, Y: 1, Tip: fmt.Sprintf("%s\n%s\n1.00x", base.Name, reports.SizeLabel(int64(p.X)))})
		}
		for i, b := range arms {
			if i == at {
				continue
			}
			line := view.Series{Name: b.Series, Short: b.Short, Slot: b.Slot}
			for _, p := range charts.ThroughputLine(b).Points {
				if of[p.X] == 0 {
					continue
				}
				gain := p.Y / of[p.X]
				line.Points = append(line.Points,
					view.Point{X: p.X, Y: gain, Tip: fmt.Sprintf("%s\n%s\n%s, %s MiB/s against %s", b.Series,
						reports.SizeLabel(int64(p.X)), gainLabel(gain), view.Digits3(p.Y), view.Digits3(of[p.X]))})
			}
			lines = append(lines, line)
		}
		chart := &view.LineChart{Title: "Gain by size: " + title, Desc: "Logarithmic axes. " +
			charts.DescribeSeries(lines),
			YLabel: "Throughput / " + base.Short, XLabel: "Message size", X: charts.SizeScale(sizes),
			XTicks: charts.SizeTicks(sizes), YUnit: gainLabel, Series: lines}
		s.Figures = append(s.Figures, view.Figure{Title: title, Caption: g.Key.Describe(), Chart: chart,
			Data: charts.PointTable(title, "size", "gain", lines)})
	}
	return s
}

func gainLabel(v float64) string { return view.Number(v, 2) + "x" }
