// Package softrdma is the workload of SoftRDMA's evaluation (APNet'17, doi 10.1145/3106989.3106995): latency and
// throughput at its five sizes. The paper's throughput is a size by its latency, so it is at depth 1, and at depth 16
// apart. Its figures are next to ours as text. The schemes are stacks; of the paper's two in the middle only plots are
// published.
package softrdma

import (
	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/engine"
	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/workload"
	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/workload/latency"
	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/workload/throughput"
	"github.com/rdmaperf/rdmaperf/reports"
)

const Name = "softrdma"

// depths of the throughput: the paper's, and one that keeps a window full.
var depths = []int{1, 16}

// Workload implements workload.Workload. Its points are those of latency and throughput, which also run them.
type Workload struct{ latency.Workload }

func (*Workload) Meta() workload.Meta {
	return workload.Meta{
		Name:     Name,
		Summary:  "the SoftRDMA paper's five message sizes, at depths 1 and 16",
		Examples: "rdmaperf run --transport tcp,iwarp --workload softrdma",
		Ops:      []string{"send"},
		Sizes:    []int{64, 1000, 10_000, 100_000, 500_000}, // the paper's KB are 1000 bytes
	}
}

func (w *Workload) Points(c *workload.Common) ([]engine.Point, error) {
	c.Published = append(c.Published, figures)
	m := w.Meta()
	points := c.Product(m.Ops, m.Sizes, func(op string, size int) []engine.Point {
		return []engine.Point{latency.Point(engine.Point{Op: op, Size: size}, c.Plan.Polling)}
	})
	for _, depth := range depths {
		points = append(points, c.Product(m.Ops, m.Sizes, func(op string, size int) []engine.Point {
			return []engine.Point{throughput.Point(c.Plan, engine.Point{Op: op, Size: size, Depth: depth})}
		})...)
	}
	return points, nil
}

const (
	softRDMA = "published: SoftRDMA"
	rnic     = "published: RNIC"
)

// figures are those of the paper's slides. Where nothing stands they name none.
var figures = reports.Published{
	Title: "next to what is published: SoftRDMA (lwIP's raw API on DPDK) and an iWARP RNIC",
	Source: "APNet'17, doi 10.1145/3106989.3106995, slides: DELL R430, Intel 82599ES 10 GbE, Chelsio T520-SO-CR; " +
		"its throughput is size by latency, so depth 1, as are ours here",
	Columns: []string{"#bytes", "of", "latency[us]", "[Mb/s]"},
	Rows: [][]string{
		{"64", softRDMA, "6.63", "-"}, {"64", rnic, "3.59", "-"},
		{"1000", softRDMA, "6.80", "-"}, {"1000", rnic, "5.29", "-"},
		{"10000", softRDMA, "52.20", "1461.71"}, {"10000", rnic, "16.27", "8854.16"},
		{"100000", softRDMA, "101.36", "7893.31"}, {"100000", rnic, "93.45", "8917.44"},
		{"500000", softRDMA, "500.06", "-"}, {"500000", rnic, "432.50", "-"},
	},
	Beside: []reports.Beside{
		{Workload: latency.Name, Op: "send", Depth: 1, Figure: reports.FigureP50, Column: "latency[us]"},
		{Workload: throughput.Name, Op: "send", Depth: 1, Figure: reports.FigureMbit, Column: "[Mb/s]"},
	},
}
