package kv

import (
	"bytes"
	"cmp"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"
	"time"

	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/engine"
	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/workload/kv/ycsb"
	"github.com/rdmaperf/rdmaperf/transports"
)

type service struct {
	cfg   ycsb.Config
	store *store
	sh    *engine.Shape

	gen         int
	before      int64 // calls before the phase
	calls, puts atomic.Int64
	found       atomic.Pointer[corrupt] // first among what is put, which is compared where all is
}

func newService(sh *engine.Shape, l *KVLoad) (*service, error) {
	cfg, err := l.config(sh.Seed)
	if err != nil {
		return nil, err
	}
	db, err := openStore(l.Fsync, int64(cfg.Records)*int64(cfg.RecordBytes()+ycsb.MaxKey+16))
	if err != nil {
		return nil, err
	}
	s := &service{cfg: cfg, store: db, sh: sh}
	if err := s.load(); err != nil {
		return nil, errors.Join(err, db.Close())
	}
	return s, nil
}

const loadSorted = 1 << 17

func (s *service) load() error {
	type numbered struct {
		key    []byte
		record uint64
	}
	value := make([]byte, s.cfg.RecordBytes())
	for from := 0; from < s.cfg.Records; from += loadSorted {
		part := make([]numbered, min(loadSorted, s.cfg.Records-from))
		for i := range part {
			n := uint64(from + i)
			part[i] = numbered{ycsb.AppendKey(make([]byte, 0, ycsb.MaxKey), n), n}
		}
		slices.SortFunc(part, func(a, b numbered) int { return bytes.Compare(a.key, b.key) })
		err := s.store.load(len(part), func(i int) ([]byte, []byte) {
			s.cfg.FillRecord(value, ycsb.ID(part[i].record))
			return part[i].key, value
		})
		if err != nil {
			return err
		}
	}
	return nil
}

func (s *service) Begin(gen int) error {
	s.gen, s.before = gen, s.calls.Load()
	return nil
}

// auditMost bounds the records that are read again after the window.
const auditMost = 1 << 17

// End looks at the store after the measured phase, when every call was answered.
func (s *service) End() (int64, error) {
	ops := s.calls.Load() - s.before
	if s.gen != engine.GenMeasure || !s.sh.Verify {
		return ops, nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), s.sh.Timeout)
	defer cancel()
	err := s.audit(ctx, auditMost)
	if err != nil {
		err = fmt.Errorf("audit store: %w", err)
	}
	return ops, wrong(s.sh, engine.SideServer, err)
}

func (s *service) Close() error { return s.store.Close() }

// corrupt is what should not be in a store.
type corrupt struct{ text string }

func (c *corrupt) Error() string { return c.text }

func damage(format string, a ...any) *corrupt { return &corrupt{fmt.Sprintf(format, a...)} }

func damagedByte(id uint64, at int, got, want byte) *corrupt {
	return damage("record user%d: byte %d is %#02x, want %#02x", id, at, got, want)
}

// checkRecord returns nil or a *corrupt.
func checkRecord(cfg ycsb.Config, id uint64, value []byte) error {
	at, want := cfg.CheckRecord(value, id)
	switch {
	case at < 0:
		return nil
	case len(value) != cfg.RecordBytes():
		return damage("record user%d has %d bytes, want %d", id, len(value), cfg.RecordBytes())
	}
	return damagedByte(id, at, value[at], want)
}

// checkScan returns nil or a *corrupt. The record exists, so the scan begins with it.
func checkScan(cfg ycsb.Config, record uint64, count int, scanned []byte) error {
	var last []byte
	n := 0
	err := records(scanned, func(key, value []byte) error {
		id, ok := ycsb.ParseKey(key)
		switch {
		case !ok:
			return damage("a scan finds the key %q", key)
		case n == 0 && id != ycsb.ID(record):
			return damage("a scan begins at user%d, want user%d", id, ycsb.ID(record))
		case n > 0 && bytes.Compare(key, last) <= 0:
			return damage("a scan has %s behind %s", key, last)
		}
		last = key
		n++
		return checkRecord(cfg, id, value)
	})
	if err == nil && (n == 0 || n > count) {
		err = damage("a scan of %d records has %d", count, n)
	}
	return err
}

// audit holds up to most records, spread evenly, against what was loaded and put. A *corrupt is among the errors.
func (s *service) audit(ctx context.Context, most int) error {
	if c := s.found.Load(); c != nil {
		return c
	}
	var key, value []byte
	n := s.cfg.Records + int(s.puts.Load())
	step := max(1, (n+most-1)/most)
	for i := 0; i < n; i += step {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		var err error
		key = ycsb.AppendKey(key[:0], uint64(i))
		if value, err = s.store.get(value[:0], key); errors.Is(err, errNotFound) {
			return damage("record %d of %d, %s, is missing", i, n, key)
		}
		if err == nil {
			err = checkRecord(s.cfg, ycsb.ID(uint64(i)), value)
		}
		if err != nil {
			return err
		}
	}
	have, err := s.store.count()
	if err == nil && have != n {
		err = damage("%d records, want %d", have, n)
	}
	return err
}

func (s *service) ServeCall(r *transports.Served) error {
	if r.Method >= numMethods {
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
	if err := cmp.Or(in.decode(data), in.check(r.Method)); err != nil {
		return &transports.CallError{Code: transports.CallInternal, Text: err.Error()}
	}
	room := responseHeader
	if in.count > 0 {
		room += int(in.count) * (s.cfg.RecordBytes() + ycsb.MaxKey + recordHeader)
	}
	answer := newBuffer(min(room, maxAnswer))
	began := time.Now()
	out, err := s.do(r.Method, &in, answer.b[:responseHeader])
	took := time.Since(began)
	if err != nil {
		answer.Release()
		code := transports.CallInternal
		if errors.Is(err, errNotFound) {
			code = transports.CallNotFound
		}
		return &transports.CallError{Code: code, Text: err.Error()}
	}
	s.calls.Add(1)
	binary.LittleEndian.PutUint64(out, uint64(took))
	binary.LittleEndian.PutUint32(out[8:], in.count)
	answer.b = out
	r.Response, r.Owner = out, answer
	return nil
}

func (s *service) do(method uint8, in *request, out []byte) ([]byte, error) {
	switch method {
	case methodGet:
		return s.store.get(out, in.key)
	case methodScan:
		return s.store.scan(out, in.key, int(in.count), maxAnswer)
	case methodPatch:
		s.look(in.key, int(in.offset), in.value)
		return out, s.store.patch(in.key, int(in.offset), in.value)
	}
	if len(in.value) != s.cfg.RecordBytes() {
		return nil, fmt.Errorf("put %d bytes: records have %d", len(in.value), s.cfg.RecordBytes())
	}
	s.look(in.key, 0, in.value)
	err := s.store.put(in.key, in.value)
	if err == nil {
		s.puts.Add(1)
	}
	return out, err
}

// look keeps the first damage among what is put: what is put again before anybody reads it nobody else sees.
func (s *service) look(key []byte, offset int, value []byte) {
	if !s.sh.Verify || !s.sh.VerifyAll {
		return
	}
	id, ok := ycsb.ParseKey(key)
	size := s.cfg.FieldBytes
	for at := 0; at < len(value); at += size {
		if !ok || offset%size != 0 || len(value)-at < size {
			s.found.CompareAndSwap(nil, damage("%d bytes at %d are put to the key %q", len(value), offset, key))
			return
		}
		if i, want := s.cfg.Check(value[at:at+size], id, (offset+at)/size); i >= 0 {
			s.found.CompareAndSwap(nil, damagedByte(id, offset+at+i, value[at+i], want))
			return
		}
	}
}
