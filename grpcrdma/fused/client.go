package fused

import (
	"context"
	"io"
	"strings"
	"sync"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/stats"
	"google.golang.org/grpc/status"
)

// Invoke makes a unary call.
func (c *Channel) Invoke(ctx context.Context, method string, args, reply any, opts ...grpc.CallOption) error {
	if len(c.cfg.UnaryClient) == 0 {
		return c.invoke(ctx, method, args, reply, nil, opts...)
	}
	return c.chainUnary(0)(ctx, method, args, reply, nil, opts...)
}

// chainUnary is the i-th interceptor and all behind it.
func (c *Channel) chainUnary(i int) grpc.UnaryInvoker {
	if i == len(c.cfg.UnaryClient) {
		return c.invoke
	}
	return func(ctx context.Context, method string, req, reply any, cc *grpc.ClientConn, opts ...grpc.CallOption) error {
		return c.cfg.UnaryClient[i](ctx, method, req, reply, cc, c.chainUnary(i+1), opts...)
	}
}

func (c *Channel) invoke(ctx context.Context, method string, args, reply any, _ *grpc.ClientConn, opts ...grpc.CallOption) error {
	cs, err := c.open(ctx, method, &grpc.StreamDesc{}, opts)
	if err != nil {
		return err
	}
	if _, err := cs.send(args, true); err != nil && err != io.EOF {
		return cs.finish(err)
	}
	return cs.receiveOnly(reply)
}

// NewStream opens a streaming call.
func (c *Channel) NewStream(ctx context.Context, desc *grpc.StreamDesc, method string, opts ...grpc.CallOption) (grpc.ClientStream, error) {
	return c.chainStream(0)(ctx, desc, nil, method, opts...)
}

func (c *Channel) chainStream(i int) grpc.Streamer {
	return func(ctx context.Context, desc *grpc.StreamDesc, cc *grpc.ClientConn, method string, opts ...grpc.CallOption) (grpc.ClientStream, error) {
		if i < len(c.cfg.StreamClient) {
			return c.cfg.StreamClient[i](ctx, desc, cc, method, c.chainStream(i+1), opts...)
		}
		cs, err := c.open(ctx, method, desc, opts)
		if err != nil {
			return nil, err
		}
		return cs, cs.begin()
	}
}

// clientStream is a call. A unary one is a stream that nobody but invoke sees.
type clientStream struct {
	ch     *Channel
	s      *clientSession
	st     *stream
	ctx    context.Context
	cancel context.CancelFunc
	method string
	desc   *grpc.StreamDesc
	info   callInfo
	pack   packing
	begun  time.Time

	sendMu sync.Mutex
	open   []byte // the open block, until it is sent
	half   bool   // CloseSend was called

	watchMu sync.Mutex
	unwatch func() bool // ends the watch on ctx of a streaming call

	over sync.Once
	err  error // how the call ended
}

var _ grpc.ClientStream = (*clientStream)(nil)

// open prepares a call on a connection. Nothing is sent yet.
func (c *Channel) open(ctx context.Context, method string, desc *grpc.StreamDesc, opts []grpc.CallOption) (*clientStream, error) {
	info, err := c.cfg.callInfo(opts)
	cs := &clientStream{ch: c, method: method, desc: desc, info: info, begun: time.Now()}
	cs.ctx = c.obs.tag(ctx, method, info.failFast)
	if len(c.obs.list) > 0 {
		c.obs.tell(cs.ctx, &stats.Begin{Client: true, BeginTime: cs.begun, FailFast: info.failFast, IsClientStream: desc.ClientStreams, IsServerStream: desc.ServerStreams})
	}
	if err == nil {
		err = cs.prepare()
	}
	if err != nil {
		return nil, cs.finish(err)
	}
	return cs, nil
}

func (cs *clientStream) prepare() (err error) {
	if err := cs.ctx.Err(); err != nil {
		return err
	}
	i := &cs.info
	cs.pack = packing{codec: i.codec, maxSend: i.maxSend, maxRecv: i.maxRecv}
	if cs.pack.compressor, err = compressorFor(i.compressor); err != nil {
		return err
	}
	if cs.s, err = cs.ch.session(cs.ctx, i.failFast); err != nil {
		return err
	}
	o := openBlock{method: cs.method, codec: i.subtype, compressor: i.compressor}
	if o.md, err = cs.outgoing(); err != nil {
		return err
	}
	if d, ok := cs.ctx.Deadline(); ok {
		if o.timeout = time.Until(d); o.timeout <= 0 {
			return context.DeadlineExceeded
		}
	}
	if cs.st, err = cs.s.open(cs.ctx); err != nil {
		return err
	}
	cs.open = appendBlock(cs.open, o.append)
	if len(cs.open) > maxBlocks {
		return status.Errorf(codes.ResourceExhausted, "fused: %d bytes of metadata, at most %d", len(cs.open), maxBlocks)
	}
	if len(cs.ch.obs.list) > 0 {
		cs.ch.obs.tell(cs.ctx, &stats.OutHeader{Client: true, Compression: i.compressor, Header: o.md, FullMethod: cs.method,
			RemoteAddr: cs.s.conn.RemoteAddr(), LocalAddr: cs.s.conn.LocalAddr()})
	}
	return nil
}

// outgoing is the caller's metadata with that of per-call credentials.
func (cs *clientStream) outgoing() (metadata.MD, error) {
	md, _ := metadata.FromOutgoingContext(cs.ctx)
	for _, cred := range cs.info.creds {
		if cred.RequireTransportSecurity() && authInfo(cs.s.conn) == nil {
			return nil, status.Error(codes.Unauthenticated, "fused: transport: cannot send secure credentials on an insecure connection")
		}
		service := cs.method
		if i := strings.LastIndexByte(service, '/'); i > 0 {
			service = service[:i]
		}
		ri := credentials.RequestInfo{Method: cs.method, AuthInfo: authInfo(cs.s.conn)}
		extra, err := cred.GetRequestMetadata(credentials.NewContextWithRequestInfo(cs.ctx, ri), "https://"+cs.s.conn.RemoteAddr().String()+service)
		if err != nil {
			if _, ok := status.FromError(err); ok {
				return nil, err
			}
			return nil, status.Errorf(codes.Unauthenticated, "fused: %v", err)
		}
		md = metadata.Join(md, metadata.New(extra))
	}
	return md, nil
}

// begin starts a streaming call: the server learns of it at once, and of the end
// of its context.
func (cs *clientStream) begin() error {
	cs.ctx, cs.cancel = context.WithCancel(cs.ctx)
	cs.sendMu.Lock()
	err := cs.s.send(kindStream, fOpen, cs.st.id, cs.open, 0, nil)
	cs.open = nil
	cs.sendMu.Unlock()
	if err != nil {
		return cs.finish(err)
	}
	// Whoever uses the stream finds the end of the context by itself; this is for
	// the server, should nobody use it any more.
	cs.watchMu.Lock()
	cs.unwatch = context.AfterFunc(cs.ctx, func() { cs.finish(cs.ctx.Err()) })
	cs.watchMu.Unlock()
	cs.st.watched = true // nobody waits on the stream yet
	cs.s.callTender()
	return nil
}

// send sends a message, behind the open block if that is still due, and with last
// the end of this side's stream. io.EOF when the server ended the call: its status
// has the reason. bad tells that it is the message that cannot be sent.
func (cs *clientStream) send(m any, last bool) (bad bool, err error) {
	b, size, fl, free, err := cs.pack.marshal(m)
	if err != nil {
		return true, err
	}
	defer free()
	var end flags
	if last {
		end = fEnd
	}
	if len(cs.open) > 0 {
		fl |= fOpen
	}
	err = cs.st.sendMessage(cs.ctx, fl, cs.open, b, end, nil)
	if len(cs.open) > 0 { // of streams it was sent long ago, and finish looks at it at any time
		cs.open = nil
	}
	if err == nil {
		cs.ch.obs.sent(cs.ctx, m, size, len(b))
		return false, nil
	}
	if err == errOver {
		err = io.EOF
	}
	return false, err
}

// SendMsg sends a message. When the call is over, whatever ended it, RecvMsg has
// the reason: SendMsg gives io.EOF, and nil where the method takes one message only,
// as generated code expects (grpc.ClientStream). Other errors are of the message.
func (cs *clientStream) SendMsg(m any) error {
	cs.sendMu.Lock()
	defer cs.sendMu.Unlock()
	if cs.half {
		return status.Error(codes.Internal, "fused: SendMsg called after CloseSend")
	}
	bad, err := cs.send(m, !cs.desc.ClientStreams)
	if !cs.desc.ClientStreams {
		cs.half = true
	}
	if err == nil {
		return nil
	}
	if err != io.EOF {
		err = cs.finish(err)
	}
	switch {
	case bad:
		return err
	case cs.desc.ClientStreams:
		return io.EOF
	}
	return nil
}

// CloseSend ends this side's messages.
func (cs *clientStream) CloseSend() error {
	cs.sendMu.Lock()
	defer cs.sendMu.Unlock()
	if cs.half {
		return nil
	}
	cs.half = true
	cs.s.send(kindStream, fEnd, cs.st.id, nil, 0, nil) // a failure ends the call, and RecvMsg tells
	return nil
}

// RecvMsg receives a message; io.EOF when the call ended well, its status else.
func (cs *clientStream) RecvMsg(m any) error {
	if !cs.desc.ServerStreams {
		return cs.receiveOnly(m)
	}
	got, err := cs.receive(m)
	if err == nil && got {
		return nil
	}
	if err == nil {
		err = cs.outcome()
	}
	if err = cs.finish(err); err == nil {
		return io.EOF
	}
	return err
}

// receive takes the next message; got=false at the end of the stream.
func (cs *clientStream) receive(m any) (got bool, err error) {
	msg, err := cs.st.receive(cs.ctx)
	if err == io.EOF {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	wire := len(*msg.buf)
	if msg.packed && cs.pack.unpack == nil {
		cs.st.mu.Lock()
		name := cs.st.packer
		cs.st.mu.Unlock()
		if cs.pack.unpack, err = compressorFor(name); err != nil {
			return false, err
		}
	}
	size, err := cs.pack.unmarshal(msg, m)
	if err != nil {
		return false, err
	}
	cs.ch.obs.received(cs.ctx, m, size, wire)
	return true, nil
}

// receiveOnly takes the one message of a call that has one, and its end.
func (cs *clientStream) receiveOnly(m any) error {
	got, err := cs.receive(m)
	if err == nil && got {
		// The end most often came with the message.
		if _, err = cs.st.receive(cs.ctx); err == nil {
			err = status.Error(codes.Internal, "fused: cardinality violation: expected <EOF> for non server-streaming RPCs, but received another message")
		} else if err == io.EOF {
			err = cs.outcome()
		}
	} else if err == nil {
		if err = cs.outcome(); err == nil {
			err = status.Error(codes.Internal, "fused: cardinality violation: received no response message from non-server-streaming RPC")
		}
	}
	return cs.finish(err)
}

// outcome is the server's status of an ended stream.
func (cs *clientStream) outcome() error {
	cs.st.mu.Lock()
	defer cs.st.mu.Unlock()
	return cs.st.status.Err()
}

// finish ends the call, once, and tells everyone; it gives the call's outcome.
func (cs *clientStream) finish(err error) error {
	cs.over.Do(func() {
		cs.err = callError(err)
		cs.watchMu.Lock()
		if cs.unwatch != nil {
			cs.unwatch()
		}
		cs.watchMu.Unlock()
		if cs.st != nil {
			cs.fill()
			cs.st.fail(cs.err)
			cs.s.interruptLeader(cs.st)
			if len(cs.open) > 0 {
				cs.s.forget(cs.st) // the server has not heard of it
			} else {
				cs.s.abandon(cs.st)
			}
		}
		if cs.cancel != nil {
			cs.cancel()
		}
		for _, f := range cs.info.finish {
			f(cs.err)
		}
		if len(cs.ch.obs.list) > 0 {
			cs.ch.obs.ended(cs.ctx, cs.begun, cs.Trailer(), cs.err)
		}
	})
	return cs.err
}

// fill answers the call options that ask for something. Stats handlers learn of
// header and trailer here, at the end of the call.
func (cs *clientStream) fill() {
	cs.st.mu.Lock()
	header, trailer := cs.st.header, cs.st.trailer
	hasHeader, ended := cs.st.hasHeader, cs.st.ended
	cs.st.mu.Unlock()
	for _, h := range cs.info.header {
		*h = header
	}
	for _, t := range cs.info.trailer {
		*t = trailer
	}
	for _, p := range cs.info.peers {
		*p = *peerOf(cs.s.conn)
	}
	if len(cs.ch.obs.list) == 0 {
		return
	}
	if hasHeader {
		cs.ch.obs.tell(cs.ctx, &stats.InHeader{Client: true, Header: header, FullMethod: cs.method})
	}
	if ended {
		cs.ch.obs.tell(cs.ctx, &stats.InTrailer{Client: true, Trailer: trailer})
	}
}

// Header waits for the server's header.
func (cs *clientStream) Header() (metadata.MD, error) {
	if err := cs.s.await(cs.ctx, cs.st, evHeader); err != nil {
		return nil, cs.finish(err)
	}
	cs.st.mu.Lock()
	defer cs.st.mu.Unlock()
	if cs.st.err != nil && !cs.st.hasHeader && !cs.st.ended {
		return nil, cs.st.err
	}
	return cs.st.header, nil
}

// Trailer is the server's trailer, once the call is over.
func (cs *clientStream) Trailer() metadata.MD {
	if cs.st == nil {
		return nil
	}
	cs.st.mu.Lock()
	defer cs.st.mu.Unlock()
	return cs.st.trailer
}

// Context is the call's.
func (cs *clientStream) Context() context.Context { return cs.ctx }
