package direct

import (
	"context"
	"errors"
	"fmt"
	"math"
	"sync"

	"github.com/rdmaperf/rdmaperf/regcache"
	"github.com/rdmaperf/rdmaperf/transports"
	"github.com/rdmaperf/rdmaperf/transports/rdma"
)

// cqSlack is room beyond both depths: an unsignaled request completes when it fails, and no completion may be lost.
const cqSlack = 8
const backlog = 64
const maxDepth = 1<<coverBits - 1

type transport struct {
	dev  rdma.Device
	caps rdma.Caps

	mu    sync.Mutex
	cache *regcache.Cache // of the windows' registrations; made with the first session
	scope *regcache.Scope
}

// New makes the transport of dev and owns dev.
func New(dev rdma.Device) transports.Transport { return &transport{dev: dev, caps: dev.Caps()} }

// Is tells whether a stack is a device by itself, with nothing over it.
func Is(s transports.Stack) bool {
	_, ok := s.(*transport)
	return ok
}

// Name is the device's.
func (t *transport) Name() string { return t.dev.Name() }

// Counts are those of the device.
func (t *transport) Counts() []rdma.Counts { return rdma.CountsOf(t.dev) }

var opcodes = [...]struct {
	kind transports.Kind
	op   rdma.Opcode
}{
	{transports.KindSend, rdma.OpSend},
	{transports.KindSendImm, rdma.OpSendImm},
	{transports.KindWrite, rdma.OpWrite},
	{transports.KindWriteImm, rdma.OpWriteImm},
	{transports.KindRead, rdma.OpRead},
	{transports.KindFetchAdd, rdma.OpFetchAdd},
	{transports.KindCmpSwap, rdma.OpCmpSwap},
}

// Caps are those of the device, seen from a session.
func (t *transport) Caps() transports.Caps {
	d := &t.caps
	kinds := transports.Kinds(transports.KindRecv)
	for _, m := range opcodes {
		if d.Ops.Has(m.op) {
			kinds |= transports.Kinds(m.kind)
		}
	}
	c := transports.Caps{
		Label:         d.Label,
		Kinds:         kinds,
		LastByteLast:  d.Features.Has(rdma.FeatLastByteLast),
		InProcess:     d.Label == rdma.LabelMem || d.Clock != nil, // a clock of its own is no other process's
		Events:        d.Features.Has(rdma.FeatEvents),
		PingPong:      d.Features.Has(rdma.FeatPingPong),
		Unaided:       d.Unaided,
		PingPongNS:    d.PingPongNS,
		PingPongClock: d.PingPongClock,
		Clock:         d.Clock,
		MaxMsg:        d.MaxMsg,
		MaxSessions:   d.MaxQP,
		MaxDepth:      min(d.MaxQPWR, (d.MaxCQE-cqSlack)/2, maxDepth), // sends and receives share the CQ
		MaxReadDepth:  d.MaxRDAtom,
		Priorities:    d.Priorities,
		ImmAlone:      !d.Features.Has(rdma.FeatImmPayload),
		LocalComplete: d.Completion == rdma.CompletionLocal,
	}
	if d.Features.Has(rdma.FeatInline) {
		c.MaxInline = d.MaxInline
	}
	return c
}

// owner registers the windows; what a device refuses to close keeps its memory from the next owner.
func (t *transport) owner() (*regcache.Scope, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.scope != nil {
		return t.scope, nil
	}
	// All windows are package rdma's own memory: nothing unmaps them unseen.
	c, err := regcache.New(t.dev, regcache.Config{Source: regcache.SourceArena})
	if err != nil {
		return nil, err
	}
	if t.scope, err = c.Scope(0); err != nil {
		return nil, errors.Join(err, c.Close())
	}
	t.cache = c
	return t.scope, nil
}

// Close closes the device; rdma.ErrBusy while a session or listener is open.
func (t *transport) Close() error {
	if err := t.dev.Close(); err != nil {
		return err
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.cache == nil {
		return nil
	}
	return t.cache.Close()
}

// normal fills in defaults and checks limits before anything is made.
func (t *transport) normal(cfg transports.Config) (transports.Config, error) {
	c := t.Caps()
	cfg, err := cfg.Within(c, math.MaxInt, 0)
	if err != nil {
		return cfg, err
	}
	if cfg.Events && !c.Events {
		return cfg, &rdma.MissingError{Gaps: []string{"feature " + rdma.FeatEvents.String()}}
	}
	if t.caps.MaxPrivate < greetingLen {
		return cfg, &rdma.MissingError{Gaps: []string{fmt.Sprintf("%d bytes of private data", greetingLen)}}
	}
	return cfg, nil
}

func (t *transport) param(cfg transports.Config, private []byte) rdma.ConnParam {
	p := rdma.ConnParam{PrivateData: private, IRD: cfg.ReadDepth, ORD: cfg.ReadDepth}
	if cfg.NoReads && !t.caps.OwnReads {
		p.IRD, p.ORD = 0, 0
	}
	if t.caps.Features.Has(rdma.FeatRNRRetry) {
		p.RNRRetry = 7 // for ever: how long a receive may be late is the engine's decision
	}
	return p
}

// Dial connects to a Listener of a transport like this one. ctx bounds it as it bounds [rdma.QP].Connect. Errors are
// the device's, rdma.ErrInvalid for cfg and rdma.ErrProtocol for a peer of another kind.
func (t *transport) Dial(ctx context.Context, addr string, hello []byte, cfg transports.Config) (transports.Session,
	error) {
	s, err := t.dial(ctx, addr, hello, cfg)
	if err != nil {
		return nil, &rdma.OpError{Op: "dial", Object: addr, Err: err}
	}
	return s, nil
}

func (t *transport) dial(ctx context.Context, addr string, hello []byte, cfg transports.Config) (*session, error) {
	cfg, err := t.normal(cfg)
	if err != nil {
		return nil, err
	}
	s, err := t.newSession(cfg)
	if err != nil {
		return nil, err
	}
	var peer greeting
	private, err := s.greeting(hello)
	if err == nil {
		if cfg.Created != nil {
			cfg.Created()
		}
		var got rdma.ConnParam
		got, err = s.qp.Connect(ctx, addr, t.param(cfg, private))
		if err == nil {
			peer, err = parseGreeting(got.PrivateData)
		}
	}
	if err != nil {
		s.Close()
		return nil, err
	}
	s.setPeer(peer)
	return s, nil
}

type listener struct {
	rdma.Listener
	t   *transport
	cfg transports.Config
}

// Listen takes sessions at addr.
func (t *transport) Listen(ctx context.Context, addr string, cfg transports.Config) (transports.Listener, error) {
	cfg, err := t.normal(cfg)
	if err != nil {
		return nil, &rdma.OpError{Op: "listen", Object: addr, Err: err}
	}
	l, err := t.dev.Listen(ctx, addr, backlog)
	if err != nil {
		return nil, err
	}
	return &listener{l, t, cfg}, nil
}

// Accept takes the next dialler of this transport. An unknown peer is rejected and passed over, and so is a dialler
// that is gone when it is answered; an error is this side's or the end of ctx.
func (l *listener) Accept(ctx context.Context) (transports.Session, []byte, error) {
	for {
		req, err := l.Listener.Accept(ctx)
		if err != nil {
			return nil, nil, err
		}
		s, hello, err := l.t.answer(ctx, req, l.cfg)
		if err == nil {
			return s, hello, nil
		}
		// Whoever was answered already is not rejected again: that only fails.
		_ = req.Reject(ctx, nil)
		if !theirs(err) || ctx.Err() != nil {
			return nil, nil, &rdma.OpError{Op: "accept from", Object: req.RemoteAddr(), Err: err}
		}
	}
}

// theirs tells errors that the dialler caused: it speaks something else, or is gone.
func theirs(err error) bool {
	return errors.Is(err, rdma.ErrProtocol) || errors.Is(err, rdma.ErrUnreachable) || errors.Is(err, rdma.ErrState)
}

func (t *transport) answer(ctx context.Context, req rdma.ConnRequest, cfg transports.Config) (*session, []byte, error) {
	peer, err := parseGreeting(req.Param().PrivateData)
	if err != nil {
		return nil, nil, err
	}
	s, err := t.newSession(cfg)
	if err != nil {
		return nil, nil, err
	}
	s.setPeer(peer)
	private, err := s.greeting(nil)
	if err == nil {
		_, err = req.Accept(ctx, s.qp, t.param(cfg, private))
	}
	if err != nil {
		s.Close()
		return nil, nil, err
	}
	return s, peer.hello, nil
}
