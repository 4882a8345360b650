package peerrpc

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/rdmaperf/rdmaperf/internal/procs"
	"github.com/rdmaperf/rdmaperf/transports"
	"github.com/rdmaperf/rdmaperf/transports/rdma"
)

// conn is a client's connection. Callers post under mu, and one of them at a time polls.
type conn struct {
	*end
	cq     rdma.CQ
	ctx    context.Context // ends with the connection
	cancel context.CancelFunc
	calls  sync.WaitGroup // under way; added to under mu, while ctx has not ended

	mu    sync.Mutex
	slots []slot
	next  int     // cell of the ring at the server that the next request takes
	turns []uint8 // of those cells

	pollMu sync.Mutex
	wcs    [32]rdma.WC
	failed atomic.Bool
}

// slot is a caller's place: one request and one answer.
type slot struct {
	taken  bool         // under conn.mu
	late   bool         // an answer may come after its deadline
	answer atomic.Int32 // Send: the cell that it lies in, and 1
	cell   int          // Send: whose receive is posted again with the next call; -1 for none
	turn   uint8        // Write: of the answer
}

// DialCalls connects to a server. ctx bounds that.
func (s *Stack) DialCalls(ctx context.Context, addr string, cfg transports.CallConfig) (transports.CallConn, error) {
	c, err := s.dialCalls(ctx, addr, cfg)
	if err != nil {
		return nil, &rdma.OpError{Op: "dial", Object: addr, Err: err}
	}
	return c, nil
}

func (s *Stack) dialCalls(ctx context.Context, addr string, cfg transports.CallConfig) (c *conn, err error) {
	h, err := s.shapeOf(cfg)
	if err != nil {
		return nil, err
	}
	c = &conn{slots: make([]slot, h.callers), turns: make([]uint8, h.callers)}
	c.ctx, c.cancel = context.WithCancel(context.Background())
	if c.cq, err = s.dev.NewCQ(s.cqDepth(h, 1)); err != nil {
		return nil, err
	}
	if c.end, err = s.newEnd(h, h.response, h.request, c.cq); err == nil {
		if err = c.dial(ctx, addr); err == nil {
			return c, nil
		}
		c.end.close()
	}
	_ = c.cq.Close() // its queue pair is closed
	return nil, err
}

func (c *conn) Close() error {
	c.mu.Lock()
	if c.ctx.Err() != nil {
		c.mu.Unlock()
		return nil
	}
	c.cancel()
	c.mu.Unlock()
	c.calls.Wait() // callers that make none may never be closed
	ctx, cancel := context.WithTimeout(context.Background(), closeGrace)
	_ = c.qp.Disconnect(ctx) // a peer that does not answer in time is left without
	cancel()
	c.end.close()
	return c.cq.Close()
}

// closeGrace bounds the orderly end of a connection.
const closeGrace = 250 * time.Millisecond

func (c *conn) Caller(ctx context.Context, cfg transports.CallerConfig) (transports.Caller, error) {
	if err := cfg.Check(callModes); err != nil {
		return nil, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.ctx.Err() != nil {
		return nil, rdma.ErrClosed
	}
	for i := range c.slots {
		if s := &c.slots[i]; !s.taken {
			s.taken, s.cell = true, -1
			return &caller{conn: c, slot: s, num: i, cfg: cfg, ctx: ctx}, nil
		}
	}
	return nil, fmt.Errorf("more than %d callers of a connection: %w", len(c.slots), rdma.ErrQueueFull)
}

// poll takes what completed. It does nothing while another goroutine does.
func (c *conn) poll() {
	if !c.pollMu.TryLock() {
		return
	}
	defer c.pollMu.Unlock()
	k, err := c.cq.Poll(c.wcs[:])
	if err != nil {
		c.failed.Store(true)
	}
	for i := range c.wcs[:k] {
		wc := &c.wcs[i]
		switch {
		case wc.Status != rdma.StatusSuccess:
			c.failed.Store(true)
		case wc.ID&sendID == 0:
			c.received(int(wc.ID>>1), wc.ByteLen)
		}
	}
}

func (c *conn) received(cell int, n uint32) {
	h, err := parseHeader(c.in(cell), uint32(c.response), c.callers)
	if err != nil || h.len+headerLen != n || !c.slots[h.slot].answer.CompareAndSwap(0, int32(cell)+1) {
		c.failed.Store(true)
	}
}

type caller struct {
	conn   *conn
	slot   *slot
	num    int
	cfg    transports.CallerConfig
	ctx    context.Context
	parts  [1][]byte
	sent   int64
	closed bool
}

func callError(code transports.CallCode, text string) error {
	return &transports.CallError{Code: code, Text: text}
}

func (k *caller) Call(q *transports.Call) error {
	c := k.conn
	method, err := k.cfg.MethodOf(q)
	if err != nil {
		return err
	}
	if len(q.Request) > c.request {
		return callError(transports.CallResourceExhausted, fmt.Sprintf("request of %d bytes, at most %d",
			len(q.Request), c.request))
	}
	if err := k.begin(); err != nil {
		return err
	}
	defer c.calls.Done()
	var w wait
	if k.slot.late { // an answer came too late for its call
		if _, _, err := k.answer(&w); err != nil {
			return err
		}
		c.mu.Lock()
		err := k.giveBack()
		c.mu.Unlock()
		if err != nil {
			return k.gone()
		}
	}
	copy(c.place(c.out(k.num), len(q.Request)), q.Request)
	h := header{len: uint32(len(q.Request)), slot: uint16(k.num), what: uint8(k.cfg.Mode)<<4 | method}
	for {
		err := c.postRequest(k.num, &h)
		if err == nil {
			break
		}
		if err != rdma.ErrQueueFull {
			return k.gone()
		}
		c.poll()
		if err := k.check(&w); err != nil {
			return err
		}
	}
	k.slot.late = true
	what, b, err := k.answer(&w)
	if err != nil {
		return err
	}
	if what != 0 {
		return callError(transports.CallCode(what-1), string(b))
	}
	k.sent++
	k.parts[0] = b
	q.Response = k.parts[:]
	return nil
}

func (c *conn) postRequest(num int, h *header) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	h.turn = nextTurn(c.turns[c.next])
	err := c.post(num, c.next, h)
	if err == nil {
		c.turns[c.next] = h.turn
		c.next = (c.next + 1) % len(c.turns)
	}
	return err
}

// begin makes Close wait for a call, and gives back the receive of the last one.
func (k *caller) begin() error {
	c := k.conn
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.ctx.Err() != nil {
		return callError(transports.CallCanceled, "the connection was closed")
	}
	if k.giveBack() != nil {
		return k.gone()
	}
	c.calls.Add(1)
	return nil
}

// giveBack posts the receive again that the last answer lay in, under conn.mu.
func (k *caller) giveBack() error {
	cell := k.slot.cell
	if cell < 0 {
		return nil
	}
	k.slot.cell = -1
	return k.conn.repost(cell)
}

type wait struct {
	turns int
	start time.Time
}

// answer waits for the answer of the slot, which lies in the connection's memory until the next call.
func (k *caller) answer(w *wait) (what uint8, b []byte, err error) {
	c := k.conn
	for {
		c.poll()
		cell, ok := k.arrived()
		if ok {
			k.slot.late = false
			h, err := parseHeader(c.head(cell), uint32(c.response), c.callers)
			if err != nil {
				c.failed.Store(true)
				return 0, nil, k.gone()
			}
			return h.what, c.place(cell, int(h.len)), nil
		}
		if err := k.check(w); err != nil {
			return 0, nil, err
		}
	}
}

func (k *caller) arrived() ([]byte, bool) {
	c := k.conn
	if c.stack.form == Send {
		n := k.slot.answer.Load()
		if n == 0 {
			return nil, false
		}
		k.slot.answer.Store(0)
		k.slot.cell = int(n) - 1
		return c.in(k.slot.cell), true
	}
	cell := c.in(k.num)
	next := nextTurn(k.slot.turn)
	if turnOf(cell) != next {
		return nil, false
	}
	k.slot.turn = next
	return cell, true
}

// check fails when the connection has ended, the caller was cancelled or its deadline passed.
func (k *caller) check(w *wait) error {
	c := k.conn
	if c.failed.Load() {
		return k.gone()
	}
	if w.turns++; w.turns%64 != 0 {
		return nil
	}
	procs.Yield()
	switch {
	case c.ctx.Err() != nil:
		return callError(transports.CallCanceled, "the connection was closed")
	case k.ctx.Err() != nil:
		return transports.AsCallError(k.ctx.Err())
	}
	now := time.Now()
	if w.start.IsZero() {
		w.start = now
	}
	if k.cfg.Timeout > 0 && now.Sub(w.start) > k.cfg.Timeout {
		return callError(transports.CallDeadlineExceeded, "no answer in time")
	}
	if w.turns%1024 == 0 && c.qp.State() == rdma.QPErr {
		c.failed.Store(true)
		return k.gone()
	}
	return nil
}

func (k *caller) gone() error { return callError(transports.CallUnavailable, "the connection is gone") }

func (k *caller) Send(*transports.Call) error {
	return callError(transports.CallInvalidArgument, "no messages one way")
}

// End has nothing to wait for: every message was answered.
func (k *caller) End() (int64, error) { return k.sent, nil }

// Free does nothing: the answer lies in the connection's memory until the next call.
func (k *caller) Free() {}

func (k *caller) Close() error {
	if k.closed {
		return nil
	}
	k.closed = true
	c := k.conn
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.ctx.Err() != nil {
		return nil
	}
	_ = k.giveBack()  // a queue pair in error takes no receives
	if !k.slot.late { // else the answer may still come
		k.slot.taken = false
	}
	return nil
}
