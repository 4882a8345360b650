package kv

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"sync"

	bolt "go.etcd.io/bbolt"

	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/workload/kv/ycsb"
)

var errNotFound = errors.New("no such record")

// store is a sorted map in a file without a name, for concurrent use. Without fsync nothing is flushed.
type store struct {
	*bolt.DB
	fsync bool // every write is on disk before it is answered
}

var bucket = []byte("usertable") // YCSB's table

// openStore makes an empty store whose mapping need not grow up to about expect bytes.
func openStore(fsync bool, expect int64) (_ *store, err error) {
	dir, err := os.MkdirTemp("", "rdmaperf-kv-")
	if err != nil {
		return nil, fmt.Errorf("open store: %w", err)
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	db, err := bolt.Open(filepath.Join(dir, "store"), 0o600, &bolt.Options{
		NoSync: true, NoGrowSync: true, NoFreelistSync: true, FreelistType: bolt.FreelistMapType,
		InitialMmapSize: int(3*expect + 1<<24), // half-filled pages, and those that are rewritten
	})
	if err != nil {
		return nil, fmt.Errorf("open store: %w", err)
	}
	if err := db.Update(func(tx *bolt.Tx) error { _, err := tx.CreateBucket(bucket); return err }); err != nil {
		return nil, fmt.Errorf("open store: %w", errors.Join(err, db.Close()))
	}
	return &store{db, fsync}, nil
}

// loadBatch bounds the memory of a transaction that loads.
const loadBatch = 4 << 20

// load puts n records; record returns the i-th, whose slices stay its own. Keys that ascend load faster.
func (s *store) load(n int, record func(i int) (key, value []byte)) error {
	for i := 0; i < n; {
		err := s.Update(func(tx *bolt.Tx) error {
			b := tx.Bucket(bucket)
			for held := 0; i < n && held < loadBatch; i++ {
				key, value := record(i)
				// Put keeps the value until the transaction has ended, but not the key.
				if err := b.Put(key, bytes.Clone(value)); err != nil {
					return err
				}
				held += len(value)
			}
			return nil
		})
		if err != nil {
			return fmt.Errorf("load record %d of %d: %w", i, n, err)
		}
	}
	if s.fsync {
		return s.Sync()
	}
	return nil
}

func (s *store) get(dst, key []byte) ([]byte, error) {
	err := s.View(func(tx *bolt.Tx) error {
		v := tx.Bucket(bucket).Get(key)
		if v == nil {
			return errNotFound
		}
		dst = append(dst, v...)
		return nil
	})
	return dst, err
}

func (s *store) put(key, value []byte) error {
	return s.write(func(b *bolt.Bucket) error { return b.Put(key, value) })
}

func (s *store) patch(key []byte, offset int, part []byte) error {
	return s.write(func(b *bolt.Bucket) error {
		old := b.Get(key)
		switch {
		case old == nil:
			return errNotFound
		case offset < 0 || len(part) > len(old)-offset:
			return fmt.Errorf("bytes %d to %d of a record of %d", offset, offset+len(part), len(old))
		}
		// What Get returns is the file itself.
		v := bytes.Clone(old)
		copy(v[offset:], part)
		return b.Put(key, v)
	})
}

func (s *store) write(change func(*bolt.Bucket) error) error {
	if err := s.Update(func(tx *bolt.Tx) error { return change(tx.Bucket(bucket)) }); err != nil {
		return err
	}
	if s.fsync {
		return s.Sync()
	}
	return nil
}

// scan appends up to count records from key on, as records reads them, and no more than limit bytes.
func (s *store) scan(dst, key []byte, count, limit int) ([]byte, error) {
	err := s.View(func(tx *bolt.Tx) error {
		c := tx.Bucket(bucket).Cursor()
		k, v := c.Seek(key)
		for ; k != nil && count > 0 && len(dst)+recordHeader+len(k)+len(v) <= limit; k, v = c.Next() {
			dst = binary.LittleEndian.AppendUint32(dst, uint32(len(k)))
			dst = binary.LittleEndian.AppendUint32(dst, uint32(len(v)))
			dst = append(append(dst, k...), v...)
			count--
		}
		return nil
	})
	return dst, err
}

func (s *store) count() (n int, err error) {
	err = s.View(func(tx *bolt.Tx) error { n = tx.Bucket(bucket).Stats().KeyN; return nil })
	return n, err
}

const recordHeader = 8

// records calls f for what scan appended: a *corrupt where that makes no sense.
func records(b []byte, f func(key, value []byte) error) error {
	for len(b) > 0 {
		if len(b) < recordHeader {
			return damage("scanned records: cut off")
		}
		k, v := uint64(binary.LittleEndian.Uint32(b)), uint64(binary.LittleEndian.Uint32(b[4:]))
		b = b[recordHeader:]
		if k+v > uint64(len(b)) {
			return damage("scanned records: cut off")
		}
		if err := f(b[:k:k], b[k:k+v:k+v]); err != nil {
			return err
		}
		b = b[k+v:]
	}
	return nil
}

const (
	methodGet = iota
	methodPut
	methodPatch
	methodScan
	numMethods
)

// request is what every method takes:
//
//	key length 4 | offset 4 | count 4 | key | value
//
// offset is a patch's; count is how many records the answer may hold, for which a server
// makes room. A response is the time of the store and a value:
//
//	store time 8, ns | value
type request struct {
	key, value    []byte
	offset, count uint32
}

const (
	requestHeader  = 12
	responseHeader = 12 // the store's time in ns, 8 bytes, and the count that was asked for
)

// maxAnswer bounds what a scan returns.
const maxAnswer = 64 << 20

func (m *request) append(b []byte) []byte {
	b = binary.LittleEndian.AppendUint32(b, uint32(len(m.key)))
	b = binary.LittleEndian.AppendUint32(b, m.offset)
	b = binary.LittleEndian.AppendUint32(b, m.count)
	return append(append(b, m.key...), m.value...)
}

// decode reads a request, which refers to b.
func (m *request) decode(b []byte) error {
	if len(b) < requestHeader {
		return errors.New("decode request: cut off")
	}
	n := uint64(binary.LittleEndian.Uint32(b))
	m.offset, m.count = binary.LittleEndian.Uint32(b[4:]), binary.LittleEndian.Uint32(b[8:])
	if b = b[requestHeader:]; n > uint64(len(b)) {
		return errors.New("decode request: key cut off")
	}
	m.key, m.value = b[:n:n], b[n:]
	return nil
}

// check refuses what a method has no use for: a change on the way that did no harm would be none that anybody sees.
func (m *request) check(method uint8) error {
	reads, most := method == methodGet || method == methodScan, uint32(0)
	switch method {
	case methodGet:
		most = 1
	case methodScan:
		most = ycsb.MaxScanRecords
	}
	if m.offset != 0 && method != methodPatch || reads != (m.count > 0) || m.count > most || reads && len(m.value) > 0 {
		return fmt.Errorf("decode request: offset %d, count %d and %d bytes of value for method %d", m.offset, m.count,
			len(m.value), method)
	}
	return nil
}

// buffer is memory for one answer, or for a request that arrived in pieces. It is its own transports.Releaser.
type buffer struct{ b []byte }

var buffers = sync.Pool{New: func() any { return new(buffer) }}

func newBuffer(n int) *buffer {
	b := buffers.Get().(*buffer)
	b.b = slices.Grow(b.b[:0], n)
	return b
}

func (b *buffer) Release() { buffers.Put(b) }
