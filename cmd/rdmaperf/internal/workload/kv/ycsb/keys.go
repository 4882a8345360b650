package ycsb

import (
	"bytes"
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
