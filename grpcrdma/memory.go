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

// first is the length of a connection's first ring and send buffer. They stay; larger ones come with bulk and go behind
// it, but for a ring that is watched: who looks at it does not lock it.
func (c *Config) first() (ring, send int) {
	if !c.grows() {
		return c.Ring, c.SendBuffer
	}
	return firstRing, min(firstRing/2, c.SendBuffer)
}

func (c *Config) grows() bool { return c.Ring > firstRing && c.Arrival == ArrivalNotice }

func (c *Config) remoteLen() int {
	ring, _ := c.first()
	return ringOffset + ring
}

func (c *Config) localLen() int {
	_, send := c.first()
	return sendOffset + send + sendSlack
}

// memory is what a connection registers before bulk comes.
func (c *Config) memory() int { return c.remoteLen() + c.localLen() }

// piece is a buffer with its registration; nil is none.
type piece struct {
	buf    rdma.Buffer
	region *regcache.Region
}

// memory is a connection's first pieces: what the peer writes into, and what only this side uses.
type memory struct{ remote, local *piece }

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
	if m.remote, err = n.getPiece(n.cfg.remoteLen(), rdma.LocalWrite|rdma.RemoteWrite); err != nil {
		return m, err
	}
	if m.local, err = n.getPiece(n.cfg.localLen(), rdma.LocalWrite); err != nil {
		return m, errors.Join(err, n.putPiece(m.remote))
	}
	return m, nil
}

func (n *Net) put(m memory) error { return errors.Join(n.putPiece(m.remote), n.putPiece(m.local)) }

func (n *Net) getPiece(size int, access rdma.Access) (*piece, error) {
	buf, err := n.store.Alloc(size)
	if err != nil {
		return nil, err
	}
	region, err := n.scope.Get(buf, access)
	if err != nil {
		return nil, errors.Join(err, n.store.Free(buf))
	}
	return &piece{buf: buf, region: region}, nil
}

// putPiece takes memory back. What a device does not release stays mapped, and is not used again: it may still be
// written to.
func (n *Net) putPiece(p *piece) error {
	if p == nil {
		return nil
	}
	end := p.region.Put
	if p.region.Access()&rdma.RemoteWrite != 0 { // a key that the peer knew must not open the memory of another connection
		end = p.region.Revoke
	}
	err := end()
	clear(p.buf.Bytes())
	return errors.Join(err, n.store.Free(p.buf))
}
