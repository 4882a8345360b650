package peerrpc

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/rdmaperf/rdmaperf/internal/onepeer"
	"github.com/rdmaperf/rdmaperf/internal/procs"
	"github.com/rdmaperf/rdmaperf/transports"
	"github.com/rdmaperf/rdmaperf/transports/rdma"
)

// server answers calls: one goroutine accepts, one polls for all connections.
type server struct {
	stack   *Stack
	shape   shape
	handler transports.CallHandler
	lis     rdma.Listener
	cq      rdma.CQ
	most    int // connections
	ctx     context.Context
	cancel  context.CancelFunc
	wg      sync.WaitGroup
	wcs     [32]rdma.WC
	served  transports.Served
	parts   [1][]byte

	mu        sync.Mutex
	accepting []*client // being accepted: their requests may be there already
	accepted  []*client // accepted, and not yet polled
	open      int
}

// client is a connection at the server. The polling goroutine owns it.
type client struct {
	*end
	ring  []uint8 // Write: turns of the cells that come in
	turns []uint8 // Write: of the answers, by caller
	next  int     // Write: the cell that the next request lies in
	dead  bool
}

// ListenCalls serves calls at addr.
func (s *Stack) ListenCalls(ctx context.Context, addr string, cfg transports.CallConfig,
	h transports.CallHandler) (transports.CallServer, error) {
	v, err := s.listen(ctx, addr, cfg, h)
	if err != nil {
		return nil, &rdma.OpError{Op: "listen", Object: addr, Err: err}
	}
	return v, nil
}

func (s *Stack) listen(ctx context.Context, addr string, cfg transports.CallConfig,
	h transports.CallHandler) (v *server, err error) {
	v = &server{stack: s, handler: h, most: min(max(cfg.Conns, 1), maxConns)}
	if v.shape, err = s.shapeOf(cfg); err != nil {
		return nil, err
	}
	if v.cq, err = s.dev.NewCQ(s.cqDepth(v.shape, v.most)); err != nil {
		return nil, err
	}
	if v.lis, err = s.dev.Listen(ctx, addr, v.most); err != nil {
		return nil, errors.Join(err, v.cq.Close())
	}
	v.ctx, v.cancel = context.WithCancel(context.Background())
	v.wg.Go(v.accept)
	v.wg.Go(v.work)
	return v, nil
}

func (v *server) Addr() string { return v.lis.Addr() }

// Close ends all connections and calls.
func (v *server) Close() error {
	if v.ctx.Err() != nil {
		return nil
	}
	v.cancel()
	err := v.lis.Close()
	v.wg.Wait()
	for _, c := range v.accepted { // also behind the last look of work
		c.close()
	}
	return errors.Join(err, v.cq.Close())
}

func (v *server) accept() {
	for {
		req, err := v.lis.Accept(v.ctx)
		if err != nil {
			return
		}
		c, err := v.admit(req)
		if c == nil {
			continue // it was rejected
		}
		v.mu.Lock()
		v.accepting = slices.DeleteFunc(v.accepting, func(o *client) bool { return o == c })
		if err == nil {
			v.accepted = append(v.accepted, c)
		} else {
			v.open--
		}
		v.mu.Unlock()
		if err != nil {
			c.close()
		}
	}
}

// acceptTimeout bounds the set-up of a connection, which goes on alone.
const acceptTimeout = 2 * time.Second

func (v *server) admit(req rdma.ConnRequest) (of *client, fails error) {
	defer onepeer.Recover(func(fault error) { fails = fault })
	v.mu.Lock()
	full := v.open >= v.most
	if !full {
		v.open++
	}
	v.mu.Unlock()
	ctx, cancel := context.WithTimeout(v.ctx, acceptTimeout)
	defer cancel()
	if full {
		return nil, req.Reject(ctx, nil)
	}
	h := v.shape
	// Before memory is allocated for it, the peer must have shown the token.
	g, err := parseGreeting(req.Param().PrivateData, h.token)
	if err != nil {
		v.closed()
		return nil, req.Reject(ctx, nil)
	}
	e, err := v.stack.newEnd(h, h.request, h.response, v.cq)
	if err != nil {
		v.closed()
		return nil, errors.Join(err, req.Reject(ctx, nil))
	}
	c := &client{end: e, ring: make([]uint8, h.callers), turns: make([]uint8, h.callers)}
	if err = e.meet(g); err != nil {
		return c, errors.Join(err, req.Reject(ctx, nil))
	}
	v.mu.Lock()
	v.accepting = append(v.accepting, c)
	v.mu.Unlock()
	_, err = req.Accept(ctx, e.qp, v.stack.param(e.greeting().encode()))
	return c, err
}

func (v *server) closed() {
	v.mu.Lock()
	v.open--
	v.mu.Unlock()
}

const (
	idleAfter = 200 * time.Millisecond // how long a server polls without a request before it sleeps between two polls
	pollPause = time.Millisecond       // how long then
)

func (v *server) work() {
	clients := map[uint32]*client{} // by the number of the queue pair
	var list []*client
	last, idle := time.Now(), 0
	for v.ctx.Err() == nil {
		busy := v.completions(clients)
		if v.stack.form == Write {
			for _, c := range list {
				busy = v.cells(c) || busy
			}
		}
		if busy {
			idle = 0
			continue
		}
		if idle++; idle%64 != 0 {
			continue
		}
		list = v.update(clients, list)
		if now := time.Now(); idle == 64 {
			last = now
		} else if now.Sub(last) > idleAfter {
			time.Sleep(pollPause)
		}
		procs.Yield()
	}
	for _, c := range list {
		c.close()
	}
}

func (v *server) update(clients map[uint32]*client, list []*client) []*client {
	v.mu.Lock()
	fresh := v.accepted
	v.accepted = nil
	v.mu.Unlock()
	for _, c := range fresh {
		clients[c.qp.Num()] = c
		list = append(list, c)
	}
	return slices.DeleteFunc(list, func(c *client) bool {
		if !c.dead && c.qp.State() != rdma.QPErr {
			return false
		}
		delete(clients, c.qp.Num())
		c.close()
		v.closed()
		return true
	})
}

// completions takes what completed. A client with a request that was not added yet is added first.
func (v *server) completions(clients map[uint32]*client) bool {
	k, err := v.cq.Poll(v.wcs[:])
	if err != nil {
		for _, c := range clients { // completions were lost
			c.dead = true
		}
	}
	for i := range v.wcs[:k] {
		wc := &v.wcs[i]
		c := clients[wc.QPNum]
		if c == nil {
			if c = v.pending(wc.QPNum); c == nil {
				continue // of one that is closed
			}
		}
		switch {
		case wc.Status != rdma.StatusSuccess:
			c.dead = true
		case wc.ID&sendID == 0:
			cell := int(wc.ID >> 1)
			h, err := parseHeader(c.in(cell), uint32(c.request), c.callers)
			if err != nil || h.len+headerLen != wc.ByteLen || v.serve(c, cell, h) != nil {
				c.dead = true
			}
		}
	}
	return k > 0
}

func (v *server) pending(qp uint32) *client {
	v.mu.Lock()
	defer v.mu.Unlock()
	for _, list := range [...][]*client{v.accepting, v.accepted} {
		for _, c := range list {
			if c.qp.Num() == qp {
				return c
			}
		}
	}
	return nil
}

// cells answers the requests in a client's ring, once around: cells of answers are free when completions were polled.
func (v *server) cells(c *client) (busy bool) {
	for range c.callers {
		if c.dead {
			break
		}
		at := c.next
		cell := c.in(at)
		turn := nextTurn(c.ring[c.next])
		if turnOf(cell) != turn {
			return busy
		}
		busy = true
		c.ring[c.next] = turn
		c.next = (c.next + 1) % c.callers
		h, err := parseHeader(c.head(cell), uint32(c.request), c.callers)
		if err != nil || v.serve(c, at, h) != nil {
			c.dead = true
		}
	}
	return busy
}

// serve answers the request in a cell of what came in. An error is the end of the connection.
func (v *server) serve(c *client, at int, h header) (fails error) {
	defer onepeer.Recover(func(fault error) { fails = fault })
	mode := transports.CallMode(h.what >> 4)
	if mode > transports.CallStream {
		return rdma.ErrProtocol
	}
	v.parts[0] = c.place(c.in(at), int(h.len))
	q := &v.served
	*q = transports.Served{Ctx: v.ctx, Mode: mode, Method: h.what & 0xf, Request: v.parts[:]}
	err := v.handler.ServeCall(q)
	a := header{slot: h.slot, turn: nextTurn(c.turns[h.slot])}
	b := q.Response
	if err == nil && len(b) > c.response {
		err = &transports.CallError{Code: transports.CallResourceExhausted,
			Text: "the response is longer than the caller takes"}
	}
	if err != nil {
		e := transports.AsCallError(err)
		a.what, b = uint8(e.Code)+1, []byte(e.Text[:min(len(e.Text), textRoom)])
	}
	a.len = uint32(len(b))
	// The caller asks again only when it has the last answer: its cell is free.
	copy(c.place(c.out(int(h.slot)), len(b)), b)
	if q.Owner != nil {
		q.Owner.Release()
	}
	c.turns[h.slot] = a.turn
	// The receive is there before the answer: with it the next request may come, and iWARP ends a connection where a
	// message finds no receive (RFC 5041 §7.1).
	if c.stack.form == Send {
		if err := c.repost(at); err != nil {
			return err
		}
	}
	// There are places for twice its callers: a client for which none is free does not keep the rules.
	return c.post(int(h.slot), int(h.slot), &a)
}
