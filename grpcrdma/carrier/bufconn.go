package carrier

import (
	"context"
	"fmt"
	"net"
	"sync"
	"sync/atomic"
	"syscall"

	"google.golang.org/grpc/test/bufconn"
)

// bufConnSize is what a bufconn holds for each direction: a copy of 1 MiB then never waits for its reader, which is all
// that a byte stream can do for HTTP/2.
const bufConnSize = 1 << 20

// bufConns are the listeners of this process by their names: client and server are carriers of their own, as they are
// over a network.
var bufConns struct {
	sync.Map
	last atomic.Uint64
}

func bufConnAddr(name string) *net.UnixAddr { return &net.UnixAddr{Name: name, Net: "bufconn"} }

// bufConnListener is a bufconn.Listener that can be found by its address.
type bufConnListener struct {
	*bufconn.Listener
	addr *net.UnixAddr
}

func listenBufConn() net.Listener {
	l := &bufConnListener{bufconn.Listen(bufConnSize), bufConnAddr(fmt.Sprintf("@bufconn-%d", bufConns.last.Add(1)))}
	bufConns.Store(l.addr.Name, l)
	return l
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
