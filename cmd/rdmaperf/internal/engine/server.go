package engine

import (
	"cmp"
	"context"
	"crypto/subtle"
	"crypto/tls"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/netip"
	"sync"
	"time"

	"github.com/rdmaperf/rdmaperf/internal/onepeer"
	"github.com/rdmaperf/rdmaperf/reports"
	"github.com/rdmaperf/rdmaperf/transports"
	"github.com/rdmaperf/rdmaperf/transports/rdma"
)

// Server limits, used where a Server leaves them 0: they keep one machine usable while unknown peers connect to it.
const (
	DefaultMaxClients = 64
	DefaultMaxWindow  = 4 << 30         // bytes
	FirstLineWait     = 5 * time.Second // for the plan of a new connection
	ReplyWait         = 5 * time.Second // for a line to leave
	MaxRefusals       = 64              // connections that have not said a plan
	// idleWait bounds how long a client may be silent between points, and in a phase that counts operations.
	idleWait = time.Hour
)

// Server answers clients: it opens the transport that a plan names and plays the target.
type Server struct {
	Workloads   Table // those that clients may name
	Open        func(spec string) (transports.Stack, error)
	Device      func(spec string) (rdma.Device, error) // for workloads with a run of their own; nil: none of those
	Environment func() reports.Environment             // sent to clients; nil: none
	Log         *slog.Logger                           // nil: silent
	// Counters gives a reader of what is counted below an open stack, and in it; nil, or a nil reader: nothing.
	Counters   func(tr transports.Stack) func() []reports.DeviceCounters
	MaxClients int   // at once; more get a clear answer
	MaxWindow  int64 // bytes of windows per client
	// Allow are the addresses that may come, nil for all; Token, if set, what clients must know. MaxMemory (bytes, 0:
	// MaxWindow) and MaxThreads (0: DefaultMaxThreads) bound all points together.
	Allow      []netip.Prefix
	Token      []byte
	MaxMemory  int64
	MaxThreads int
	// TLS, if set, is what the control channel is wrapped in; data connections are not.
	TLS *tls.Config
	// Results, if set, is given what a client measured at a point, and where it reached this server, by the goroutine
	// that serves the client.
	Results   func(host string, results []reports.Result)
	Exclusive bool // serves the connections of one run at a time; others wait
	Guard     guard
	turn      turn
}

type acceptance struct {
	Stack       string               `json:"stack"`
	Caps        transports.Caps      `json:"caps"`
	MaxWindow   int64                `json:"max_window_bytes"`
	Environment *reports.Environment `json:"environment,omitempty"`
	Results     bool                 `json:"results,omitempty"` // the server wants those of each point
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
		who := s.Enter(conn) // in the order of accepts, so that the longest silent one gives way
		sessions.Go(func() { s.serve(ctx, conn, who) })
	}
}

// ServeConn serves one client over an established connection and returns when it is done with it. It closes conn.
func (s *Server) ServeConn(ctx context.Context, conn net.Conn) { s.serve(ctx, conn, s.Enter(conn)) }

func (s *Server) serve(ctx context.Context, conn net.Conn, who *Visitor) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	if tcp, ok := conn.(*net.TCPConn); ok {
		// A host that vanished is noticed after ten seconds of silence.
		tcp.SetKeepAliveConfig(net.KeepAliveConfig{Enable: true, Idle: 5 * time.Second, Interval: time.Second,
			Count: 5})
	}
	defer s.leave(who)
	secured, err := s.secure(ctx, conn)
	if err != nil {
		conn.Close()
		if ctx.Err() == nil && !errors.Is(err, io.EOF) { // a port check
			s.log().Warn("client ended", "client", conn.RemoteAddr().String(), "err", short(err.Error()))
		}
		return
	}
	c := &ServedClient{Server: s, who: who, Ctl: newControl(ctx, secured, conn.RemoteAddr().String(), greetingLine),
		Host: hostOf(conn.LocalAddr())}
	defer c.Ctl.close()
	c.Log = s.log().With("client", c.Ctl.peer)
	if err := c.serve(ctx); err != nil && ctx.Err() == nil {
		c.Log.Warn("client ended", "err", short(err.Error()))
	}
}

func (s *Server) maxClients() int  { return cmp.Or(max(s.MaxClients, 0), DefaultMaxClients) }
func (s *Server) maxWindow() int64 { return cmp.Or(max(s.MaxWindow, 0), DefaultMaxWindow) }

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
	Server   *Server
	who      *Visitor
	Ctl      *Control
	Log      *slog.Logger
	Host     string
	Plan     Plan
	caps     transports.Caps // of the client's stack
	Tr       transports.Stack
	Counters func() []reports.DeviceCounters // nil: none
}

// serve is the dialogue. Its error was sent to the client, if that was still connected.
func (c *ServedClient) serve(ctx context.Context) (err error) {
	defer onepeer.Recover(func(fault error) { err = c.refuse(ctx, fault) })
	m, err := c.Ctl.receive(ctx, FirstLineWait)
	if errors.Is(err, io.EOF) {
		return nil // a port check
	}
	if err = understand(m, err, MsgHello); err == nil {
		err = c.challenge(ctx)
	}
	if err != nil {
		return c.refuse(ctx, err)
	}
	c.Ctl.most.Store(MaxLine)
	if err := c.say(&Message{Type: MsgWelcome}); err != nil {
		return err
	}
	m, err = c.Ctl.receive(ctx, FirstLineWait)
	if err = understand(m, err, MsgPlan); err == nil {
		err = c.checkPlan(m)
	}
	if err != nil {
		return c.refuse(ctx, err)
	}
	// Only a client that speaks the protocol counts: a port check is none.
	if err := c.Server.Admit(c.who); err != nil {
		return c.refuse(ctx, err)
	}
	if c.Server.Exclusive {
		release, err := c.await(m.Plan.Run, m.Plan.NoWait)
		if err != nil {
			return c.refuse(ctx, err)
		}
		defer release()
	}
	if err := c.accept(m.Plan); err != nil {
		return c.refuse(ctx, err)
	}
	defer c.Tr.Close()
	c.Log.Info("plan accepted", "transport", c.Tr.Name(), "points", len(c.Plan.Points))
	for {
		c.Server.seen(c.who, time.Now())
		m, err := c.Ctl.receive(ctx, c.Plan.Duration+idleWait)
		c.Server.seen(c.who, time.Time{})
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err == nil && m.Type == msgResults && c.Server.Results != nil {
			var results []reports.Result
			if err := json.Unmarshal(m.Data, &results); err != nil {
				return c.refuse(ctx, PeerError("read results", err, ""))
			}
			c.Server.Results(c.Host, results)
			continue
		}
		if err == nil && (m.Type != MsgPoint || m.Point == nil) {
			err = outOfTurn(m, MsgPoint)
		}
		if err != nil {
			return c.refuse(ctx, PeerError("wait for a point", err, ""))
		}
		begin := time.Now()
		if err := c.point(*m.Point); err != nil {
			return c.refuse(ctx, err)
		}
		c.Log.Info("measured", "point", m.Point.String(), "transport", c.Plan.Transport, "took",
			time.Since(begin).Round(time.Millisecond))
	}
}

// refuse sends the client why the dialogue ends. ctx ends with the server; a wait also ends where the client left.
func (c *ServedClient) refuse(ctx context.Context, err error) error {
	switch {
	case !errors.Is(err, context.Canceled):
	case ctx.Err() != nil:
		err = PeerError("serve", errors.New("the server is shutting down"), "")
	default:
		err = PeerError("serve", errors.New("the client closed the connection"), "the client's messages")
	}
	c.say(&Message{Type: MsgError, Error: toPeer(err)})
	return err
}

func (c *ServedClient) say(m *Message) error {
	m.Magic, m.Version = ControlMagic, ControlVersion
	return c.Ctl.Send(ReplyWait, m)
}

func outOfTurn(m *Message, want messageType) error {
	return fmt.Errorf("%w: got %q, want %q", ErrLine, m.Type, want)
}

func understand(m *Message, err error, want messageType) error {
	switch {
	case err != nil:
		return PeerError("read plan", err, "a client of the same version")
	case m.Magic != ControlMagic:
		return PeerError("read plan", ErrLine, "a client of the same version")
	case m.Version != ControlVersion:
		return PeerError("read plan", fmt.Errorf("the client speaks control version %d, this server %d", m.Version,
			ControlVersion), "the same rdmaperf version on both sides")
	case m.Type != want:
		return PeerError("read plan", outOfTurn(m, want), "")
	}
	return nil
}

func (c *ServedClient) checkPlan(m *Message) error {
	switch {
	case m.Plan == nil || m.Caps == nil:
		return PeerError("read plan", fmt.Errorf("%w: no plan or no capabilities", ErrLine), "")
	case m.Caps.MaxInline < 0 || m.Caps.MaxDepth < 0 || m.Caps.MaxReadDepth < 0:
		return PeerError("read plan", fmt.Errorf("%w: limits below zero", ErrLine), "")
	}
	c.caps, m.Plan.Workloads = *m.Caps, c.Server.Workloads
	return m.Plan.Validate()
}

func (c *ServedClient) accept(p *Plan) error {
	c.Plan = p.WithDefaults()
	tr, err := c.Server.Open(c.Plan.Transport)
	if err != nil {
		return err
	}
	a := &acceptance{Stack: tr.Name(), Caps: tr.Caps(), MaxWindow: c.Server.maxWindow(),
		Results: c.Server.Results != nil}
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
	if err := c.say(&Message{Type: msgAccept, Accept: a}); err != nil {
		tr.Close()
		return err
	}
	return nil
}

func checkWindow(pt Point, qps int, need, limit int64) error {
	if limit > 0 && need > limit {
		return &reports.ExitError{Code: reports.ExitUsage, Operation: "check " + pt.String(),
			Err:  fmt.Errorf("windows of %d bytes for %d QPs are above the limit of %d", need, qps, limit),
			Hint: "a smaller --size, --span or --tensor-bytes, or fewer --qp"}
	}
	return nil
}

// leastWindow is what the windows of a point have at least: a message out and one back, on each of its connections.
func (p *Plan) leastWindow(pt Point) int64 {
	if _, ok := transports.ParseKind(pt.Op); !ok {
		return 0
	}
	back := pt.Size
	if pt.Call != "" {
		back = pt.Response
	}
	return (int64(pt.Size) + int64(back)) * int64(p.Qps(pt))
}

const TokenLen = 8

// closeAll closes sessions side by side: each may wait for a peer that does not answer.
func closeAll(sessions []transports.Session) error {
	errs := make([]error, len(sessions))
	var all sync.WaitGroup
	for i, s := range sessions {
		if s != nil {
			all.Go(func() {
				if err := s.Close(); err != nil {
					errs[i] = fmt.Errorf("qp %d: close: %w", i, err)
				}
			})
		}
	}
	all.Wait()
	return errors.Join(errs...)
}

// HelloIndex returns which of n sessions a new one is; ok is false for one that does not show the token.
func HelloIndex(hello, token []byte, n int) (i int, ok bool) {
	if len(hello) < TokenLen+4 || subtle.ConstantTimeCompare(hello[:TokenLen], token) != 1 {
		return 0, false
	}
	at := binary.BigEndian.Uint32(hello[TokenLen:])
	return int(at), int64(at) < int64(n)
}
