// Package engine runs the points of a [Plan] between a client and a server: the control channel, phases, workers and
// their threads, clocks and pacing. What a point does is its workload's, a [Runner], whose two sides talk through a
// [Link] and make the same [Shape] of the point.
//
// A worker is one goroutine locked to its thread; it owns its sessions, recorder and buffers during a phase. Loops
// allocate nothing. The garbage collector is off while a window is open; counters and the usage of the process are read
// around it, on both sides. A window of several workers is from the first that begins to the last that ends.
package engine

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"syscall"
	"time"

	"github.com/rdmaperf/rdmaperf/reports"
	"github.com/rdmaperf/rdmaperf/transports"
)

// Client drives one server through one plan. It is not safe for concurrent use. After an error it can only be closed.
type Client struct {
	Plan   Plan
	Tr     transports.Stack
	Ctl    *Control
	host   string // where data sessions are dialled; empty: as the server says
	server acceptance
	broken bool
	kept   map[string]float64
	Raw    *RawStore // nil: samples are not kept
	// Counters reads device counters before and after the measured phase of each point; nil: none.
	Counters func() []reports.DeviceCounters
	Live     *Live // follows the windows of the points to come; nil: nobody watches
	// Turn takes the results of a slice and returns when the next is to be measured, or false at the end. nil: one
	// slice.
	Turn  func([]reports.Result) bool
	Slice time.Duration // how long further slices of the point are, where that is not the plan's Duration
	// For a workload with a run of its own: further stacks and servers, and who looks at its progress. Each may be nil.
	Open     Opener
	More     func(ctx context.Context) (addr string, stop func() error, err error)
	Progress func(done, total int64)
}

// Connect dials a server's control port and sends it the plan, again and again until the plan's timeout while the port
// refuses. The transport stays the caller's.
func Connect(ctx context.Context, addr string, tr transports.Stack, plan Plan) (*Client, error) {
	plan = plan.WithDefaults()
	if err := plan.Validate(); err != nil {
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

// ConnectConn sends the plan over an established connection, which it owns then.
func ConnectConn(ctx context.Context, conn net.Conn, tr transports.Stack, plan Plan) (*Client, error) {
	plan = plan.WithDefaults()
	plan.Run = cmp.Or(plan.Run, thisRun)
	c := &Client{Plan: plan, Tr: tr, kept: map[string]float64{}}
	if a, ok := conn.RemoteAddr().(*net.TCPAddr); ok && !tr.Caps().InProcess {
		c.host = (&net.IPAddr{IP: a.IP, Zone: a.Zone}).String()
	}
	c.Ctl = newControl(context.WithoutCancel(ctx), conn, "server "+conn.RemoteAddr().String(), MaxLine)
	if err := c.greet(ctx); err != nil {
		c.Close()
		return nil, err
	}
	return c, nil
}

func (c *Client) greet(ctx context.Context) error {
	m, err := c.ask(ctx, &Message{Magic: ControlMagic, Version: ControlVersion, Type: MsgHello})
	if err == nil && m.Type != msgChallenge {
		c.Plan.Token = nil // it wants none, so that data connections have none
	} else if err == nil {
		if m, err = c.answer(ctx, m); reports.Code(err) == reports.ExitPeer {
			return err
		}
	}
	if err := c.understood(ctx, m, err, MsgWelcome); err != nil {
		return err
	}
	caps := c.Tr.Caps()
	m, err = c.ask(ctx, &Message{Magic: ControlMagic, Version: ControlVersion, Type: MsgPlan, Plan: &c.Plan, Caps: &caps})
	if err == nil {
		m, err = c.waits(ctx, m)
	}
	if err := c.understood(ctx, m, err, msgAccept); err != nil {
		return err
	}
	if m.Accept == nil {
		return PeerError("greet "+c.Ctl.peer, outOfTurn(m, msgAccept), "")
	}
	c.server = *m.Accept
	if err := Check(&c.Plan, c.server.Stack+" (server)", c.server.Caps); err != nil {
		return err
	}
	// The shape of each point is checked again when it runs.
	for _, pt := range c.Plan.Points {
		if err := checkWindow(pt, c.Plan.Qps(pt), c.Plan.leastWindow(pt), c.server.MaxWindow); err != nil {
			return err
		}
	}
	return nil
}

func (c *Client) ask(ctx context.Context, m *Message) (*Message, error) {
	err := c.Ctl.Send(c.Plan.Timeout, m)
	if err == nil {
		return c.Ctl.receive(ctx, c.Plan.Timeout)
	}
	if said, e := c.Ctl.receive(ctx, explainWait); !errors.Is(e, errSilent) {
		return said, e // a server that does not want it says why, and closes
	}
	return nil, err
}

func (c *Client) understood(ctx context.Context, m *Message, err error, want messageType) error {
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
		return PeerError("greet "+c.Ctl.peer, fmt.Errorf("it speaks control version %d, this client %d", m.Version,
			ControlVersion), "the same rdmaperf version on both sides")
	case m.Type == MsgError && m.Error != nil:
		return m.Error.AsError(c.Ctl.peer)
	case m.Type != want:
		return PeerError("greet "+c.Ctl.peer, outOfTurn(m, want), "")
	}
	return nil
}

// abilities are those of both stacks; alone, those of the client's.
func (c *Client) abilities() Abilities {
	if c.Ctl == nil {
		return able(c.Tr.Caps(), c.Tr.Caps())
	}
	return able(c.Tr.Caps(), c.server.Caps)
}

func lossCause(err error) error {
	if errors.Is(err, io.EOF) || errors.Is(err, syscall.ECONNRESET) || errors.Is(err, syscall.EPIPE) ||
		errors.Is(err, io.ErrClosedPipe) {
		return errors.New("the server closed the connection")
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

const explainWait = 250 * time.Millisecond

// Explain prefers the server's account of a session that broke. What the client saw itself, such as a changed byte,
// stands.
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
	operation := "run"
	if exit, ok := errors.AsType[*reports.ExitError](err); ok {
		operation = exit.Operation
	}
	return PeerError(operation, fmt.Errorf("%s: %w", c.Ctl.peer, lossCause(e)),
		"the server's log, then the same command again")
}
