package sched

import (
	"net"
	"sync"
	"sync/atomic"
)

// Scope says which queue pairs one scheduler serves.
type Scope string

const (
	ScopeQP     Scope = "qp"     // each by itself, as sRDMA does
	ScopePeer   Scope = "peer"   // all to one host
	ScopeDevice Scope = "device" // all of the device
)

// group is the window that the QPs of a scope share. It has no lock: each QP adds here what it has under way.
type group struct {
	under  [Priorities]atomic.Int64 // bytes under way of this class or a more urgent one, of all QPs
	urgent atomic.Int64             // when a request last found less urgent bytes of another QP before it, ns; 0: never

	key string // guarded by groups.mu
	qps int    // likewise
}

type groups struct {
	mu  sync.Mutex
	all map[string]*group
}

// join takes the group of a connection to addr, "host:port"; nil where each QP has a scheduler of its own.
func (g *groups) join(s Scope, addr string) *group {
	key := ""
	switch s {
	case ScopePeer:
		key = addr
		if host, _, err := net.SplitHostPort(addr); err == nil {
			key = host
		}
	case ScopeDevice:
	default:
		return nil
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	one := g.all[key]
	if one == nil {
		if g.all == nil {
			g.all = map[string]*group{}
		}
		one = &group{key: key}
		g.all[key] = one
	}
	one.qps++
	return one
}

// leave gives it back; one may be nil.
func (g *groups) leave(one *group) {
	if one == nil {
		return
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if one.qps--; one.qps == 0 {
		delete(g.all, one.key)
	}
}

// share is the part of a QP's window in its group.
type share struct {
	*group                       // nil: none
	published [Priorities]uint64 // bytes under way that the group knows of
	followed  int64              // value of urgent that the window has followed
}

func (w *window) publish() {
	if w.share.group == nil {
		return
	}
	for c := range Priorities {
		if u := w.under(c); u != w.share.published[c] {
			w.share.under[c].Add(int64(u - w.share.published[c]))
			w.share.published[c] = u
		}
	}
}

// others is how many bytes of class c or a more urgent one other QPs have under way.
func (w *window) others(c int) uint64 {
	if w.share.group == nil {
		return 0
	}
	return uint64(max(w.share.under[c].Load()-int64(w.share.published[c]), 0))
}

// overtakes tells the group that a request of class c is more urgent than what other QPs have under way.
func (w *window) overtakes(c int) {
	if w.share.group != nil && c > 0 && w.others(0) > w.others(c) {
		w.share.urgent.Store(now())
	}
}

func (w *window) follow() {
	if w.share.group == nil {
		return
	}
	if at := w.share.urgent.Load(); at != w.share.followed {
		w.share.followed = at
		w.urgent()
	}
}

// over tells the group that nothing of a connection that failed is under way.
func (w *window) over() {
	if w.share.group != nil {
		w.empty()
		w.publish()
	}
}
