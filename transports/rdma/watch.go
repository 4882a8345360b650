package rdma

import (
	"slices"
	"sync"
	"sync/atomic"
)

// Cause says why memory leaves.
type Cause uint8

const (
	// Unmapped: Free of a whole mapping. The pages are there until the last hold ends.
	Unmapped Cause = iota + 1
	// Returned: Free of a block of an arena. The pages stay, and are the next owner's when the last hold has ended.
	Returned
	// PagesGone: [Forget]. The pages are gone, holds or not.
	PagesGone
	// PagesDropped: [Dropped]. The pages are gone, holds or not, and the buffer is not.
	PagesDropped
)

// Leaving is memory that is about to go away: no Buffer any more, and not yet anybody else's.
type Leaving struct {
	Addr, Len uint64
	Cause     Cause
	holds     atomic.Int32
	finish    func() error
}

// Hold keeps the memory from going: it is neither unmapped nor given to a new owner before Release was called as often
// as Hold. Only a function of [Watch] may call it, before it returns, or who has a hold already.
func (l *Leaving) Hold() { l.holds.Add(1) }

// Release ends a hold. The last one gives the memory back, and returns what became of it.
func (l *Leaving) Release() error {
	if l.holds.Add(-1) == 0 && l.finish != nil {
		return l.finish()
	}
	return nil
}

type watcher struct {
	f    func(*Leaving)
	sync func()
}

var watchers struct {
	mu   sync.Mutex
	list atomic.Pointer[[]*watcher]
}

// Watch has f called, on the goroutine that frees or forgets, for all memory that leaves, before it does: f closes what
// is registered there, or holds the memory until it is. f may be called by several goroutines at once, takes no lock
// under which its owner calls Free, and is not called any more when stop has returned, but by those who were about to.
func Watch(f func(*Leaving)) (stop func()) { return join(&watcher{f: f}) }

// BeforeUse registers sync to be called before memory that was just mapped, or declared, becomes a
// Buffer. It is for who calls [Forget] and [Dropped]: the kernel may have given the
// address of memory that went to somebody new, before the end of the last owner's was reported.
func BeforeUse(sync func()) (stop func()) { return join(&watcher{sync: sync}) }

// syncWatchers waits until every watcher has passed on what is pending.
func syncWatchers() {
	if p := watchers.list.Load(); p != nil {
		for _, w := range *p {
			if w.sync != nil {
				w.sync()
			}
		}
	}
}

func join(w *watcher) (stop func()) {
	change := func(keep func([]*watcher) []*watcher) {
		watchers.mu.Lock()
		defer watchers.mu.Unlock()
		var next []*watcher
		if p := watchers.list.Load(); p != nil {
			next = append(next, *p...)
		}
		next = keep(next)
		watchers.list.Store(&next)
	}
	change(func(l []*watcher) []*watcher { return append(l, w) })
	return func() {
		change(func(l []*watcher) []*watcher {
			return slices.DeleteFunc(l, func(o *watcher) bool { return o == w })
		})
	}
}

func watched() bool {
	p := watchers.list.Load()
	return p != nil && len(*p) > 0
}

// leave notifies the watchers and gives the memory back unless it is held.
func leave(l *Leaving) error {
	l.holds.Store(1)
	if p := watchers.list.Load(); p != nil {
		for _, w := range *p {
			if w.f != nil {
				w.f(l)
			}
		}
	}
	return l.Release()
}
