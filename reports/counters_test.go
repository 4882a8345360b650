package reports_test

import (
	"testing"

	"github.com/rdmaperf/rdmaperf/reports"
	pages "github.com/rdmaperf/rdmaperf/reports/page"
	textformat "github.com/rdmaperf/rdmaperf/reports/render/text"
	"github.com/rdmaperf/rdmaperf/reports/reporttest"
)

// What moved is shown with its side; what stood still stays in the document.
func TestCountersAreShown(t *testing.T) {
	d := goldenDocument()
	d.Error, d.Results = nil, d.Results[:2]
	d.Results[0].Counters = &reports.Counters{
		Client: []reports.DeviceCounters{{Device: "mlx5_0", Counters: map[string]int64{"icrc_errors": 0}},
			{Device: "mlx5_0", Port: 1, Counters: map[string]int64{"port_xmit_data": 19_200_000, "out_of_sequence": 0,
				"port_rcv_data": -5}}},
		Server: []reports.DeviceCounters{{Device: "rxe0", Port: 1, Counters: map[string]int64{"sent_pkts": 600_000,
			"rcvd_pkts": 600_000}}},
	}
	tcp := []reports.DeviceCounters{{Device: "kernel TCP (all connections)",
		Counters: map[string]int64{"RetransSegs": 0}}}
	d.Results[1].Counters = &reports.Counters{Client: tcp, Server: tcp}
	reporttest.Validate(t, encode(t, d))
	golden(t, "text-counters.txt", text(t, d, textformat.Options{}))
	golden(t, "text-counters-all.txt", text(t, d, textformat.Options{Counters: true}))
	d.ServerEnvironment = &d.Environment
	contains(t, string(text(t, d, textformat.Options{Counters: true, Width: 200})), "client kernel TCP",
		"server kernel TCP") // two machines are not shown as one
	p := page(t, pages.Options{}, d)
	contains(t, p, "Device counters that moved", ">mlx5_0/1<", ">19200000<", "! reset, -5", ">rxe0/1<")
	lacks(t, p, "icrc_errors", "RetransSegs") // which did not move
}

func TestCounterChangesNeedBothReadings(t *testing.T) {
	one := []reports.DeviceCounters{{Device: "a", Counters: map[string]int64{"x": 1}}}
	other := []reports.DeviceCounters{{Device: "b", Counters: map[string]int64{"x": 1}},
		{Device: "a", Port: 1, Counters: map[string]int64{"x": 1}}, {Device: "a", Counters: map[string]int64{"y": 1}}}
	for _, c := range [][2][]reports.DeviceCounters{{one, nil}, {nil, one}, {one, other}} {
		if got := reports.CounterChanges(c[0], c[1]); got != nil {
			t.Errorf("changes from %+v to %+v: %+v, want none", c[0], c[1], got)
		}
	}
}

// The first device counts like every other.
func TestCounterChangesOfEachDevice(t *testing.T) {
	before := []reports.DeviceCounters{{Device: "a", Counters: map[string]int64{"x": 1, "gone": 5}},
		{Device: "b", Port: 1, Counters: map[string]int64{"x": 9}}}
	after := []reports.DeviceCounters{{Device: "b", Port: 1, Counters: map[string]int64{"x": 12}},
		{Device: "a", Counters: map[string]int64{"x": 3, "new": 5}}}
	want := []reports.DeviceCounters{{Device: "b", Port: 1, Counters: map[string]int64{"x": 3}},
		{Device: "a", Counters: map[string]int64{"x": 2}}}
	same(t, "changes", want, reports.CounterChanges(before, after))
}
