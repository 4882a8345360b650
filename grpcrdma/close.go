package grpcrdma

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"time"

	"github.com/rdmaperf/rdmaperf/grpcrdma/bpev"
	"github.com/rdmaperf/rdmaperf/transports/rdma"
)

// closeGrace bounds the wait for a peer that takes nothing.
const closeGrace = 250 * time.Millisecond

// Close ends Read and Write, marks the end of the stream behind what was written, and frees the
// connection's memory and queues. Idempotent.
func (c *Conn) Close() error {
	c.closeOnce.Do(func() {
		c.closed.Store(true)
		c.handle.Kick(bpev.In | bpev.Out)
		c.tx.mu.Lock() // the Write in progress is out
		c.finish()
		c.tx.mu.Unlock()
		c.rx.mu.Lock()
		c.closeErr = c.release()
		c.rx.mu.Unlock()
		c.net.leave(c)
	})
	return c.closeErr
}

// finish writes the end of the stream and ends the connection behind it.
func (c *Conn) finish() {
	if c.err.Load() != nil || c.qp.State() != rdma.QPRTS {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), closeGrace)
	defer cancel()
	for !c.tx.finRoom() && ctx.Err() == nil && c.err.Load() == nil {
		c.lane.drive()
		runtime.Gosched()
	}
	// A peer that is slow or gone is no failure of Close: the QP is closed anyway.
	if c.sendRecord(nil, nil, true) == nil {
		_ = c.qp.Disconnect(ctx)
	}
}

// release frees what newConn made.
func (c *Conn) release() error {
	c.handle.Remove()
	errs := []error{c.qp.Close()}
	c.lane.remove()
	errs = append(errs, c.sinks.close()...)
	errs = append(errs, c.lane.cq.Close(), c.net.put(c.mem))
	if err := errors.Join(errs...); err != nil {
		return fmt.Errorf("close rdma connection %v: %w", c, err)
	}
	return nil
}

// finRoom is true when queue and send buffer take the end of the stream. The ring always does.
func (w *writer) finRoom() bool {
	return w.used.Load() <= sendDepth-2 && uint64(len(w.buf))-(w.bufHead.Load()-w.bufFreed.Load()) >= 4*unit
}
