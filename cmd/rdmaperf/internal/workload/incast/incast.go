// Package incast is the workload of many clients, threads with a connection each, that send to one server. The server
// serves all in turn with one thread, as one node of a cluster does, so it needs busy polling. By calls requests are
// the payload and answers a few bytes; the stack decides which threads serve.
package incast

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/spf13/pflag"

	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/drive"
	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/engine"
	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/values"
	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/workload"
	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/workload/rpc"
	"github.com/rdmaperf/rdmaperf/reports"
	"github.com/rdmaperf/rdmaperf/transports"
)

const Name = "incast"

const (
	callDepth     = 16 // calls that a client has outstanding where nothing is said, as in throughput
	serverThreads = 1  // serve all clients
)

// Incast is how throughput was shared among clients. A rate is over the client's own window.
type Incast struct {
	Clients           int     `json:"clients"`
	MinBytesPerSecond float64 `json:"min_bytes_per_second"`
	MaxBytesPerSecond float64 `json:"max_bytes_per_second"`

	// Jain is the fairness index of rates (Jain, Chiu, Hawe 1984): 1 when all are equal, 1/n when one has everything.
	Jain      float64       `json:"jain"`
	PerClient []ClientShare `json:"per_client,omitempty"`
}

// ClientShare is one client's part.
type ClientShare struct {
	Operations     int64   `json:"operations"`
	DurationNs     int64   `json:"duration_ns"`
	BytesPerSecond float64 `json:"bytes_per_second"`
}

// Of is the detail of an incast, nil for any other.
func Of(r *reports.Result) *Incast { return reports.DetailOf[Incast](r) }

func (*Incast) Member(string) string { return "incast" }

var results = &reports.Workload{
	Name: Name, Title: "Incast", Timed: true, Rated: true,
	Intro: "Many clients send to one server. The Jain index is 1 when all have the same rate, 1/n when one of n has " +
		"everything.",
	Figures: []reports.FigureDef{
		{Name: "slowest.bw", Quantity: reports.QuantityBytes, Better: reports.More,
			Help: "payload a second of the slowest client"},
		{Name: "fastest.bw", Quantity: reports.QuantityBytes, Better: reports.More,
			Help: "payload a second of the fastest client"},
		{Name: "jain", Quantity: reports.QuantityRatio, Better: reports.More,
			Help: "fairness index of the clients' rates: 1 when all have the same, 1/n when one of n has everything"},
	},
	Shown:  []string{"p50", "p99", "mean", "bw", "rate", "slowest.bw", "fastest.bw", "jain"},
	Detail: func() reports.Detail { return new(Incast) },
	Describe: func(w *reports.Workload, r *reports.Result) {
		r.Note = "a thread for each client, one at the server"
		if r.Op == "call" {
			r.Note = "calls outstanding on a connection of each client, the server's threads as its stack has them"
		}
		in := Of(r)
		r.Figures = reports.FiguresOf(w.Figures, in.MinBytesPerSecond, in.MaxBytesPerSecond, in.Jain)
	},
}

type Workload struct {
	clients string
}

func (*Workload) Meta() workload.Meta {
	return workload.Meta{
		Name:       Name,
		Results:    results,
		Summary:    "many clients sending to one server: bandwidth and fairness",
		Examples:   "rdmaperf run --transport tcp,iwarp --workload incast --clients 2,8,32 --op write -s 64K",
		Group:      "Workloads incast and connect",
		OwnThreads: true,
		Ops:        []string{"write", "call"},
		Sizes:      []int{64, 64 << 10, 1 << 20},
	}
}

func (f *Workload) Flags(set *pflag.FlagSet) {
	values.ListVar(set, &f.clients, "clients", "8", // a small rack
		"incast: how many clients, a thread and a connection each, send to one server thread (calls: to one server); "+
			"a comma list or FROM:TO:STEP is a point each")
}

func (f *Workload) Points(c *workload.Common) ([]engine.Point, error) {
	clients, err := c.OwnThreads(Name, "clients", f.clients, noEvents)
	if err != nil {
		return nil, err
	}
	m := f.Meta()
	return workload.Checked(c.Product(m.Ops, m.Sizes, func(op string, size int) (points []engine.Point) {
		for _, n := range clients {
			pt := engine.Point{Workload: Name, Op: op, Size: size, QPs: n}
			pt.Needs = drive.StreamNeeds(c.Plan, pt)
			points = append(points, rpc.CallPoint(pt, true))
		}
		return points
	}), check)
}

func check(p engine.Point) error {
	switch k, _ := transports.ParseKind(p.Op); {
	case p.Call == "" && k != transports.KindSend && k != transports.KindWrite && k != transports.KindWriteImm:
		return errors.New("clients send to the server: send, write or write_imm")
	case p.QPs < 1 || p.QPs > engine.MaxThreads:
		return fmt.Errorf("%d clients: want 1 to %d", p.QPs, engine.MaxThreads)
	}
	return nil
}

const noEvents = "one thread serves all clients of an incast and cannot sleep on one, so it needs busy polling"

func shape(s *engine.Setup) (*engine.Shape, error) {
	if err := check(s.Point); err != nil {
		return nil, engine.Refused(err)
	}
	if s.Plan.Polling == engine.PollingEvent {
		return nil, engine.Refused(errors.New(noEvents))
	}
	sh, err := drive.StreamShape(s)
	if err != nil {
		return nil, err
	}
	sh.Threads, sh.Polling = sh.QPs, engine.PollingBusy
	return sh, nil
}

func (*Workload) Client(ctx context.Context, r *engine.Run) error {
	if r.Point.Call != "" {
		return rpc.Measure(ctx, r, callDepth, true, func(k *drive.Calls, res *reports.Result) {
			res.Detail = shares(k.Sh, k.Out)
		})
	}
	sh, err := shape(&r.Setup)
	if err != nil {
		return err
	}
	m, err := r.Connect(ctx, sh, drive.NewFlow)
	if err != nil {
		return err
	}
	if err = m.Warmed(ctx); err == nil {
		err = m.Measure(ctx, reports.SamplesLatency)
	}
	if err == nil {
		err = m.Prove(ctx)
	}
	err = m.Close(ctx, err)
	res := m.Result()
	sh.Barrier(res.Parameters)
	res.Parameters["server_threads"] = serverThreads
	if m.Out != nil {
		drive.OneWay(m, &res, m.Out)
		res.Detail = shares(sh, m.Out)
	}
	r.Add(res)
	return err
}

func (*Workload) Server(ctx context.Context, s *engine.Serve) error {
	if s.Point.Call != "" {
		return rpc.Answer(ctx, s, callDepth)
	}
	sh, err := shape(&s.Setup)
	if err != nil {
		return err
	}
	sh.Threads = serverThreads
	return s.Sessions(ctx, sh, drive.NewFlow)
}

func shares(sh *engine.Shape, out *engine.Outcome) *Incast {
	in := &Incast{Clients: sh.QPs}
	var rates []float64
	for _, s := range out.Shares {
		t := reports.NewThroughput(s.Ops*int64(sh.Size), s.Ops, s.Window)
		in.PerClient = append(in.PerClient, ClientShare{s.Ops, int64(s.Window), t.BytesPerSecond})
		rates = append(rates, t.BytesPerSecond)
	}
	if len(rates) > 0 {
		in.MinBytesPerSecond, in.MaxBytesPerSecond, in.Jain = slices.Min(rates), slices.Max(rates), jain(rates)
	}
	return in
}

// jain is the square of the sum over n times the sum of the squares; 0 when nobody has anything.
func jain(rates []float64) float64 {
	most := slices.Max(rates)
	if !(most > 0) {
		return 0
	}
	var sum, squares float64
	for _, r := range rates {
		r /= most // squares of large rates must not overflow
		sum += r
		squares += r * r
	}
	return sum * sum / (float64(len(rates)) * squares)
}
