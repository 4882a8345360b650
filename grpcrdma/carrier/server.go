package carrier

import (
	"context"
	"crypto/rand"
	"fmt"
	"math"
	"net"
	"sync"
	"sync/atomic"
	"syscall"

	"google.golang.org/grpc"
	"google.golang.org/grpc/test/bufconn"

	"github.com/rdmaperf/rdmaperf/grpcrdma/fused"
)

// Server takes generated code and serves it.
type Server interface {
	grpc.ServiceRegistrar
	// Serve takes connections from l, which it closes, until Stop (nil).
	Serve(l net.Listener) error
	// Stop ends all calls and connections, and returns when the handlers have.
	Stop()
}

// maxCalls bounds the calls in progress on a connection. gRPC has no limit by default.
const maxCalls = 1 << 20

// NewServer makes a server for the connections of Listener.
func (c *Carrier) NewServer() (Server, error) {
	if c.cfg.Form.Frames() {
		return fused.NewServer(c.fused())
	}
	o := &c.cfg.Options
	opts := []grpc.ServerOption{grpc.MaxRecvMsgSize(math.MaxInt32), grpc.MaxSendMsgSize(math.MaxInt32),
		grpc.WaitForHandlers(true)}
	if o.ReadBuffer > 0 {
		opts = append(opts, grpc.ReadBufferSize(o.ReadBuffer))
	}
	if o.WriteBuffer > 0 {
		opts = append(opts, grpc.WriteBufferSize(o.WriteBuffer))
	}
	if o.Window > 0 {
		opts = append(opts, grpc.StaticStreamWindowSize(int32(o.Window)), grpc.StaticConnWindowSize(int32(o.Window)))
	}
	if o.Workers > 0 {
		opts = append(opts, grpc.NumStreamWorkers(uint32(o.Workers)))
	}
	return grpc.NewServer(opts...), nil
}

func (c *Carrier) fused() fused.Config {
	cfg := fused.Config{MaxRecvMsgSize: math.MaxInt32, MaxSendMsgSize: math.MaxInt32, MaxStreams: maxCalls}
	if c.cfg.NoSink {
		cfg.Sinks = -1
	}
	return cfg
}

// Listener accepts connections of Connect at addr, "host:port"; port 0 picks one. Unix and bufconn ignore addr and pick
// a name ("@…"): the address to connect to is the listener's.
func (c *Carrier) Listener(ctx context.Context, addr string) (net.Listener, error) {
	switch c.cfg.Form {
	case TCP:
		return new(net.ListenConfig).Listen(ctx, "tcp", addr)
	case Unix:
		return new(net.ListenConfig).Listen(ctx, "unix", "@rdmaperf-"+rand.Text())
	case BufConn:
		l := &bufConnListener{bufconn.Listen(bufConnSize), bufConnAddr(fmt.Sprintf("@bufconn-%d", bufConns.last.Add(1)))}
		bufConns.Store(l.addr.Name, l)
		return l, nil
	}
	if c.svc != nil {
		return c.svc.Listen(ctx, addr)
	}
	return c.net.Listen(ctx, addr)
}

// bufConnSize is the room in each direction: a copy of 1 MiB then never waits for its reader.
const bufConnSize = 1 << 20

// bufConns are the listeners of this process by name.
var bufConns struct {
	sync.Map
	last atomic.Uint64
}

func bufConnAddr(name string) *net.UnixAddr { return &net.UnixAddr{Name: name, Net: "bufconn"} }

type bufConnListener struct {
	*bufconn.Listener
	addr *net.UnixAddr
}

func (l *bufConnListener) Addr() net.Addr { return l.addr }

func (l *bufConnListener) Close() error {
	bufConns.Delete(l.addr.Name)
	return l.Listener.Close()
}

func dialBufConn(ctx context.Context, addr string) (net.Conn, error) {
	l, ok := bufConns.Load(addr)
	if !ok {
		return nil, &net.OpError{Op: "dial", Net: "bufconn", Addr: bufConnAddr(addr), Err: syscall.ECONNREFUSED}
	}
	return l.(*bufConnListener).DialContext(ctx)
}
