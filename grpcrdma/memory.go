package grpcrdma

import (
	"errors"

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
	remote, local       rdma.MR
}

// pool keeps the buffers of closed connections. Registrations are made anew: a
// key that a peer once knew must not open the memory of another connection.
type pool struct {
	spare []memory // without registrations
	bytes int
}

// poolMax bounds the kept buffers: a burst of short connections maps no memory
// anew, and an idle process keeps little. Arbitrary.
const poolMax = 16

// get makes a connection's memory, zeroed.
func (n *Net) get() (m memory, err error) {
	n.mu.Lock()
	if k := len(n.pool.spare); k > 0 {
		m = n.pool.spare[k-1]
		n.pool.spare = n.pool.spare[:k-1]
		n.pool.bytes -= n.cfg.memory()
	}
	n.mu.Unlock()
	if m.remoteBuf.Len() == 0 {
		if m.remoteBuf, err = rdma.Alloc(n.cfg.remoteLen()); err != nil {
			return m, err
		}
		if m.localBuf, err = rdma.Alloc(n.cfg.localLen()); err != nil {
			m.remoteBuf.Free()
			return memory{}, err
		}
	}
	if m.remote, err = n.dev.RegMR(0, m.remoteBuf, rdma.LocalWrite|rdma.RemoteWrite); err == nil {
		if m.local, err = n.dev.RegMR(0, m.localBuf, rdma.LocalWrite); err == nil {
			return m, nil
		}
		m.local = nil
	} else {
		m.remote, m.local = nil, nil
	}
	return memory{}, errors.Join(err, n.put(m))
}

// put takes a connection's memory back. What a device refuses to release stays
// mapped: it may still be written to.
func (n *Net) put(m memory) error {
	var errs []error
	for _, mr := range []rdma.MR{m.remote, m.local} {
		if mr != nil {
			errs = append(errs, mr.Close())
		}
	}
	if err := errors.Join(errs...); err != nil {
		return err
	}
	m.remote, m.local = nil, nil
	n.mu.Lock()
	keep := !n.closed && len(n.pool.spare) < poolMax
	n.mu.Unlock()
	if keep {
		clear(m.remoteBuf.Bytes())
		clear(m.localBuf.Bytes())
		n.mu.Lock()
		defer n.mu.Unlock()
		if !n.closed && len(n.pool.spare) < poolMax {
			n.pool.spare = append(n.pool.spare, m)
			n.pool.bytes += n.cfg.memory()
			return nil
		}
	}
	return errors.Join(m.remoteBuf.Free(), m.localBuf.Free())
}

func (p *pool) free() error {
	var errs []error
	for _, m := range p.spare {
		errs = append(errs, m.remoteBuf.Free(), m.localBuf.Free())
	}
	p.spare, p.bytes = nil, 0
	return errors.Join(errs...)
}
