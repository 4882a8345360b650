package kv

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/drive"
	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/engine"
	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/workload/kv/ycsb"
	"github.com/rdmaperf/rdmaperf/reports"
	"github.com/rdmaperf/rdmaperf/transports"
)

// storeClient makes calls, one at a time. It belongs to one goroutine.
type storeClient struct {
	transports.Caller
	c       transports.Call
	request []byte
	answer  []byte // of one that arrived in pieces
}

type reply struct {
	store time.Duration // that the server spent in the store
	value []byte        // until Free or the next call
}

func (c *storeClient) do(method uint8, r request) (reply, error) {
	c.request = r.append(c.request[:0])
	c.c.Method, c.c.Request = method, c.request
	if err := c.Call(&c.c); err != nil {
		return reply{}, err
	}
	var data []byte
	if len(c.c.Response) == 1 {
		data = c.c.Response[0]
	} else {
		c.answer = c.c.Response.AppendTo(c.answer[:0])
		data = c.answer
	}
	if len(data) < responseHeader || binary.LittleEndian.Uint32(data[8:]) != r.count {
		c.Free()
		return reply{}, &transports.CallError{Code: transports.CallInternal,
			Text: "decode response: cut off, or of a request for another count"}
	}
	return reply{time.Duration(binary.LittleEndian.Uint64(data)), data[responseHeader:]}, nil
}

type shared struct {
	sh      *engine.Shape
	cfg     ycsb.Config
	keys    *ycsb.Keys
	tallies [8]tally // held for less than a percent of a call
}

// tally is of some callers. Its histograms are made when first needed.
type tally struct {
	mu  sync.Mutex
	gen int
	ops [ycsb.NumOps]times
}

type times struct{ call, store *reports.Recorder }

func (t *tally) reset(gen int) {
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

func (t *tally) add(op ycsb.Op, call, store int64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	o := &t.ops[op]
	if o.call == nil {
		*o = times{reports.NewRecorder(), reports.NewRecorder()}
	}
	o.call.Record(call)
	o.store.Record(store)
}

type caller struct {
	*shared
	t       *tally
	conn    transports.CallConn
	gen     *ycsb.Generator
	version uint64 // of the last field written
	read    *storeClient
	write   *storeClient

	op     ycsb.Operation
	wrong  error // of choosing it
	key    []byte
	field  []byte
	record []byte
	got    reply         // of what was read
	store  time.Duration // that all of the operation took there

	answers, bytes int64 // of this phase that were compared byte by byte
}

func callers(sh *engine.Shape, l *KVLoad) func(transports.CallConn, int) (engine.Caller, error) {
	cfg, _ := l.config(sh.Seed) // it was checked before
	s := &shared{sh: sh, cfg: cfg, keys: ycsb.NewKeys(l.Records)}
	for i := range s.tallies {
		s.tallies[i].gen = -1
	}
	return func(conn transports.CallConn, index int) (engine.Caller, error) {
		g, err := ycsb.NewGenerator(cfg, s.keys, index)
		if err != nil {
			return nil, engine.Failed(sh.String(), err)
		}
		return &caller{shared: s, t: &s.tallies[index%len(s.tallies)], gen: g, version: uint64(index) << 40, conn: conn,
			key: make([]byte, 0, ycsb.MaxKey), field: make([]byte, cfg.FieldBytes),
			record: make([]byte, cfg.RecordBytes())}, nil
	}
}

func (c *caller) Begin(ctx context.Context, gen int) error {
	c.t.reset(gen)
	c.answers, c.bytes = 0, 0
	for _, end := range []**storeClient{&c.read, &c.write} { // what was read stays while it is updated
		k, err := c.conn.Caller(ctx, transports.CallerConfig{})
		if err != nil {
			return err
		}
		*end = &storeClient{Caller: k}
	}
	return nil
}

// Prepare also writes the contents, so that only calls are timed.
func (c *caller) Prepare(int64) {
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

func (c *caller) Call() (err error) {
	if c.wrong != nil {
		return c.wrong
	}
	var wrote reply
	c.got = reply{}
	switch c.op.Op {
	case ycsb.Read, ycsb.RMW:
		c.got, err = c.read.do(methodGet, request{key: c.key, count: 1})
	case ycsb.Scan:
		c.got, err = c.read.do(methodScan, request{key: c.key, count: uint32(c.op.Scan)})
	case ycsb.Insert:
		wrote, err = c.write.do(methodPut, request{key: c.key, value: c.record})
	}
	if err == nil && (c.op.Op == ycsb.Update || c.op.Op == ycsb.RMW) {
		wrote, err = c.write.do(methodPatch,
			request{key: c.key, offset: uint32(c.op.Field * c.cfg.FieldBytes), value: c.field})
	}
	c.store = c.got.store + wrote.store
	// every record asked for was loaded, or its insert answered
	if err != nil && transports.AsCallError(err).Code == transports.CallNotFound {
		err = engine.Corrupted(fmt.Errorf("%s: %s of %s: the record is missing", c.sh, c.op.Op, c.key))
	}
	return err
}

func (c *caller) Check(ns int64) (int64, error) {
	c.t.add(c.op.Op, ns, int64(c.store))
	moved := len(c.got.value)
	switch c.op.Op {
	case ycsb.Insert:
		c.keys.Ack(c.op.Record)
		return int64(len(c.record)), nil
	case ycsb.Update:
		return int64(len(c.field)), nil
	case ycsb.RMW:
		moved += len(c.field)
	}
	var err error
	if c.sh.Verify {
		c.answers++
		c.bytes += int64(len(c.got.value))
		if c.op.Op == ycsb.Scan {
			err = checkScan(c.cfg, c.op.Record, c.op.Scan, c.got.value)
		} else {
			err = checkRecord(c.cfg, ycsb.ID(c.op.Record), c.got.value)
		}
	}
	c.read.Free()
	return int64(moved), wrong(c.sh, engine.SideClient, err)
}

func (c *caller) End() error { return errors.Join(c.read.Close(), c.write.Close()) }

func complete(k *drive.Calls, l *KVLoad, res *reports.Result) {
	var callers []*caller
	k.Each(func(c engine.Caller) { callers = append(callers, c.(*caller)) })
	if len(callers) == 0 || k.Out == nil {
		return
	}
	s := callers[0].shared
	mix := s.cfg.Mix
	out := KV{Mix: mix.Name, Title: mix.Title, Requests: mix.Requests(), Records: int64(l.Records), Fields: l.Fields,
		FieldBytes: l.FieldBytes, Store: "bbolt", Fsync: l.Fsync, Inserted: int64(s.keys.Count()) - int64(l.Records)}
	if mix.Has(ycsb.Scan) {
		out.MaxScan = l.MaxScan
	}
	for op := range ycsb.NumOps {
		all := times{reports.NewRecorder(), reports.NewRecorder()}
		for i := range s.tallies {
			t := &s.tallies[i]
			t.mu.Lock()
			if o := t.ops[op]; o.call != nil && t.gen == engine.GenMeasure {
				all.call.Merge(o.call)
				all.store.Merge(o.store)
			}
			t.mu.Unlock()
		}
		if call := all.call.Snapshot(); call.Count > 0 {
			out.Operations = append(out.Operations, Operation{Op: op.String(), Operations: call.Count,
				PerSecond: float64(call.Count) / (float64(res.DurationNs) / 1e9), Latency: call,
				Store: all.store.Snapshot()})
		}
	}
	if v := (&reports.Verification{Mode: reports.VerifyAll, Messages: res.Operations}); s.sh.Verify {
		for _, c := range callers {
			v.Numbers, v.Whole, v.Bytes = v.Numbers+c.answers, v.Whole+c.answers, v.Bytes+c.bytes
		}
		res.Verification = v
	}
	calls := *k.RPC()
	calls.RequestBytes, calls.ResponseBytes = 0, 0 // they differ from call to call
	res.Detail = &Detail{Calls: calls, KV: out}
}
