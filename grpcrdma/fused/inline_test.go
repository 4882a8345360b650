package fused

import (
	"context"
	"testing"
	"time"

	pb "google.golang.org/grpc/interop/grpc_testing"

	"github.com/rdmaperf/rdmaperf/grpcrdma/internal/rpctest"
)

// A handler that blocks in the reader's place loses that place, again and again.
func TestBlockedHandlersHoldNobodyUp(t *testing.T) {
	each(t, arms, func(t *testing.T, a arm) {
		r := newRPC(t, a, Config{}, Config{})
		ctx, cancel := context.WithCancel(soon(t))
		defer cancel()
		ended := make(chan struct{}, 3)
		for i := range int32(3) {
			go func() {
				r.Client.UnaryCall(ctx, &pb.SimpleRequest{ResponseSize: rpctest.Block})
				ended <- struct{}{}
			}()
			rpctest.Within(t, "the blocking handler", func() { r.svc.AwaitBegun(i + 1) })
			for range 5 {
				empty(t, r.Client)
			}
			// Forget what was learnt, so that the next one runs in the reader, too.
			r.server.services["grpc.testing.TestService"].paces["UnaryCall"].slow.Store(0)
		}
		cancel()
		for range 3 {
			<-ended
		}
		rpctest.Unary(t, r.Target)
	})
}

func TestPaceForgivesInterruptions(t *testing.T) {
	var p pace
	if (*pace)(nil).quick() {
		t.Error("a stream counts as quick")
	}
	for range 3 * strikes {
		p.note(time.Second)
		p.note(time.Microsecond)
		if !p.quick() {
			t.Fatal("one slow handler in two is no pattern")
		}
	}
	for range strikes {
		p.note(time.Second)
	}
	for n := range slowCalls {
		if p.quick() {
			t.Fatalf("quick again after %d calls", n)
		}
	}
	if !p.quick() {
		t.Error("never tried again")
	}
	p.block()
	if p.quick() {
		t.Error("quick after it blocked")
	}
}

// The timer that looks after readers ends with the traffic, and comes back with it.
func TestLookingEndsWithTheTraffic(t *testing.T) {
	r := newRPC(t, arms[0], Config{}, Config{})
	for range 2 {
		empty(t, r.Client)
		for ss := range r.sessions() {
			until(t, "the end of looking", func() bool { return !ss.inline.ticking.Load() })
		}
	}
}
