package grpcrdma

import (
	"context"
	"fmt"
	"sync"

	"github.com/rdmaperf/rdmaperf/grpcrdma/bpev"
	"github.com/rdmaperf/rdmaperf/transports/rdma"
)

// cqSlack is room in the completion queue beyond both depths: an unsignalled
// request completes when it fails, and no completion may ever be lost to that.
const cqSlack = 8

// pollBatch bounds one CQ.Poll. 16 completions are 640 bytes on the lane.
const pollBatch = 16

// lane is a completion queue and the connections behind it: one where callers
// poll, so that they poll nothing but their own; up to laneConns in event mode,
// where each queue costs a sleeping thread. It is the bpev.Source of event mode.
type lane struct {
	net  *Net
	cq   rdma.CQ
	stop func() // ends the event goroutine; nil without one

	conns int // places taken; guarded by net.mu

	mu   sync.Mutex // held by the goroutine that polls
	wcs  [pollBatch]rdma.WC
	byQP map[uint32]*Conn
	only *Conn // the one connection of an unshared lane
	err  error
}

// takeLane finds or makes a lane with a free place.
func (n *Net) takeLane() (*lane, error) {
	places := 1
	if n.cfg.Polling.Mode == bpev.Event {
		places = laneConns
		n.mu.Lock()
		for _, l := range n.lanes {
			if l.conns < places {
				l.conns++
				n.mu.Unlock()
				return l, nil
			}
		}
		n.mu.Unlock()
	}
	l := &lane{net: n, conns: 1, byQP: map[uint32]*Conn{}}
	depth := places * (sendDepth + noticeDepth + noticeSpare + cqSlack)
	if depth > n.caps.MaxCQE {
		return nil, &rdma.MissingError{Gaps: []string{fmt.Sprintf("a completion queue of %d entries", depth)}}
	}
	var err error
	if l.cq, err = n.dev.NewCQ(depth); err != nil {
		return nil, err
	}
	if places == 1 {
		return l, nil
	}
	if l.stop, err = n.set.Watch(l, l.fail); err != nil {
		l.cq.Close()
		return nil, err
	}
	n.mu.Lock()
	n.lanes = append(n.lanes, l)
	n.mu.Unlock()
	return l, nil
}

// releaseLane gives a place back; the last one ends the lane. The QP is closed.
func (n *Net) releaseLane(l *lane) error {
	n.mu.Lock()
	l.conns--
	last := l.conns == 0
	if last {
		for i, x := range n.lanes {
			if x == l {
				n.lanes = append(n.lanes[:i], n.lanes[i+1:]...)
				break
			}
		}
	}
	n.mu.Unlock()
	if !last {
		return nil
	}
	if l.stop != nil {
		l.stop()
	}
	return l.cq.Close()
}

func (l *lane) add(c *Conn) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.byQP[c.qp.Num()] = c
	if l.stop == nil {
		l.only = c
	}
}

// remove returns when no goroutine handles completions of the connection any more.
func (l *lane) remove(c *Conn) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.byQP, c.qp.Num())
	l.only = nil
}

// drive polls the queue unless another goroutine does.
func (l *lane) drive() {
	if l.mu.TryLock() {
		l.poll()
		l.mu.Unlock()
	}
}

// poll takes what is there. The caller holds l.mu.
func (l *lane) poll() {
	for l.err == nil {
		k, err := l.cq.Poll(l.wcs[:])
		for i := range l.wcs[:k] {
			wc := &l.wcs[i]
			c := l.only
			if c == nil {
				c = l.byQP[wc.QPNum]
			}
			if c == nil {
				continue // flushed by a connection that ended
			}
			c.complete(wc)
			if c.handle.Sleeping() != 0 {
				c.handle.Notify(c.readiness())
			}
		}
		if err != nil {
			l.lost(err)
		}
		if k < len(l.wcs) {
			return
		}
	}
}

// lost ends every connection of a queue that works no more.
func (l *lane) lost(err error) {
	l.err = err
	for _, c := range l.byQP {
		c.fail(&rdma.OpError{Op: "poll", Object: "completion queue", Err: err})
	}
}

// Arm, Drain and Wait are the bpev.Source of event mode.
func (l *lane) Arm() error                     { return l.cq.Arm(false) }
func (l *lane) Wait(ctx context.Context) error { return l.cq.Wait(ctx) }

// Drain takes all completions and wakes callers that can go on.
func (l *lane) Drain() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.poll()
	return l.err
}

// fail handles the end of the events.
func (l *lane) fail(err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.err == nil {
		l.lost(err)
	}
}
