package store

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"
	"time"

	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/workload/kv/ycsb"
	"github.com/rdmaperf/rdmaperf/transports"
)

// Service answers calls out of a store. It is safe for concurrent use.
type Service struct {
	cfg   ycsb.Config
	store *Store

	calls, puts atomic.Int64

	all   bool                    // what is put is compared, too
	found atomic.Pointer[Corrupt] // first among that
}

// CompareAll has everything compared that is put from now on: what is put again before
// anybody reads it is seen by nobody else. Call it before the first call.
func (s *Service) CompareAll() { s.all = true }

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
	s := &Service{cfg: cfg, store: store}
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
			s.cfg.FillRecord(value, ycsb.ID(part[i].record))
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
	ID   uint64 // of the key
	At   int    // byte of the record
	Want byte
	Got  byte
	Why  string // when it is no byte that is wrong
}

func (c *Corrupt) Error() string {
	if c.Why != "" {
		return c.Why
	}
	return fmt.Sprintf("record user%d: byte %d is %#02x, want %#02x", c.ID, c.At, c.Got, c.Want)
}

// Damage compares a record with its contents and returns nil or a *Corrupt.
func Damage(cfg ycsb.Config, id uint64, value []byte) error {
	at, want := cfg.CheckRecord(value, id)
	switch {
	case at < 0:
		return nil
	case len(value) != cfg.RecordBytes():
		return &Corrupt{ID: id, Why: fmt.Sprintf("record user%d has %d bytes, want %d", id, len(value),
			cfg.RecordBytes())}
	}
	return &Corrupt{ID: id, At: at, Want: want, Got: value[at]}
}

// DamageScan looks at what a scan of up to count records from the key of a record on
// returned, and returns nil or a *Corrupt. The record exists, so the scan begins with it.
func DamageScan(cfg ycsb.Config, record uint64, count int, scanned []byte) error {
	var last []byte
	n := 0
	err := Records(scanned, func(key, value []byte) error {
		id, ok := ycsb.ParseKey(key)
		switch {
		case !ok:
			return &Corrupt{Why: fmt.Sprintf("a scan finds the key %q", key)}
		case n == 0 && id != ycsb.ID(record):
			return &Corrupt{Why: fmt.Sprintf("a scan begins at user%d, want user%d", id, ycsb.ID(record))}
		case n > 0 && bytes.Compare(key, last) <= 0:
			return &Corrupt{Why: fmt.Sprintf("a scan has %s behind %s", key, last)}
		}
		last = key
		n++
		return Damage(cfg, id, value)
	})
	var found *Corrupt
	switch {
	case errors.As(err, &found):
		return found
	case err != nil:
		return &Corrupt{Why: err.Error()}
	case n == 0 || n > count:
		return &Corrupt{Why: fmt.Sprintf("a scan of %d records has %d", count, n)}
	}
	return nil
}

// Audit looks at the store when no call is under way: what was loaded and what calls
// have put must be there, and nothing else. Of the records it reads most, spread evenly,
// and all if they are fewer. A *Corrupt is among the errors.
func (s *Service) Audit(ctx context.Context, most int) error {
	if c := s.found.Load(); c != nil {
		return fmt.Errorf("audit store: %w", c)
	}
	var key, value []byte
	n := s.cfg.Records + int(s.puts.Load())
	step := max(1, (n+most-1)/most)
	for i := 0; i < n; i += step {
		if ctx.Err() != nil {
			return fmt.Errorf("audit store: %w", context.Cause(ctx))
		}
		var err error
		key = ycsb.AppendKey(key[:0], uint64(i))
		if value, err = s.store.Get(value[:0], key); errors.Is(err, ErrNotFound) {
			err = &Corrupt{Why: fmt.Sprintf("record %d of %d, %s, is missing", i, n, key)}
		}
		if err == nil {
			err = Damage(s.cfg, ycsb.ID(uint64(i)), value)
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

// Calls is how many calls were answered, and Puts how many of them put a record.
func (s *Service) Calls() int64 { return s.calls.Load() }
func (s *Service) Puts() int64  { return s.puts.Load() }

// Close closes the store. No call may be under way.
func (s *Service) Close() error { return s.store.Close() }

// work does what a request asks for and appends the answer to out, which has room for
// what is usual.
type work func(s *Service, in *request, out []byte) ([]byte, error)

var methods = [numMethods]work{
	methodGet: (*Service).get, methodPut: (*Service).put, methodPatch: (*Service).patch, methodScan: (*Service).scan}

// ServeCall answers a call.
func (s *Service) ServeCall(r *transports.Served) error {
	if int(r.Method) >= len(methods) {
		return &transports.CallError{Code: transports.CallUnimplemented,
			Text: fmt.Sprintf("method %d of the key-value service", r.Method)}
	}
	var data []byte
	if len(r.Request) == 1 {
		data = r.Request[0]
	} else {
		whole := newBuffer(r.Request.Len())
		defer whole.Release()
		whole.b = r.Request.AppendTo(whole.b)
		data = whole.b
	}
	var in request
	if err := in.decode(data); err != nil {
		return &transports.CallError{Code: transports.CallInternal, Text: err.Error()}
	}
	room := responseHeader
	if in.count > 0 {
		room += int(min(in.count, ycsb.MaxScanRecords)) * (s.cfg.RecordBytes() + ycsb.MaxKey + recordHeader)
	}
	answer := newBuffer(min(room, maxAnswer))
	began := time.Now()
	out, err := methods[r.Method](s, &in, answer.b[:responseHeader])
	took := time.Since(began)
	if err != nil {
		answer.Release()
		code := transports.CallInternal
		if errors.Is(err, ErrNotFound) {
			code = transports.CallNotFound
		}
		return &transports.CallError{Code: code, Text: err.Error()}
	}
	s.calls.Add(1)
	binary.LittleEndian.PutUint64(out, uint64(took))
	answer.b = out
	r.Response, r.Owner = out, answer
	return nil
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
	s.look(in.key, 0, in.value)
	err := s.store.Put(in.key, in.value)
	if err == nil {
		s.puts.Add(1)
	}
	return out, err
}

func (s *Service) patch(in *request, out []byte) ([]byte, error) {
	s.look(in.key, int(in.offset), in.value)
	return out, s.store.Patch(in.key, int(in.offset), in.value)
}

// look compares fields that are put with what their versions say, and keeps the first damage.
func (s *Service) look(key []byte, offset int, value []byte) {
	if !s.all {
		return
	}
	id, ok := ycsb.ParseKey(key)
	size := s.cfg.FieldBytes
	for at := 0; at < len(value); at += size {
		if !ok || offset%size != 0 || len(value)-at < size {
			s.found.CompareAndSwap(nil,
				&Corrupt{Why: fmt.Sprintf("%d bytes at %d are put to the key %q", len(value), offset, key)})
			return
		}
		if i, want := s.cfg.Check(value[at:at+size], id, (offset+at)/size); i >= 0 {
			s.found.CompareAndSwap(nil, &Corrupt{ID: id, At: offset + at + i, Want: want, Got: value[at+i]})
			return
		}
	}
}

func (s *Service) scan(in *request, out []byte) ([]byte, error) {
	return s.store.Scan(out, in.key, int(min(in.count, ycsb.MaxScanRecords)), maxAnswer)
}
