package interop

import (
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/connectivity"
	pb "google.golang.org/grpc/interop/grpc_testing"
	"google.golang.org/grpc/status"

	"google.golang.org/grpc"

	"github.com/rdmaperf/rdmaperf/grpcrdma/internal/rpctest"
)

// deathBound is how soon the death of a peer must be known: the probe of an idle connection takes about two seconds.
const deathBound = 5 * time.Second

const unavailable = "gRPC guide, status codes: UNAVAILABLE"

var deathCases = []suite{
	alone("peer/killed-in-unary", unavailable,
		"A call in progress is UNAVAILABLE soon after the server's process is killed.", func(e *env) {
			addr, server := e.own("")
			c := e.to(addr)
			got := make(chan error, 1)
			go func() {
				_, err := c.stub.UnaryCall(e.ctx, &pb.SimpleRequest{ResponseSize: rpctest.Block})
				got <- err
			}()
			e.until(e.limit, "the call at the server", func() bool { return e.ask(c).Begun == 1 })
			server.kill()
			e.unavailable("the call", got)
			c.close()
			e.freed()
		}),
	alone("peer/killed-in-stream", unavailable,
		"A stream in progress is UNAVAILABLE soon after the server's process is killed, and its connection is freed.",
		func(e *env) {
			addr, server := e.own("")
			c := e.to(addr)
			s, err := c.stub.FullDuplexCall(e.ctx)
			e.must(err, "open a stream")
			e.must(s.Send(&pb.StreamingOutputCallRequest{ResponseParameters: []*pb.ResponseParameters{{Size: 60_000}}}), "send")
			flowing, got := make(chan struct{}), make(chan error, 1)
			go func() {
				for n := 0; ; n++ {
					if _, err := s.Recv(); err != nil {
						got <- err
						return
					}
					if n == 10 {
						close(flowing)
					}
				}
			}()
			select {
			case <-flowing:
			case err := <-got:
				e.Fatalf("the stream: %v", err)
			case <-time.After(e.limit):
				e.Fatalf("the stream does not flow within %v", e.limit)
			}
			server.kill()
			e.unavailable("the stream", got)
			c.close()
			e.freed()
		}),
	alone("peer/server-returns", "grpc/grpc doc/connection-backoff.md",
		"A channel reaches a server that was killed and started again at its address.", func(e *env) {
			// The drop-in form redials by gRPC's back-off of a second or more; a fused channel at the next call.
			addr, server := e.own("")
			c := e.to(addr)
			server.kill()
			e.until(e.deathBound(), "the loss of the server", func() bool {
				_, err := c.stub.EmptyCall(e.soon(), &pb.Empty{})
				return status.Code(err) == codes.Unavailable
			})
			again, _ := e.own(addr)
			if again != addr {
				e.Fatalf("the server returns at %s, want %s", again, addr)
			}
			begun := time.Now()
			e.until(e.deathBound(), "the return of the server", func() bool {
				_, err := c.stub.EmptyCall(e.soon(), &pb.Empty{}, grpc.WaitForReady(true))
				return err == nil
			})
			e.note("reached again after %v", time.Since(begun).Round(time.Millisecond))
			if cc, ok := c.conn.(*grpc.ClientConn); ok && cc.GetState() != connectivity.Ready {
				e.Errorf("the channel is %v", cc.GetState())
			}
		}),
	alone("peer/killed-client", "gRPC guide, cancellation",
		"A server ends the calls of a client whose process is killed, and frees its connection.", func(e *env) {
			addr, _ := e.own("")
			c := e.to(addr)
			alone := e.ask(c)
			p, err := launch(e.kids("linger"))
			e.must(err, "start a client")
			e.Cleanup(p.kill)
			e.must(p.write(Peer{Addrs: map[string]string{toCalls: addr}}), "start a client")
			var ready bool
			e.must(p.read(e.limit, &ready), "start a client")
			e.until(e.limit, "the client's calls at the server",
				func() bool { n := e.ask(c); return n.Begun == 2 && n.Ended == 0 })
			p.kill()
			begun := time.Now()
			e.until(e.deathBound(), "the end of a dead client's calls and connection", func() bool {
				n := e.ask(c)
				return n.Ended == 2 && n.Conns <= alone.Conns
			})
			e.note("freed after %v", time.Since(begun).Round(time.Millisecond))
			e.until(e.limit, "the end of its goroutines", func() bool {
				return e.ask(c).Goroutines <= alone.Goroutines
			})
		}),
}

func (e *env) deathBound() time.Duration { return max(deathBound, e.limit) }

// own starts a server of the case alone with the calls variant, at addr ("" for any).
func (e *env) own(addr string) (at string, p *proc) {
	p, err := launch(e.kids("serve", "--only", toCalls, "--at", addr))
	e.must(err, "start a server")
	e.Cleanup(p.kill)
	var there Peer
	e.must(p.read(e.limit, &there), "start a server")
	return there.Addrs[toCalls], p
}

// to is a client of addr.
func (e *env) to(addr string) *client {
	c, err := e.dial(addr, dialing{})
	e.must(err, "open a client")
	e.Cleanup(func() { c.close() })
	e.call(c)
	return c
}

// unavailable waits for a call that the death of its peer must end.
func (e *env) unavailable(what string, got <-chan error) {
	begun := time.Now()
	select {
	case err := <-got:
		e.note("%s ended after %v", what, time.Since(begun).Round(time.Millisecond))
		if status.Code(err) != codes.Unavailable {
			e.Errorf("%s: %v, want code %v", what, err, codes.Unavailable)
		}
	case <-time.After(e.deathBound()):
		e.Fatalf("%s hangs for %v after the server's death", what, e.deathBound())
	}
}

func (e *env) freed() {
	if e.net != nil {
		e.until(e.deathBound(), "freeing of the connection", func() bool { return e.net.Stats().Conns == 0 })
	}
}
