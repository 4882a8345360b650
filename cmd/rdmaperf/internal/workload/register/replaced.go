package register

import (
	"errors"
	"fmt"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/rdmaperf/rdmaperf/regcache"
	"github.com/rdmaperf/rdmaperf/transports/rdma"
)

// Sources are the words for how a cache notices that memory went away, with why some are not granted here.
func Sources(t *Target) (granted map[string]error) {
	granted = map[string]error{}
	for _, word := range regcache.Sources() {
		s, err := regcache.ParseSource(word)
		if err == nil {
			var c *regcache.Cache
			if c, err = regcache.New(t.Reg, regcache.Config{Source: s}); err == nil {
				err = c.Close()
			}
		}
		granted[word] = err
	}
	return granted
}

// rawMap is mmap(2) past all caches; at an address if that is not nil, and then nowhere else.
func rawMap(at unsafe.Pointer, n int) ([]byte, error) {
	flags := unix.MAP_PRIVATE | unix.MAP_ANON
	if at != nil {
		flags |= unix.MAP_FIXED_NOREPLACE
	}
	p, err := unix.MmapPtr(-1, 0, at, uintptr(n), unix.PROT_READ|unix.PROT_WRITE, flags)
	if err != nil {
		return nil, err
	}
	return unsafe.Slice((*byte)(p), n), nil
}

// replaced has pages replaced by munmap(2) and mmap(2) that no cache learns of. A registration from the cache is stale
// where the device then writes to the old pages.
func (r *run) replaced() error {
	c, err := regcache.New(r.t.Reg, regcache.Config{Source: r.Source})
	if err != nil {
		return err
	}
	scope, err := c.Scope(0)
	if err != nil {
		return errors.Join(err, c.Close())
	}
	s := newStages()
	defer s.keep(r)
	r.out.Source, r.out.SourceSays, r.out.Batch = r.Source.String(), c.Source(), hitBatch
	r.begin()
	for n := 0; (n < 2 || r.more()) && err == nil; n++ { // the first is not counted
		err = r.replace(scope, s, n > 0)
	}
	n := c.Counters()
	r.out.Cache = n.Map()
	return errors.Join(err, c.Close())
}

// hitBatch is how many hits one sample is the mean of, as for other look-ups. Arbitrary.
const hitBatch = 64

func (r *run) replace(scope *regcache.Scope, s *stages, note bool) (err error) {
	raw, err := rawMap(nil, r.Size)
	if err != nil {
		return fmt.Errorf("map %d bytes: %w", r.Size, err)
	}
	at := unsafe.Pointer(unsafe.SliceData(raw))
	there := true
	b, err := rdma.Foreign(raw)
	defer func() {
		if e := b.Free(); e != nil && !errors.Is(e, rdma.ErrClosed) { // the source may have ended it
			err = errors.Join(err, e)
		}
		if there {
			err = errors.Join(err, unix.MunmapPtr(at, uintptr(r.Size)))
		}
	}()
	if err != nil {
		return err
	}
	touch(b)
	if err := r.through(scope, b); err != nil { // a miss: watched from here on
		return err
	}
	t0 := time.Now()
	for range hitBatch {
		g, err := scope.Get(b, access)
		if err == nil {
			err = g.Put()
		}
		if err != nil {
			return err
		}
	}
	t1 := time.Now()
	if err := unix.MunmapPtr(at, uintptr(r.Size)); err != nil {
		return fmt.Errorf("unmap %d bytes: %w", r.Size, err)
	}
	there = false
	t2 := time.Now()
	now, err := rawMap(at, r.Size)
	if errors.Is(err, unix.EEXIST) {
		return nil // another thread was given the address: nothing can be seen in this round
	}
	if err != nil {
		return fmt.Errorf("map %d bytes again: %w", r.Size, err)
	}
	there = true
	for i := 0; i < len(now); i += 4096 {
		now[i] = 1
	}
	err = r.through(scope, b)
	if errors.Is(err, rdma.ErrClosed) { // the source knows that what was declared is gone
		if b, err = rdma.Foreign(now); err == nil {
			err = r.through(scope, b)
		}
	}
	stale := errors.Is(err, ErrOther)
	if stale {
		err = nil
	}
	if err == nil && note {
		s.register.Record(t1.Sub(t0).Nanoseconds() / hitBatch)
		s.unmapped.Record(t2.Sub(t1).Nanoseconds())
		s.took += t1.Sub(t0)
		r.out.Replaced++
		if stale {
			r.out.Stale++
		}
	}
	return err
}

func (r *run) through(scope *regcache.Scope, b rdma.Buffer) error {
	g, err := scope.Get(b, access)
	if err != nil {
		return err
	}
	r.number++
	return errors.Join(r.t.compared(g.LKey(), b, r.number), g.Put())
}

// CheckStale refuses stale hits of a source that promises none.
func CheckStale(d *Register) error {
	if d.Stale == 0 || d.Source == regcache.SourceNone.String() {
		return nil
	}
	return fmt.Errorf("%d of %d uses behind a replaced mapping went to the old pages, with source %s", d.Stale,
		d.Replaced, d.SourceSays)
}
