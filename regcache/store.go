package regcache

import (
	"errors"
	"fmt"
	"slices"
	"sync"

	"github.com/rdmaperf/rdmaperf/transports/rdma"
)

// StoreConfig bounds what a store maps and keeps.
type StoreConfig struct {
	Piece int              // bytes that are mapped at once; 0: as many as are asked for, in whole pages
	Keep  int              // most bytes of free pieces that are kept; the last freed one stays in any case
	Arena rdma.ArenaConfig // with rdma.PagesAuto, huge pages only where rounding up to them wastes less than an eighth
}

// Store maps memory and keeps it behind its use, without a registration of its own, for memory whose keys must end with
// each use. Local registrations of it stay while the store has it: a Get of the next owner is a hit. Remote keys end
// when it is freed, at the latest. Its methods are safe for concurrent use.
type Store struct {
	cfg StoreConfig

	mu     sync.Mutex
	closed bool
	pieces []*stored // the last freed at the end
	taken  int       // bytes
	mapped int       // bytes
}

const hugePage = 2 << 20

type stored struct {
	arena *rdma.Arena
	taken int
}

func (p *stored) len() int { return p.arena.Buffer().Len() }

// NewStore makes an empty store.
func NewStore(cfg StoreConfig) *Store { return &Store{cfg: cfg} }

// Alloc takes n bytes at a page's beginning, with what was last written there, until Free. The error is the system's,
// rdma.ErrInvalid for n below 1, or rdma.ErrClosed.
func (s *Store) Alloc(n int) (rdma.Buffer, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return rdma.Buffer{}, &rdma.OpError{Op: "allocate", Object: "from a store", Err: rdma.ErrClosed}
	}
	for i := len(s.pieces) - 1; i >= 0; i-- { // the warmest first
		if b, err := s.take(s.pieces[i], n); err == nil || !errors.Is(err, rdma.ErrNoRoom) {
			return b, err
		}
	}
	size, cfg := max(n, s.cfg.Piece), s.cfg.Arena
	if waste := -size & (hugePage - 1); cfg.Pages == rdma.PagesAuto && waste > size/8 {
		cfg.Pages = rdma.PagesBase
	}
	a, err := rdma.NewArena(size, cfg)
	if err != nil {
		return rdma.Buffer{}, err
	}
	p := &stored{arena: a}
	s.pieces = append(s.pieces, p)
	s.mapped += p.len()
	return s.take(p, n)
}

func (s *Store) take(p *stored, n int) (rdma.Buffer, error) {
	b, err := p.arena.Alloc(n, int(pageSize))
	if err == nil {
		p.taken++
		s.taken += wholePages(b.Len())
	}
	return b, err
}

// Free ends what Alloc began; registrations in use hold the memory until their last Put. rdma.ErrInvalid for what is no
// buffer of the store, rdma.ErrClosed for a block that was freed before.
func (s *Store) Free(b rdma.Buffer) error {
	s.mu.Lock()
	i := s.find(b)
	if i < 0 {
		s.mu.Unlock()
		return &rdma.OpError{Op: "free", Object: "memory that is not the store's", Err: rdma.ErrInvalid}
	}
	p := s.pieces[i]
	p.taken++ // kept meanwhile: functions of rdma.Watch are called without the lock
	s.mu.Unlock()
	err := b.Free()
	s.mu.Lock()
	p.taken--
	if err == nil {
		p.taken--
		s.taken -= wholePages(b.Len())
	}
	if i = s.find(b); p.taken == 0 && i >= 0 {
		s.pieces = append(slices.Delete(s.pieces, i, i+1), p)
	}
	out := s.spare()
	s.mu.Unlock()
	return errors.Join(err, s.end(out))
}

func (s *Store) find(b rdma.Buffer) int {
	at := b.Mapping().Addr()
	return slices.IndexFunc(s.pieces, func(p *stored) bool { return at != 0 && p.arena.Buffer().Addr() == at })
}

// spare takes out the free pieces above the bound, longest free first, but not the last piece of all.
func (s *Store) spare() (out []*stored) {
	sum := 0
	var last *stored
	for _, p := range s.pieces {
		if p.taken == 0 {
			sum += p.len()
		}
		last = p
	}
	s.pieces = slices.DeleteFunc(s.pieces, func(p *stored) bool {
		if p.taken > 0 || !s.closed && (sum <= s.cfg.Keep || p == last) {
			return false
		}
		sum -= p.len()
		s.mapped -= p.len()
		out = append(out, p)
		return true
	})
	return out
}

// end unmaps pieces. What a registration holds is listed again, for the next Free or Close.
func (s *Store) end(out []*stored) error {
	return joined(out, func(p *stored) error {
		err := p.arena.Close()
		if err == nil {
			return nil
		}
		s.mu.Lock()
		s.pieces = append([]*stored{p}, s.pieces...)
		s.mapped += p.len()
		s.mu.Unlock()
		if errors.Is(err, rdma.ErrBusy) {
			return nil
		}
		return err
	})
}

// Sizes are the bytes that are taken, in whole pages, and those that are mapped.
func (s *Store) Sizes() (taken, mapped int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.taken, s.mapped
}

// Close unmaps what is free; what is taken goes with its Free. rdma.ErrBusy while a registration holds freed memory:
// Close can be called again then.
func (s *Store) Close() error {
	s.mu.Lock()
	s.closed = true
	out := s.spare()
	s.mu.Unlock()
	err := s.end(out)
	s.mu.Lock()
	defer s.mu.Unlock()
	held := 0
	for _, p := range s.pieces {
		if p.taken == 0 {
			held++
		}
	}
	if err == nil && held > 0 {
		err = &rdma.OpError{Op: "close store", Object: fmt.Sprintf("%d pieces are held", held), Err: rdma.ErrBusy}
	}
	return err
}
