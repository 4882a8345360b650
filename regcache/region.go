package regcache

import (
	"sync/atomic"

	"github.com/rdmaperf/rdmaperf/transports/rdma"
)

// Region is a registration that several users share. Whoever got it may use its keys for any bytes of it until Put.
type Region struct {
	state atomic.Uint64 // see below
	stamp atomic.Uint64 // of the clock of misses, when it was last got
	_     [48]byte      // what users read lies on a line that no other user writes

	base, end  uint64
	access     rdma.Access
	lkey, rkey uint32
	table      *table
	mr         rdma.MR
	pages      []uint64 // what was pinned, where a source compares that
	piece      *piece   // of a pool, whose registration it is; mr is nil then
	over       *piece   // a registration of its own of a pool's memory, which it keeps from new owners

	// Guarded by the cache's lock.
	place  int    // in the heap; -1: not there
	ranked uint64 // stamp by which it lies there
	holds  []*rdma.Leaving
	rest   rdma.Buffer // of a pool: what its arena gave
	failed bool        // the device refused to close it
}

// The state is one word, so that getting and putting are one addition each.
const (
	refOne  = 1
	refMask = 1<<20 - 1
	dead    = 1 << 20 // in no table: closed by whoever sees the last user go
	closed  = 1 << 21 // somebody closes it, or has
	parked  = 1 << 22 // unmapped by its owner, and not yet by the pool
	getOne  = 1 << 23
)

// LKey names the region in work requests.
func (r *Region) LKey() uint32 { return r.lkey }

// RKey names it to the scope's peer.
func (r *Region) RKey() uint32 { return r.rkey }

// Addr is where it begins: at or before what was asked for.
func (r *Region) Addr() uint64 { return r.base }

// Len is its length in bytes.
func (r *Region) Len() uint64 { return r.end - r.base }

// Access are its rights: those that were asked for, or more.
func (r *Region) Access() rdma.Access { return r.access }

func (r *Region) take() bool {
	if r.state.Add(getOne|refOne)&(dead|parked) == 0 {
		return true
	}
	r.untake()
	return false
}

func (r *Region) untake() {
	if n := r.state.Add(^uint64(getOne|refOne) + 1); n&(refMask|dead) == dead {
		r.finish()
	}
}

// Put ends one use, once for each Get, when all that was posted with the keys has completed. The error is that of a
// device that refused to close the region: its memory stays mapped.
func (r *Region) Put() error {
	n := r.state.Add(^uint64(refOne) + 1)
	if n&refMask == refMask {
		panic("regcache: Put without Get")
	}
	if n&refMask != 0 {
		return nil
	}
	if n&dead != 0 {
		return r.finish()
	}
	if c := r.table.cache; c.over.Load() {
		return c.shrink()
	}
	return nil
}

// Revoke is Put, and answers no later Get with the region: the last of its users closes it. When the caller was the
// only one, no peer can use its keys when Revoke returns. ErrInvalid for a region of a pool: the use is not ended.
func (r *Region) Revoke() error {
	if r.piece != nil {
		return &rdma.OpError{Op: "revoke", Object: "a region of a pool", Err: rdma.ErrInvalid}
	}
	c := r.table.cache
	c.mu.Lock()
	if r.state.Load()&dead == 0 {
		r.kill() // the caller uses it, so it is not to be closed yet
		c.drop(r)
	}
	c.mu.Unlock()
	return r.Put()
}

// finish closes a dead region that has no users; one caller does.
func (r *Region) finish() error {
	for {
		s := r.state.Load()
		if s&(refMask|closed) != 0 {
			return nil
		}
		if r.state.CompareAndSwap(s, s|closed) {
			return r.table.cache.close(r)
		}
	}
}

// kill makes the region dead, and reports whether the caller has to close it: nobody uses it.
func (r *Region) kill() (mine bool) {
	for {
		s := r.state.Load()
		if s&dead != 0 {
			return false
		}
		next := s | dead
		if s&refMask == 0 {
			next |= closed
		}
		if r.state.CompareAndSwap(s, next) {
			return next&closed != 0
		}
	}
}

// killIdle makes the region dead if nobody uses it, and the caller has to close it.
func (r *Region) killIdle() bool {
	s := r.state.Load()
	return s&(refMask|dead) == 0 && r.state.CompareAndSwap(s, s|dead|closed)
}

func (r *Region) users() uint64 { return r.state.Load() & refMask }
func (r *Region) gets() uint64  { return r.state.Load() / getOne }
