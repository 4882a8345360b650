package engine

import (
	"context"
	"errors"
	"net"
	"os"
	"syscall"
	"time"
)

// retryEvery is how often a refused connection is tried again: client and server are often started together.
const retryEvery = 50 * time.Millisecond

// dialUntil dials a server's control port by dial, and again while it refuses, for at most limit. The connection is
// the caller's. Who refused once and says nothing in the last try has refused.
func dialUntil(ctx context.Context, limit time.Duration, addr string,
	dial func(ctx context.Context, network, addr string) (net.Conn, error)) (net.Conn, error) {
	dctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	var refused error
	for {
		conn, err := dial(dctx, "tcp", addr)
		if err == nil {
			return conn, nil
		}
		if errors.Is(err, syscall.ECONNREFUSED) {
			refused = err
			select {
			case <-time.After(retryEvery):
				if dctx.Err() == nil {
					continue
				}
			case <-dctx.Done():
			}
		}
		if ctx.Err() != nil {
			return nil, Interrupted()
		}
		// The dialer's own clock may be ahead of dctx, so that the error decides.
		if refused != nil && late(err) {
			err = refused
		}
		return nil, PeerError("connect "+addr, dialCause(err),
			"rdmaperf serve on the other host, --port, or a longer --timeout")
	}
}

// late reports whether a try ended for want of time.
func late(err error) bool {
	return errors.Is(err, context.DeadlineExceeded) || errors.Is(err, os.ErrDeadlineExceeded)
}

// dialCause shortens what net.OpError repeats.
func dialCause(err error) error {
	if late(err) {
		return errSilent
	}
	if op, ok := errors.AsType[*net.OpError](err); ok {
		if sys, ok := errors.AsType[*os.SyscallError](op.Err); ok {
			return sys.Err
		}
		return op.Err
	}
	return err
}
