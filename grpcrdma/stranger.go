package grpcrdma

import (
	"bytes"
	"io"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// A gRPC client without RDMA that meets an RDMA listener would see its connection reset,
// and the server nothing. Where the provider hands strangers to its user (those on TCP do),
// the client is told in its own protocol, and the server's log has it.

const (
	// strangerPause is how often the log names strangers: a port scan does not fill it. Arbitrary.
	strangerPause = time.Second
	// strangersAtOnce is how many are answered at a time; the others are cut off. Arbitrary.
	strangersAtOnce = 8

	strangerAdvice = "this port takes RDMA connections (iWARP) only: dial it with grpcrdma.WithRDMA or rdmaenv.WithRDMA, or dial the server's TCP port"
)

// http2Preface begins every connection of HTTP/2 (RFC 9113 §3.4).
const http2Preface = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"

// strangers are a listener's peers that speak something else.
type strangers struct {
	net  *Net
	here atomic.Int32 // being answered
	last atomic.Int64 // nanoseconds of the clock at the last line of the log
	kept atomic.Int64 // lines that were kept back since
}

// answer logs a stranger, and tells it why in a protocol that it understands. The
// caller bounds the time, and closes c.
func (s *strangers) answer(c net.Conn, first []byte) {
	switch {
	case len(first) > 0 && bytes.HasPrefix([]byte(http2Preface), first):
		s.log(c, "HTTP/2 without RDMA")
		if s.here.Add(1) <= strangersAtOnce {
			refuseCalls(c, first)
		}
		s.here.Add(-1)
	case len(first) > 2 && first[0] == 22 && first[1] == 3: // a record of TLS with a handshake (RFC 8446 §5.1)
		s.log(c, "TLS without RDMA")
	default:
		s.log(c, "something that is no MPA Request")
	}
}

func (s *strangers) log(c net.Conn, what string) {
	now, last := time.Now().UnixNano(), s.last.Load()
	if now-last < int64(strangerPause) || !s.last.CompareAndSwap(last, now) {
		s.kept.Add(1)
		return
	}
	s.net.cfg.Log.Warn("a client without rdma met this rdma listener", "peer", c.RemoteAddr(), "speaks", what,
		"unsaid before", s.kept.Swap(0), "try", strangerAdvice)
}

// refuseCalls is a gRPC server whose answer to every call is the advice.
func refuseCalls(c net.Conn, first []byte) {
	srv := grpc.NewServer(grpc.MaxConcurrentStreams(1), grpc.MaxHeaderListSize(16<<10), grpc.MaxRecvMsgSize(1),
		grpc.UnknownServiceHandler(func(any, grpc.ServerStream) error { return status.Error(codes.Unavailable, strangerAdvice) }))
	defer srv.Stop()
	over := make(chan struct{})
	srv.Serve(&oneConn{conn: &pushedBack{Conn: c, r: io.MultiReader(bytes.NewReader(first), c), over: over}, over: over})
}

// pushedBack is a connection of which something was read before.
type pushedBack struct {
	net.Conn
	r    io.Reader
	once sync.Once
	over chan struct{} // closed with the connection
}

func (p *pushedBack) Read(b []byte) (int, error) {
	n, err := p.r.Read(b)
	if err != nil { // the deadline or the end: gRPC's server may linger, this does not
		p.once.Do(func() { close(p.over) })
	}
	return n, err
}

// SetDeadline and the like do nothing: the listener has set one, which holds.
func (p *pushedBack) SetDeadline(time.Time) error      { return nil }
func (p *pushedBack) SetReadDeadline(time.Time) error  { return nil }
func (p *pushedBack) SetWriteDeadline(time.Time) error { return nil }

func (p *pushedBack) Close() error {
	p.once.Do(func() { close(p.over) })
	return p.Conn.Close()
}

// oneConn is a listener of one connection, that ends with it.
type oneConn struct {
	conn net.Conn
	over chan struct{}
	once sync.Once
}

func (l *oneConn) Accept() (c net.Conn, err error) {
	l.once.Do(func() { c = l.conn })
	if c != nil {
		return c, nil
	}
	<-l.over
	return nil, io.EOF
}

func (l *oneConn) Addr() net.Addr { return l.conn.LocalAddr() }
func (l *oneConn) Close() error   { return nil }
