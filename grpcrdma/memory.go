package grpcrdma

import (
	"errors"
	"os"

	"github.com/rdmaperf/rdmaperf/regcache"
	"github.com/rdmaperf/rdmaperf/transports/rdma"
)

// The peer writes into one registration and nothing else:
//
//	credit cell, at ringOffset the ring
//
// The other is the device's to read, and to put notices into:
//
//	notice receives | credits to send | send buffer
const (
	ringOffset = 64
	recvSlot   = 8
	creditSlot = 64 // the cell, and behind it the notice of it
	// creditSlots is more than the ring allows on their way at once: each credit
	// but the first stands for half a ring that the credit before it allowed.
	creditSlots = 8

	recvArea   = (noticeDepth + noticeSpare) * recvSlot
	creditArea = creditSlots * creditSlot
	sendOffset = recvArea + creditArea

	// sendSlack is what the send buffer has beyond Config.SendBuffer, a cache line for
	// each quarter: a record is a quarter at most, and a write that is a power of two,
	// as gRPC's are, then fits into whole records. Without it each such write would
	// end with a record of a few bytes, which costs the device as much as a long one.
	sendSlack = 4 * 64
)

func (c *Config) remoteLen() int { return ringOffset + c.Ring }
func (c *Config) localLen() int  { return sendOffset + c.SendBuffer + sendSlack }

// memory is what a connection registers.
func (c *Config) memory() int { return c.remoteLen() + c.localLen() }

// memory is a connection's buffers with their registrations.
type memory struct {
	remoteBuf, localBuf rdma.Buffer
	remote, local       *regcache.Region
}

// keptConns bounds the memory of closed connections that is kept: a burst of short
// connections maps no memory anew, and an idle process keeps little. Arbitrary.
const keptConns = 16

// wholePages is what n bytes take of a store.
func wholePages(n int) int {
	page := os.Getpagesize()
	return (n + page - 1) / page * page
}

// room is the memory of one connection in a store.
func (c *Config) room() int { return wholePages(c.remoteLen()) + wholePages(c.localLen()) }

// openMemory makes what all connections take their memory and registrations from. Keys
// that peers know end with their connection; what only this side uses stays registered
// with its memory, for the next.
func (n *Net) openMemory() (err error) {
	// All memory is package rdma's own: nothing unmaps it unseen.
	if n.cache, err = regcache.New(n.dev, regcache.Config{Source: regcache.SourceArena}); err != nil {
		return err
	}
	n.store = regcache.NewStore(regcache.StoreConfig{Piece: n.cfg.room(), Keep: keptConns * n.cfg.room()})
	n.scope, err = n.cache.Scope(0)
	return err
}

// closeMemory ends it when all connections are closed.
func (n *Net) closeMemory() error { return errors.Join(n.store.Close(), n.cache.Close()) }

// get makes a connection's memory, zeroed.
func (n *Net) get() (m memory, err error) {
	if m.remoteBuf, err = n.store.Alloc(n.cfg.remoteLen()); err == nil {
		m.localBuf, err = n.store.Alloc(n.cfg.localLen())
	}
	if err == nil {
		m.remote, err = n.scope.Get(m.remoteBuf, rdma.LocalWrite|rdma.RemoteWrite)
	}
	if err == nil {
		m.local, err = n.scope.Get(m.localBuf, rdma.LocalWrite)
	}
	if err != nil {
		return memory{}, errors.Join(err, n.put(m))
	}
	return m, nil
}

// put takes a connection's memory back. What a device does not release stays mapped, and is not
// used again: it may still be written to.
func (n *Net) put(m memory) error {
	var errs []error
	if m.remote != nil { // a key that the peer knew must not open the memory of another connection
		errs = append(errs, m.remote.Revoke())
	}
	if m.local != nil {
		errs = append(errs, m.local.Put())
	}
	for _, b := range []rdma.Buffer{m.remoteBuf, m.localBuf} {
		if b.Len() > 0 {
			clear(b.Bytes())
			errs = append(errs, n.store.Free(b))
		}
	}
	return errors.Join(errs...)
}
