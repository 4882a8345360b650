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

// lane is the completion queue of one connection, so that its callers poll nothing else. It is
// the bpev.Source of the connection.
type lane struct {
	cq rdma.CQ

	mu   sync.Mutex // held by the goroutine that polls
	wcs  [pollBatch]rdma.WC
	conn *Conn // nil behind remove
	err  error
}

func (n *Net) newLane() (*lane, error) {
	const depth = sendDepth + noticeDepth + noticeSpare + cqSlack
	if depth > n.caps.MaxCQE {
		return nil, &rdma.MissingError{Gaps: []string{fmt.Sprintf("a completion queue of %d entries", depth)}}
	}
	cq, err := n.dev.NewCQ(depth)
	return &lane{cq: cq}, err
}

// remove returns when no goroutine handles completions of the connection any more.
func (l *lane) remove() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.conn = nil
}

// drive polls the queue unless another goroutine does.
func (l *lane) drive() {
	if l.mu.TryLock() {
		l.poll(true)
		l.mu.Unlock()
	}
}

// poll takes what is there. The caller holds l.mu.
func (l *lane) poll(notify bool) {
	c := l.conn
	if c == nil {
		return // the queue may be closed
	}
	for l.err == nil {
		k, err := l.cq.Poll(l.wcs[:])
		for i := range l.wcs[:k] {
			c.complete(&l.wcs[i])
		}
		if notify && k > 0 && c.handle.Sleeping() != 0 {
			c.handle.Notify(c.readiness())
		}
		if err != nil {
			l.err = err
			c.fail(&rdma.OpError{Op: "poll", Object: "completion queue", Err: err})
		}
		if k < len(l.wcs) {
			return
		}
	}
}

// Arm is that of bpev.Source. It waits for a goroutine that polls: what completed behind its last poll and before the
// queue was armed raises no event.
func (l *lane) Arm() (bpev.Ready, error) {
	if err := l.cq.Arm(false); err != nil {
		return 0, err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.poll(false) // the caller is the sleeper, and notifies the other one
	if l.conn == nil {
		return bpev.In | bpev.Out, l.err
	}
	return l.conn.readiness(), l.err
}

// Wait is that of bpev.Source.
func (l *lane) Wait(ctx context.Context) error { return l.cq.Wait(ctx) }
