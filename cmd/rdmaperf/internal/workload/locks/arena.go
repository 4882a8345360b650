package locks

import (
	"encoding/binary"
	"errors"

	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/pairs"
	"github.com/rdmaperf/rdmaperf/transports/lite"
)

// arena is a lock and a counter that it guards.
type arena interface {
	add() error // a fetch_add of the far node, which nothing guards
	set(value uint64) error
	count() (uint64, error)
	contender(who int) (contender, error)
}

// contender is who takes the lock, in a goroutine of its own.
type contender interface {
	lock() error
	unlock() error
	read() (uint64, error)
	write(value uint64) error
	close() error
}

// nodes are an arena at the first of two nodes.
type nodes struct {
	p    *pairs.Nodes
	wait lite.Waiting
	home *lite.Client
	own  lite.Handle
	far  *lite.Client
	at   lite.Handle // of far
}

func openArena(p *pairs.Nodes, wait lite.Waiting) (a *nodes, err error) {
	a = &nodes{p: p, wait: wait}
	if a.home, err = p.Nodes[0].Client(lite.ClientConfig{Wait: lite.WaitPoll}); err != nil {
		return nil, err
	}
	if a.own, err = a.home.Malloc(lite.RegionConfig{Name: "counter", Size: 8,
		Open: lite.PermRead | lite.PermWrite | lite.PermAtomic}); err != nil {
		return nil, err
	}
	if _, err := a.home.NewLock("lock", 0); err != nil {
		return nil, err
	}
	if a.far, err = p.Nodes[1].Client(lite.ClientConfig{Wait: lite.WaitPoll}); err != nil {
		return nil, err
	}
	a.at, err = a.far.Map("counter", lite.PermAtomic, "")
	return a, err
}

func (a *nodes) add() error { _, err := a.far.FetchAdd(a.at, 0, 1); return err }

func (a *nodes) set(value uint64) error {
	var b [8]byte
	binary.NativeEndian.PutUint64(b[:], value)
	return a.home.Write(a.own, 0, b[:])
}

func (a *nodes) count() (uint64, error) {
	var b [8]byte
	err := a.home.Read(a.own, 0, b[:])
	return binary.NativeEndian.Uint64(b[:]), err
}

// contender: the first is at the node without the lock, so that alone it goes over the wire.
func (a *nodes) contender(who int) (contender, error) {
	c, err := a.p.Nodes[1-who%2].Client(lite.ClientConfig{Wait: a.wait})
	if err != nil {
		return nil, err
	}
	h := &holder{c: c}
	if h.l, err = c.OpenLock("lock"); err == nil {
		h.at, err = c.Map("counter", lite.PermRead|lite.PermWrite, "")
	}
	if err != nil {
		return nil, errors.Join(err, h.close())
	}
	return h, nil
}

// holder is a contender by a client of its own.
type holder struct {
	c  *lite.Client
	l  *lite.Lock
	at lite.Handle
	b  [8]byte
}

func (h *holder) lock() error   { return h.l.Lock() }
func (h *holder) unlock() error { return h.l.Unlock() }

func (h *holder) read() (uint64, error) {
	err := h.c.Read(h.at, 0, h.b[:])
	return binary.NativeEndian.Uint64(h.b[:]), err
}

func (h *holder) write(value uint64) error {
	binary.NativeEndian.PutUint64(h.b[:], value)
	return h.c.Write(h.at, 0, h.b[:])
}

func (h *holder) close() (err error) {
	if h.l != nil {
		err = h.l.Close()
	}
	return errors.Join(err, h.c.Close())
}
