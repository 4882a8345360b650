package kv

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/drive"
	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/engine"
	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/workload/kv/store"
	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/workload/kv/ycsb"
	"github.com/rdmaperf/rdmaperf/reports"
	"github.com/rdmaperf/rdmaperf/transports"
)

// The key-value workload: a mix of YCSB on an embedded store behind calls. The server
// loads the records itself before the first phase, so that loading is no call and in no
// window. A point has a store of its own. The latency of an operation is that of its
// calls: one, and of a read-modify-write a read and an update. Every answer says how
// long the store took, so that the rest is the calls'.

// KVLoad is what the key-value workload asks for. Zero fields are the published
// defaults, and DefaultRecords.
type KVLoad struct {
	Mix        string `json:"mix"`
	Records    int    `json:"records"`
	Fields     int    `json:"fields"`
	FieldBytes int    `json:"field_bytes"`
	MaxScan    int    `json:"max_scan"`
	Fsync      bool   `json:"fsync,omitempty"`
}

// DefaultRecords are loaded where nothing else is said. Arbitrary: 100 MB of contents,
// more than any cache of a processor holds.
const DefaultRecords = 100_000

// KVMixes lists the mixes.
func KVMixes() []string { return ycsb.Mixes() }

// WithDefaults fills in what is zero.
func (l KVLoad) WithDefaults() KVLoad {
	l.Records = cmp.Or(l.Records, DefaultRecords)
	l.Fields = cmp.Or(l.Fields, ycsb.DefaultFields)
	l.FieldBytes = cmp.Or(l.FieldBytes, ycsb.DefaultFieldBytes)
	l.MaxScan = cmp.Or(l.MaxScan, ycsb.DefaultMaxScan)
	return l
}

// RecordBytes is the size of a record without its key, and Point.Size.
func (l KVLoad) RecordBytes() int { return l.Fields * l.FieldBytes }

// KVPoint is a point of this workload.
func KVPoint(l KVLoad) engine.Point {
	return engine.Point{Workload: Name, Op: transports.KindCall.String(), Size: l.RecordBytes(), Call: engine.CallUnary,
		Response: l.RecordBytes(), Options: engine.PackOptions(l), Words: fmt.Sprintf("%s YCSB %s, %d records", Name,
			l.Mix, l.Records)}
}

// loadOf is the load of a point, nothing where its options are none.
func loadOf(p engine.Point) (l KVLoad) {
	if p.Options.Unpack(&l) != nil {
		return KVLoad{}
	}
	return l
}

func (l KVLoad) config(seed uint64) (ycsb.Config, error) {
	mix, ok := ycsb.FindMix(l.Mix)
	if !ok {
		return ycsb.Config{}, fmt.Errorf("mix %q: want one of %v", l.Mix, ycsb.Mixes())
	}
	c := ycsb.Config{Mix: mix, Records: l.Records, Fields: l.Fields, FieldBytes: l.FieldBytes, MaxScan: l.MaxScan,
		Seed: seed}
	return c, c.Validate()
}

// check is what only this workload asks of a point.
func (l *KVLoad) check(p engine.Point) error {
	if _, err := l.config(0); err != nil {
		return err
	}
	switch {
	case p.Op != transports.KindCall.String() || p.Call != engine.CallUnary:
		return errors.New("the operations are unary calls")
	case p.Size != l.RecordBytes() || p.Response != p.Size:
		return fmt.Errorf("size %d, but records have %d bytes", p.Size, l.RecordBytes())
	}
	return nil
}

// callers of each goroutine: one reads, one writes.
const callersEach = 2

// shape is that of a point, and what its calls may be.
func shape(s *engine.Setup) (*engine.Shape, *KVLoad, transports.CallConfig, error) {
	l, err := engine.ReadOptions(s.Point, func(l *KVLoad, _ int) error { return l.check(s.Point) })
	if err != nil {
		return nil, nil, transports.CallConfig{}, err
	}
	sh, err := drive.CallShape(s, 1)
	if err != nil {
		return nil, nil, transports.CallConfig{}, err
	}
	cfg := drive.CallConfig(sh, callersEach)
	cfg.MaxRequest, cfg.MaxResponse = store.MaxRequest(l.RecordBytes()),
		store.MaxResponse(l.RecordBytes(), max(l.MaxScan, 1))
	return sh, &l, cfg, nil
}

// Server is the store, which it loads first.
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
	svc, err := serveKV(sh, l)
	if err != nil {
		return err
	}
	return drive.ServeCalls(ctx, s, sh, cfg, svc, drive.NewFailure())
}

// Client measures one point.
func (*Workload) Client(ctx context.Context, r *engine.Run) error {
	sh, l, cfg, err := shape(&r.Setup)
	if err != nil {
		return err
	}
	k, err := drive.ConnectCalls(ctx, r, sh, cfg, drive.Callers(sh, false, kvCallers(sh)))
	if err != nil {
		return err
	}
	err = k.Close(ctx, k.Run(ctx))
	res := k.Result()
	complete(k, l, &res)
	r.Add(res)
	return err
}

// stored is what a point stores on the server, bytes.
func (l *KVLoad) stored() int64 { return int64(l.Records) * int64(l.RecordBytes()+ycsb.MaxKey) }

// kvService is the server's side.
type kvService struct {
	*store.Service
	sh    *engine.Shape
	gen   int
	calls int64 // before the phase
}

func serveKV(sh *engine.Shape, l *KVLoad) (engine.CallService, error) {
	cfg, err := l.config(sh.Seed)
	if err != nil {
		return nil, engine.Failed(sh.String(), err) // it was checked before
	}
	s, err := store.NewService(cfg, store.Options{Fsync: l.Fsync})
	if err != nil {
		return nil, engine.Failed(sh.String(), err)
	}
	if sh.Verify && sh.VerifyAll {
		s.CompareAll()
	}
	return &kvService{Service: s, sh: sh}, nil
}

func (s *kvService) Begin(gen int) error {
	s.gen, s.calls = gen, s.Calls()
	return nil
}

// auditMost bounds the records that are read again behind the window.
const auditMost = 1 << 17

// End looks at the store behind the measured phase, when every call was answered.
func (s *kvService) End() (int64, error) {
	ops := s.Calls() - s.calls
	if s.gen != engine.GenMeasure || !s.sh.Verify {
		return ops, nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), s.sh.Timeout)
	defer cancel()
	return ops, kvWrong(s.sh, engine.SideServer, s.Audit(ctx, auditMost))
}

func (s *kvService) Close() error { return s.Service.Close() }

// kvWrong tells corruptions from other errors.
func kvWrong(sh *engine.Shape, side string, err error) error {
	var found *store.Corrupt
	switch {
	case err == nil:
		return nil
	case errors.As(err, &found):
		return engine.Corrupted(fmt.Errorf("%s: %w (seen by the %s)", sh, err, side))
	}
	return engine.Failed(sh.String(), err)
}
