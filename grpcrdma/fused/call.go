package fused

import (
	"cmp"
	"context"
	"errors"
	"io"
	"slices"
	"strings"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/encoding"
	_ "google.golang.org/grpc/encoding/proto" // registers the default codec
	"google.golang.org/grpc/mem"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/peer"
	"google.golang.org/grpc/stats"
	"google.golang.org/grpc/status"
)

type packing struct {
	codec      encoding.CodecV2
	compressor encoding.Compressor // for what is sent; nil for none
	unpack     encoding.Compressor // for what is received
	maxSend    int
	maxRecv    int
}

func codecFor(name string) (encoding.CodecV2, error) {
	if c := encoding.GetCodecV2(cmp.Or(name, "proto")); c != nil {
		return c, nil
	}
	return nil, status.Errorf(codes.Internal, "fused: no codec registered for content-subtype %s", name)
}

type codecV1 struct{ encoding.Codec }

func (c codecV1) Marshal(v any) (mem.BufferSlice, error) {
	b, err := c.Codec.Marshal(v)
	return mem.BufferSlice{mem.SliceBuffer(b)}, err
}

func (c codecV1) Unmarshal(data mem.BufferSlice, v any) error {
	return c.Codec.Unmarshal(data.Materialize(), v)
}

func compressorFor(name string) (encoding.Compressor, error) {
	if name == "" || name == encoding.Identity {
		return nil, nil
	}
	if c := encoding.GetCompressor(name); c != nil {
		return c, nil
	}
	return nil, status.Errorf(codes.Internal, "fused: compressor is not installed for requested grpc-encoding %q", name)
}

// parcel is a message as it travels. free is due when it is sent.
type parcel struct {
	bytes []byte
	size  int // unpacked
	flags flags
	free  func()
}

func (p *packing) marshal(m any) (out parcel, err error) {
	bufs, err := p.codec.Marshal(m)
	if err != nil {
		return out, status.Errorf(codes.Internal, "fused: error while marshaling: %v", err)
	}
	out.size = bufs.Len()
	if p.compressor != nil && out.size > 0 {
		var packed mem.BufferSlice
		w := mem.NewWriter(&packed, mem.DefaultBufferPool())
		z, err := p.compressor.Compress(w)
		if err == nil {
			_, err = io.Copy(z, bufs.Reader())
		}
		if err == nil {
			err = z.Close()
		}
		bufs.Free()
		if err != nil {
			packed.Free()
			return out, status.Errorf(codes.Internal, "fused: error while compressing: %v", err)
		}
		bufs, out.flags = packed, fPacked
	}
	if n := bufs.Len(); n > p.maxSend {
		bufs.Free()
		return out, status.Errorf(codes.ResourceExhausted, "fused: trying to send message larger than max (%d vs. %d)", n,
			p.maxSend)
	}
	if len(bufs) == 1 {
		out.bytes, out.free = bufs[0].ReadOnlyData(), bufs.Free
		return out, nil
	}
	one := bufs.MaterializeToBuffer(mem.DefaultBufferPool())
	bufs.Free()
	out.bytes, out.free = one.ReadOnlyData(), one.Free
	return out, nil
}

// unmarshal reads a message into v and frees it. It returns the length before compression.
func (p *packing) unmarshal(m *message, v any) (size int, err error) {
	data := mem.BufferSlice{mem.NewBuffer(m.buf, m.memory())}
	defer func() { data.Free() }()
	if m.packed {
		if p.unpack == nil {
			return 0, status.Errorf(codes.Internal, "fused: compressed message without a grpc-encoding")
		}
		r, err := p.unpack.Decompress(data.Reader())
		if err != nil {
			return 0, status.Errorf(codes.Internal, "fused: failed to decompress the received message: %v", err)
		}
		out, err := mem.ReadAll(io.LimitReader(r, int64(p.maxRecv)+1), mem.DefaultBufferPool())
		data.Free()
		data = out
		if c, ok := r.(io.Closer); ok {
			c.Close()
		}
		if err != nil {
			return 0, status.Errorf(codes.Internal, "fused: failed to decompress the received message: %v", err)
		}
	}
	if size = data.Len(); size > p.maxRecv {
		return 0, status.Errorf(codes.ResourceExhausted, "fused: received message larger than max (%d vs. %d)", size,
			p.maxRecv)
	}
	if err := p.codec.Unmarshal(data, v); err != nil {
		return 0, status.Errorf(codes.Internal, "fused: failed to unmarshal the received message: %v", err)
	}
	return size, nil
}

type callInfo struct {
	header, trailer []*metadata.MD
	peers           []*peer.Peer
	finish          []func(error)
	creds           []credentials.PerRPCCredentials
	compressor      string
	subtype         string
	codec           encoding.CodecV2
	authority       string
	failFast        bool
	maxSend         int
	maxRecv         int
}

func (c *Config) callInfo(opts []grpc.CallOption) (callInfo, error) {
	i := callInfo{failFast: true, maxSend: c.MaxSendMsgSize, maxRecv: c.MaxRecvMsgSize}
	for _, o := range opts {
		switch o := o.(type) {
		case grpc.HeaderCallOption:
			i.header = append(i.header, o.HeaderAddr)
		case grpc.TrailerCallOption:
			i.trailer = append(i.trailer, o.TrailerAddr)
		case grpc.PeerCallOption:
			i.peers = append(i.peers, o.PeerAddr)
		case grpc.OnFinishCallOption:
			i.finish = append(i.finish, o.OnFinish)
		case grpc.PerRPCCredsCallOption:
			i.creds = append(i.creds, o.Creds)
		case grpc.CompressorCallOption:
			i.compressor = o.CompressorType
		case grpc.ContentSubtypeCallOption:
			i.subtype = o.ContentSubtype
		case grpc.ForceCodecV2CallOption:
			i.codec = o.CodecV2
		case grpc.FailFastCallOption:
			i.failFast = o.FailFast
		case grpc.MaxSendMsgSizeCallOption:
			i.maxSend = o.MaxSendMsgSize
		case grpc.MaxRecvMsgSizeCallOption:
			i.maxRecv = o.MaxRecvMsgSize
		case grpc.AuthorityOverrideCallOption:
			i.authority = o.Authority
		case grpc.ForceCodecCallOption:
			i.codec = codecV1{o.Codec}
		case grpc.CustomCodecCallOption:
			return i, status.Errorf(codes.Unimplemented, "fused: call option %T is not supported", o)
		}
	}
	if i.codec != nil {
		if i.subtype == "" {
			i.subtype = strings.ToLower(i.codec.Name())
		}
		return i, nil
	}
	var err error
	i.codec, err = codecFor(i.subtype)
	return i, err
}

// apply adds the service config where no option of the call says otherwise. The smaller size limit holds.
func (i *callInfo) apply(mc *methodConfig, opts []grpc.CallOption) {
	if mc.waitForReady != nil && !slices.ContainsFunc(opts, func(o grpc.CallOption) bool {
		_, ok := o.(grpc.FailFastCallOption)
		return ok
	}) {
		i.failFast = !*mc.waitForReady
	}
	if mc.maxSend != nil {
		i.maxSend = min(i.maxSend, *mc.maxSend)
	}
	if mc.maxRecv != nil {
		i.maxRecv = min(i.maxRecv, *mc.maxRecv)
	}
}

// callError turns an error into a gRPC status.
func callError(err error) error {
	if err == nil || err == io.EOF {
		return err
	}
	if errors.Is(err, context.DeadlineExceeded) || errors.Is(err, context.Canceled) {
		return status.FromContextError(err).Err()
	}
	if _, ok := status.FromError(err); ok {
		return err
	}
	return status.Error(codes.Unavailable, err.Error())
}

type observers struct {
	list   []stats.Handler
	client bool
}

func (o observers) tag(ctx context.Context, method string, failFast bool) context.Context {
	for _, h := range o.list {
		ctx = h.TagRPC(ctx, &stats.RPCTagInfo{FullMethodName: method, FailFast: failFast})
	}
	return ctx
}

func (o observers) tell(ctx context.Context, s stats.RPCStats) {
	for _, h := range o.list {
		h.HandleRPC(ctx, s)
	}
}

func (o observers) sent(ctx context.Context, m any, p *parcel) {
	if len(o.list) > 0 {
		o.tell(ctx, &stats.OutPayload{Client: o.client, Payload: m, Length: p.size, CompressedLength: len(p.bytes),
			WireLength: len(p.bytes) + headerLen, SentTime: time.Now()})
	}
}

func (o observers) received(ctx context.Context, m any, size, wire int) {
	if len(o.list) > 0 {
		o.tell(ctx, &stats.InPayload{Client: o.client, Payload: m, Length: size, CompressedLength: wire,
			WireLength: wire + headerLen, RecvTime: time.Now()})
	}
}

func (o observers) ended(ctx context.Context, begin time.Time, trailer metadata.MD, err error) {
	if len(o.list) > 0 {
		o.tell(ctx, &stats.End{Client: o.client, BeginTime: begin, EndTime: time.Now(), Trailer: trailer, Error: err})
	}
}
