package softrdma

import (
	"errors"

	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/engine"
	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/room"
	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/workload/latency"
	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/workload/throughput"
	"github.com/rdmaperf/rdmaperf/reports"
)

// Name is the workload's.
const Name = "softrdma"

// depths of the throughput: the paper's, and one that keeps a window full.
var depths = []int{1, 16}

// Room is its row of the table.
var Room = &room.Room{
	Name:      Name,
	Summary:   "SoftRDMA's evaluation: five sizes, at depth 1 and 16",
	Work:      &engine.Workload{Name: Name, Point: noPoint},
	Ops:       []string{"send"},
	Sizes:     []int{64, 1000, 10_000, 100_000, 500_000}, // the paper's KB are 1000 bytes
	Published: []reports.Published{figures},
	Flags:     func() room.Flags { return flags{} },
}

func noPoint(engine.Point) error {
	return errors.New("this workload is made of points of latency and throughput")
}

type flags struct{ room.None }

// Points are latencies of all sizes, and throughputs at both depths.
func (flags) Points(_ *engine.Plan, c *room.Common) ([]engine.Point, error) {
	points := c.Product(Room.Ops, Room.Sizes, func(op string, size int) []engine.Point {
		return []engine.Point{{Workload: latency.Name, Op: op, Size: size}}
	})
	for _, depth := range depths {
		points = append(points, c.Product(Room.Ops, Room.Sizes, func(op string, size int) []engine.Point {
			return []engine.Point{{Workload: throughput.Name, Op: op, Size: size, Depth: depth}}
		})...)
	}
	return points, nil
}

// figures are those of the paper's slides. Where nothing stands they name none.
var figures = reports.Published{
	Title:   "published: SoftRDMA (lwIP's raw API on DPDK) beside an iWARP RNIC",
	Source:  "APNet'17, doi 10.1145/3106989.3106995, slides: DELL R430, Intel 82599ES 10 GbE, Chelsio T520-SO-CR; its throughput is size by latency, so depth 1",
	Columns: []string{"#bytes", "SoftRDMA latency[usec]", "RNIC latency[usec]", "SoftRDMA[Mb/s]", "RNIC[Mb/s]"},
	Rows: [][]string{
		{"64", "6.63", "3.59", "-", "-"},
		{"1000", "6.80", "5.29", "-", "-"},
		{"10000", "52.20", "16.27", "1461.71", "8854.16"},
		{"100000", "101.36", "93.45", "7893.31", "8917.44"},
		{"500000", "500.06", "432.50", "-", "-"},
	},
}
