package lite

import (
	"context"
	"runtime"
	"time"

	"github.com/rdmaperf/rdmaperf/internal/onepeer"
	"github.com/rdmaperf/rdmaperf/internal/procs"
	"github.com/rdmaperf/rdmaperf/transports/lite/wire"
	"github.com/rdmaperf/rdmaperf/transports/rdma"
)

const (
	// maxIdle is how long callers may poll nothing and still count as polling: a long message takes milliseconds.
	maxIdle = 4 * pollPause
	// wakeEvery polls by callers wake a polling goroutine that sleeps in the device.
	wakeEvery = 16
	// pollPause is the first pause of the polling goroutine while callers poll, and maxPollPause the longest. Arrivals
	// that no caller waits for may be late by that much.
	pollPause    = time.Millisecond
	maxPollPause = 8 * pollPause
)

// pollBackoff decides how long the polling goroutine leaves arrivals to callers that poll.
type pollBackoff struct {
	seen  uint64        // polls by callers, as of the last pause
	slept time.Duration // the last pause
	rest  time.Duration // the next one
	idle  time.Duration // how long callers polled too seldom
}

// next is how long to pause; 0 means that no caller polls, and the goroutine may sleep in the device. It is never 0
// while messages are deferred, nor where the device has no events.
func (a *pollBackoff) next(polls uint64, held, events bool) time.Duration {
	polling := polls-a.seen >= minPolls(a.slept)
	if a.idle += a.slept; polling {
		a.idle = 0
	}
	if a.idle >= maxIdle && !held && events {
		a.slept, a.rest, a.idle = pollPause, pollPause, maxIdle
		return 0
	}
	if held {
		a.rest = pollPause // the goroutine is the one that hands it on
	}
	a.seen, a.slept = polls, a.rest
	if a.rest = min(2*a.rest, maxPollPause); !polling || held {
		a.rest = pollPause
	}
	return a.slept
}

// minPolls is how many polls in d count as polling.
func minPolls(d time.Duration) uint64 { return uint64(max(d/maxIdle, 1)) }

// reset forgets the polls of a caller that goes to sleep: counted, they make answers half a pause late.
func (a *pollBackoff) reset(polls uint64) { a.seen, a.idle, a.rest = polls, maxIdle, pollPause }

// poll takes completions of the link's own operations, unless another goroutine does.
func (l *link) poll() int {
	if !l.pollMu.TryLock() {
		return 0
	}
	k, err := l.cq.Poll(l.wcs[:])
	for i := range l.wcs[:k] {
		l.completed(&l.wcs[i])
	}
	l.pollMu.Unlock()
	if err != nil && !l.peer.dead.Load() {
		go l.node.lose(l.peer, err) // it takes l.mu, which the caller may hold
	}
	return k
}

func (l *link) completed(wc *rdma.WC) {
	if wc.Status == rdma.StatusSuccess {
		l.inUse.Add(-int32(wc.ID >> idCoverShift & 0xffff))
	} else {
		l.broken.Store(true)
	}
	switch wc.ID >> idKindShift {
	case idOp:
		if c := l.node.clients[wc.ID>>idClientShift&0xffff].Load(); c != nil {
			c.finished(uint32(wc.ID&idOpMask), wc.Status)
		}
	case idRun:
		if c := l.node.clients[wc.ID>>idClientShift&0xffff].Load(); c != nil {
			c.completeRun(l, uint32(wc.ID&idOpMask), wc.Status)
		}
	case idFree:
		l.node.free(wc.ID & (1<<idCoverShift - 1) * 64)
	}
	if wc.Status != rdma.StatusSuccess && !l.peer.dead.Load() {
		go l.node.lose(l.peer, &rdma.StatusError{WC: *wc})
	}
}

// poll takes what arrived from all peers. One goroutine at a time is inside.
func (n *Node) poll() int {
	if !n.pollMu.TryLock() {
		return 0
	}
	defer n.pollMu.Unlock()
	return n.takeArrivals()
}

// takeArrivals is poll; pollMu is held.
func (n *Node) takeArrivals() int {
	k, err := n.recvCQ.Poll(n.wcs[:])
	for i := range n.wcs[:k] {
		n.arrived(&n.wcs[i])
	}
	if err != nil && k == 0 && n.ctx.Err() == nil {
		for i := range n.peers { // arrivals were lost: nothing can be trusted any more
			if p := n.peers[i].Load(); p != nil && !p.dead.Load() {
				go n.lose(p, err)
			}
		}
	}
	if n.deferred.Load() == 0 {
		return k
	}
	for i := range n.peers {
		p := n.peers[i].Load()
		if p == nil || p.dead.Load() {
			continue
		}
		for _, l := range p.links {
			l.poll()
			l.flush()
		}
	}
	return k
}

// arrived handles one completion of a receive; pollMu is held.
func (n *Node) arrived(wc *rdma.WC) {
	l := n.links[wc.ID>>32].Load()
	if l == nil {
		return
	}
	defer onepeer.Recover(func(fault error) { go n.lose(l.peer, fault) })
	if wc.Status != rdma.StatusSuccess {
		l.broken.Store(true)
		if !l.peer.dead.Load() {
			go n.lose(l.peer, &rdma.StatusError{WC: *wc})
		}
		return
	}
	imm := wc.Imm
	if wc.Flags&rdma.WithImm == 0 {
		b := n.mem[l.recvBufs+wc.ID&0xffffffff*8:]
		imm = uint32(b[0])<<24 | uint32(b[1])<<16 | uint32(b[2])<<8 | uint32(b[3])
		if wc.ByteLen != 4 {
			imm = 0xffffffff
		}
	}
	l.repost(uint32(wc.ID))
	kind, port, low, ok := wire.ParseImm(imm)
	switch {
	case !ok:
		go n.lose(l.peer, wire.ErrPeer)
	case kind == wire.ImmReply:
		n.calls.replied(n, l.peer, low)
	default:
		if err := n.request(l, port, low, kind == wire.ImmOneWay); err != nil {
			go n.lose(l.peer, err)
		}
	}
}

// repost posts a receive again, in batches, and notifies the peer once a quarter of the queue; pollMu is held.
func (l *link) repost(slot uint32) {
	l.reposts = append(l.reposts, l.receive(slot))
	if len(l.reposts) < cap(l.reposts) {
		return
	}
	if _, err := l.qp.PostRecv(l.reposts); err != nil {
		l.broken.Store(true)
		return
	}
	l.reposted += uint64(len(l.reposts))
	l.reposts = l.reposts[:0]
	if l.reposted-l.announced >= uint64(l.depth/4) {
		l.announced = l.reposted
		addr, _ := l.peer.at(creditOf(l.node.id, l.index), wire.WordLen)
		l.sendWord(addr, l.reposted)
		l.node.counts.credits.Add(1)
	}
}

// receive is the receive of a slot. It has room for the number that a send carries.
func (l *link) receive(slot uint32) rdma.RecvWR {
	wr := rdma.RecvWR{ID: uint64(l.place)<<32 | uint64(slot), NumSGE: 1}
	wr.SGE[0] = rdma.SGE{Addr: l.node.base + l.recvBufs + uint64(slot)*8, Len: 8, LKey: l.lkey}
	return wr
}

// clockPolls polls in a row that found nothing come to one look at the clock.
const clockPolls = 16

func (n *Node) pollLoop() {
	if n.cfg.Polling == PollSpin {
		for empty := 1; n.ctx.Err() == nil; empty++ {
			if n.poll() > 0 {
				empty = 0
			} else if empty%64 == 0 {
				procs.Yield()
			}
		}
		return
	}
	att := pollBackoff{slept: pollPause, rest: pollPause, idle: maxIdle}
	last := time.Now()
	for empty := 0; n.ctx.Err() == nil; {
		if n.poll() > 0 {
			empty = 0
			last = time.Now()
			continue
		}
		if empty++; empty < clockPolls {
			continue
		}
		empty = 0
		if now := time.Now(); now.Sub(last) < n.cfg.Spin {
			runtime.Gosched()
			continue
		}
		if d := att.next(n.activity.Load(), n.deferred.Load() > 0, n.caps.Features.Has(rdma.FeatEvents)); d > 0 {
			if n.pause(d) {
				att.reset(n.activity.Load())
			}
			empty = clockPolls - 1 // callers saw what there is, or one poll shows that they did not
			continue
		}
		n.sleep()
		last = time.Now()
	}
}

// pause rests for d at most; kicked is true when it was ended early.
func (n *Node) pause(d time.Duration) (kicked bool) { return n.nap(n.kick, d) }

// nap rests until wake has a token, which it reports, or d is over.
func (n *Node) nap(wake <-chan struct{}, d time.Duration) (woken bool) {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
	case <-wake:
		return true
	case <-n.ctx.Done():
	}
	return false
}

// sleep waits for an arrival, a wake, a caller that polls, or the end of a caller's sleep in the device.
func (n *Node) sleep() {
	n.parked.Store(true)
	if !n.device.TryLock() {
		n.pause(mostRest)
		n.parked.Store(false)
		return
	}
	n.parked.Store(false)
	defer signal(n.left)
	defer n.device.Unlock()
	ctx, cancel := context.WithCancel(n.ctx)
	defer cancel()
	n.sleeping.Store(&cancel)
	defer n.sleeping.Store(nil)
	n.await(ctx, n.kick)
}

// await sleeps in the device until something arrives, wake has a token, or ctx ends. The caller holds device.
func (n *Node) await(ctx context.Context, wake <-chan struct{}) {
	// Armed before the look, so that an arrival either is found by it or wakes. The look waits for others that poll: what
	// they missed before the queue was armed raises no event.
	if n.recvCQ.Arm(false) != nil {
		return
	}
	n.pollMu.Lock()
	k := n.takeArrivals()
	n.pollMu.Unlock()
	if k > 0 || n.deferred.Load() > 0 {
		return
	}
	select {
	case <-wake:
		return
	default:
	}
	// An error is the end of the node, a wake, or found by the next poll.
	_ = n.recvCQ.Wait(ctx)
}

func (n *Node) wake() {
	signal(n.kick)
	n.cancelSleep()
}

// notePolling is called now and then by callers that poll for arrivals.
func (n *Node) notePolling() {
	n.activity.Add(minPolls(maxPollPause))
	n.cancelSleep()
}

// cancelSleep wakes the polling goroutine from the device, where every packet of callers that poll would wake it.
func (n *Node) cancelSleep() {
	if c := n.sleeping.Load(); c != nil {
		(*c)()
	}
}
