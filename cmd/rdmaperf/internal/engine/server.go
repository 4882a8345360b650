package engine

import (
	"cmp"
	"context"
	"crypto/rand"
	"crypto/subtle"
	"crypto/tls"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/netip"
	"sync"
	"time"

	"github.com/rdmaperf/rdmaperf/reports"
	"github.com/rdmaperf/rdmaperf/transports"
	"github.com/rdmaperf/rdmaperf/transports/rdma"
)

// Server limits, used where a Server leaves them 0. All arbitrary: they keep one
// machine usable while strangers talk to it.
const (
	DefaultMaxClients = 16
	DefaultMaxWindow  = 4 << 30 // bytes

	FirstLineWait = 5 * time.Second // for the plan of a new connection
	ReplyWait     = 5 * time.Second // for a line to leave
	MaxRefusals   = 64              // connections that have not said a plan
	// idleWait bounds how long a client may stay silent between points, and in a
	// phase that counts operations; a dead host is noticed much earlier by keep-alive.
	idleWait = time.Hour
)

// Server answers clients: it opens the transport that a plan names and plays the
// target. It needs no options of the test.
type Server struct {
	Workloads   Table // those that clients may name
	Open        func(spec string) (transports.Stack, error)
	Device      func(spec string) (rdma.Device, error) // for workloads with a run of their own; nil: none of those
	Environment func() reports.Environment             // sent to clients; nil: none
	Log         *slog.Logger                           // nil: silent
	// Counters gives a reader of what is counted below an open stack, and in it; nil, or
	// a nil reader: nothing.
	Counters   func(tr transports.Stack) func() []reports.DeviceCounters
	MaxClients int   // at once; more get a clear answer
	MaxWindow  int64 // bytes of windows per client

	// Allow are the addresses that may come, nil for all; Token, if set, what clients must
	// know. MaxMemory bounds in bytes what all points together hold (0: MaxWindow),
	// MaxThreads their threads (0: DefaultMaxThreads).
	Allow      []netip.Prefix
	Token      []byte
	MaxMemory  int64
	MaxThreads int

	// TLS, if set, is what the control channel is wrapped in, with a certificate of this
	// server; it is not changed. Data connections are not.
	TLS *tls.Config

	Guard guard
}

// acceptance answers a plan.
type acceptance struct {
	Stack       string               `json:"stack"`
	Caps        transports.Caps      `json:"caps"`
	MaxWindow   int64                `json:"max_window_bytes"`
	Environment *reports.Environment `json:"environment,omitempty"`
}

// Serve takes clients until ctx ends, then ends them and returns nil. It closes l.
func (s *Server) Serve(ctx context.Context, l net.Listener) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	unhook := context.AfterFunc(ctx, func() { l.Close() })
	defer unhook()
	defer l.Close()
	var sessions sync.WaitGroup
	defer sessions.Wait()
	defer cancel()
	for {
		conn, err := l.Accept()
		switch {
		case err == nil:
		case ctx.Err() != nil:
			return nil
		case errors.Is(err, net.ErrClosed):
			return fmt.Errorf("accept: %w", err)
		default: // out of descriptors, or a connection that is gone already
			s.log().Warn("accept failed", "err", err)
			select {
			case <-time.After(50 * time.Millisecond):
			case <-ctx.Done():
			}
			continue
		}
		if addr := addrOf(conn); !s.allowed(addr) {
			s.log().Debug("not allowed", "client", addr.String())
			conn.Close()
			continue
		}
		sessions.Go(func() { s.ServeConn(ctx, conn) })
	}
}

// ServeConn serves one client over an established connection and returns when it
// is done with it. It closes conn.
func (s *Server) ServeConn(ctx context.Context, conn net.Conn) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	if tcp, ok := conn.(*net.TCPConn); ok {
		// A host that vanished is noticed after ten seconds of silence.
		tcp.SetKeepAliveConfig(net.KeepAliveConfig{Enable: true, Idle: 5 * time.Second, Interval: time.Second, Count: 5})
	}
	who := s.Enter(conn)
	defer s.leave(who)
	secured, err := s.secure(ctx, conn)
	if err != nil {
		conn.Close()
		if ctx.Err() == nil && !errors.Is(err, io.EOF) { // a port check
			s.log().Warn("client ended", "client", conn.RemoteAddr().String(), "err", short(err.Error()))
		}
		return
	}
	c := &ServedClient{Server: s, who: who, Ctl: newControl(ctx, secured, conn.RemoteAddr().String()), Host: hostOf(conn.LocalAddr())}
	defer c.Ctl.close()
	c.Log = s.log().With("client", c.Ctl.peer)
	if err := c.serve(ctx); err != nil && ctx.Err() == nil {
		c.Log.Warn("client ended", "err", short(err.Error()))
	}
}

func (s *Server) maxClients() int {
	if s.MaxClients > 0 {
		return s.MaxClients
	}
	return DefaultMaxClients
}

func (s *Server) maxWindow() int64 {
	if s.MaxWindow > 0 {
		return s.MaxWindow
	}
	return DefaultMaxWindow
}

func (s *Server) log() *slog.Logger {
	if s.Log != nil {
		return s.Log
	}
	return slog.New(slog.DiscardHandler)
}

// hostOf is where data sessions listen: the address that the client reached.
func hostOf(a net.Addr) string {
	if t, ok := a.(*net.TCPAddr); ok {
		return (&net.IPAddr{IP: t.IP, Zone: t.Zone}).String()
	}
	return "127.0.0.1"
}

// ServedClient is one client being served.
type ServedClient struct {
	Server *Server
	who    *Visitor
	Ctl    *Control
	Log    *slog.Logger
	Host   string
	Plan   Plan
	Tr     transports.Stack

	Counters func() []reports.DeviceCounters // nil: none
}

// serve is the dialogue. Its error was told to the client, if it was there to hear.
func (c *ServedClient) serve(ctx context.Context) error {
	m, err := c.Ctl.receive(ctx, FirstLineWait)
	if err != nil {
		if errors.Is(err, io.EOF) {
			return nil // a port check
		}
		return c.refuse(ctx, PeerError("read plan", err, "a client of the same version"))
	}
	if m.Plan != nil {
		m.Plan.Workloads = c.Server.Workloads
	}
	if m.Magic == ControlMagic && m.Version == ControlVersion {
		if err := c.challenge(ctx); err != nil {
			return c.refuse(ctx, err)
		}
	}
	if err := checkGreeting(m); err != nil {
		return c.refuse(ctx, err)
	}
	// Only a client that speaks the protocol counts: a port check is none.
	if err := c.Server.Admit(c.who); err != nil {
		return c.refuse(ctx, err)
	}
	if err := c.accept(m.Plan); err != nil {
		return c.refuse(ctx, err)
	}
	defer c.Tr.Close()
	c.Log.Info("plan accepted", "transport", c.Tr.Name(), "points", len(c.Plan.Points))
	for {
		c.Server.waiting(c.who, true)
		m, err := c.Ctl.receive(ctx, c.Plan.Duration+idleWait)
		c.Server.waiting(c.who, false)
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err == nil && (m.Type != MsgPoint || m.Shape == nil && m.Point == nil) {
			err = outOfTurn(m, MsgPoint)
		}
		if err != nil {
			return c.refuse(ctx, PeerError("wait for a point", err, ""))
		}
		if m.Point != nil {
			err = c.runnerPoint(*m.Point)
		} else {
			err = c.point(ctx, m.Shape)
		}
		if err != nil {
			return c.refuse(ctx, err)
		}
	}
}

// refuse tells the client why this is the end. ctx ends with the server; what waited for
// the client was also cut short where that one left.
func (c *ServedClient) refuse(ctx context.Context, err error) error {
	switch {
	case !errors.Is(err, context.Canceled):
	case ctx.Err() != nil:
		err = PeerError("serve", errors.New("the server is shutting down"), "")
	default:
		err = PeerError("serve", errors.New("the client left"), "what the client said")
	}
	c.Ctl.Send(ReplyWait, &Message{Magic: ControlMagic, Version: ControlVersion, Type: MsgError, Error: toPeer(err)})
	return err
}

func outOfTurn(m *Message, want messageType) error {
	return fmt.Errorf("%w: got %q, want %q", ErrLine, m.Type, want)
}

// checkGreeting tells whether the first line is a plan of this version.
func checkGreeting(m *Message) error {
	switch {
	case m.Magic != ControlMagic:
		return PeerError("read plan", ErrLine, "a client of the same version")
	case m.Version != ControlVersion:
		return PeerError("read plan", fmt.Errorf("the client speaks control version %d, this server %d", m.Version, ControlVersion), "the same rdmaperf version on both sides")
	case m.Type != MsgPlan || m.Plan == nil:
		return PeerError("read plan", outOfTurn(m, MsgPlan), "")
	}
	return m.Plan.Validate()
}

// accept opens the plan's transport and checks what it can do.
func (c *ServedClient) accept(p *Plan) error {
	c.Plan = p.WithDefaults()
	tr, err := c.Server.Open(c.Plan.Transport)
	if err != nil {
		return err
	}
	a := &acceptance{Stack: tr.Name(), Caps: tr.Caps(), MaxWindow: c.Server.maxWindow()}
	if err := Check(&c.Plan, tr.Name(), a.Caps); err != nil {
		tr.Close()
		return err
	}
	if c.Server.Environment != nil && c.known() {
		e := c.Server.Environment()
		a.Environment = &e
	}
	c.Tr = tr
	if c.Server.Counters != nil {
		c.Counters = c.Server.Counters(tr)
	}
	if err := c.Ctl.Send(ReplyWait, &Message{Magic: ControlMagic, Version: ControlVersion, Type: msgAccept, Accept: a}); err != nil {
		tr.Close()
		return err
	}
	return nil
}

// point serves one point: sessions, phases, end.
func (c *ServedClient) point(ctx context.Context, sh *Shape) error {
	if err := sh.Admit(c.Server.Workloads); err != nil {
		return err
	}
	if err := checkWindow(sh, c.Server.maxWindow()); err != nil {
		return err
	}
	release, err := c.Server.Reserve(sh)
	if err != nil {
		return err
	}
	defer release()
	serve := sh.work().Serve
	if serve == nil {
		serve = (*ServedClient).sessionPoint
	}
	if err := serve(c, ctx, sh); err != nil {
		return err
	}
	return c.Ctl.Send(ReplyWait, &Message{Type: MsgEnded})
}

// sessionPoint serves a point whose workers drive sessions.
func (c *ServedClient) sessionPoint(ctx context.Context, sh *Shape) error {
	group, err := c.gather(ctx, sh)
	if err != nil {
		return err
	}
	err = c.Phases(ctx, func(ph *PhaseStart) error { return c.phase(ctx, group, ph) })
	if e := group.Close(); e != nil {
		c.Log.Debug("close sessions", "err", e) // a client that died leaves them broken
	}
	return err
}

// checkWindow holds the memory of a point against a limit.
func checkWindow(sh *Shape, limit int64) error {
	if need := sh.TotalWindow(); need > limit {
		hint := cmp.Or(sh.work().Hint, "a smaller --size or fewer --qps")
		if stored := int64(sh.stored()); stored > 0 && need-stored <= limit {
			return &reports.ExitError{Code: reports.ExitUsage, Operation: "check " + sh.String(),
				Err:  fmt.Errorf("a store of %d bytes is above the server's limit of %d", stored, limit),
				Hint: "fewer --records, or serve with a larger --max-window"}
		}
		return &reports.ExitError{Code: reports.ExitUsage, Operation: "check " + sh.String(),
			Err:  fmt.Errorf("windows of %d bytes for %d QPs are above the limit of %d", need, sh.QPs, limit),
			Hint: hint}
	}
	return nil
}

const TokenLen = 8

// gather listens for the point's sessions and takes them.
func (c *ServedClient) gather(ctx context.Context, sh *Shape) (*Group, error) {
	tr, err := SessionsOf(c.Tr)
	if err != nil {
		return nil, err
	}
	setup, cancel := context.WithTimeout(c.Ctl.Alive, SetupTimeout(sh))
	defer cancel()
	token := make([]byte, TokenLen)
	rand.Read(token) // never fails (crypto/rand)
	cfg := sh.Config()
	if len(c.Server.Token) > 0 {
		cfg.Secret = SessionToken(c.Server.Token, token)
	}
	l, err := tr.Listen(setup, net.JoinHostPort(c.Host, "0"), cfg)
	if err != nil {
		return nil, TransportError("listen for sessions", err)
	}
	defer l.Close()
	if err := c.Ctl.Send(ReplyWait, &Message{Type: MsgListening, Listening: &Listening{Addr: l.Addr(), Elsewhere: Elsewhere(c.Host, l.Addr()), Token: token}}); err != nil {
		return nil, err
	}
	sessions := make([]transports.Session, sh.QPs)
	for taken := 0; taken < sh.QPs; {
		s, hello, err := l.Accept(setup)
		if err != nil {
			closeAll(sessions)
			return nil, TransportError("accept sessions", err)
		}
		i, ok := helloIndex(hello, SessionToken(c.Server.Token, token), sessions)
		if !ok {
			s.Close()
			continue
		}
		sessions[i] = s
		taken++
	}
	group, err := NewGroup(sh, SideServer, sessions, c.Plan.ServerCPU, c.Tr.Caps())
	if err != nil {
		closeAll(sessions)
		return nil, err
	}
	if err := c.Ctl.Send(ReplyWait, &Message{Type: MsgConnected}); err != nil {
		group.Close()
		return nil, err
	}
	return group, nil
}

func closeAll(sessions []transports.Session) {
	for _, s := range sessions {
		if s != nil {
			s.Close()
		}
	}
}

// helloIndex tells which QP a new session is; ok is false for a stranger.
func helloIndex(hello, token []byte, taken []transports.Session) (int, bool) {
	if len(hello) < TokenLen+4 || subtle.ConstantTimeCompare(hello[:TokenLen], token) != 1 {
		return 0, false
	}
	i := binary.BigEndian.Uint32(hello[TokenLen:])
	if int64(i) >= int64(len(taken)) || taken[i] != nil {
		return 0, false
	}
	return int(i), true
}
