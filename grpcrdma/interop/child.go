package interop

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"runtime"
	"strings"
	"time"

	pb "google.golang.org/grpc/interop/grpc_testing"

	"github.com/rdmaperf/rdmaperf/grpcrdma"
	"github.com/rdmaperf/rdmaperf/grpcrdma/carrier"
	"github.com/rdmaperf/rdmaperf/grpcrdma/internal/rpctest"
)

// Ends is the stack of a child process.
type Ends struct {
	Form   carrier.Form
	Near   *grpcrdma.Net // of the process's own role; nil for the forms without RDMA
	Far    *grpcrdma.Net // of a server beside the case in one process; nil when servers are processes
	Listen string        // where servers listen, with port 0
	Limit  time.Duration // of one case
	In     io.Reader     // what the parent says; its end is the parent's
	Out    io.Writer     // the answer
}

type outcome struct {
	Wrong    []string `json:"wrong,omitempty"`
	Notes    []string `json:"notes,omitempty"`
	Evidence string   `json:"evidence,omitempty"`
}

// Serve is the role of a server: it reports its addresses, and ends with its parent. only and at choose one variant and
// its exact address.
func Serve(ctx context.Context, x Ends, only, at string) error {
	if at == "" {
		at = x.Listen
	}
	s, err := NewServer(ctx, x.Form, x.Near, at, only)
	if err != nil {
		return err
	}
	if err := json.NewEncoder(x.Out).Encode(s.Peer); err != nil {
		return errors.Join(err, s.Close())
	}
	await(ctx, x.In)
	return s.Close()
}

// await returns at the end of the parent, or of ctx.
func await(ctx context.Context, in io.Reader) {
	over := make(chan struct{})
	go func() {
		defer close(over)
		io.Copy(io.Discard, in)
	}()
	select {
	case <-over:
	case <-ctx.Done():
	}
}

// Linger is the role of a client that will be killed: it leaves a call and a stream in progress, and waits.
func Linger(ctx context.Context, x Ends) error {
	var to Peer
	in := json.NewDecoder(x.In)
	if err := in.Decode(&to); err != nil {
		return fmt.Errorf("read the server's address: %w", err)
	}
	e := &env{form: x.Form, net: x.Near, limit: x.Limit, ctx: ctx}
	c, err := e.dial(to.Addrs[toCalls], dialing{})
	if err != nil {
		return err
	}
	defer c.close()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	go c.stub.UnaryCall(ctx, &pb.SimpleRequest{ResponseSize: rpctest.Block})
	s, err := c.stub.FullDuplexCall(ctx)
	if err != nil {
		return err
	}
	long := []*pb.ResponseParameters{{Size: 60_000}}
	if err := s.Send(&pb.StreamingOutputCallRequest{ResponseParameters: long}); err != nil {
		return err
	}
	if _, err := s.Recv(); err != nil {
		return err
	}
	if err := json.NewEncoder(x.Out).Encode(true); err != nil {
		return err
	}
	await(ctx, x.In)
	return nil
}

// RunCase is the role of a case. It reads the server's address, unless Far is set, and reports what was wrong. The
// error is that of its surroundings.
func RunCase(ctx context.Context, x Ends, kids Children, id string) error {
	s := find(id)
	if s == nil || s.run == nil {
		return fmt.Errorf("case %q does not exist or does not run", id)
	}
	e := &env{form: x.Form, net: x.Near, limit: x.Limit / 2, kids: kids}
	if x.Far != nil {
		server, err := NewServer(ctx, x.Form, x.Far, x.Listen, "")
		if err != nil {
			return err
		}
		e.peer = server.Peer
		e.Cleanup(func() { e.must(server.Close(), "close the server") })
	} else if err := json.NewDecoder(x.In).Decode(&e.peer); err != nil {
		return fmt.Errorf("read the server's address: %w", err)
	}
	var cancel context.CancelFunc
	e.ctx, cancel = context.WithTimeout(ctx, s.limit(x.Limit))
	defer cancel()
	over := make(chan []string, 1)
	go func() {
		over <- e.do(func(e *env) {
			e.Cleanup(e.freed) // runs when the clients are closed: they clean up before
			s.run(e)
		})
	}()
	var o outcome
	select {
	case o.Wrong = <-over:
	case <-time.After(s.limit(x.Limit) + endGrace):
		stacks := make([]byte, 64<<10)
		o.Evidence = string(stacks[:runtime.Stack(stacks, true)])
		o.Wrong = []string{fmt.Sprintf("no end within %v", s.limit(x.Limit))}
	}
	e.mu.Lock()
	o.Notes = e.notes
	e.mu.Unlock()
	if err := json.NewEncoder(x.Out).Encode(o); err != nil {
		return err
	}
	if len(o.Wrong) > 0 {
		return errors.New(strings.Join(o.Wrong, "; "))
	}
	return nil
}
