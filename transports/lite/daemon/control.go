package daemon

import (
	"fmt"

	"github.com/rdmaperf/rdmaperf/internal/onepeer"
	"github.com/rdmaperf/rdmaperf/transports/lite"
)

// control serves what goes over the socket, one after the other, in a goroutine of the client's own.
func (c *conn) control() (fails error) {
	defer onepeer.Recover(func(fault error) { fails = fault })
	for {
		var q ask
		if _, err := receiveLine(c.socket, &q, 0); err != nil {
			return err
		}
		a := c.answer(&q)
		if err := sendLine(c.socket, a); err != nil {
			return err
		}
	}
}

// asks are the calls over the socket, by name. h is what q.Handle stands for, 0 for nothing.
var asks = map[string]func(c *conn, q *ask, h lite.Handle) (reply, error){
	"malloc": func(c *conn, q *ask, _ lite.Handle) (reply, error) {
		if q.Region == nil {
			return reply{}, lite.ErrFail
		}
		h, err := c.blocking.Malloc(*q.Region)
		return c.keep(h, err, false)
	},
	"publish": func(c *conn, q *ask, _ lite.Handle) (reply, error) {
		if q.Region == nil || q.Len > 1<<32-1 || !c.inPlace(q.Off, uint32(q.Len)) {
			return reply{}, lite.ErrMemory
		}
		h, err := c.blocking.Publish(*q.Region, c.page[q.Off:][:q.Len])
		return c.keep(h, err, true)
	},
	"map": func(c *conn, q *ask, _ lite.Handle) (reply, error) {
		h, err := c.blocking.Map(q.Name, q.Perm, q.Password)
		return c.keep(h, err, false)
	},
	"unmap": func(c *conn, q *ask, h lite.Handle) (reply, error) { return c.drop(q, c.blocking.Unmap(h)) },
	"free":  func(c *conn, q *ask, h lite.Handle) (reply, error) { return c.drop(q, c.blocking.FreeRegion(h)) },
	"grant": func(c *conn, q *ask, h lite.Handle) (reply, error) {
		return reply{}, c.blocking.Grant(h, q.Node, q.Perm)
	},
	"move": func(c *conn, q *ask, h lite.Handle) (reply, error) {
		moved, err := c.blocking.Move(h, q.Nodes...)
		if err == nil {
			c.forget(uint64(q.Handle))
		}
		return c.keep(moved, err, false)
	},
	"size": func(c *conn, _ *ask, h lite.Handle) (reply, error) {
		n, err := c.blocking.Size(h)
		return reply{Value: n}, err
	},
	"memset": func(c *conn, q *ask, h lite.Handle) (reply, error) {
		return reply{}, c.blocking.Memset(h, q.Off, q.Byte, q.Len)
	},
	"memmove": func(c *conn, q *ask, from lite.Handle) (reply, error) {
		return reply{}, c.blocking.Memmove(c.handle(uint64(q.Other)), q.To, from, q.Off, q.Len)
	},
	"barrier": func(c *conn, q *ask, _ lite.Handle) (reply, error) {
		return reply{}, c.blocking.Barrier(q.Name, int(q.Len))
	},
	"prepare": func(c *conn, q *ask, _ lite.Handle) (reply, error) {
		return reply{}, c.blocking.Prepare(q.Node, q.Port)
	},
	"serve": func(c *conn, q *ask, _ lite.Handle) (reply, error) {
		return reply{}, c.serve(q.Port, int(min(q.Len, 1<<30)))
	},
}

func (c *conn) answer(q *ask) reply {
	f := asks[q.Op]
	if f == nil {
		return reply{Code: -1, Text: fmt.Sprintf("no such operation: %q", q.Op)}
	}
	a, err := f(c, q, c.handle(uint64(q.Handle)))
	if err != nil {
		return fail(q.Op, err)
	}
	return a
}

// keep gives a handle a number of the client's own table.
func (c *conn) keep(h lite.Handle, err error, published bool) (reply, error) {
	if err != nil {
		return reply{}, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if published {
		c.owned[h] = true
	}
	if n := len(c.free); n > 0 {
		i := c.free[n-1]
		c.free = c.free[:n-1]
		c.handles[i].h = h
		return reply{Value: uint64(c.handles[i].gen)<<32 | uint64(i)}, nil
	}
	if len(c.handles) >= handlesMost {
		_ = c.blocking.Unmap(h) // it is new
		return reply{}, lite.ErrNoSpace
	}
	c.handles = append(c.handles, handle{h: h, gen: 1})
	return reply{Value: 1<<32 | uint64(len(c.handles)-1)}, nil
}

func (c *conn) drop(q *ask, err error) (reply, error) {
	if err == nil {
		c.forget(uint64(q.Handle))
	}
	return reply{}, err
}

func (c *conn) forget(num uint64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	e := &c.handles[uint32(num)]
	delete(c.owned, e.h)
	e.h = 0
	e.gen++
	c.free = append(c.free, uint32(num))
}
