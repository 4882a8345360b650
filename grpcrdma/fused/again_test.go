package fused

import (
	"context"
	"encoding/binary"
	"fmt"
	"net"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	pb "google.golang.org/grpc/interop/grpc_testing"
	"google.golang.org/grpc/resolver/manual"
	"google.golang.org/grpc/stats"
	"google.golang.org/grpc/status"

	"github.com/rdmaperf/rdmaperf/grpcrdma"
	"github.com/rdmaperf/rdmaperf/grpcrdma/internal/rpctest"
)

// A call of which nothing left this side goes over the next connection, as in grpc-go.
func TestCallsThatNeverLeftAreMadeAgain(t *testing.T) {
	served := &events{}
	sideBySide(t, program{service: &script{}, serverStats: []stats.Handler{served}}, func(t *testing.T, r *running) {
		before := len(served.transparent())
		const n = 20
		for range n {
			_, err := r.UnaryCall(soon(t), &pb.SimpleRequest{})
			must(t, err)
			if r.form == overFused { // grpc-go's reader notices at once, and the call may come before or after
				r.cut()
			}
			s := opened(t, r)
			end(t, s)
			if r.form == overFused {
				r.cut()
			}
		}
		if got := len(served.transparent()) - before; got != 2*n {
			t.Errorf("%d calls began, want %d", got, 2*n)
		}
	})
}

// A server that stops in order says which call it began last: calls after that go elsewhere, those before do not.
func TestCallsTheServerNeverBeganAreMadeAgain(t *testing.T) {
	for _, c := range []struct {
		name  string
		began uint32
		want  codes.Code
	}{{"never begun", 0, codes.OK}, {"begun", 1, codes.Unavailable}} {
		t.Run(c.name, func(t *testing.T) {
			l, dial, kill := arms[0].open(t)
			client, server := &events{}, &events{}
			next := stopping(t, c.began)
			r := serve(t, "rdma", l, func(ctx context.Context) (net.Conn, error) {
				now := next
				next = dial
				return now(ctx)
			}, kill, Config{StatsHandlers: []stats.Handler{client}}, Config{StatsHandlers: []stats.Handler{server}})
			_, err := r.Client.UnaryCall(soon(t), &pb.SimpleRequest{})
			if status.Code(err) != c.want {
				t.Fatalf("%v, want %v", err, c.want)
			}
			if n := len(server.transparent()); (n == 1) != (c.want == codes.OK) {
				t.Errorf("%d calls at the second server", n)
			}
			if begun := client.transparent(); c.want == codes.OK && (!slices.Equal(begun, []bool{false, true}) ||
				len(client.ended) != 2 || client.ended[0] == nil || client.ended[1] != nil) {
				t.Errorf("attempts begun %v, ended %v", begun, client.ended)
			}
		})
	}
}

// stopping dials a server that stops at the first call, and says which it began last.
func stopping(t *testing.T, began uint32) dialer {
	return greeting(t, func(far net.Conn) {
		far.Read(make([]byte, 64<<10))
		far.Write(raw(kindGoAway, 0, 0, binary.LittleEndian.AppendUint32(nil, began)...))
		far.Close()
	})
}

func TestTransparentRetriesAreBounded(t *testing.T) {
	for name, config := range map[string]string{"plain": "{}",
		"retries": strings.Replace(fmt.Sprintf(retries, ""), "UNAVAILABLE", "ABORTED", 1)} {
		var dials atomic.Int32
		ch, err := NewClient("passthrough:///x", func(ctx context.Context, _ string) (net.Conn, error) {
			dials.Add(1)
			return stopping(t, 0)(ctx)
		}, Config{ServiceConfig: config})
		must(t, err)
		_, err = pb.NewTestServiceClient(ch).UnaryCall(soon(t), &pb.SimpleRequest{}, grpc.WaitForReady(true))
		if n := dials.Load(); status.Code(err) != codes.Unavailable || n < maxAgain+1 || n > maxAgain+2 { // the next may be made
			t.Errorf("%s: %v behind %d connections", name, err, n)
		}
		must(t, ch.Close())
	}
}

func TestABurstOfClientsIsServed(t *testing.T) {
	const clients = 500
	for _, form := range []string{overTCP, overDropIn, overFused} {
		t.Run(form, func(t *testing.T) {
			l, dial, _ := overIWARP(t, grpcrdma.Config{Ring: 4 << 10})
			if form == overTCP {
				l, dial, _ = arms[3].open(t)
			}
			p := program{service: &rpctest.Service{}}
			p.serve(t, form, l)
			r := &running{form: form, addrs: []string{l.Addr().String()}, find: manual.NewBuilderWithScheme("none")}
			var wg sync.WaitGroup
			var failed atomic.Int32
			var cause atomic.Pointer[error]
			ctx := soon(t)
			for range clients {
				wg.Go(func() {
					c, end, err := p.client(r, func(ctx context.Context, _ string) (net.Conn, error) {
						return dial(ctx)
					})
					if err == nil {
						defer end()
						_, err = pb.NewTestServiceClient(c).EmptyCall(ctx, &pb.Empty{}) // fails fast
					}
					if err != nil {
						failed.Add(1)
						cause.Store(&err)
					}
				})
			}
			wg.Wait()
			if n := failed.Load(); n > 0 {
				t.Errorf("%d of %d clients failed, the last with %v", n, clients, *cause.Load())
			}
		})
	}
}
