package ycsb

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math"
	"math/bits"
	"strconv"
	"sync"
	"sync/atomic"
)

const inserting = 1 << 16

// Keys are the records of a run, numbered from 0: loaded ones, then inserted ones. It is safe for concurrent use.
type Keys struct {
	last atomic.Uint64 // records that certainly exist: all below

	mu   sync.Mutex
	next uint64          // of the next insert
	done [inserting]bool // by number modulo inserting: acknowledged, and above last
}

// NewKeys has the numbers of n loaded records.
func NewKeys(n int) *Keys {
	k := &Keys{next: uint64(n)}
	k.last.Store(uint64(n))
	return k
}

// Take gives the number of a record to insert.
func (k *Keys) Take() (uint64, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.next-k.last.Load() >= inserting {
		return 0, fmt.Errorf("insert: %d inserts are under way", inserting)
	}
	k.next++
	return k.next - 1, nil
}

// Ack tells that an insert has succeeded. Records are read when they and all before them exist.
func (k *Keys) Ack(n uint64) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.done[n%inserting] = true
	last := k.last.Load()
	for last < k.next && k.done[last%inserting] {
		k.done[last%inserting] = false
		last++
	}
	k.last.Store(last)
}

// Count is how many records certainly exist: all numbers below it.
func (k *Keys) Count() uint64 { return k.last.Load() }

// MaxKey is the longest that AppendKey appends.
const MaxKey = len(keyPrefix + "18446744073709551615")

const keyPrefix = "user"

// ID is what the key of a record says. IDs are hashed, so that neighbours in the store are not neighbours in time.
func ID(record uint64) uint64 { return hash(record) }

// AppendKey appends the key of a record.
func AppendKey(b []byte, record uint64) []byte {
	return strconv.AppendUint(append(b, keyPrefix...), ID(record), 10)
}

// ParseKey is the ID in a key.
func ParseKey(key []byte) (id uint64, ok bool) {
	digits, ok := bytes.CutPrefix(key, []byte(keyPrefix))
	if !ok || len(digits) == 0 || len(key) > MaxKey {
		return 0, false
	}
	for _, d := range digits {
		hi, lo := bits.Mul64(id, 10)
		if d < '0' || d > '9' || hi > 0 || lo > math.MaxUint64-uint64(d-'0') {
			return 0, false
		}
		id = lo + uint64(d-'0')
	}
	return id, digits[0] != '0' || len(digits) == 1
}

const versionBytes = 8

// Loaded is the version of every field that was loaded or inserted.
const Loaded = 0

// Fill writes a field's contents: of the record whose key has the ID id. len(field) is the configuration's FieldBytes.
func (c Config) Fill(field []byte, id uint64, index int, version uint64) {
	binary.LittleEndian.PutUint64(field, version)
	rest, x := field[versionBytes:], c.state(id, index, version)
	for ; len(rest) >= 8; rest = rest[8:] {
		x += golden
		binary.LittleEndian.PutUint64(rest, mix(x))
	}
	for i := range rest {
		rest[i] = byte(mix(x+golden) >> (8 * i))
	}
}

// Check compares a field with what its version says: where the first wrong byte is, or -1, and what it must be.
func (c Config) Check(field []byte, id uint64, index int) (at int, want byte) {
	x := c.state(id, index, binary.LittleEndian.Uint64(field))
	for at = versionBytes; at < len(field); at += 8 {
		x += golden
		word, rest := mix(x), field[at:]
		if len(rest) >= 8 && binary.LittleEndian.Uint64(rest) == word {
			continue
		}
		for i, b := range rest[:min(8, len(rest))] {
			if want = byte(word >> (8 * i)); b != want {
				return at + i, want
			}
		}
	}
	return -1, 0
}

// FillRecord writes all fields of a record that is loaded or inserted.
func (c Config) FillRecord(b []byte, id uint64) {
	for i := range c.Fields {
		c.Fill(b[i*c.FieldBytes:][:c.FieldBytes], id, i, Loaded)
	}
}

// CheckRecord is Check for all fields of a record. One of another length is wrong where the shorter ends.
func (c Config) CheckRecord(b []byte, id uint64) (at int, want byte) {
	for i := range c.Fields {
		if len(b) < (i+1)*c.FieldBytes {
			return len(b), 0
		}
		if at, want := c.Check(b[i*c.FieldBytes:][:c.FieldBytes], id, i); at >= 0 {
			return i*c.FieldBytes + at, want
		}
	}
	if len(b) > c.RecordBytes() {
		return c.RecordBytes(), 0
	}
	return -1, 0
}

// golden and mix are those of splitmix64 (Steele, Lea and Flood, OOPSLA 2014, fig. 17).
const golden = 0x9e3779b97f4a7c15

func mix(x uint64) uint64 {
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}

func (c Config) state(id uint64, index int, version uint64) uint64 {
	return mix(mix(mix(c.Seed+golden)^id) ^ uint64(index)<<48 ^ version)
}
