package kv

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/drive"
	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/engine"
	kvresults "github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/workload/kv/results"
	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/workload/kv/store"
	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/workload/kv/ycsb"
	"github.com/rdmaperf/rdmaperf/reports"
	"github.com/rdmaperf/rdmaperf/transports"
)

// kvShare is what the callers of a point share: which records there are, and the
// histograms of the phase.
type kvShare struct {
	sh      *engine.Shape
	cfg     ycsb.Config
	keys    *ycsb.Keys
	tallies []*kvTally
}

// kvTally is of some callers, as tally is. Its histograms are made when first needed:
// a mix has one or two kinds of operations.
type kvTally struct {
	mu  sync.Mutex
	gen int
	ops [ycsb.NumOps]kvTimes
}

type kvTimes struct{ call, store *reports.Recorder }

// maxKVTallies bounds them. They are held for less than a percent of a call.
const maxKVTallies = 8

func (t *kvTally) reset(gen int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.gen == gen {
		return
	}
	t.gen = gen
	for _, o := range t.ops {
		if o.call != nil {
			o.call.Reset()
			o.store.Reset()
		}
	}
}

func (t *kvTally) add(op ycsb.Op, call, store int64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	o := &t.ops[op]
	if o.call == nil {
		*o = kvTimes{reports.NewRecorder(), reports.NewRecorder()}
	}
	o.call.Record(call)
	o.store.Record(store)
}

// kvCaller makes the operations of one thread of YCSB.
type kvCaller struct {
	*kvShare
	t       *kvTally
	conn    transports.CallConn
	gen     *ycsb.Generator
	index   int
	version uint64 // of the last field written
	read    *store.Client
	write   *store.Client

	op     ycsb.Operation
	wrong  error // of choosing it
	key    []byte
	field  []byte
	record []byte
	got    store.Reply
	store  time.Duration
	moved  int

	answers, bytes int64 // of this phase that were compared byte by byte
}

func kvCallers(sh *engine.Shape) func(transports.CallConn, int) (engine.Caller, error) {
	l := loadOf(sh.Point)
	cfg, err := l.config(sh.Seed)
	share := &kvShare{sh: sh, cfg: cfg, keys: ycsb.NewKeys(l.Records),
		tallies: make([]*kvTally, min(maxKVTallies, sh.QPs*sh.Depth))}
	for i := range share.tallies {
		share.tallies[i] = &kvTally{gen: -1}
	}
	return func(conn transports.CallConn, index int) (engine.Caller, error) {
		if err != nil {
			return nil, engine.Failed(sh.String(), err) // it was checked before
		}
		g, err := ycsb.NewGenerator(cfg, share.keys, index)
		if err != nil {
			return nil, engine.Failed(sh.String(), err)
		}
		return &kvCaller{kvShare: share, t: share.tallies[index%len(share.tallies)], gen: g, index: index,
			version: uint64(index) << 40,
			conn:    conn, key: make([]byte, 0, ycsb.MaxKey),
			field: make([]byte, cfg.FieldBytes), record: make([]byte, cfg.RecordBytes())}, nil
	}
}

func (c *kvCaller) Begin(ctx context.Context, gen int) error {
	c.t.reset(gen)
	c.answers, c.bytes = 0, 0
	for _, end := range []**store.Client{&c.read, &c.write} { // what was read stays while it is updated
		k, err := c.conn.Caller(ctx, transports.CallerConfig{})
		if err != nil {
			return err
		}
		*end = store.NewClient(k)
	}
	return nil
}

// Prepare also writes the contents, so that only calls are timed.
func (c *kvCaller) Prepare(int64) {
	if c.op, c.wrong = c.gen.Next(); c.wrong != nil {
		return
	}
	c.key = ycsb.AppendKey(c.key[:0], c.op.Record)
	switch id := ycsb.ID(c.op.Record); c.op.Op {
	case ycsb.Update, ycsb.RMW:
		c.version++
		c.cfg.Fill(c.field, id, c.op.Field, c.version)
	case ycsb.Insert:
		c.cfg.FillRecord(c.record, id)
	}
}

func (c *kvCaller) Call() (err error) {
	if c.wrong != nil {
		return c.wrong
	}
	c.store, c.moved = 0, 0
	switch c.op.Op {
	case ycsb.Read:
		err = c.took(c.read.Get(c.key))
	case ycsb.Scan:
		err = c.took(c.read.Scan(c.key, c.op.Scan))
	case ycsb.Insert:
		err = c.wrote(len(c.record))(c.write.Put(c.key, c.record))
	case ycsb.Update:
		err = c.update()
	case ycsb.RMW:
		if err = c.took(c.read.Get(c.key)); err == nil {
			err = c.update()
		}
	}
	// every record asked for was loaded, or its insert answered
	if err != nil && transports.AsCallError(err).Code == transports.CallNotFound {
		err = engine.Corrupted(fmt.Errorf("%s: %s of %s: the record is missing", c.sh, c.op.Op, c.key))
	}
	return err
}

func (c *kvCaller) update() error {
	return c.wrote(len(c.field))(c.write.Patch(c.key, c.op.Field*c.cfg.FieldBytes, c.field))
}

func (c *kvCaller) took(r store.Reply, err error) error {
	c.got = r
	c.store += r.Store
	c.moved += len(r.Value)
	return err
}

func (c *kvCaller) wrote(n int) func(store.Reply, error) error {
	return func(r store.Reply, err error) error {
		c.store += r.Store
		c.moved += n
		return err
	}
}

func (c *kvCaller) Check(ns int64) (int64, error) {
	c.t.add(c.op.Op, ns, int64(c.store))
	var err error
	switch c.op.Op {
	case ycsb.Insert:
		c.keys.Ack(c.op.Record)
		return int64(c.moved), nil
	case ycsb.Update:
		return int64(c.moved), nil
	case ycsb.Scan:
		if c.sh.Verify {
			err = store.DamageScan(c.cfg, c.op.Record, c.op.Scan, c.got.Value)
		}
	default:
		if c.sh.Verify {
			err = store.Damage(c.cfg, ycsb.ID(c.op.Record), c.got.Value)
		}
	}
	if c.sh.Verify {
		c.answers++
		c.bytes += int64(len(c.got.Value))
	}
	c.read.Free()
	return int64(c.moved), kvWrong(c.sh, engine.SideClient, err)
}

func (c *kvCaller) End() error {
	return errors.Join(c.read.Close(), c.write.Close())
}

// complete adds to a result what only this workload has.
func complete(k *drive.Calls, l *KVLoad, res *reports.Result) {
	var callers []*kvCaller
	k.Each(func(c engine.Caller) { callers = append(callers, c.(*kvCaller)) })
	if len(callers) == 0 || k.Out == nil {
		return
	}
	s := callers[0].kvShare
	out := &kvresults.KV{Mix: s.cfg.Mix.Name, Title: s.cfg.Mix.Title, Requests: s.cfg.Mix.Request.String(),
		Records: int64(l.Records), Fields: l.Fields, FieldBytes: l.FieldBytes,
		Store: "bbolt", Fsync: l.Fsync, Inserted: int64(s.keys.Count()) - int64(l.Records)}
	if s.cfg.Mix.Has(ycsb.Scan) {
		out.MaxScan = l.MaxScan
	}
	for op := range ycsb.NumOps {
		var all kvTimes
		for _, t := range s.tallies {
			t.mu.Lock()
			if o := t.ops[op]; o.call != nil && t.gen == engine.GenMeasure {
				if all.call == nil {
					all = kvTimes{reports.NewRecorder(), reports.NewRecorder()}
				}
				all.call.Merge(o.call)
				all.store.Merge(o.store)
			}
			t.mu.Unlock()
		}
		if all.call == nil || all.call.Snapshot().Count == 0 {
			continue
		}
		call, store := all.call.Snapshot(), all.store.Snapshot()
		out.Operations = append(out.Operations, kvresults.Operation{Op: op.String(), Operations: call.Count,
			PerSecond: float64(call.Count) / (float64(res.DurationNs) / 1e9), Latency: call, Store: store})
	}
	// of writes, what is read later
	if v := (&reports.Verification{Mode: reports.VerifyAll, Messages: res.Operations}); s.sh.Verify {
		for _, c := range callers {
			v.Numbers, v.Whole, v.Bytes = v.Numbers+c.answers, v.Whole+c.answers, v.Bytes+c.bytes
		}
		res.Verification = v
	}
	calls := *k.RPC()
	calls.RequestBytes, calls.ResponseBytes = 0, 0 // they differ from call to call
	res.Detail = &kvresults.Detail{Calls: calls, KV: *out}
}
