package grpcrdma

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"strings"
	"sync"
	"time"
)

// Scheme of targets and addresses that must be reached by RDMA: "rdma:///host:port", from whatever
// resolver they come.
const Scheme = "rdma"

// demand begins an address that must be reached by RDMA. Resolver puts it before its
// addresses, with a third slash, as in targets: there is one spelling.
const demand = Scheme + "://"

// Dialer connects by RDMA and falls back to TCP at the same address when the peer
// has none: a peer that does not listen, does not speak the device's protocol, or
// refuses. The fallback is logged, once an address until RDMA works
// there again. An address that begins with "rdma:" is never reached by TCP.
type Dialer struct {
	// Net makes the RDMA connections. nil means that this side has no device:
	// every connection is TCP, which is logged.
	Net *Net
	// NoFallback makes an RDMA failure final.
	NoFallback bool
	// Timeout bounds the attempt by RDMA, so that time is left for TCP; 0 means 2 s.
	Timeout time.Duration
	// Log takes the fallbacks; nil means the Net's, without one slog.Default().
	Log *slog.Logger

	fallen sync.Map // addresses whose fallback was logged
}

const defaultAttempt = 2 * time.Second

// host is the address without its scheme. Other resolvers than Resolver pass the target
// on as it is, or without one of its slashes.
func host(addr string) string {
	if a, ok := strings.CutPrefix(addr, demand); ok {
		return strings.TrimPrefix(a, "/")
	}
	return addr
}

var errNoDevice = errors.New("no rdma device on this side")

// DialContext connects to addr, "host:port" or "rdma:///host:port". ctx bounds both
// attempts. When both fail the error holds both causes.
func (d *Dialer) DialContext(ctx context.Context, addr string) (net.Conn, error) {
	demanded := strings.HasPrefix(addr, demand)
	addr = host(addr)
	c, err := d.byRDMA(ctx, addr)
	switch {
	case err == nil:
		if _, was := d.fallen.LoadAndDelete(addr); was {
			d.log().Info("rdma works again", "addr", addr)
		}
		return c, nil
	case demanded || d.NoFallback || ctx.Err() != nil || errors.Is(err, net.ErrClosed):
		return nil, err
	}
	var tcp net.Dialer
	c, tcpErr := tcp.DialContext(ctx, "tcp", addr)
	if tcpErr != nil {
		return nil, fmt.Errorf("%w; by tcp: %w", err, tcpErr)
	}
	if _, was := d.fallen.LoadOrStore(addr, struct{}{}); !was {
		d.log().Warn("falling back to tcp", "addr", addr, "cause", err)
	}
	return c, nil
}

func (d *Dialer) byRDMA(ctx context.Context, addr string) (net.Conn, error) {
	if d.Net == nil {
		return nil, &net.OpError{Op: "dial", Net: "rdma", Addr: Addr(addr), Err: errNoDevice}
	}
	ctx, cancel := context.WithTimeout(ctx, cmp.Or(d.Timeout, defaultAttempt))
	defer cancel()
	return d.Net.DialContext(ctx, addr)
}

func (d *Dialer) log() *slog.Logger {
	if d.Log == nil && d.Net != nil {
		return d.Net.cfg.Log
	}
	return cmp.Or(d.Log, slog.Default())
}
