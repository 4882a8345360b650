package fused

import (
	"context"
	"io"
	"strconv"
	"strings"
	"sync"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/balancer"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/peer"
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

func (c *Channel) chainUnary(i int) grpc.UnaryInvoker {
	if i == len(c.cfg.UnaryClient) {
		return c.invoke
	}
	return func(ctx context.Context, method string, req, reply any, cc *grpc.ClientConn, opts ...grpc.CallOption) error {
		return c.cfg.UnaryClient[i](ctx, method, req, reply, cc, c.chainUnary(i+1), opts...)
	}
}

func (c *Channel) invoke(ctx context.Context, method string, args, reply any, _ *grpc.ClientConn,
	opts ...grpc.CallOption) error {
	cs, r, th, err := c.openConfigured(ctx, &grpc.StreamDesc{}, method, opts)
	switch {
	case err != nil:
		return err
	case r == nil:
		if err = cs.unary(args, reply); err == nil {
			th.succeeded()
		}
		return err
	}
	if err := r.SendMsg(args); err != nil {
		return err
	}
	return r.RecvMsg(reply)
}

func (cs *clientStream) unary(args, reply any) error {
	for {
		bad, err := cs.send(args, true)
		if err == nil || err == io.EOF {
			err = cs.takeOnly(reply)
		}
		if err != nil && !bad && cs.again(err) {
			continue
		}
		return cs.finish(err)
	}
}

// maxAgain bounds the connections that a call is tried on, where each was lost before the call left. Arbitrary.
const maxAgain = 5

// again prepares the call for another connection if the peer cannot know of it: gRPC's transparent retry.
func (cs *clientStream) again(err error) bool {
	if cs.st == nil || !cs.st.unknownToPeer() || cs.s.takesCalls() || cs.tries >= maxAgain || cs.ctx.Err() != nil {
		return false
	}
	cs.tries++
	cs.tellPolicy(err)
	cs.s.forget(cs.st)
	cs.st, cs.open = nil, nil
	if len(cs.ch.obs.list) > 0 {
		cs.ch.obs.ended(cs.ctx, cs.begun, nil, callError(err))
		cs.begun = time.Now()
		cs.ctx = cs.ch.obs.tag(cs.base, cs.method, cs.info.failFast)
		cs.tellBegin(true)
	}
	if err := cs.prepare(); err != nil {
		cs.finish(err)
		return false
	}
	return true
}

func (cs *clientStream) tellBegin(again bool) {
	cs.ch.obs.tell(cs.ctx, &stats.Begin{Client: true, BeginTime: cs.begun, FailFast: cs.info.failFast,
		IsClientStream: cs.desc.ClientStreams, IsServerStream: cs.desc.ServerStreams, IsTransparentRetryAttempt: again})
}

// NewStream opens a streaming call.
func (c *Channel) NewStream(ctx context.Context, desc *grpc.StreamDesc, method string,
	opts ...grpc.CallOption) (grpc.ClientStream, error) {
	return c.chainStream(0)(ctx, desc, nil, method, opts...)
}

func (c *Channel) chainStream(i int) grpc.Streamer {
	return func(ctx context.Context, desc *grpc.StreamDesc, cc *grpc.ClientConn, method string,
		opts ...grpc.CallOption) (grpc.ClientStream, error) {
		if i < len(c.cfg.StreamClient) {
			return c.cfg.StreamClient[i](ctx, desc, cc, method, c.chainStream(i+1), opts...)
		}
		cs, r, _, err := c.openConfigured(ctx, desc, method, opts)
		switch {
		case err != nil:
			return nil, err
		case r != nil:
			return r, nil
		}
		return cs, cs.begin()
	}
}

// clientStream is a call. A unary one is a stream used by invoke alone.
type clientStream struct {
	ch         *Channel
	s          *clientSession
	st         *stream
	ctx        context.Context
	cancel     context.CancelFunc
	method     string
	desc       *grpc.StreamDesc
	info       callInfo
	pack       packing
	begun      time.Time
	base       context.Context // without what stats handlers added
	headerSeen bool            // stats handlers had the header; guarded by st.mu
	tries      int             // connections that were lost before the call left

	// Of a channel of NewClient.
	chosen  balancer.PickResult
	dropped bool       // the policy failed the call
	stop    func()     // frees the timeout of a service config
	attempt *retryCall // the call that this is an attempt of; nil for a whole call

	sendMu sync.Mutex
	open   []byte // the open block, until it is sent
	half   bool   // CloseSend was called

	watchMu sync.Mutex
	unwatch func() bool // ends the watch on ctx of a streaming call

	over sync.Once
	err  error // how the call ended
}

var _ grpc.ClientStream = (*clientStream)(nil)

// open prepares a call on a connection, and sends nothing.
func (c *Channel) open(ctx context.Context, method string, desc *grpc.StreamDesc, mc *methodConfig,
	opts []grpc.CallOption) (*clientStream, error) {
	info, err := c.cfg.callInfo(opts)
	cs := &clientStream{ch: c, method: method, desc: desc, info: info}
	if mc != nil {
		cs.info.apply(mc, opts)
		if mc.timeout != nil && *mc.timeout >= 0 {
			ctx, cs.stop = context.WithTimeout(ctx, *mc.timeout)
		}
	}
	return cs.start(ctx, err)
}

// start prepares an attempt; err is what prevents it already.
func (cs *clientStream) start(ctx context.Context, err error) (*clientStream, error) {
	c, method, info := cs.ch, cs.method, &cs.info
	cs.begun, cs.base = time.Now(), ctx
	cs.ctx = c.obs.tag(ctx, method, info.failFast)
	if len(c.obs.list) > 0 {
		cs.tellBegin(false)
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
	var waited bool
	switch {
	case cs.ch.lb != nil:
		waited, err = cs.ch.lb.pick(cs)
	case cs.ch.fixed != nil:
		if cs.s = cs.ch.fixed.ready(); cs.s == nil {
			err = errNotReady
		}
	default:
		cs.s, waited, err = cs.ch.session(cs.ctx, i.failFast)
	}
	if err != nil {
		return err
	}
	if waited && len(cs.ch.obs.list) > 0 {
		cs.ch.obs.tell(cs.ctx, &stats.DelayedPickComplete{})
	}
	o := openBlock{method: cs.method, codec: i.subtype, compressor: i.compressor, authority: i.authority}
	if named := cs.chosen.Metadata[":authority"]; o.authority == "" && len(named) > 0 { // gRFC A81
		o.authority = named[0]
	}
	if o.authority != "" {
		v, ok := cs.s.auth.(credentials.AuthorityValidator)
		if !ok {
			return status.Errorf(codes.Unavailable,
				"fused: credentials type %q does not implement the AuthorityValidator interface, but authority "+
					"override specified with CallAuthority call option", cs.s.auth.AuthType())
		}
		if err := v.ValidateAuthority(o.authority); err != nil {
			return status.Errorf(codes.Unavailable, "fused: failed to validate authority %q: %v", o.authority, err)
		}
	}
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
	if len(cs.open) > cs.s.peerBlocks {
		return tooLong(len(cs.open), cs.s.peerBlocks)
	}
	if len(cs.ch.obs.list) > 0 {
		cs.ch.obs.tell(cs.ctx, &stats.OutHeader{Client: true, Compression: i.compressor, Header: o.md,
			FullMethod: cs.method, Authority: cs.authority(),
			RemoteAddr: cs.s.conn.RemoteAddr(), LocalAddr: cs.s.conn.LocalAddr()})
	}
	return nil
}

func (cs *clientStream) outgoing() (metadata.MD, error) {
	md, _ := metadata.FromOutgoingContext(cs.ctx)
	if err := checkMD(md); err != nil {
		return nil, err
	}
	if more := cs.chosen.Metadata; len(more) > 0 {
		if err := checkMD(more); err != nil {
			return nil, err
		}
		md = metadata.Join(md, more)
	}
	if cs.attempt != nil && cs.attempt.retries > 0 {
		md = metadata.Join(md, metadata.Pairs("grpc-previous-rpc-attempts", strconv.Itoa(cs.attempt.retries)))
	}
	for _, cred := range cs.info.creds {
		if cred.RequireTransportSecurity() && credentials.CheckSecurityLevel(cs.s.auth,
			credentials.PrivacyAndIntegrity) != nil {
			return nil, status.Error(codes.Unauthenticated,
				"fused: transport: cannot send secure credentials on an insecure connection")
		}
		service := cs.method
		if i := strings.LastIndexByte(service, '/'); i > 0 {
			service = service[:i]
		}
		ri := credentials.RequestInfo{Method: cs.method, AuthInfo: cs.s.auth}
		extra, err := cred.GetRequestMetadata(credentials.NewContextWithRequestInfo(cs.ctx, ri),
			"https://"+strings.TrimSuffix(cs.authority(), ":443")+service)
		if err != nil {
			st, ok := status.FromError(err)
			if !ok {
				return nil, status.Errorf(codes.Internal, "fused: per-RPC creds failed due to error: %v", err)
			}
			return nil, onlyOwnCodes(st, "per-RPC creds")
		}
		more := metadata.New(extra)
		if err := checkMD(more); err != nil {
			return nil, err
		}
		md = metadata.Join(md, more)
	}
	return md, nil
}

func (cs *clientStream) authority() string {
	if cs.info.authority != "" {
		return cs.info.authority
	}
	return cs.ch.cfg.authority(cs.s.conn)
}

// begin starts a streaming call. The server learns of it at once.
func (cs *clientStream) begin() error {
	for {
		cs.sendMu.Lock()
		cs.st.opened = true
		err := cs.s.send(kindStream, fOpen, cs.st.id, cs.open, 0, nil)
		if _, not := err.(notSent); not {
			cs.st.retract(err.(notSent))
		}
		cs.open = nil
		cs.sendMu.Unlock()
		if err == nil {
			break
		}
		if !cs.again(err) {
			return cs.finish(err)
		}
	}
	cs.ctx, cs.cancel = context.WithCancel(peer.NewContext(cs.ctx, cs.s.peer()))
	// This is for the server: whoever uses the stream notices the end of the context.
	cs.watchMu.Lock()
	cs.unwatch = context.AfterFunc(cs.ctx, func() { cs.finish(cs.ctx.Err()) })
	cs.watchMu.Unlock()
	cs.st.watched = true // nobody waits on the stream yet
	cs.s.wakeReader()
	return nil
}

func (cs *clientStream) outcome() error {
	cs.st.mu.Lock()
	defer cs.st.mu.Unlock()
	return cs.st.status.Err()
}

// finish ends the call, once, with all its callbacks, and returns its outcome.
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
				cs.s.forget(cs.st) // it was not sent to the server
			} else {
				cs.s.abandon(cs.st)
			}
		}
		if cs.cancel != nil {
			cs.cancel()
		}
		if cs.stop != nil {
			cs.stop()
		}
		cs.tellPolicy(cs.err)
		for _, f := range cs.info.finish {
			f(cs.err)
		}
		if len(cs.ch.obs.list) > 0 {
			cs.ch.obs.ended(cs.ctx, cs.begun, cs.Trailer(), cs.err)
		}
	})
	return cs.err
}

func (cs *clientStream) tellHeader() {
	cs.st.mu.Lock()
	has := cs.st.hasHeader && !cs.headerSeen
	cs.headerSeen = cs.headerSeen || has
	wire, packer := cs.st.headerWire, cs.st.packer
	cs.st.mu.Unlock()
	if has {
		cs.ch.obs.tell(cs.ctx, &stats.InHeader{Client: true, WireLength: wire, Compression: packer, Header: cs.header()})
	}
}

// header is the server's, as gRPC shows it; nil when there is none.
func (cs *clientStream) header() metadata.MD {
	cs.st.mu.Lock()
	defer cs.st.mu.Unlock()
	if !cs.st.hasHeader {
		return nil
	}
	return withType(cs.st.header, cs.info.subtype)
}

func (cs *clientStream) answer(i *callInfo) {
	for _, h := range i.header {
		*h = cs.header()
	}
	for _, t := range i.trailer {
		*t = cs.Trailer()
	}
	for _, p := range i.peers {
		*p = *cs.s.peer()
	}
}

func (cs *clientStream) fill() {
	cs.answer(&cs.info)
	if len(cs.ch.obs.list) == 0 {
		return
	}
	cs.tellHeader()
	cs.st.mu.Lock()
	ended, wire := cs.st.ended, cs.st.trailerWire
	cs.st.mu.Unlock()
	if ended {
		cs.ch.obs.tell(cs.ctx, &stats.InTrailer{Client: true, WireLength: wire, Trailer: cs.Trailer()})
	}
}

func (cs *clientStream) Header() (metadata.MD, error) {
	if err := cs.s.await(cs.ctx, cs.st, evHeader); err != nil {
		return nil, cs.finish(err)
	}
	cs.st.mu.Lock()
	err := cs.st.err
	none := !cs.st.hasHeader && !cs.st.ended
	cs.st.mu.Unlock()
	if err != nil && none {
		return nil, err
	}
	return cs.header(), nil
}

func (cs *clientStream) Trailer() metadata.MD {
	if cs.st == nil {
		return nil
	}
	cs.st.mu.Lock()
	defer cs.st.mu.Unlock()
	if cs.st.ended && !cs.st.hasHeader { // all there is came as one header list
		return withType(cs.st.trailer, cs.info.subtype)
	}
	return cs.st.trailer
}

func (cs *clientStream) Context() context.Context { return cs.ctx }
