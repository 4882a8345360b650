package grpcrdma

import (
	"bytes"
	"io"
	"net"
	"sync/atomic"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/grpc/test/bufconn"
)

// The connection of a gRPC client without RDMA to an RDMA listener would be reset, and the server
// would not log it. Where the provider passes foreign peers on (those on TCP do), the client is
// answered in its own protocol, and the server logs it.

const (
	// foreignLogPause is how often foreign peers are logged, so that a port scan does not fill the
	// log.
	foreignLogPause = time.Second
	// maxForeign is how many are answered at a time; the others are disconnected.
	maxForeign = 8

	foreignAdvice = "this port takes RDMA connections (iWARP) only: dial it with grpcrdma.WithRDMA or " +
		"rdmaenv.WithRDMA, or dial the server's TCP port"
)

// http2Preface begins every connection of HTTP/2 (RFC 9113 §3.4).
const http2Preface = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"

// foreignPeers are a listener's peers with another protocol.
type foreignPeers struct {
	net  *Net
	here atomic.Int32 // being answered
	last atomic.Int64 // nanoseconds of the clock at the last line of the log
	kept atomic.Int64 // lines that were suppressed since
}

// answer logs a foreign peer and answers in its protocol, if it is known. The caller bounds the
// time, and closes c.
func (s *foreignPeers) answer(c net.Conn, first []byte) {
	switch {
	case len(first) > 0 && bytes.HasPrefix([]byte(http2Preface), first):
		s.log(c, "HTTP/2 without RDMA")
		if s.here.Add(1) <= maxForeign {
			refuseCalls(c, first)
		}
		s.here.Add(-1)
	case len(first) > 2 && first[0] == 22 && first[1] == 3: // a record of TLS with a handshake (RFC 8446 §5.1)
		s.log(c, "TLS without RDMA")
	default:
		s.log(c, "something that is no MPA Request")
	}
}

func (s *foreignPeers) log(c net.Conn, what string) {
	now, last := time.Now().UnixNano(), s.last.Load()
	if now-last < int64(foreignLogPause) || !s.last.CompareAndSwap(last, now) {
		s.kept.Add(1)
		return
	}
	s.net.cfg.Log.Warn("a client without rdma met this rdma listener", "peer", c.RemoteAddr(), "speaks", what,
		"unsaid before", s.kept.Swap(0), "try", foreignAdvice)
}

// refuseCalls is a gRPC server whose answer to every call is the advice.
func refuseCalls(c net.Conn, first []byte) {
	srv := grpc.NewServer(grpc.MaxConcurrentStreams(1), grpc.MaxHeaderListSize(16<<10), grpc.MaxRecvMsgSize(1),
		grpc.UnknownServiceHandler(func(any, grpc.ServerStream) error {
			return status.Error(codes.Unavailable, foreignAdvice)
		}))
	defer srv.Stop()
	l := bufconn.Listen(4 << 10)
	go srv.Serve(l)
	inner, err := l.Dial()
	if err != nil {
		return
	}
	go func() { // until the peer's end, the deadline, or the caller closes c
		io.Copy(inner, io.MultiReader(bytes.NewReader(first), c))
		inner.Close()
	}()
	io.Copy(c, inner)
}
