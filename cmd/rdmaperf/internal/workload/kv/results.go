package kv

import (
	"math"
	"slices"

	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/workload/kv/ycsb"
	calls "github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/workload/rpc/results"
	"github.com/rdmaperf/rdmaperf/reports"
)

// Of is the detail of a mix of YCSB, nil for any other.
func Of(r *reports.Result) *KV {
	if d := reports.DetailOf[Detail](r); d != nil {
		return &d.KV
	}
	return nil
}

// Detail is the detail of a mix: the calls, and what they did.
type Detail struct {
	Calls calls.RPC `json:"rpc"`
	KV    KV        `json:"kv"`
}

func (*Detail) Member(string) string { return "" }

// CallDetail implements what calls.Of looks for.
func (d *Detail) CallDetail() *calls.RPC { return &d.Calls }

// KV is a mix of YCSB on a store behind calls. The result's Throughput counts contents of records, either way.
type KV struct {
	Mix        string `json:"mix"`   // a to f
	Title      string `json:"title"` // the mix in words
	Requests   string `json:"requests"`
	Records    int64  `json:"records"` // loaded before
	Fields     int    `json:"fields"`
	FieldBytes int    `json:"field_bytes"`
	MaxScan    int    `json:"max_scan,omitempty"`
	Store      string `json:"store"`
	Fsync      bool   `json:"fsync,omitempty"` // every write is on disk before it is answered
	Inserted   int64  `json:"inserted,omitempty"`

	Operations []Operation `json:"operations"`
}

// Operation is of one kind. Latency is of its calls; Store is the server's part, waits for other writers included.
type Operation struct {
	Op         string          `json:"op"`
	Operations int64           `json:"operations"`
	PerSecond  float64         `json:"operations_per_second"`
	Latency    reports.Latency `json:"latency"`
	Store      reports.Latency `json:"store"`
}

func (k *KV) storeMean() float64 {
	var n, sum float64
	for i := range k.Operations {
		n += float64(k.Operations[i].Operations)
		sum += float64(k.Operations[i].Operations) * k.Operations[i].Store.Mean
	}
	return sum / n
}

var results = &reports.Workload{
	Name: Name, Title: "Key-value store", Timed: true, Rated: true,
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
	for op := range ycsb.NumOps {
		all = append(all, reports.DimDef{Name: op.String(), Help: op.String() + " from the call to its answer"},
			reports.DimDef{Name: op.String() + "-store", Help: op.String() + ", what of it the server spent in the store"})
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
	for op := range ycsb.NumOps {
		all = append(all, reports.FigureDef{Name: op.String() + ".rate", Quantity: reports.QuantityRate,
			Better: reports.More, Help: op.String() + " a second"})
	}
	return all
}

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
	for op := range ycsb.NumOps {
		values = append(values, none)
		for i := range k.Operations {
			if o := &k.Operations[i]; o.Op == op.String() {
				values[len(values)-1] = o.PerSecond
				r.Latencies = append(r.Latencies, reports.LatenciesOf(w.Latencies[2*op:], &o.Latency, &o.Store)...)
			}
		}
	}
	r.Figures = reports.FiguresOf(w.Figures, values...)
}
