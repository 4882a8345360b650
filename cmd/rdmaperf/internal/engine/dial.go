package engine

import (
	"context"
	"errors"
	"net"
	"os"
	"syscall"
	"time"
)

const retryEvery = 50 * time.Millisecond

// dialUntil dials again while the port refuses, for at most limit: client and server are often started together. Who
// refused once and says nothing in the last try has refused.
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

func late(err error) bool {
	return errors.Is(err, context.DeadlineExceeded) || errors.Is(err, os.ErrDeadlineExceeded)
}

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
