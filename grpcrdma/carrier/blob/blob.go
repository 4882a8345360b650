// Package blob is a gRPC service of bytes without a schema, for measuring what
// carries calls rather than what encodes them. Its codec copies nothing and allocates
// a header, the same for every carrier: a message is sent from where it lies and
// received as gRPC holds it.
//
// # Ownership
//
// Bytes of a Message belong to gRPC until the call has ended, or, of a stream, until
// the peer has answered it. What was received belongs to the Message until Free.
//
// # Limitations
//
// Both sides must link this package: the codec is registered with gRPC as "rdmaperf".
package blob

import (
	"bytes"
	"context"
	"fmt"

	"google.golang.org/grpc"
	"google.golang.org/grpc/encoding"
	"google.golang.org/grpc/mem"
)

// Message is sent and received. The zero value is empty.
type Message struct {
	Bytes []byte // to send

	got mem.BufferSlice
}

// Len is the length of what was received.
func (m *Message) Len() int { return m.got.Len() }

// First is the first byte received; ok is false for an empty message.
func (m *Message) First() (b byte, ok bool) {
	for _, part := range m.got {
		if p := part.ReadOnlyData(); len(p) > 0 {
			return p[0], true
		}
	}
	return 0, false
}

// Differs compares what was received with want: the place of the first byte that
// differs, or of the end of the shorter, and what is there; -1 for equal ones.
func (m *Message) Differs(want []byte) (at int, got byte) {
	for _, part := range m.got {
		p := part.ReadOnlyData()
		n := min(len(p), len(want)-at)
		if !bytes.Equal(p[:n], want[at:at+n]) {
			for i := range n {
				if p[i] != want[at+i] {
					return at + i, p[i]
				}
			}
		}
		if at += n; n < len(p) {
			return at, p[n]
		}
	}
	if at < len(want) {
		return at, 0
	}
	return -1, 0
}

// Copy is what was received, as bytes of the caller's own.
func (m *Message) Copy() []byte { return m.got.Materialize() }

// DiffersAt compares a part of what was received: the place in want of the first byte that
// differs or is missing, and what is there; -1 for none.
func (m *Message) DiffersAt(offset int, want []byte) (at int, got byte) {
	for _, part := range m.got {
		p := part.ReadOnlyData()
		if offset >= len(p) {
			offset -= len(p)
			continue
		}
		p = p[offset:]
		offset = 0
		n := min(len(p), len(want)-at)
		if !bytes.Equal(p[:n], want[at:at+n]) {
			for i := range n {
				if p[i] != want[at+i] {
					return at + i, p[i]
				}
			}
		}
		if at += n; at == len(want) {
			return -1, 0
		}
	}
	if at < len(want) {
		return at, 0
	}
	return -1, 0
}

// Free gives what was received back to gRPC. Idempotent.
func (m *Message) Free() {
	m.got.Free()
	m.got = nil
}

const codecName = "rdmaperf"

// gRPC takes codecs while programs initialise only.
func init() { encoding.RegisterCodecV2(codec{}) }

type codec struct{}

func (codec) Name() string { return codecName }

func (codec) Marshal(v any) (mem.BufferSlice, error) {
	m, ok := v.(*Message)
	if !ok {
		return nil, fmt.Errorf("encode %T: want *blob.Message", v)
	}
	return mem.BufferSlice{mem.SliceBuffer(m.Bytes)}, nil
}

func (codec) Unmarshal(data mem.BufferSlice, v any) error {
	m, ok := v.(*Message)
	if !ok {
		return fmt.Errorf("decode %T: want *blob.Message", v)
	}
	data.Ref()
	m.got.Free()
	m.got = data
	return nil
}

// Handler is a server of the service. Messages it gets are its to Free.
type Handler interface {
	Unary(ctx context.Context, in *Message) (*Message, error)
	// Stream answers each message of a stream.
	Stream(s grpc.ServerStream) error
}

const (
	serviceName  = "rdmaperf.Blob"
	unaryMethod  = "/" + serviceName + "/Unary"
	streamMethod = "/" + serviceName + "/Stream"
)

// Register adds the service to a server.
func Register(r grpc.ServiceRegistrar, h Handler) { r.RegisterService(&desc, h) }

var desc = grpc.ServiceDesc{
	ServiceName: serviceName,
	HandlerType: (*Handler)(nil),
	Methods:     []grpc.MethodDesc{{MethodName: "Unary", Handler: unary}},
	Streams:     []grpc.StreamDesc{{StreamName: "Stream", Handler: stream, ServerStreams: true, ClientStreams: true}},
}

func unary(h any, ctx context.Context, decode func(any) error, between grpc.UnaryServerInterceptor) (any, error) {
	in := new(Message)
	if err := decode(in); err != nil {
		return nil, err
	}
	if between == nil {
		return h.(Handler).Unary(ctx, in)
	}
	return between(ctx, in, &grpc.UnaryServerInfo{Server: h, FullMethod: unaryMethod},
		func(ctx context.Context, in any) (any, error) { return h.(Handler).Unary(ctx, in.(*Message)) })
}

func stream(h any, s grpc.ServerStream) error { return h.(Handler).Stream(s) }

// Client makes calls. The zero value is of no use.
type Client struct {
	cc   grpc.ClientConnInterface
	opts []grpc.CallOption
}

// NewClient makes a client.
func NewClient(cc grpc.ClientConnInterface) *Client {
	return &Client{cc, []grpc.CallOption{grpc.CallContentSubtype(codecName)}}
}

// Unary makes a call; out is the caller's to Free.
func (c *Client) Unary(ctx context.Context, in, out *Message) error {
	return c.cc.Invoke(ctx, unaryMethod, in, out, c.opts...)
}

// Stream opens a stream; both sides send and receive *Message on it.
func (c *Client) Stream(ctx context.Context) (grpc.ClientStream, error) {
	return c.cc.NewStream(ctx, &desc.Streams[0], streamMethod, c.opts...)
}
