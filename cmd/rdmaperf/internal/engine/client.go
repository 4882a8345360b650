package engine

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"syscall"
	"time"

	"github.com/rdmaperf/rdmaperf/reports"
	"github.com/rdmaperf/rdmaperf/transports"
)

// Client drives one server through one plan. It is not safe for concurrent use.
// After an error it is of no further use but to be closed.
type Client struct {
	Plan   Plan
	Tr     transports.Stack
	Ctl    *Control
	host   string // where data sessions are dialled; empty: as the server says
	server acceptance
	broken bool
	Raw    *RawStore // nil: samples are not kept

	// Remembered is what workloads keep from point to point, by keys of their own types.
	Remembered map[any]any

	Counters func() []reports.DeviceCounters // nil: none
	Live     *Live                           // nil: nobody watches

	// What a workload with a run of its own has beside: further stacks, further servers
	// (at an address, with what ends each; nil where nothing is to be ended), and somebody
	// who looks at how far it is. Set before Run; each may be missing.
	Open     Opener
	More     func(ctx context.Context) (addr string, stop func() error, err error)
	Progress func(done, total int64)
}

// Connect dials a server's control port and sends it the plan. The transport
// stays the caller's. A port that refuses is tried again until the plan's timeout.
func Connect(ctx context.Context, addr string, tr transports.Stack, plan Plan) (*Client, error) {
	plan = plan.WithDefaults()
	if err := plan.Validate(); err != nil {
		return nil, err
	}
	if err := plan.checkKnown(); err != nil {
		return nil, err
	}
	if err := Check(&plan, tr.Name(), tr.Caps()); err != nil {
		return nil, err
	}
	conn, err := dialUntil(ctx, plan.Timeout, addr, new(net.Dialer).DialContext)
	if err != nil {
		return nil, err
	}
	if conn, err = plan.secure(ctx, conn, addr); err != nil {
		return nil, err
	}
	return ConnectConn(ctx, conn, tr, plan)
}

// checkKnown tells whether the client has what its points name.
func (p *Plan) checkKnown() error {
	for _, pt := range p.Points {
		w := p.Workloads.Find(pt.Workload)
		if w == nil || w.Known == nil {
			continue
		}
		if err := w.Known(p, pt); err != nil {
			return &reports.ExitError{Code: reports.ExitUsage, Operation: "check plan", Err: err}
		}
	}
	return nil
}

// ConnectConn sends the plan over an established connection, which it owns then.
func ConnectConn(ctx context.Context, conn net.Conn, tr transports.Stack, plan Plan) (*Client, error) {
	plan = plan.WithDefaults()
	c := &Client{Plan: plan, Tr: tr, Remembered: map[any]any{}}
	if a, ok := conn.RemoteAddr().(*net.TCPAddr); ok && !tr.Caps().InProcess {
		c.host = (&net.IPAddr{IP: a.IP, Zone: a.Zone}).String()
	}
	c.Ctl = newControl(context.WithoutCancel(ctx), conn, "server "+conn.RemoteAddr().String())
	if err := c.greet(ctx); err != nil {
		c.Close()
		return nil, err
	}
	return c, nil
}

func (c *Client) greet(ctx context.Context) error {
	if err := c.Plan.checkKnown(); err != nil {
		return err
	}
	err := c.Ctl.Send(c.Plan.Timeout, &Message{Magic: ControlMagic, Version: ControlVersion, Type: MsgPlan, Plan: &c.Plan})
	var m *Message
	if err == nil {
		m, err = c.Ctl.receive(ctx, c.Plan.Timeout)
	} else if said, e := c.Ctl.receive(ctx, explainWait); !errors.Is(e, errSilent) {
		m, err = said, e // a server that does not want the plan says why, and closes
	}
	if err == nil && m.Type != msgChallenge {
		c.Plan.Token = nil // it wants none, so that data connections have none
	} else if err == nil {
		if m, err = c.answer(ctx, m); reports.Code(err) == reports.ExitPeer {
			return err
		}
	}
	switch {
	case ctx.Err() != nil:
		return Interrupted()
	case errors.Is(err, ErrLine):
		return PeerError("greet "+c.Ctl.peer, err, "the port of rdmaperf serve")
	case err != nil && refusedCertificate("greet "+c.Ctl.peer, err) != nil:
		return refusedCertificate("greet "+c.Ctl.peer, err)
	case err != nil:
		return PeerError("greet "+c.Ctl.peer, lossCause(err), "rdmaperf serve on that port")
	case m.Magic != ControlMagic:
		return PeerError("greet "+c.Ctl.peer, ErrLine, "the port of rdmaperf serve")
	case m.Version != ControlVersion:
		return PeerError("greet "+c.Ctl.peer, fmt.Errorf("it speaks control version %d, this client %d", m.Version, ControlVersion), "the same rdmaperf version on both sides")
	case m.Type == MsgError && m.Error != nil:
		return m.Error.AsError(c.Ctl.peer)
	case m.Type != msgAccept || m.Accept == nil:
		return PeerError("greet "+c.Ctl.peer, outOfTurn(m, msgAccept), "")
	}
	c.server = *m.Accept
	if err := Check(&c.Plan, c.server.Stack+" (server)", c.server.Caps); err != nil {
		return err
	}
	// The whole plan is looked at before the first point runs.
	for _, pt := range c.Plan.Points {
		if c.Plan.Workloads.Of(pt).Runner != nil {
			continue
		}
		if _, err := c.Shape(pt); err != nil {
			return err
		}
	}
	return nil
}

// Shape makes the shape of a point that both sides can carry.
func (c *Client) Shape(pt Point) (*Shape, error) {
	sh, err := NewShape(&c.Plan, pt, c.Tr.Caps(), c.server.Caps)
	if err != nil {
		return nil, err
	}
	if err := checkWindow(sh, c.server.MaxWindow); err != nil {
		return nil, err
	}
	return sh, checkMemory(sh.String(), c.here(sh))
}

// lossCause says what an ended connection means.
func lossCause(err error) error {
	if errors.Is(err, io.EOF) || errors.Is(err, syscall.ECONNRESET) || errors.Is(err, syscall.EPIPE) || errors.Is(err, io.ErrClosedPipe) {
		return errors.New("the server went away")
	}
	return err
}

// ServerEnvironment is what the server said about its machine, or nil.
func (c *Client) ServerEnvironment() *reports.Environment { return c.server.Environment }

// Close ends the control connection, and with it everything on the server.
func (c *Client) Close() error {
	if c.Raw != nil {
		c.Raw.Free()
	}
	if c.Ctl == nil {
		return nil
	}
	return c.Ctl.close()
}

// Run measures one point of the plan. When it ends early, by ctx or by a failure,
// a result holds what was measured until then (Operations > 0) beside the error.
func (c *Client) Run(ctx context.Context, index int) ([]reports.Result, error) {
	pt := c.Plan.Points[index]
	if w := c.Plan.Workloads.Of(pt); w.Runner != nil {
		if c.broken {
			return nil, Failed(c.Plan.Describe(pt), errors.New("the client failed before"))
		}
		results, err := c.runPoint(ctx, pt, w)
		c.broken = err != nil
		return results, err
	}
	sh, err := c.Shape(pt)
	if err != nil {
		return nil, err
	}
	m := &Measurement{C: c, Sh: sh}
	if c.broken {
		return []reports.Result{m.Result()}, Failed(sh.String(), errors.New("the client failed before"))
	}
	err = m.Run(ctx)
	if err != nil {
		c.broken = true
		if ctx.Err() != nil && reports.Code(err) != reports.ExitCorruption {
			err = Interrupted()
		}
	}
	return []reports.Result{m.Result()}, err
}

// Ask sends one line and waits for the answer of the given type.
func (c *Client) Ask(ctx context.Context, sh *Shape, m *Message, want messageType) (*Message, error) {
	operation := sh.String()
	if err := c.Ctl.Send(c.Plan.Timeout, m); err != nil {
		// Why it is gone may have arrived before.
		return nil, c.Explain(PeerError(operation, lossCause(err), "the server's log"))
	}
	return c.Hear(ctx, sh, want)
}

func (c *Client) Hear(ctx context.Context, sh *Shape, want messageType) (*Message, error) {
	operation := sh.String()
	m, err := c.Ctl.receive(ctx, SetupTimeout(sh))
	switch {
	case err != nil && ctx.Err() != nil:
		return nil, Interrupted()
	case err != nil:
		return nil, PeerError(operation, lossCause(err), "the server's log")
	case m.Type == MsgError && m.Error != nil:
		return nil, m.Error.AsError(c.Ctl.peer)
	case m.Type != want:
		return nil, PeerError(operation, outOfTurn(m, want), "")
	}
	return m, nil
}

// DataAddr is where the server listens for the sessions of a point.
func (c *Client) DataAddr(sh *Shape, m *Message) (string, error) {
	if m.Listening == nil {
		return "", PeerError(sh.String(), outOfTurn(m, MsgListening), "")
	}
	addr := m.Listening.Addr
	if c.host == "" || m.Listening.Elsewhere {
		return addr, nil
	}
	// The server may know itself by another address, behind a translation.
	_, port, err := net.SplitHostPort(addr)
	if err != nil {
		return "", PeerError(sh.String(), fmt.Errorf("data address %q: %w", addr, err), "")
	}
	return net.JoinHostPort(c.host, port), nil
}

// gather opens the sessions of a point.
func (c *Client) gather(ctx context.Context, sh *Shape) (*Group, error) {
	m, err := c.Ask(ctx, sh, &Message{Type: MsgPoint, Shape: sh}, MsgListening)
	if err != nil {
		return nil, err
	}
	addr, err := c.DataAddr(sh, m)
	if err != nil {
		return nil, err
	}
	tr, err := SessionsOf(c.Tr)
	if err != nil {
		return nil, err
	}
	setup, cancel := context.WithTimeout(ctx, SetupTimeout(sh))
	defer cancel()
	unhook := context.AfterFunc(c.Ctl.Alive, cancel)
	defer unhook()
	sessions := make([]transports.Session, 0, sh.QPs)
	for i := range sh.QPs {
		hello := binary.BigEndian.AppendUint32(append([]byte(nil), SessionToken(c.Plan.Token, m.Listening.Token)...), uint32(i))
		cfg := sh.Config()
		cfg.Secret = c.Plan.Secret(m.Listening.Token)
		s, err := tr.Dial(setup, addr, hello, cfg)
		if err != nil {
			closeAll(sessions)
			if ctx.Err() != nil {
				return nil, Interrupted()
			}
			return nil, c.Explain(TransportError("connect session", err))
		}
		sessions = append(sessions, s)
	}
	group, err := NewGroup(sh, SideClient, sessions, c.Plan.ClientCPU, c.Tr.Caps())
	if err != nil {
		closeAll(sessions)
		return nil, err
	}
	if _, err := c.Hear(ctx, sh, MsgConnected); err != nil {
		group.Close()
		return nil, err
	}
	return group, nil
}

// explainWait is how long the server's own account of a failure is waited for.
const explainWait = 250 * time.Millisecond

// Explain prefers the server's account to that of a client which only knows that
// its session broke. What the client saw itself, such as a changed byte or an
// operation that was refused, stands.
func (c *Client) Explain(err error) error {
	if reports.Code(err) != reports.ExitPeer {
		return err
	}
	m, e := c.Ctl.receive(context.Background(), explainWait)
	switch {
	case e == nil && m.Type == MsgError && m.Error != nil:
		return m.Error.AsError(c.Ctl.peer)
	case e == nil || errors.Is(e, errSilent):
		return err
	}
	var exit *reports.ExitError
	operation := "run"
	if errors.As(err, &exit) {
		operation = exit.Operation
	}
	return PeerError(operation, fmt.Errorf("%s: %w", c.Ctl.peer, lossCause(e)), "the server's log, then the same command again")
}
