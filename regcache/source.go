package regcache

import (
	"errors"
	"fmt"
	"slices"
	"sync/atomic"

	"github.com/rdmaperf/rdmaperf/regcache/pagemap"
	"github.com/rdmaperf/rdmaperf/regcache/uffd"
	"github.com/rdmaperf/rdmaperf/transports/rdma"
	"github.com/rdmaperf/rdmaperf/transports/rdma/ranges"
)

// Source is how a cache learns that foreign memory went away. Memory of package rdma notifies it with every source.
type Source uint8

const (
	SourceAuto    Source = iota // the strongest that the system grants: uffd, pagemap, arena
	SourceUffd                  // userfaultfd(2) tells of munmap, mremap and MADV_DONTNEED before they return
	SourcePagemap               // every hit compares the physical pages with those that were registered
	SourceArena                 // foreign memory is not kept: its registrations end with their use
	SourceNone                  // foreign memory is kept without notification: stale entries, for demonstration
)

var sourceNames = [...]string{"auto", "uffd", "pagemap", "arena", "none"}

// String is the word for it.
func (s Source) String() string {
	if int(s) < len(sourceNames) {
		return sourceNames[s]
	}
	return "source?"
}

// Sources are the words that ParseSource knows.
func Sources() []string { return sourceNames[:] }

// ParseSource is the source of a word; ErrInvalid when there is none.
func ParseSource(word string) (Source, error) {
	if i := slices.Index(sourceNames[:], word); i >= 0 {
		return Source(i), nil
	}
	return 0, fmt.Errorf("source %q is none of %v: %w", word, sourceNames, rdma.ErrInvalid)
}

type source interface {
	fmt.Stringer
	disturbed() bool            // an event is being handled: hits must wait for it
	wait()                      // until it is handled
	keeps(rdma.Buffer) bool     // regions of such memory may be kept
	watch(rdma.Buffer) bool     // looks at memory from here on
	pages(rdma.Buffer) []uint64 // what to compare; nil: nothing
	same(*Region) bool          // whether it is still what it was
	close() error
}

// unmonitored is a source without events: only memory of package rdma is reported.
type unmonitored struct {
	keep bool
	text string
}

func (d *unmonitored) String() string           { return d.text }
func (*unmonitored) disturbed() bool            { return false }
func (*unmonitored) wait()                      {}
func (d *unmonitored) keeps(b rdma.Buffer) bool { return d.keep || !b.Foreign() }
func (*unmonitored) watch(rdma.Buffer) bool     { return true }
func (*unmonitored) pages(rdma.Buffer) []uint64 { return nil }
func (*unmonitored) same(*Region) bool          { return true }
func (*unmonitored) close() error               { return nil }

// monitored is userfaultfd.
type monitored struct {
	unmonitored
	m    *uffd.Monitor
	busy *atomic.Uint32
}

func (t *monitored) disturbed() bool { return t.busy.Load() != 0 }
func (t *monitored) wait()           { t.m.Wait() }
func (t *monitored) watch(b rdma.Buffer) bool {
	return !b.Foreign() || t.m.Watch(b.Addr(), uint64(b.Len())) == nil
}
func (t *monitored) close() error { return t.m.Close() }

// compared is /proc/self/pagemap.
type compared struct {
	unmonitored
	m *pagemap.Map
}

func (l *compared) pages(b rdma.Buffer) []uint64 {
	if !b.Foreign() {
		return nil
	}
	return l.m.Pages(b.Addr(), uint64(b.Len()))
}
func (l *compared) same(r *Region) bool { return l.m.Same(r.base, r.pages) }
func (l *compared) close() error        { return l.m.Close() }

func open(want Source) (source, error) {
	var why error
	if want == SourceAuto || want == SourceUffd {
		m, err := uffd.Open()
		if err == nil {
			return &monitored{unmonitored{true, "uffd: userfaultfd tells of foreign memory, " + m.Mode()}, m,
				m.Busy()}, nil
		}
		if why = err; want == SourceUffd {
			return nil, err
		}
	}
	if want == SourceAuto || want == SourcePagemap {
		m, err := pagemap.Open()
		if err == nil {
			return &compared{unmonitored{true, "pagemap: every hit of foreign memory compares physical pages" +
				because(why)}, m}, nil
		}
		if why = errors.Join(why, err); want == SourcePagemap {
			return nil, err
		}
	}
	switch want {
	case SourceAuto, SourceArena:
		return &unmonitored{false, "arena: foreign memory is registered for each use" + because(why)}, nil
	case SourceNone:
		return &unmonitored{true,
			"none: foreign memory that is unmapped by a system call leaves stale registrations"}, nil
	}
	return nil, fmt.Errorf("%v: %w", want, rdma.ErrInvalid)
}

func because(why error) string {
	if why == nil {
		return ""
	}
	return fmt.Sprintf(" (%v)", why)
}

// leaving closes idle regions of memory before it goes away; a region in use holds the memory until its last Put.
func (c *Cache) leaving(l *rdma.Leaving) {
	base, end := l.Addr, l.Addr+l.Len
	var evicted []*Region
	c.mu.Lock()
	c.n.UnmapEvents++
	for t := range c.tables {
		var out []*Region
		t.live.Overlapping(base, end, func(e ranges.Entry[*Region]) bool {
			r := e.Val
			// A block that returns to its arena keeps its pages, so a local registration that nobody uses stays.
			stays := l.Cause == rdma.Returned && r.access&remote == 0 && r.users() == 0
			if !stays {
				out = append(out, r)
			}
			return true
		})
		for _, r := range out {
			c.n.RegionsInvUnmap++
			if r.piece != nil {
				r.piece.broken.Store(true)
			}
			mine := r.kill()
			c.drop(r)
			c.keepFor(r, l)
			if mine {
				evicted = append(evicted, r)
			}
		}
	}
	for r := range c.zombies {
		if r.base < end && base < r.end && !slices.Contains(evicted, r) {
			c.keepFor(r, l)
		}
	}
	for f := range c.flights {
		if f.base < end && base < f.end {
			f.stale = true
			l.Hold()
			f.holds = append(f.holds, l)
		}
	}
	c.mu.Unlock()
	c.closeAll(evicted) // a refusal is counted, and holds the memory
}

func (c *Cache) keepFor(r *Region, l *rdma.Leaving) {
	l.Hold()
	r.holds = append(r.holds, l)
}
