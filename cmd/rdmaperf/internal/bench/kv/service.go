package kv

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/bench/ycsb"
)

// Service answers calls out of a store. It is safe for concurrent use.
type Service struct {
	cfg   ycsb.Config
	store *Store
}

// NewService makes a store and loads the records of cfg; o.Expect is filled in.
func NewService(cfg ycsb.Config, o Options) (*Service, error) {
	if err := cfg.Validate(); err != nil {
		return nil, fmt.Errorf("open store: %w", err)
	}
	o.Expect = int64(cfg.Records) * int64(cfg.RecordBytes()+ycsb.MaxKey+16)
	store, err := Open(o)
	if err != nil {
		return nil, err
	}
	s := &Service{cfg, store}
	if err := s.load(); err != nil {
		return nil, errors.Join(err, store.Close())
	}
	return s, nil
}

// loadSorted is how many keys are sorted before they are loaded.
const loadSorted = 1 << 17

type numbered struct {
	key    []byte
	record uint64
}

func (s *Service) load() error {
	value := make([]byte, s.cfg.RecordBytes())
	for from := 0; from < s.cfg.Records; from += loadSorted {
		part := make([]numbered, min(loadSorted, s.cfg.Records-from))
		for i := range part {
			n := uint64(from + i)
			part[i] = numbered{ycsb.AppendKey(make([]byte, 0, ycsb.MaxKey), n), n}
		}
		slices.SortFunc(part, func(a, b numbered) int { return bytes.Compare(a.key, b.key) })
		err := s.store.Load(len(part), func(i int) ([]byte, []byte) {
			s.cfg.FillRecord(value, part[i].record)
			return part[i].key, value
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// Corrupt is what should not be in a store.
type Corrupt struct {
	Record uint64
	At     int // byte of the record
	Want   byte
	Got    byte
	Why    string // when it is no byte that is wrong
}

func (c *Corrupt) Error() string {
	if c.Why != "" {
		return c.Why
	}
	return fmt.Sprintf("record %d, byte %d is %#02x, want %#02x", c.Record, c.At, c.Got, c.Want)
}

// Damage compares a record with its contents and returns nil or a *Corrupt.
func Damage(cfg ycsb.Config, record uint64, value []byte) error {
	at, want := cfg.CheckRecord(value, record)
	switch {
	case at < 0:
		return nil
	case len(value) != cfg.RecordBytes():
		return &Corrupt{Record: record, Why: fmt.Sprintf("record %d has %d bytes, want %d", record, len(value), cfg.RecordBytes())}
	}
	return &Corrupt{Record: record, At: at, Want: want, Got: value[at]}
}

// Audit reads everything: what was loaded and as many inserted records must be there,
// with contents that somebody wrote, and nothing else. A *Corrupt is among the errors.
func (s *Service) Audit(ctx context.Context, inserted int) error {
	var key, value []byte
	n := s.cfg.Records + inserted
	for i := range uint64(n) {
		if i%1024 == 0 && ctx.Err() != nil {
			return fmt.Errorf("audit store: %w", context.Cause(ctx))
		}
		var err error
		key = ycsb.AppendKey(key[:0], i)
		if value, err = s.store.Get(value[:0], key); errors.Is(err, ErrNotFound) {
			err = &Corrupt{Record: i, Why: fmt.Sprintf("record %d of %d is missing", i, n)}
		}
		if err == nil {
			err = Damage(s.cfg, i, value)
		}
		if err != nil {
			return fmt.Errorf("audit store: %w", err)
		}
	}
	have, err := s.store.Count()
	if err == nil && have != n {
		err = &Corrupt{Why: fmt.Sprintf("%d records, want %d", have, n)}
	}
	if err != nil {
		return fmt.Errorf("audit store: %w", err)
	}
	return nil
}

// Close closes the store. No call may be under way.
func (s *Service) Close() error { return s.store.Close() }

// Register adds the service to a server.
func (s *Service) Register(r grpc.ServiceRegistrar) { r.RegisterService(&desc, s) }

const serviceName = "rdmaperf.KV"

// handler is the type that gRPC asks for.
type handler interface {
	answer(*request, work) (*response, error)
}

var desc = grpc.ServiceDesc{
	ServiceName: serviceName,
	HandlerType: (*handler)(nil),
	Methods:     []grpc.MethodDesc{method("Get", (*Service).get), method("Put", (*Service).put), method("Patch", (*Service).patch), method("Scan", (*Service).scan)},
}

// work does what a request asks for and appends the answer to out, which has room for
// what is usual.
type work func(s *Service, in *request, out []byte) ([]byte, error)

func method(name string, do work) grpc.MethodDesc {
	full := "/" + serviceName + "/" + name
	return grpc.MethodDesc{MethodName: name, Handler: func(h any, ctx context.Context, decode func(any) error, between grpc.UnaryServerInterceptor) (any, error) {
		in := new(request)
		if err := decode(in); err != nil {
			return nil, err
		}
		defer in.free()
		if between == nil {
			return h.(handler).answer(in, do)
		}
		return between(ctx, in, &grpc.UnaryServerInfo{Server: h, FullMethod: full},
			func(_ context.Context, in any) (any, error) { return h.(handler).answer(in.(*request), do) })
	}}
}

func (s *Service) answer(in *request, do work) (*response, error) {
	room := responseHeader
	if in.count > 0 {
		room += int(min(in.count, ycsb.MaxScanRecords)) * (s.cfg.RecordBytes() + ycsb.MaxKey + recordHeader)
	}
	b, pooled := buffer(min(room, maxAnswer))
	began := time.Now()
	out, err := do(s, in, b[:responseHeader])
	took := time.Since(began)
	if err != nil {
		code := codes.Internal
		if errors.Is(err, ErrNotFound) {
			code = codes.NotFound
		}
		return nil, status.Error(code, err.Error())
	}
	if cap(out) != cap(b) {
		pooled = nil // it outgrew the buffer
	}
	binary.LittleEndian.PutUint64(out, uint64(took))
	return &response{data: out, pool: pooled}, nil
}

// maxAnswer bounds what a scan returns.
const maxAnswer = 64 << 20

func (s *Service) get(in *request, out []byte) ([]byte, error) {
	return s.store.Get(out, in.key)
}

func (s *Service) put(in *request, out []byte) ([]byte, error) {
	if len(in.value) != s.cfg.RecordBytes() {
		return nil, fmt.Errorf("put %d bytes: records have %d", len(in.value), s.cfg.RecordBytes())
	}
	return out, s.store.Put(in.key, in.value)
}

func (s *Service) patch(in *request, out []byte) ([]byte, error) {
	return out, s.store.Patch(in.key, int(in.offset), in.value)
}

func (s *Service) scan(in *request, out []byte) ([]byte, error) {
	return s.store.Scan(out, in.key, int(min(in.count, ycsb.MaxScanRecords)), maxAnswer)
}
