package carrier

import (
	"context"
	"errors"
	"fmt"
	"math"
	"net"
	"sync/atomic"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/connectivity"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/emptypb"

	"github.com/rdmaperf/rdmaperf/grpcrdma"
	"github.com/rdmaperf/rdmaperf/grpcrdma/fused"
)

// Conn is a client on one connection, for generated stubs. Safe for concurrent use.
type Conn interface {
	grpc.ClientConnInterface
	// Close ends all calls and the connection.
	Close() error
}

// Connect makes a connection of its own to a listener of a carrier like this one. ctx bounds that alone. The cause of a
// failure is that of the last dial.
func (c *Carrier) Connect(ctx context.Context, addr string) (Conn, error) {
	return c.connect(ctx, addr, nil)
}

func (c *Carrier) connect(ctx context.Context, addr string, secret []byte) (Conn, error) {
	over := c.connectHTTP2
	if c.cfg.Form.Frames() {
		over = c.connectFused
	}
	conn, err := over(ctx, c.dialer(addr, secret))
	if err == nil {
		return conn, nil
	}
	if e := ctx.Err(); e != nil && !errors.Is(err, e) { // an error of gRPC says so as text alone
		err = fmt.Errorf("%w: %w", e, err)
	}
	return nil, fmt.Errorf("connect %s to %s: %w", c.cfg.Form, addr, err)
}

// dialer keeps the last error: that of a ClientConn only says that a context ended.
type dialer struct {
	dial   func(context.Context) (net.Conn, error)
	secret []byte // sent first on each new connection; empty: nothing
	last   atomic.Pointer[error]
	conn   atomic.Pointer[net.Conn] // the newest
}

func (d *dialer) do(ctx context.Context, _ string) (net.Conn, error) {
	conn, err := d.dial(ctx)
	if err == nil {
		conn, err = show(ctx, conn, d.secret)
	}
	if err != nil {
		d.last.Store(&err)
	} else {
		d.conn.Store(&conn)
	}
	return conn, err
}

func (d *dialer) cause(err error) error {
	if last := d.last.Load(); last != nil {
		return *last
	}
	return err
}

func (c *Carrier) dialer(addr string, secret []byte) *dialer {
	d := &dialer{secret: secret}
	switch c.cfg.Form {
	case TCP, Unix:
		network := c.cfg.Form.String()
		d.dial = func(ctx context.Context) (net.Conn, error) { return new(net.Dialer).DialContext(ctx, network, addr) }
	case BufConn:
		d.dial = func(ctx context.Context) (net.Conn, error) { return dialBufConn(ctx, addr) }
	case Service:
		d.dial = func(ctx context.Context) (net.Conn, error) { return c.svc.DialContext(ctx, addr) }
	default:
		// No fallback: a figure of RDMA must not be one of TCP.
		r := &grpcrdma.Dialer{Net: c.net, NoFallback: true}
		d.dial = func(ctx context.Context) (net.Conn, error) { return r.DialContext(ctx, addr) }
	}
	return d
}

func (c *Carrier) connectHTTP2(ctx context.Context, d *dialer) (Conn, error) {
	cc, err := grpc.NewClient("passthrough:///carrier", append(c.dialOptions(), grpc.WithContextDialer(d.do))...)
	if err != nil {
		return nil, err
	}
	cc.Connect()
	for {
		s := cc.GetState()
		switch s {
		case connectivity.Ready:
			return &httpConn{cc, d}, nil
		case connectivity.TransientFailure:
			// gRPC does not retry a dial within a second: the caller decides.
			cc.Close()
			return nil, d.cause(errors.New("the connection failed"))
		}
		if !cc.WaitForStateChange(ctx, s) {
			cc.Close()
			return nil, d.cause(ctx.Err())
		}
	}
}

type httpConn struct {
	*grpc.ClientConn
	d *dialer
}

// closeWait is for what was written to leave. gRPC alone waits for five seconds where the peer takes nothing.
const closeWait = 500 * time.Millisecond

func (c *httpConn) Close() error {
	conn := c.d.conn.Load()
	defer time.AfterFunc(closeWait, func() { (*conn).Close() }).Stop()
	return c.ClientConn.Close()
}

func (c *Carrier) dialOptions() []grpc.DialOption {
	o := &c.cfg.Options
	opts := []grpc.DialOption{grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(math.MaxInt32), grpc.MaxCallSendMsgSize(math.MaxInt32))}
	if o.ReadBuffer > 0 {
		opts = append(opts, grpc.WithReadBufferSize(o.ReadBuffer))
	}
	if o.WriteBuffer > 0 {
		opts = append(opts, grpc.WithWriteBufferSize(o.WriteBuffer))
	}
	if o.Window > 0 {
		opts = append(opts, grpc.WithStaticStreamWindowSize(int32(o.Window)), grpc.WithStaticConnWindowSize(int32(o.Window)))
	}
	return opts
}

func (c *Carrier) connectFused(ctx context.Context, d *dialer) (Conn, error) {
	ch, err := fused.NewChannel(func(ctx context.Context) (net.Conn, error) { return d.do(ctx, "") }, c.fused())
	if err != nil {
		return nil, err
	}
	// A channel connects at its first call. Any answer shows a connection, and no server has this method.
	err = ch.Invoke(ctx, "/rdmaperf.Carrier/Stands", &emptypb.Empty{}, &emptypb.Empty{})
	if status.Code(err) == codes.Unimplemented {
		return ch, nil
	}
	ch.Close()
	return nil, d.cause(err)
}
