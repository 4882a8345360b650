package carrier

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/encoding"
	"google.golang.org/grpc/mem"
	"google.golang.org/grpc/status"

	"github.com/rdmaperf/rdmaperf/transports"
)

// ListenCalls serves neutral calls. Its address is that of Listener.
func (c *Carrier) ListenCalls(ctx context.Context, addr string, cfg transports.CallConfig,
	h transports.CallHandler) (transports.CallServer, error) {
	srv, err := c.NewServer()
	if err != nil {
		return nil, err
	}
	srv.RegisterService(&callService, h)
	l, err := c.Listener(ctx, addr)
	if err != nil {
		srv.Stop()
		return nil, err
	}
	l = guard(l, cfg.Secret)
	s := &callServer{srv: srv, addr: l.Addr().String(), ended: make(chan struct{})}
	go func() {
		defer close(s.ended)
		s.err = srv.Serve(l)
	}()
	return s, nil
}

type callServer struct {
	srv   Server
	addr  string
	ended chan struct{}
	err   error // of Serve, behind ended
}

func (s *callServer) Addr() string { return s.addr }

func (s *callServer) Close() error {
	s.srv.Stop()
	<-s.ended
	if errors.Is(s.err, net.ErrClosed) || errors.Is(s.err, grpc.ErrServerStopped) { // Stop was first
		return nil
	}
	return s.err
}

var callService = func() grpc.ServiceDesc {
	d := grpc.ServiceDesc{ServiceName: serviceName, HandlerType: (*transports.CallHandler)(nil)}
	name := func(mode transports.CallMode, n int) string { return methods[mode][n][len("/"+serviceName+"/"):] }
	for n := range transports.CallMethods {
		d.Methods = append(d.Methods, grpc.MethodDesc{MethodName: name(transports.CallUnary, n), Handler: unary(uint8(n))})
		for _, mode := range []transports.CallMode{transports.CallStream, transports.CallOneWay} {
			d.Streams = append(d.Streams, grpc.StreamDesc{StreamName: name(mode, n), Handler: stream(mode, uint8(n)),
				ServerStreams: mode == transports.CallStream, ClientStreams: true})
		}
	}
	return d
}()

type served struct {
	transports.Served
	in  message
	out *message
}

func (r *served) serve(h any) error {
	r.Request = r.in.received()
	err := h.(transports.CallHandler).ServeCall(&r.Served)
	r.Request = nil
	r.in.free()
	if err != nil {
		return statusOf(err)
	}
	// A new message: gRPC may still hold the last one of a stream.
	r.out = &message{bytes: r.Response, owner: r.Owner}
	r.Response, r.Owner = nil, nil
	return nil
}

// A Server of this package has no interceptors.
func unary(n uint8) func(any, context.Context, func(any) error, grpc.UnaryServerInterceptor) (any, error) {
	return func(h any, ctx context.Context, decode func(any) error, _ grpc.UnaryServerInterceptor) (any, error) {
		r := &served{Served: transports.Served{Ctx: ctx, Mode: transports.CallUnary, Method: n}}
		if err := decode(&r.in); err != nil {
			return nil, err
		}
		if err := r.serve(h); err != nil {
			return nil, err
		}
		return r.out, nil
	}
}

// stream answers every message, or, one way, the end with their number.
func stream(mode transports.CallMode, n uint8) grpc.StreamHandler {
	return func(h any, s grpc.ServerStream) error {
		r := &served{Served: transports.Served{Ctx: s.Context(), Mode: mode, Method: n}}
		for count := uint64(0); ; count++ {
			switch err := s.RecvMsg(&r.in); {
			case err == io.EOF && mode == transports.CallOneWay:
				return s.SendMsg(&message{bytes: binary.LittleEndian.AppendUint64(nil, count)})
			case err == io.EOF:
				return nil
			case err != nil:
				return err
			}
			if err := r.serve(h); err != nil {
				return err
			}
			if mode == transports.CallOneWay {
				continue
			}
			if err := s.SendMsg(r.out); err != nil {
				return err
			}
		}
	}
}

func statusOf(err error) error {
	e := transports.AsCallError(err)
	for code, is := range codesOf {
		if is == e.Code {
			return status.Error(code, e.Text)
		}
	}
	return status.Error(codes.Unknown, e.Text)
}

// message is what neutral calls carry: bytes without a schema. Its codec copies nothing.
type message struct {
	mem.NopBufferPool // for Get: nothing is taken from here

	bytes []byte              // to send
	owner transports.Releaser // of them

	got   mem.BufferSlice
	parts transports.Parts // of got; its memory is kept for the next
}

// received is what arrived, until free.
func (m *message) received() transports.Parts {
	m.parts = m.parts[:0]
	for _, b := range m.got {
		m.parts = append(m.parts, b.ReadOnlyData())
	}
	return m.parts
}

// free returns what was received to gRPC. Idempotent.
func (m *message) free() {
	m.got.Free()
	m.got = nil
}

// Put is how gRPC releases m.bytes; it does not for short ones.
func (m *message) Put(*[]byte) { m.owner.Release() }

const codecName = "rdmaperf"

// encoding.RegisterCodecV2 wants init.
func init() { encoding.RegisterCodecV2(codec{}) }

type codec struct{}

func (codec) Name() string { return codecName }

func (codec) Marshal(v any) (mem.BufferSlice, error) {
	m, ok := v.(*message)
	if !ok {
		return nil, fmt.Errorf("encode %T: want bytes without a schema", v)
	}
	if m.owner == nil {
		return mem.BufferSlice{mem.SliceBuffer(m.bytes)}, nil
	}
	return mem.BufferSlice{mem.NewBuffer(&m.bytes, m)}, nil
}

func (codec) Unmarshal(data mem.BufferSlice, v any) error {
	m, ok := v.(*message)
	if !ok {
		return fmt.Errorf("decode %T: want bytes without a schema", v)
	}
	data.Ref()
	m.got.Free()
	m.got = data
	return nil
}
