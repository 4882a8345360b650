// Package kv is the key-value workload: the mixes of YCSB on an embedded store behind calls.
//
// The server loads a point's own store before the first phase. The latency of an operation is that of its calls: one,
// or a read's and an update's. Every answer says how long the store took.
//
// The store is bbolt, a B+tree in one memory-mapped file, whose reads take a fifth of an LSM tree's (pebble), and which
// has no thread that compacts. A write is a transaction, so its time in the store holds the wait for writers before it.
package kv

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/spf13/pflag"

	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/drive"
	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/engine"
	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/values"
	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/workload"
	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/workload/kv/ycsb"
	calls "github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/workload/rpc/results"
	"github.com/rdmaperf/rdmaperf/reports"
	"github.com/rdmaperf/rdmaperf/transports"
)

const Name = "kv"

const allMixes = "all"

type Workload struct {
	mixes []string
	load  KVLoad
}

func (*Workload) Meta() workload.Meta {
	return workload.Meta{
		Name:       Name,
		Results:    results,
		Summary:    "YCSB on a key-value store behind gRPC calls",
		Examples:   "rdmaperf run --transport 'grpc(tcp),grpc(fused)+iwarp' --workload kv --ycsb a,c --outstanding 4",
		Group:      "Workloads rpc, kv and tensor",
		Calls:      true,
		OwnThreads: true,
		Takes:      []string{"outstanding", "rate", "rate-sweep"},
		Words:      map[string][]string{"ycsb": {"all", "a", "b", "c", "d", "e", "f"}},
	}
}

func (k *Workload) Flags(f *pflag.FlagSet) {
	f.StringSliceVar(&k.mixes, "ycsb", []string{allMixes},
		"kv: comma list of mixes of YCSB: a (update heavy), b (read mostly), c (read only), d (read latest), e "+
			"(short ranges), f (read-modify-write), all")
	f.IntVar(&k.load.Records, "records", 100_000, // 100 MB of contents, more than any cache of a processor holds
		"kv: records that the server loads for each point, before its window")
	f.IntVar(&k.load.Fields, "fields", ycsb.DefaultFields, "kv: fields of a record")
	f.IntVar(&k.load.FieldBytes, "field-bytes", ycsb.DefaultFieldBytes,
		"kv: bytes of a field; an update writes one field, a read takes all")
	f.IntVar(&k.load.MaxScan, "max-scan", ycsb.DefaultMaxScan,
		"kv: longest scan, in records; the lengths are uniform from 1")
	f.BoolVar(&k.load.Fsync, "kv-fsync", false,
		"kv: each write is on the server's disk before it is answered (default it is not flushed at all)")
}

func (k *Workload) Points(c *workload.Common) (points []engine.Point, err error) {
	if err := c.CheckCalls(Name, "ycsb"); err != nil {
		return nil, err
	}
	if c.Alone() && c.AnyOf("size", "all") != "" {
		return nil, values.Wrong("size", "records of the workload %s have --fields of --field-bytes", Name)
	}
	mixes := values.Unique(k.mixes)
	if slices.Contains(mixes, allMixes) {
		mixes = ycsb.Mixes()
	}
	for _, mix := range mixes {
		load := k.load
		if load.Mix = strings.ToLower(mix); !slices.Contains(ycsb.Mixes(), load.Mix) {
			return nil, values.Wrong("ycsb", "%q: want %s or %s", mix, strings.Join(ycsb.Mixes(), ", "), allMixes)
		}
		pt := KVPoint(load)
		if err := load.check(pt); err != nil {
			return nil, pt.Wrong(err)
		}
		points = append(points, c.OfCalls(pt)...)
	}
	return points, nil
}

// KVLoad is what the key-value workload asks for.
type KVLoad struct {
	Mix        string `json:"mix"`
	Records    int    `json:"records"`
	Fields     int    `json:"fields"`
	FieldBytes int    `json:"field_bytes"`
	MaxScan    int    `json:"max_scan"`
	Fsync      bool   `json:"fsync,omitempty"`
}

// recordBytes is the size of a record without its key, and Point.Size.
func (l *KVLoad) recordBytes() int { return l.Fields * l.FieldBytes }

func KVPoint(l KVLoad) engine.Point {
	return engine.Point{Workload: Name, Op: transports.KindCall.String(), Size: l.recordBytes(), Call: engine.CallUnary,
		Response: l.recordBytes(), Options: engine.PackOptions(l),
		Words: fmt.Sprintf("%s YCSB %s, %d records", Name, l.Mix, l.Records)}
}

func (l *KVLoad) config(seed uint64) (ycsb.Config, error) {
	mix, ok := ycsb.FindMix(l.Mix)
	if !ok {
		return ycsb.Config{}, fmt.Errorf("mix %q: want one of %v", l.Mix, ycsb.Mixes())
	}
	c := ycsb.Config{Mix: mix, Records: l.Records, Fields: l.Fields, FieldBytes: l.FieldBytes, MaxScan: l.MaxScan,
		Seed: seed}
	return c, c.Validate()
}

func (l *KVLoad) check(p engine.Point) error {
	if _, err := l.config(0); err != nil {
		return err
	}
	switch {
	case p.Op != transports.KindCall.String() || p.Call != engine.CallUnary:
		return errors.New("the operations are unary calls")
	case p.Size != l.recordBytes() || p.Response != p.Size:
		return fmt.Errorf("size %d, but records have %d bytes", p.Size, l.recordBytes())
	}
	return nil
}

func shape(s *engine.Setup) (*engine.Shape, *KVLoad, transports.CallConfig, error) {
	l, err := engine.ReadOptions(s.Point, func(l *KVLoad, _ int) error { return l.check(s.Point) })
	if err != nil {
		return nil, nil, transports.CallConfig{}, err
	}
	sh, err := drive.CallShape(s, 1)
	if err != nil {
		return nil, nil, transports.CallConfig{}, err
	}
	cfg := drive.CallConfig(sh, 2) // callers of each goroutine: one reads, one writes
	record := ycsb.MaxKey + l.recordBytes()
	cfg.MaxRequest = requestHeader + record
	cfg.MaxResponse = responseHeader + min(max(l.MaxScan, 1)*(record+recordHeader), maxAnswer)
	return sh, &l, cfg, nil
}

func (*Workload) Server(ctx context.Context, s *engine.Serve) error {
	sh, l, cfg, err := shape(&s.Setup)
	if err != nil {
		return err
	}
	if limit := s.MaxWindow(); sh.TotalWindow() <= limit && l.stored() > limit-sh.TotalWindow() {
		return &reports.ExitError{Code: reports.ExitUsage, Operation: "check " + sh.String(),
			Err:  fmt.Errorf("a store of %d bytes is above the server's limit of %d", l.stored(), limit),
			Hint: "fewer --records, or serve with a larger --max-window"}
	}
	if err := s.HoldShape(sh, l.stored()); err != nil {
		return err
	}
	svc, err := newService(sh, l)
	if err != nil {
		return engine.Failed(sh.String(), err)
	}
	return drive.ServeCalls(ctx, s, sh, cfg, svc, drive.NewFailure())
}

func (*Workload) Client(ctx context.Context, r *engine.Run) error {
	sh, l, cfg, err := shape(&r.Setup)
	if err != nil {
		return err
	}
	k, err := drive.ConnectCalls(ctx, r, sh, cfg, drive.Callers(sh, false, callers(sh, l)))
	if err != nil {
		return err
	}
	err = k.Close(ctx, k.Run(ctx))
	res := k.Result()
	complete(k, l, &res)
	r.Add(res)
	return err
}

func (l *KVLoad) stored() int64 { return int64(l.Records) * int64(l.recordBytes()+ycsb.MaxKey) }

func wrong(sh *engine.Shape, side string, err error) error {
	if err == nil {
		return nil
	}
	if _, ok := errors.AsType[*corrupt](err); ok {
		return engine.Corrupted(fmt.Errorf("%s: %w (seen by the %s)", sh, err, side))
	}
	return engine.Failed(sh.String(), err)
}

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
