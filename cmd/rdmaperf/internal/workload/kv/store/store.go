package store

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	bolt "go.etcd.io/bbolt"
)

// ErrNotFound: no record has the key.
var ErrNotFound = errors.New("no such record")

// Options of a Store.
type Options struct {
	Dir    string // where the file is made; empty takes the directory for temporary files
	Fsync  bool   // every write is on disk before it is answered
	Expect int64  // bytes that will be stored: the mapping then need not grow while it is used
}

// Store is a sorted map in a file. It is safe for concurrent use.
type Store struct {
	db    *bolt.DB
	fsync bool
}

var bucket = []byte("usertable") // YCSB's table

// Open makes an empty store.
func Open(o Options) (*Store, error) {
	s, err := open(o)
	if err != nil {
		return nil, fmt.Errorf("open store: %w", err)
	}
	return s, nil
}

func open(o Options) (_ *Store, err error) {
	dir, err := os.MkdirTemp(o.Dir, "rdmaperf-kv-")
	if err != nil {
		return nil, err
	}
	// The open file lives on without its name, and nobody has to remove it.
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	db, err := bolt.Open(filepath.Join(dir, "store"), 0o600, &bolt.Options{
		NoSync: true, NoGrowSync: true, NoFreelistSync: true, FreelistType: bolt.FreelistMapType,
		InitialMmapSize: int(3*o.Expect + 1<<24), // half-filled pages, and those that are rewritten
	})
	if err != nil {
		return nil, err
	}
	if err := db.Update(func(tx *bolt.Tx) error { _, err := tx.CreateBucket(bucket); return err }); err != nil {
		return nil, errors.Join(err, db.Close())
	}
	return &Store{db, o.Fsync}, nil
}

// loadBatch bounds the memory of a transaction that loads.
const loadBatch = 4 << 20

// Load puts n records without a flush between them; record returns the i-th, and both
// slices stay its own. Keys that ascend load faster.
func (s *Store) Load(n int, record func(i int) (key, value []byte)) error {
	for i := 0; i < n; {
		err := s.db.Update(func(tx *bolt.Tx) error {
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
		return s.db.Sync()
	}
	return nil
}

// Get appends the value of a key.
func (s *Store) Get(dst, key []byte) ([]byte, error) {
	err := s.db.View(func(tx *bolt.Tx) error {
		v := tx.Bucket(bucket).Get(key)
		if v == nil {
			return ErrNotFound
		}
		dst = append(dst, v...)
		return nil
	})
	return dst, err
}

// Put writes a record, which need not exist.
func (s *Store) Put(key, value []byte) error {
	return s.write(func(b *bolt.Bucket) error { return b.Put(key, value) })
}

// Patch overwrites a part of a record, which keeps its length.
func (s *Store) Patch(key []byte, offset int, part []byte) error {
	return s.write(func(b *bolt.Bucket) error {
		old := b.Get(key)
		switch {
		case old == nil:
			return ErrNotFound
		case offset < 0 || len(part) > len(old)-offset:
			return fmt.Errorf("bytes %d to %d of a record of %d", offset, offset+len(part), len(old))
		}
		// What Get returns is the file itself.
		v := bytes.Clone(old)
		copy(v[offset:], part)
		return b.Put(key, v)
	})
}

func (s *Store) write(change func(*bolt.Bucket) error) error {
	if err := s.db.Update(func(tx *bolt.Tx) error { return change(tx.Bucket(bucket)) }); err != nil {
		return err
	}
	if s.fsync {
		return s.db.Sync()
	}
	return nil
}

// Scan appends up to count records in the order of their keys, from key on, in the form
// that Records reads, and no more than limit bytes.
func (s *Store) Scan(dst, key []byte, count, limit int) ([]byte, error) {
	err := s.db.View(func(tx *bolt.Tx) error {
		c := tx.Bucket(bucket).Cursor()
		for k, v := c.Seek(key); k != nil && count > 0 && len(dst)+recordHeader+len(k)+len(v) <= limit; k,
			v = c.Next() {
			dst = binary.LittleEndian.AppendUint32(dst, uint32(len(k)))
			dst = binary.LittleEndian.AppendUint32(dst, uint32(len(v)))
			dst = append(append(dst, k...), v...)
			count--
		}
		return nil
	})
	return dst, err
}

// Count is how many records there are.
func (s *Store) Count() (n int, err error) {
	err = s.db.View(func(tx *bolt.Tx) error { n = tx.Bucket(bucket).Stats().KeyN; return nil })
	return n, err
}

// Close gives the file back.
func (s *Store) Close() error { return s.db.Close() }

// recordHeader is the lengths of a key and of a value.
const recordHeader = 8

// Records calls f for what Scan appended, and tells whether all of it makes sense.
func Records(b []byte, f func(key, value []byte) error) error {
	for len(b) > 0 {
		if len(b) < recordHeader {
			return errors.New("scanned records: cut off")
		}
		k, v := uint64(binary.LittleEndian.Uint32(b)), uint64(binary.LittleEndian.Uint32(b[4:]))
		b = b[recordHeader:]
		if k+v > uint64(len(b)) {
			return errors.New("scanned records: cut off")
		}
		if err := f(b[:k:k], b[k:k+v:k+v]); err != nil {
			return err
		}
		b = b[k+v:]
	}
	return nil
}
