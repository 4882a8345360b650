package bench

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	"google.golang.org/grpc"

	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/bench/kv"
	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/bench/ycsb"
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
func KVPoint(l KVLoad) Point {
	return Point{Workload: WorkloadKV, Op: transports.KindCall.String(), Size: l.RecordBytes(), Call: CallUnary, Response: l.RecordBytes(), KV: l}
}

func (l KVLoad) config(seed uint64) (ycsb.Config, error) {
	mix, ok := ycsb.FindMix(l.Mix)
	if !ok {
		return ycsb.Config{}, fmt.Errorf("mix %q: want one of %v", l.Mix, ycsb.Mixes())
	}
	c := ycsb.Config{Mix: mix, Records: l.Records, Fields: l.Fields, FieldBytes: l.FieldBytes, MaxScan: l.MaxScan, Seed: seed}
	return c, c.Validate()
}

// validateKV checks what only this workload asks of a point.
func (p Point) validateKV() error {
	if _, err := p.KV.config(0); err != nil {
		return err
	}
	switch {
	case p.Op != transports.KindCall.String() || p.Call != CallUnary:
		return errors.New("the operations are unary calls")
	case p.Size != p.KV.RecordBytes() || p.Response != p.Size:
		return fmt.Errorf("size %d, but records have %d bytes", p.Size, p.KV.RecordBytes())
	case p.Outstanding < 0 || p.Outstanding > maxDepth:
		return fmt.Errorf("%d calls outstanding: want 1 to %d", p.Outstanding, maxDepth)
	}
	return nil
}

// storeBytes is what a point stores on the server.
func (sh *Shape) storeBytes() int { return sh.KV.Records * (sh.KV.RecordBytes() + ycsb.MaxKey) }

var kvWork = callWork{serve: serveKV, callers: kvCallers, result: kvResult}

// kvService is the server's side.
type kvService struct {
	*kv.Service
	sh    *Shape
	gen   int
	calls int64 // before the phase
}

func serveKV(sh *Shape, r grpc.ServiceRegistrar, _ func(error)) (callService, error) {
	cfg, err := sh.KV.config(sh.Seed)
	if err != nil {
		return nil, failed(sh.Point.String(), err) // it was checked before
	}
	s, err := kv.NewService(cfg, kv.Options{Fsync: sh.KV.Fsync})
	if err != nil {
		return nil, failed(sh.Point.String(), err)
	}
	s.Register(r)
	return &kvService{Service: s, sh: sh}, nil
}

func (s *kvService) begin(gen int) error {
	s.gen, s.calls = gen, s.Calls()
	return nil
}

// auditMost bounds the records that are read again behind the window.
const auditMost = 1 << 17

// end looks at the store behind the measured phase, when every call was answered.
func (s *kvService) end() (int64, error) {
	ops := s.Calls() - s.calls
	if s.gen != genMeasure || !s.sh.Verify {
		return ops, nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), s.sh.Timeout)
	defer cancel()
	return ops, kvWrong(s.sh, sideServer, s.Audit(ctx, auditMost))
}

func (s *kvService) close() error { return s.Close() }

// kvWrong tells corruptions from other errors.
func kvWrong(sh *Shape, side string, err error) error {
	var found *kv.Corrupt
	switch {
	case err == nil:
		return nil
	case errors.As(err, &found):
		return corrupted(fmt.Errorf("%s: %w (seen by the %s)", sh.Point, err, side))
	}
	return failed(sh.Point.String(), err)
}
