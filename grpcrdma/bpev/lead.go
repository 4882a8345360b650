package bpev

import (
	"context"
	"errors"
	"math/bits"
	"net"
	"os"
	"time"
)

// led is the wait of a sleeper for the events of its connection.
type led struct {
	ctx context.Context
	end context.CancelFunc
	dir int // of the sleeper
}

// lead waits for an event of the connection's own source, and handles what completed for both directions. The caller
// holds leading, and has set its bit of sleeping.
func (h *Handle) lead(want Ready, deadline time.Time) error {
	dir := bits.TrailingZeros8(uint8(want))
	l := h.own[dir]
	if l == nil || l.ctx.Err() != nil {
		l = &led{dir: dir}
		l.ctx, l.end = context.WithCancel(h.set.ctx)
		h.own[dir] = l
	}
	ctx := l.ctx
	if !deadline.IsZero() {
		var cancel context.CancelFunc
		ctx, cancel = context.WithDeadline(ctx, deadline)
		defer cancel()
	}
	h.set.sleeps.Add(1)
	for {
		// Arm comes before the look: what comes behind it is an event.
		ready, err := h.src.Arm()
		if err != nil {
			return err
		}
		h.Notify(ready &^ want)
		if h.takeKick(want) || ready&want != 0 {
			return nil
		}
		h.led.Store(l) // before the look for what others found: who finds it behind that ends the wait
		if h.woken(l.dir) || h.takeKick(want) {
			h.led.Store(nil)
			return nil
		}
		err = h.src.Wait(ctx)
		h.led.Store(nil)
		switch {
		case err == nil:
			h.set.wakes.Add(1)
			if h.poller != nil && h.poller.quiet.note(time.Now()) {
				h.poller.wake()
			}
		case l.ctx.Err() != nil:
			if h.set.over.Load() {
				return net.ErrClosed
			}
			h.takeKick(want)
			return nil
		case errors.Is(err, context.DeadlineExceeded):
			return os.ErrDeadlineExceeded
		default:
			return err
		}
	}
}

// woken takes the token of a wake.
func (h *Handle) woken(dir int) bool {
	select {
	case <-h.wake[dir]:
		return true
	default:
		return false
	}
}

// follow ends the lead. A sleeper of the other direction takes it.
func (h *Handle) follow(want Ready) {
	h.leading.Unlock()
	h.Notify(h.Sleeping() &^ want)
}
