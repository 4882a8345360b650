// Package pin registers memory without an adapter: io_uring's registered buffers (io_uring_register(2)) pin the pages
// of a range as ib_umem_get does, at its cost and against RLIMIT_MEMLOCK.
//
// [Registrar.Write] and [Registrar.Read] have the kernel copy between a registration's pages and a pipe, whatever is
// at the address by then. A Registrar is a ring and a pipe; its user closes it when all registrations are. Memory is
// the caller's, pinned until MR.Close returns. Kernels before 6.13 unpin when operations on the ring have passed.
//
// It is not a device: no queues, no peers, and protection domain 0 only. Rights are noted, not enforced. The kernel
// takes at most 1 GiB a registration, and 16384 of them.
package pin

import (
	"errors"
	"fmt"
	"math"
	"sync"

	"golang.org/x/sys/unix"

	"github.com/rdmaperf/rdmaperf/transports/rdma"
)

// Config says how registrations are made.
type Config struct {
	Slots int // the most registrations at a time, 1..16384; 0: 16384
}

const (
	maxSlots = 1 << 14 // IORING_MAX_REG_BUFFERS
	maxBytes = 1 << 30 // of a registered buffer
	slotBits = 14
)

// Registrar pins memory. All methods are safe for concurrent use.
type Registrar struct {
	ring    *ring
	rd, wr  int // the pipe through which bytes come and go
	pipe    sync.Mutex
	pipeMax int

	mu    sync.Mutex
	free  []uint32
	turns []uint32 // of each slot: how often it was used
	open  int
}

// Open makes a ring with an empty table. It fails with rdma.ErrInvalid, and where io_uring is not to be had.
func Open(cfg Config) (*Registrar, error) {
	fail := func(err error) (*Registrar, error) {
		return nil, &rdma.OpError{Op: "open registrar", Object: "over io_uring", Err: err}
	}
	if cfg.Slots == 0 {
		cfg.Slots = maxSlots
	}
	if cfg.Slots < 1 || cfg.Slots > maxSlots {
		return fail(rdma.ErrInvalid)
	}
	r, err := newRing()
	if err != nil {
		return fail(&rdma.AdviceError{Err: err,
			Try: "allow io_uring: /proc/sys/kernel/io_uring_disabled, and the seccomp profile of the container"})
	}
	if err := r.sparse(uint32(cfg.Slots)); err != nil {
		return fail(errors.Join(err, r.close()))
	}
	var p [2]int
	if err := unix.Pipe2(p[:], unix.O_CLOEXEC); err != nil {
		return fail(errors.Join(err, r.close()))
	}
	size, err := unix.FcntlInt(uintptr(p[1]), unix.F_GETPIPE_SZ, 0)
	if err != nil {
		return fail(errors.Join(err, r.close(), unix.Close(p[0]), unix.Close(p[1])))
	}
	g := &Registrar{ring: r, rd: p[0], wr: p[1], pipeMax: size, turns: make([]uint32, cfg.Slots)}
	for i := range cfg.Slots {
		g.free = append(g.free, uint32(cfg.Slots-1-i))
	}
	return g, nil
}

type mr struct {
	g          *Registrar
	slot, key  uint32
	base, size uint64
	access     rdma.Access
	mu         sync.Mutex
	closed     bool
}

// RegMR pins the pages of the buffer. ENOMEM where RLIMIT_MEMLOCK or the table has no
// room; ErrInvalid for another domain than 0, wrong rights, and more than 1 GiB.
func (g *Registrar) RegMR(pd rdma.PD, buf rdma.Buffer, access rdma.Access) (rdma.MR, error) {
	fail := func(err error) (rdma.MR, error) {
		return nil, &rdma.OpError{Op: "register", Object: fmt.Sprintf("%d bytes", buf.Len()), Err: err}
	}
	if err := access.Validate(); err != nil {
		return fail(err)
	}
	if pd != 0 || buf.Len() == 0 || buf.Len() > maxBytes {
		return fail(rdma.ErrInvalid)
	}
	g.mu.Lock()
	k := len(g.free)
	if k == 0 {
		g.mu.Unlock()
		return fail(fmt.Errorf("all %d slots are taken: %w", len(g.turns), unix.ENOMEM))
	}
	slot := g.free[k-1]
	g.free = g.free[:k-1]
	g.turns[slot]++
	key := g.turns[slot]<<slotBits | slot
	g.open++
	g.mu.Unlock()
	if err := g.ring.update(slot, buf.Addr(), uint64(buf.Len())); err != nil {
		g.release(slot)
		return fail(err)
	}
	return &mr{g: g, slot: slot, key: key, base: buf.Addr(), size: uint64(buf.Len()), access: access}, nil
}

func (g *Registrar) release(slot uint32) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.free = append(g.free, slot)
	g.open--
}

func (m *mr) LKey() uint32        { return m.key }
func (m *mr) RKey() uint32        { return m.key }
func (m *mr) Addr() uint64        { return m.base }
func (m *mr) Len() uint64         { return m.size }
func (m *mr) Access() rdma.Access { return m.access }

func (m *mr) Close() error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.closed {
		return nil
	}
	if err := m.g.ring.update(m.slot, 0, 0); err != nil {
		return &rdma.OpError{Op: "deregister", Object: fmt.Sprintf("%d bytes", m.size), Err: err}
	}
	m.closed = true
	m.g.release(m.slot)
	return nil
}

// Write has the kernel write p to the pages that are registered for addr. A closed key or another range is refused.
func (g *Registrar) Write(key uint32, addr uint64, p []byte) error {
	return g.move(key, addr, p, func(at int, b []byte) (int, error) {
		if n, err := unix.Write(g.wr, b); err != nil || n != len(b) {
			return n, err
		}
		return g.ring.fixed(opReadFixed, key&(maxSlots-1), addr+uint64(at), uint32(len(b)), g.rd)
	})
}

// Read has the kernel read the pages that are registered for addr into p.
func (g *Registrar) Read(key uint32, addr uint64, p []byte) error {
	return g.move(key, addr, p, func(at int, b []byte) (int, error) {
		if n, err := g.ring.fixed(opWriteFixed, key&(maxSlots-1), addr+uint64(at), uint32(len(b)), g.wr); err != nil ||
			n != len(b) {
			return n, err
		}
		return unix.Read(g.rd, b)
	})
}

func (g *Registrar) move(key uint32, addr uint64, p []byte, step func(at int, b []byte) (int, error)) error {
	fail := func(err error) error {
		return &rdma.OpError{Op: "move", Object: fmt.Sprintf("%d bytes by key %#x", len(p), key), Err: err}
	}
	slot := key & (maxSlots - 1)
	g.mu.Lock()
	good := int(slot) < len(g.turns) && g.turns[slot]&(math.MaxUint32>>slotBits) == key>>slotBits
	g.mu.Unlock()
	if !good {
		return fail(fmt.Errorf("a key of the past: %w", rdma.ErrInvalid))
	}
	g.pipe.Lock()
	defer g.pipe.Unlock()
	for at := 0; at < len(p); {
		b := p[at:min(at+g.pipeMax, len(p))]
		n, err := step(at, b)
		if err == nil && n != len(b) {
			err = unix.EIO
		}
		if err != nil {
			return fail(errors.Join(err, g.drain()))
		}
		at += n
	}
	return nil
}

func (g *Registrar) drain() error {
	n, err := unix.IoctlGetInt(g.rd, unix.TIOCINQ)
	if err != nil || n == 0 {
		return err
	}
	_, err = unix.Read(g.rd, make([]byte, n))
	return err
}

// Close ends the registrar; rdma.ErrBusy while registrations are open.
func (g *Registrar) Close() error {
	g.mu.Lock()
	n := g.open
	g.mu.Unlock()
	if n > 0 {
		return &rdma.OpError{Op: "close registrar", Object: fmt.Sprintf("with %d registrations", n), Err: rdma.ErrBusy}
	}
	return errors.Join(g.ring.close(), unix.Close(g.rd), unix.Close(g.wr))
}
