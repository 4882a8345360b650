package results

import (
	"math"
	"slices"

	calls "github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/workload/rpc/results"
	"github.com/rdmaperf/rdmaperf/reports"
)

// Results declares the dimensions and figures of these results.
var Results = &reports.Workload{
	Name: "kv", Title: "Key-value store", Timed: true, Rated: true,
	Intro: "Mixes of YCSB on an embedded store behind calls. Each answer says how long the server was in the store: " +
		"what is left of the latency is what carries the calls. Writers wait for each other in the store.",
	Dims: []reports.DimDef{
		{Name: "call", Help: "kind of the calls"},
		{Name: "mix", Help: "of YCSB, a to f"},
		{Name: "title", Help: "the mix in words"},
		{Name: "requests", Help: "distribution of the records that are asked for"},
		{Name: "records", Help: "loaded before"},
		{Name: "fields", Help: "of a record"},
		{Name: "field_bytes", Unit: "B", Help: "of a field"},
		{Name: "max_scan", Help: "most records of a scan"},
		{Name: "store", Help: "behind the calls"},
		{Name: "fsync", Help: "true where every write is on disk before it is answered"},
	},
	Latencies: latencies(),
	Figures:   slices.Concat(calls.FigureDefs, figures()),
	Shown:     []string{"mean", "p50", "p99", "rate", "bw", "store.mean", "store.share", "cpu.call"},
	Detail:    func() reports.Detail { return new(Detail) },
	Describe:  describe,
}

func latencies() (all []reports.DimDef) {
	for _, op := range ops {
		all = append(all, reports.DimDef{Name: op, Help: op + " from the call to its answer"},
			reports.DimDef{Name: op + "-store", Help: op + ", what of it the server spent in the store"})
	}
	return all
}

func figures() []reports.FigureDef {
	all := []reports.FigureDef{
		{Name: "store.mean", Quantity: reports.QuantityTime,
			Help: "the store's part of the mean latency of all operations"},
		{Name: "store.share", Quantity: reports.QuantityRatio, Better: reports.Neither,
			Help: "that as a part of the mean"},
		{Name: "inserted", Quantity: reports.QuantityCount, Better: reports.Neither,
			Help: "records that the mix added"},
	}
	for _, op := range ops {
		all = append(all, reports.FigureDef{Name: op + ".rate", Quantity: reports.QuantityRate, Better: reports.More,
			Help: op + " a second"})
	}
	return all
}

// Member implements reports.Detail.
func (*Detail) Member(string) string { return "" }

func describe(w *reports.Workload, r *reports.Result) {
	k := Of(r)
	r.Waits = calls.Waits(r)
	var fsync any
	if k.Fsync {
		fsync = true
	}
	r.Dims = reports.DimsOf(w.Dims, calls.Of(r).Call, k.Mix, k.Title, k.Requests, k.Records, k.Fields, k.FieldBytes,
		reports.NotZero(k.MaxScan), k.Store, fsync)
	none := math.NaN()
	values := append(calls.Values(r), none, none, none)
	at := len(calls.FigureDefs)
	if len(k.Operations) > 0 && r.Latency != nil {
		values[at], values[at+1] = k.storeMean(), k.storeMean()/r.Latency.Mean
	}
	if k.Inserted > 0 {
		values[at+2] = float64(k.Inserted)
	}
	for i, op := range ops {
		values = append(values, none)
		of := slices.IndexFunc(k.Operations, func(o Operation) bool { return o.Op == op })
		if of < 0 {
			continue
		}
		o := &k.Operations[of]
		values[len(values)-1] = o.PerSecond
		r.Latencies = append(r.Latencies, reports.LatenciesOf(w.Latencies[2*i:], &o.Latency, &o.Store)...)
	}
	r.Figures = reports.FiguresOf(w.Figures, values...)
}
