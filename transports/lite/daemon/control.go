package daemon

import (
	"fmt"

	"github.com/rdmaperf/rdmaperf/transports/lite"
)

// control serves what goes over the socket, one after the other. The client may wait: it
// has this goroutine for itself.
func (g *guest) control() error {
	for {
		var q ask
		files, err := receiveLine(g.conn, &q, 0)
		closeAll(files)
		if err != nil {
			return err
		}
		a := g.answer(&q)
		if err := sendLine(g.conn, a); err != nil {
			return err
		}
	}
}

// asks are the calls over the socket, by name.
var asks = map[string]func(g *guest, q *ask) (reply, error){
	"malloc": func(g *guest, q *ask) (reply, error) {
		if q.Region == nil {
			return reply{}, lite.ErrFail
		}
		h, err := g.aside.Malloc(*q.Region)
		return g.keep(h, err, false)
	},
	"publish": func(g *guest, q *ask) (reply, error) {
		if q.Region == nil || q.Len > 1<<32-1 || !g.local(q.Off, uint32(q.Len)) {
			return reply{}, lite.ErrMemory
		}
		h, err := g.aside.Publish(*q.Region, g.page[q.Off:][:q.Len])
		return g.keep(h, err, true)
	},
	"map": func(g *guest, q *ask) (reply, error) {
		h, err := g.aside.Map(q.Name, q.Perm, q.Password)
		return g.keep(h, err, false)
	},
	"unmap": func(g *guest, q *ask) (reply, error) { return reply{}, g.drop(q, g.aside.Unmap) },
	"free":  func(g *guest, q *ask) (reply, error) { return reply{}, g.drop(q, g.aside.FreeRegion) },
	"grant": func(g *guest, q *ask) (reply, error) {
		h, ok := g.handle(uint64(q.Handle))
		if !ok {
			return reply{}, lite.ErrDeadHandle
		}
		return reply{}, g.aside.Grant(h, q.Node, q.Perm)
	},
	"move": func(g *guest, q *ask) (reply, error) {
		h, ok := g.handle(uint64(q.Handle))
		if !ok {
			return reply{}, lite.ErrDeadHandle
		}
		moved, err := g.aside.Move(h, q.Nodes...)
		if err == nil {
			g.forget(uint64(q.Handle))
		}
		return g.keep(moved, err, false)
	},
	"size": func(g *guest, q *ask) (reply, error) {
		h, ok := g.handle(uint64(q.Handle))
		if !ok {
			return reply{}, lite.ErrDeadHandle
		}
		n, err := g.aside.Size(h)
		return reply{Value: n}, err
	},
	"memset": func(g *guest, q *ask) (reply, error) {
		h, ok := g.handle(uint64(q.Handle))
		if !ok {
			return reply{}, lite.ErrDeadHandle
		}
		return reply{}, g.aside.Memset(h, q.Off, q.Byte, q.Len)
	},
	"memmove": func(g *guest, q *ask) (reply, error) {
		from, ok := g.handle(uint64(q.Handle))
		to, also := g.handle(uint64(q.Other))
		if !ok || !also {
			return reply{}, lite.ErrDeadHandle
		}
		return reply{}, g.aside.Memmove(to, q.To, from, q.Off, q.Len)
	},
	"barrier": func(g *guest, q *ask) (reply, error) { return reply{}, g.aside.Barrier(q.Name, int(q.Len)) },
	"prepare": func(g *guest, q *ask) (reply, error) { return reply{}, g.aside.Prepare(q.Node, q.Port) },
	"serve":   func(g *guest, q *ask) (reply, error) { return reply{}, g.serve(q.Port, int(min(q.Len, 1<<30))) },
	"members": func(g *guest, _ *ask) (reply, error) { return reply{Nodes: g.daemon.node.Members()}, nil },
}

func (g *guest) answer(q *ask) reply {
	f := asks[q.Op]
	if f == nil {
		return reply{Code: -1, Text: fmt.Sprintf("no such operation: %q", q.Op)}
	}
	a, err := f(g, q)
	if err != nil {
		return fail(q.Op, err)
	}
	return a
}

// keep gives a handle a number of the client's own table.
func (g *guest) keep(h lite.Handle, err error, published bool) (reply, error) {
	if err != nil {
		return reply{}, err
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if published {
		g.owned[h] = true
	}
	if n := len(g.free); n > 0 {
		i := g.free[n-1]
		g.free = g.free[:n-1]
		g.handles[i].h = h
		return reply{Value: uint64(g.handles[i].gen)<<32 | uint64(i)}, nil
	}
	if len(g.handles) >= handlesMost {
		_ = g.aside.Unmap(h) // it is new
		return reply{}, lite.ErrNoSpace
	}
	g.handles = append(g.handles, handle{h: h, gen: 1})
	return reply{Value: 1<<32 | uint64(len(g.handles)-1)}, nil
}

// drop ends a handle by f, and frees its number.
func (g *guest) drop(q *ask, f func(lite.Handle) error) error {
	h, ok := g.handle(uint64(q.Handle))
	if !ok {
		return lite.ErrDeadHandle
	}
	if err := f(h); err != nil {
		return err
	}
	g.forget(uint64(q.Handle))
	return nil
}

func (g *guest) forget(num uint64) {
	g.mu.Lock()
	defer g.mu.Unlock()
	e := &g.handles[uint32(num)]
	delete(g.owned, e.h)
	e.h = 0
	e.gen++
	g.free = append(g.free, uint32(num))
}
