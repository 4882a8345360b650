package bench

import (
	"context"
	"encoding/binary"
	"io"
	"sync/atomic"

	"google.golang.org/grpc"

	"github.com/rdmaperf/rdmaperf/grpcrdma/carrier/blob"
)

// echo is the server of the workload rpc.
type echo struct {
	sh   *Shape
	fail func(error)
	now  atomic.Pointer[echoPhase]
}

// echoPhase is what a phase has of its own.
type echoPhase struct {
	in, out *phrase
	ops     atomic.Int64
}

func serveRPC(sh *Shape, r grpc.ServiceRegistrar, fail func(error)) (callService, error) {
	e := &echo{sh: sh, fail: fail}
	blob.Register(r, e)
	return e, e.begin(genWarmup)
}

func (e *echo) begin(gen int) error {
	e.now.Store(&echoPhase{in: newPhrase(e.sh.Seed, gen, toServer, e.sh.Size), out: newPhrase(e.sh.Seed, gen, toClient, e.sh.Response)})
	return nil
}

func (e *echo) end() (int64, error) { return e.now.Load().ops.Load(), nil }
func (e *echo) close() error        { return nil }

// answer checks a request, frees it, and is its response.
func (e *echo) answer(p *echoPhase, in *blob.Message) ([]byte, error) {
	first, _ := in.First()
	if e.sh.Verify {
		if err := differs(e.sh, sideServer, "request", 0, in, p.in.of(first)); err != nil {
			e.fail(err)
			return nil, lost(err)
		}
	}
	in.Free()
	p.ops.Add(1)
	return p.out.cut(int64(p.in.start[first])), nil
}

// Unary answers a call.
func (e *echo) Unary(_ context.Context, in *blob.Message) (*blob.Message, error) {
	out, err := e.answer(e.now.Load(), in)
	if err != nil {
		return nil, err
	}
	return &blob.Message{Bytes: out}, nil
}

// Stream answers every message, or, one way, the end with how many there were.
func (e *echo) Stream(s grpc.ServerStream) error {
	p := e.now.Load()
	in := new(blob.Message)
	for n := uint64(0); ; n++ {
		switch err := s.RecvMsg(in); {
		case err == io.EOF && e.sh.Call == CallOneway:
			return s.SendMsg(&blob.Message{Bytes: binary.LittleEndian.AppendUint64(nil, n)})
		case err == io.EOF:
			return nil
		case err != nil:
			return err
		}
		out, err := e.answer(p, in)
		if err != nil {
			return err
		}
		if e.sh.Call == CallOneway {
			continue
		}
		if err := s.SendMsg(&blob.Message{Bytes: out}); err != nil {
			return err
		}
	}
}
