package fused

import (
	"context"
	"io"
	"sync"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/mem"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/stats"
	"google.golang.org/grpc/status"
)

// serverStream is a call, and its handler's grpc.ServerStream.
type serverStream struct {
	ss     *serverSession
	st     *stream
	open   openBlock
	ctx    context.Context
	cancel context.CancelFunc
	pack   packing
	sv     *service
	name   string        // of the method
	pace   *pace         // nil for a call that is never run by the reader
	held   bool          // the handler starts when the request is whole; guarded by callsMu
	got    bool          // a message came; the receiver's
	single bool          // the method takes one message
	wire   int           // bytes of the open block
	work   time.Duration // the handler's, without what its request's length excuses

	mu         sync.Mutex // one frame of the call at a time
	header     metadata.MD
	headerSent bool
	over       bool // the status was sent
	trailer    metadata.MD
}

var (
	_ grpc.ServerStream          = (*serverStream)(nil)
	_ grpc.ServerTransportStream = transportStream{}
)

func (c *serverStream) run() {
	defer c.ss.end(c)
	defer c.cancel()
	srv := c.ss.srv
	begun := time.Now()
	c.ctx = srv.obs.tag(c.ctx, c.open.method, false)
	c.ctx = grpc.NewContextWithServerTransportStream(c.ctx, transportStream{c})
	if len(srv.obs.list) > 0 {
		c.observe(begun)
	}
	err := c.setUp()
	var reply any
	if err == nil {
		reply, err = c.call()
	}
	err = c.finish(reply, err)
	srv.obs.ended(c.ctx, begun, nil, err)
}

func (c *serverStream) observe(begun time.Time) {
	obs := c.ss.srv.obs
	obs.tell(c.ctx, &stats.InHeader{Compression: c.open.compressor, Header: c.open.md, FullMethod: c.open.method,
		WireLength: c.wire, RemoteAddr: c.ss.conn.RemoteAddr(), LocalAddr: c.ss.conn.LocalAddr()})
	b := &stats.Begin{BeginTime: begun}
	if d := c.sv.streams[c.name]; d != nil {
		b.IsClientStream, b.IsServerStream = d.ClientStreams, d.ServerStreams
	}
	obs.tell(c.ctx, b)
}

// setUp finds codec and compressor. Responses are compressed as requests are.
func (c *serverStream) setUp() (err error) {
	cfg := &c.ss.srv.cfg
	c.pack = packing{maxSend: cfg.MaxSendMsgSize, maxRecv: cfg.MaxRecvMsgSize}
	if c.pack.codec, err = codecFor(c.open.codec); err != nil {
		return err
	}
	if c.pack.compressor, err = compressorFor(c.open.compressor); err != nil {
		return status.Errorf(codes.Unimplemented, "fused: decompressor is not installed for grpc-encoding %q",
			c.open.compressor)
	}
	c.pack.unpack = c.pack.compressor
	return nil
}

// call runs the handler. reply is the response of a unary one.
func (c *serverStream) call() (reply any, err error) {
	cfg, sv, name := &c.ss.srv.cfg, c.sv, c.name
	if cfg.UnknownService != nil && sv.unary[name] == nil && sv.streams[name] == nil {
		info := &grpc.StreamServerInfo{FullMethod: c.open.method, IsClientStream: true, IsServerStream: true}
		return nil, chainStreamServer(cfg.StreamServer, info, cfg.UnknownService)(nil, c)
	}
	if sv == &noService {
		return nil, status.Errorf(codes.Unimplemented, "fused: unknown service of method %s", c.open.method)
	}
	if m := sv.unary[name]; m != nil {
		begun := time.Now()
		c.single = true
		reply, err = m.Handler(sv.impl, c.ctx, c.RecvMsg, chainUnaryServer(cfg.UnaryServer))
		c.work += time.Since(begun)
		return reply, err
	}
	d := sv.streams[name]
	if d == nil {
		return nil, status.Errorf(codes.Unimplemented, "fused: unknown method %s for service %s", name, sv.desc.ServiceName)
	}
	c.single = !d.ClientStreams
	info := &grpc.StreamServerInfo{FullMethod: c.open.method, IsClientStream: d.ClientStreams,
		IsServerStream: d.ServerStreams}
	return nil, chainStreamServer(cfg.StreamServer, info, d.Handler)(sv.impl, c)
}

func chainUnaryServer(list []grpc.UnaryServerInterceptor) grpc.UnaryServerInterceptor {
	if len(list) == 0 {
		return nil
	}
	return func(ctx context.Context, req any, info *grpc.UnaryServerInfo, h grpc.UnaryHandler) (any, error) {
		for i := len(list) - 1; i >= 0; i-- {
			next, this := h, list[i]
			h = func(ctx context.Context, req any) (any, error) { return this(ctx, req, info, next) }
		}
		return h(ctx, req)
	}
}

func chainStreamServer(list []grpc.StreamServerInterceptor, info *grpc.StreamServerInfo,
	h grpc.StreamHandler) grpc.StreamHandler {
	for i := len(list) - 1; i >= 0; i-- {
		next, this := h, list[i]
		h = func(srv any, s grpc.ServerStream) error { return this(srv, s, info, next) }
	}
	return h
}

// finish sends the response of a unary call and the status, and returns the status's error.
func (c *serverStream) finish(reply any, err error) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if err == nil && reply != nil {
		var p parcel
		if p, err = c.pack.marshal(reply); err == nil {
			defer p.free()
			hf, blocks := c.takeHeader()
			tail := appendBlock(nil, func(t []byte) []byte {
				return appendTrailer(t, status.New(codes.OK, ""), c.trailer)
			})
			sent := c.st.sendMessage(c.ctx, hf|p.flags, blocks, p.bytes, fTrailer|fEnd, tail)
			if sent == nil {
				c.over = true
				c.ss.srv.obs.sent(c.ctx, reply, &p)
				c.tellTrailer()
				return nil
			}
			err = callError(sent)
		}
	}
	return c.end(err)
}

// end sends the status alone. The caller holds mu.
func (c *serverStream) end(err error) error {
	st, ok := status.FromError(err)
	if !ok {
		st = status.FromContextError(err) // Unknown for what is no context's
		err = st.Err()
	}
	var fl flags
	var blocks []byte
	if len(c.header) > 0 {
		fl, blocks = c.takeHeader()
	}
	blocks = appendBlock(blocks, func(t []byte) []byte { return appendTrailer(t, st, c.trailer) })
	if most := c.ss.peerBlocks; len(blocks) > most {
		err = tooLong(len(blocks), most)
		fl, blocks = 0, appendBlock(nil, func(t []byte) []byte { return appendTrailer(t, status.Convert(err), nil) })
	}
	c.over = true
	c.ss.send(kindStream, fl|fTrailer|fEnd, c.st.id, blocks, 0, nil) // a failure is the connection's end
	c.tellTrailer()
	return err
}

func (c *serverStream) tellTrailer() {
	if obs := c.ss.srv.obs; len(obs.list) > 0 {
		obs.tell(c.ctx, &stats.OutTrailer{Trailer: c.trailer})
	}
}

// takeHeader is the header block, if it was not sent yet. The caller holds mu.
func (c *serverStream) takeHeader() (flags, []byte) {
	if c.headerSent {
		return 0, nil
	}
	c.headerSent = true
	if len(c.ss.srv.obs.list) > 0 {
		c.ss.srv.obs.tell(c.ctx, &stats.OutHeader{Compression: c.open.compressor, Header: c.header})
	}
	return fHeader, appendBlock(nil, func(b []byte) []byte { return appendHeader(b, c.open.compressor, c.header) })
}

func (c *serverStream) Method() string { return c.open.method }

func (c *serverStream) Context() context.Context { return c.ctx }

// errOverCall is the error of a call after its end.
var errOverCall = status.FromContextError(context.Canceled).Err()

var errHeaderSent = status.Error(codes.Internal, "fused: SendHeader called multiple times")

func (c *serverStream) SetHeader(md metadata.MD) error {
	if len(md) == 0 {
		return nil
	}
	if err := checkMD(md); err != nil {
		return err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.headerSent || c.over {
		return errHeaderSent
	}
	c.header = metadata.Join(c.header, md)
	return nil
}

func (c *serverStream) SendHeader(md metadata.MD) error {
	if err := checkMD(md); err != nil {
		return err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case c.over:
		return errOverCall
	case c.headerSent:
		return errHeaderSent
	}
	c.header = metadata.Join(c.header, md)
	fl, blocks := c.takeHeader()
	if most := c.ss.peerBlocks; len(blocks) > most {
		return tooLong(len(blocks), most)
	}
	return callError(c.ss.send(kindStream, fl, c.st.id, blocks, 0, nil))
}

func (c *serverStream) SetTrailer(md metadata.MD) {
	c.mu.Lock()
	c.trailer = metadata.Join(c.trailer, md)
	c.mu.Unlock()
}

// transportStream is a call as grpc.SetHeader, SendHeader and SetTrailer see it.
type transportStream struct{ *serverStream }

func (t transportStream) SetTrailer(md metadata.MD) error {
	t.serverStream.SetTrailer(md)
	return nil
}

func (c *serverStream) SendMsg(m any) error {
	p, err := c.pack.marshal(m)
	if err != nil {
		return err
	}
	defer p.free()
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.over {
		return errOverCall
	}
	hf, blocks := c.takeHeader()
	if err := c.st.sendMessage(c.ctx, hf|p.flags, blocks, p.bytes, 0, nil); err != nil {
		return callError(err)
	}
	c.ss.srv.obs.sent(c.ctx, m, &p)
	return nil
}

// RecvMsg receives a message. It returns io.EOF when the client sends no more.
func (c *serverStream) RecvMsg(m any) error {
	msg, err := c.st.receive(c.ctx)
	if err == io.EOF {
		if c.single && !c.got {
			return status.Error(codes.Internal,
				"fused: cardinality violation: received no request message from non-client-streaming RPC")
		}
		return err
	}
	if err != nil {
		return callError(err)
	}
	wire := len(*msg.buf)
	c.work -= time.Duration(wire) * byteTime
	size, err := c.pack.unmarshal(msg, m)
	if err == nil {
		c.ss.srv.obs.received(c.ctx, m, size, wire)
	}
	c.got = true
	if err != nil || !c.single {
		return err
	}
	// The end often came with the message.
	switch more, err := c.st.receive(c.ctx); {
	case err == io.EOF:
		return nil
	case err != nil:
		return callError(err)
	default:
		mem.NewBuffer(more.buf, more.memory()).Free()
		return status.Error(codes.Internal,
			"fused: cardinality violation: received multiple request messages for non-client-streaming RPC")
	}
}
