package stream

import (
	"sync"
	"sync/atomic"
)

// Calls are system calls and what they moved.
type Calls struct {
	Recv, RecvOctets uint64 // reads, those that found nothing too
	RecvEmpty        uint64 // of them, those that found nothing
	Send, SendOctets uint64
	Queue            uint64 // questions what is not sent, or not acknowledged, yet
	Poll             uint64 // looks and sleeps in epoll
}

func (c *Calls) add(n Calls) {
	c.Recv += n.Recv
	c.RecvOctets += n.RecvOctets
	c.RecvEmpty += n.RecvEmpty
	c.Send += n.Send
	c.SendOctets += n.SendOctets
	c.Queue += n.Queue
	c.Poll += n.Poll
}

// ledger is what all sockets of the process did. The open ones count for
// themselves, so that no two threads share a cache line.
var ledger struct {
	mu    sync.Mutex
	open  map[*socket]struct{}
	ended Calls
}

var polls atomic.Uint64

// KernelCalls are the system calls of all kernel sockets of this process so far.
func KernelCalls() Calls {
	ledger.mu.Lock()
	defer ledger.mu.Unlock()
	sum := ledger.ended
	for s := range ledger.open {
		sum.add(s.calls.read())
	}
	sum.Poll = polls.Load()
	return sum
}

func (c *socket) enter() {
	ledger.mu.Lock()
	defer ledger.mu.Unlock()
	if ledger.open == nil {
		ledger.open = map[*socket]struct{}{}
	}
	ledger.open[c] = struct{}{}
}

func (c *socket) leave() {
	ledger.mu.Lock()
	defer ledger.mu.Unlock()
	delete(ledger.open, c)
	ledger.ended.add(c.calls.read())
}

// calls are one socket's. One goroutine receives and one sends at a time, so each
// word has one writer, and a store of a sum is enough.
type calls struct {
	recv, recvOctets, recvEmpty, send, sendOctets, queue atomic.Uint64
}

func (c *calls) read() Calls {
	return Calls{Recv: c.recv.Load(), RecvOctets: c.recvOctets.Load(), RecvEmpty: c.recvEmpty.Load(),
		Send: c.send.Load(), SendOctets: c.sendOctets.Load(), Queue: c.queue.Load()}
}

func (c *calls) received(n int) {
	c.recv.Store(c.recv.Load() + 1)
	if n == 0 {
		c.recvEmpty.Store(c.recvEmpty.Load() + 1)
		return
	}
	c.recvOctets.Store(c.recvOctets.Load() + uint64(n))
}

func (c *calls) sent(n int) {
	c.send.Store(c.send.Load() + 1)
	c.sendOctets.Store(c.sendOctets.Load() + uint64(n))
}
