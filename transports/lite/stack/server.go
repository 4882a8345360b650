package stack

import (
	"context"
	"encoding/binary"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"github.com/rdmaperf/rdmaperf/internal/procs"
	"github.com/rdmaperf/rdmaperf/transports"
	"github.com/rdmaperf/rdmaperf/transports/lite"
	"github.com/rdmaperf/rdmaperf/transports/rdma"
)

type work struct {
	r      lite.Request
	port   int
	mode   transports.CallMode
	method uint8
}

type sender struct {
	node int
	tag  uint32
}

// lane keeps the messages of a sender in their order, whichever worker leads.
type lane struct {
	taken   int64 // messages whose handlers have returned
	busy    bool  // one is in its handler
	waiting []work
}

// callServer answers calls. One worker at a time leads: it polls the node, takes what waits and answers it. The watch
// makes another one lead when a handler takes long.
type callServer struct {
	node    node
	handler transports.CallHandler
	spinFor time.Duration // the leader sleeps after so long without a request
	ports   []*lite.Port
	wake    chan struct{}
	done    chan struct{}
	all     sync.WaitGroup

	leader atomic.Pointer[worker] // the worker that leads; nil: none, the server ends
	asleep atomic.Bool            // it sleeps, or is about to

	mu      sync.Mutex
	queue   lite.Queue[work]
	workers map[*worker]bool
	most    int
	lanes   map[sender]*lane
	closed  bool
}

type worker struct {
	ctx    callCtx
	from   atomic.Int32
	tag    atomic.Uint32
	busy   atomic.Bool
	runs   atomic.Uint64 // odd while it is in a handler
	served transports.Served
}

const (
	watchTick    = 2 * time.Millisecond // a handler may take this, up to twice, before another worker leads
	spareWorkers = 8                    // beside the callers that a server expects
	// restAfter is how long a leader spins where callers poll: longer than what a caller does between two calls.
	restAfter = 20 * time.Millisecond
	mostSleep = 100 * time.Millisecond // arbitrary: whatever concerns the leader ends a sleep
)

// ListenCalls makes a cluster whose manager answers calls at addr.
func (s *Stack) ListenCalls(ctx context.Context, addr string, cfg transports.CallConfig,
	h transports.CallHandler) (transports.CallServer, error) {
	n, err := s.open(ctx, addr, "", callNeed(cfg), cfg.Secret)
	if err != nil {
		return nil, &rdma.OpError{Op: "listen", Object: addr, Err: err}
	}
	c := &callServer{node: n.(node), handler: h, spinFor: max(s.cfg.Spin, 10*time.Microsecond),
		wake:    make(chan struct{}, 1),
		done:    make(chan struct{}),
		workers: map[*worker]bool{},
		most:    max(cfg.Callers, 1)*max(cfg.Conns, 1) + spareWorkers, lanes: map[sender]*lane{}}
	if s.cfg.Polling == PollCaller {
		c.spinFor = restAfter
	}
	if err := c.open(cfg); err != nil {
		return nil, &rdma.OpError{Op: "listen", Object: addr, Err: errors.Join(err, c.Close())}
	}
	c.lead()
	c.all.Go(c.watch)
	return c, nil
}

func (s *callServer) open(cfg transports.CallConfig) error {
	for port := range giveUpPort + 1 {
		w := work{port: port, mode: transports.CallMode(port / transports.CallMethods),
			method: uint8(port % transports.CallMethods)}
		p := lite.PortConfig{MaxRequest: max(cfg.MaxRequest, 64), Handle: func(r *lite.Request) { s.push(w, r) }}
		if port == giveUpPort {
			p.Handle = s.givenUp
		}
		if port >= countPort {
			p.MaxRequest = 64
		}
		opened, err := s.node.Serve(port, p)
		if err != nil {
			return err
		}
		s.ports = append(s.ports, opened)
	}
	return nil
}

func (s *callServer) Addr() string { return s.node.Addr() }

// push keeps a request for the leader. It runs where the node is polled.
func (s *callServer) push(w work, r *lite.Request) {
	w.r = *r
	s.mu.Lock()
	if s.closed {
		s.mu.Unlock()
		_ = w.r.ReplyError(lite.ErrClosed) // a caller that left needs no answer
		return
	}
	s.queue.Push(&w)
	s.mu.Unlock()
	s.rouse()
}

func (s *callServer) rouse() {
	if s.asleep.Load() {
		s.node.Signal(s.wake)
	}
}

func (s *callServer) pop(w *work) bool {
	if s.queue.Len() == 0 {
		return false
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.queue.Pop(w)
}

func (s *callServer) lead() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed || len(s.workers) >= s.most {
		return
	}
	w := &worker{ctx: callCtx{end: make(chan struct{})}}
	s.workers[w] = true
	s.leader.Store(w)
	s.all.Go(func() { s.work(w) })
}

// work is a worker, until it leads no more.
func (s *callServer) work(w *worker) {
	var job work
	var since time.Time // of the last request, once the clock was read
	slept := false      // since then
	for turn := 1; s.leader.Load() == w; turn++ {
		if s.pop(&job) {
			if turn > 1 && !slept {
				procs.CPUs.Served()
			}
			s.serve(w, &job)
			turn, since, slept = 0, time.Time{}, false
			continue
		}
		if s.node.Progress() > 0 || turn%64 != 0 && (turn != 1 || procs.CPUs.Calm()) {
			continue
		}
		now := time.Now()
		if since.IsZero() {
			since = now
		}
		if now.Sub(since) < s.spinFor && procs.CPUs.Spin(now) {
			s.node.Yield()
			continue
		}
		s.asleep.Store(true) // before the look: what is pushed behind that ends the sleep
		if s.queue.Len() == 0 && s.leader.Load() == w {
			s.node.Rest(s.wake, mostSleep)
		}
		s.asleep.Store(false)
		turn, slept = 0, true
	}
	s.mu.Lock()
	delete(s.workers, w)
	s.mu.Unlock()
}

func (s *callServer) serve(w *worker, job *work) {
	switch {
	case job.port == countPort:
		s.answerCount(&job.r)
	case job.mode == transports.CallOneWay:
		s.oneWay(w, job)
	default:
		s.call(w, job)
	}
}

// oneWay handles a message, unless the handler has one of its sender: the worker with that one takes this one next.
func (s *callServer) oneWay(w *worker, job *work) {
	from := sender{job.r.From, job.r.Tag}
	s.mu.Lock()
	l := s.lanes[from]
	if l == nil {
		l = new(lane)
		s.lanes[from] = l
	}
	if l.busy {
		l.waiting = append(l.waiting, *job)
		s.mu.Unlock()
		return
	}
	l.busy = true
	s.mu.Unlock()
	for next := *job; ; {
		s.call(w, &next)
		s.mu.Lock()
		l.taken++
		if len(l.waiting) == 0 {
			l.busy = false
			s.mu.Unlock()
			return
		}
		next, l.waiting = l.waiting[0], l.waiting[1:]
		s.mu.Unlock()
	}
}

func (s *callServer) call(w *worker, job *work) {
	r := &job.r
	w.from.Store(int32(r.From))
	w.tag.Store(r.Tag)
	w.busy.Store(true)
	q := &w.served
	parts := [1][]byte{r.Payload}
	*q = transports.Served{Ctx: &w.ctx, Mode: job.mode, Method: job.method, Request: parts[:]}
	w.runs.Add(1)
	err := s.handler.ServeCall(q)
	w.runs.Add(1)
	w.busy.Store(false)
	w.ctx.reset()
	switch {
	case job.mode == transports.CallOneWay:
		r.Release()
	case err != nil:
		e := transports.AsCallError(err)
		// A caller that left needs no answer.
		_ = r.ReplyCode(lite.Code(e.Code)+1, []byte(e.Text[:min(len(e.Text), textRoom)]))
	default:
		_ = r.Reply(q.Response) // likewise; one with too little room gets an error
	}
	if q.Owner != nil {
		q.Owner.Release()
	}
}

// answerCount answers how many messages one way of a client arrived.
func (s *callServer) answerCount(r *lite.Request) {
	if len(r.Payload) != 8 {
		_ = r.ReplyError(lite.ErrFail)
		return
	}
	tag := uint32(binary.BigEndian.Uint64(r.Payload))
	s.mu.Lock()
	var n int64
	if l := s.lanes[sender{r.From, tag}]; l != nil {
		n = l.taken
	}
	s.mu.Unlock()
	_ = r.Reply(binary.BigEndian.AppendUint64(nil, uint64(n))) // a caller that left needs no answer
}

// givenUp ends the context of a call whose deadline passed. It runs where the node is polled.
func (s *callServer) givenUp(r *lite.Request) {
	from, tag := int32(r.From), r.Tag
	r.Release()
	s.cancel(func(w *worker) bool { return w.from.Load() == from && w.tag.Load() == tag })
}

func (s *callServer) cancel(match func(w *worker) bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for w := range s.workers {
		if w.busy.Load() && match(w) {
			w.ctx.cancel()
		}
	}
}

// watch detects handlers that take long, and callers that are lost.
func (s *callServer) watch() {
	t := time.NewTicker(watchTick)
	defer t.Stop()
	var last *worker
	var seen uint64
	for {
		select {
		case <-s.done:
			return
		case <-t.C:
		}
		if w := s.leader.Load(); w != nil {
			run := w.runs.Load()
			if run%2 == 1 && run == seen && w == last {
				s.lead()
			}
			last, seen = w, run
		}
		s.cancel(func(w *worker) bool { return s.node.Dead(int(w.from.Load())) != nil })
	}
}

// Close ends all calls, and returns when the last handler has.
func (s *callServer) Close() error {
	s.mu.Lock()
	if s.closed {
		s.mu.Unlock()
		return nil
	}
	s.closed = true
	s.mu.Unlock()
	s.leader.Store(nil)
	s.rouse()
	close(s.done)
	for _, p := range s.ports {
		p.Close()
	}
	s.cancel(func(*worker) bool { return true })
	s.all.Wait()
	var job work
	for s.pop(&job) {
		_ = job.r.ReplyError(lite.ErrClosed) // a caller that left needs no answer
	}
	return s.node.Close()
}

// callCtx is the context of a worker's call at hand. It is used again for the next one.
type callCtx struct {
	mu    sync.Mutex
	ended bool
	end   chan struct{}
}

var _ context.Context = (*callCtx)(nil)

func (c *callCtx) Deadline() (time.Time, bool) { return time.Time{}, false }

func (c *callCtx) Done() <-chan struct{} {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.end
}

func (c *callCtx) Err() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.ended {
		return context.Canceled
	}
	return nil
}

func (c *callCtx) Value(any) any { return nil }

func (c *callCtx) cancel() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.ended {
		c.ended = true
		close(c.end)
	}
}

func (c *callCtx) reset() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.ended {
		c.ended, c.end = false, make(chan struct{})
	}
}
