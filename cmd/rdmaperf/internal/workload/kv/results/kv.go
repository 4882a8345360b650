package results

import (
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

// CallDetail implements what calls.Of looks for.
func (d *Detail) CallDetail() *calls.RPC { return &d.Calls }

// KV is a mix of YCSB on a store behind calls. The result's Latency is of all operations
// together; Throughput counts the contents of records that went either way.
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

// Operation is what one kind of operation took. Latency is from the call to its
// answer, and of a read-modify-write both calls; Store is how much of that the server
// spent in the store, waits for other writers included.
type Operation struct {
	Op         string          `json:"op"`
	Operations int64           `json:"operations"`
	PerSecond  float64         `json:"operations_per_second"`
	Latency    reports.Latency `json:"latency"`
	Store      reports.Latency `json:"store"`
}

// ops are the kinds of operations.
var ops = []string{"read", "update", "insert", "scan", "rmw"}

// storeMean is the store's part of the mean latency of all operations.
func (k *KV) storeMean() float64 {
	var n, sum float64
	for i := range k.Operations {
		n += float64(k.Operations[i].Operations)
		sum += float64(k.Operations[i].Operations) * k.Operations[i].Store.Mean
	}
	return sum / n
}
