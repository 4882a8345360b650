package bench

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"syscall"
	"time"

	"github.com/rdmaperf/rdmaperf/reports"
	"github.com/rdmaperf/rdmaperf/transports"
)

// Client drives one server through one plan. It is not safe for concurrent use.
// After an error it is of no further use but to be closed.
type Client struct {
	plan   Plan
	tr     transports.Transport
	ctl    *control
	host   string // where data sessions are dialled; empty: as the server says
	server acceptance
	broken bool
	raw    *rawStore // nil: samples are not kept

	// Median time of an iteration of the parameter server workload that only communicates.
	communication map[communicationKey]float64

	counters func() []reports.DeviceCounters // nil: none
}

// retryEvery is how often a refused connection is tried again: client and server
// are often started together.
const retryEvery = 50 * time.Millisecond

// Connect dials a server's control port and sends it the plan. The transport
// stays the caller's. A port that refuses is tried again until the plan's timeout.
func Connect(ctx context.Context, addr string, tr transports.Transport, plan Plan) (*Client, error) {
	plan = plan.withDefaults()
	if err := plan.Validate(); err != nil {
		return nil, err
	}
	if err := plan.checkModels(); err != nil {
		return nil, err
	}
	if err := Check(&plan, tr.Name(), tr.Caps()); err != nil {
		return nil, err
	}
	dctx, cancel := context.WithTimeout(ctx, plan.Timeout)
	defer cancel()
	var refused error
	for {
		conn, err := new(net.Dialer).DialContext(dctx, "tcp", addr)
		if err == nil {
			return ConnectConn(ctx, conn, tr, plan)
		}
		if errors.Is(err, syscall.ECONNREFUSED) {
			refused = err
			select {
			case <-time.After(retryEvery):
				if dctx.Err() == nil {
					continue
				}
			case <-dctx.Done():
			}
		}
		if ctx.Err() != nil {
			return nil, interrupted()
		}
		if refused != nil && dctx.Err() != nil {
			err = refused // tells more than that the last try came too late
		}
		return nil, peerError("connect "+addr, dialCause(err), "rdmaperf serve on the other host, --port, or a longer --timeout")
	}
}

// dialCause shortens what net.OpError repeats.
func dialCause(err error) error {
	if errors.Is(err, context.DeadlineExceeded) || errors.Is(err, os.ErrDeadlineExceeded) {
		return errSilent
	}
	var op *net.OpError
	if errors.As(err, &op) {
		var sys *os.SyscallError
		if errors.As(op.Err, &sys) {
			return sys.Err
		}
		return op.Err
	}
	return err
}

// ConnectConn sends the plan over an established connection, which it owns then.
func ConnectConn(ctx context.Context, conn net.Conn, tr transports.Transport, plan Plan) (*Client, error) {
	plan = plan.withDefaults()
	c := &Client{plan: plan, tr: tr}
	if a, ok := conn.RemoteAddr().(*net.TCPAddr); ok && !tr.Caps().InProcess {
		c.host = (&net.IPAddr{IP: a.IP, Zone: a.Zone}).String()
	}
	c.ctl = newControl(context.WithoutCancel(ctx), conn, "server "+conn.RemoteAddr().String())
	if err := c.greet(ctx); err != nil {
		c.Close()
		return nil, err
	}
	return c, nil
}

func (c *Client) greet(ctx context.Context) error {
	if err := c.plan.checkModels(); err != nil {
		return err
	}
	err := c.ctl.send(c.plan.Timeout, &message{Magic: controlMagic, Version: ControlVersion, Type: msgPlan, Plan: &c.plan})
	var m *message
	if err == nil {
		m, err = c.ctl.receive(ctx, c.plan.Timeout)
	}
	switch {
	case ctx.Err() != nil:
		return interrupted()
	case errors.Is(err, errLine):
		return peerError("greet "+c.ctl.peer, err, "the port of rdmaperf serve")
	case err != nil:
		return peerError("greet "+c.ctl.peer, lossCause(err), "rdmaperf serve on that port")
	case m.Magic != controlMagic:
		return peerError("greet "+c.ctl.peer, errLine, "the port of rdmaperf serve")
	case m.Version != ControlVersion:
		return peerError("greet "+c.ctl.peer, fmt.Errorf("it speaks control version %d, this client %d", m.Version, ControlVersion), "the same rdmaperf version on both sides")
	case m.Type == msgError && m.Error != nil:
		return m.Error.asError(c.ctl.peer)
	case m.Type != msgAccept || m.Accept == nil:
		return peerError("greet "+c.ctl.peer, outOfTurn(m, msgAccept), "")
	}
	c.server = *m.Accept
	if err := Check(&c.plan, c.server.Stack+" (server)", c.server.Caps); err != nil {
		return err
	}
	// The whole plan is looked at before the first point runs.
	for _, pt := range c.plan.Points {
		if _, err := c.shape(pt); err != nil {
			return err
		}
	}
	return nil
}

// shape makes the shape of a point that both sides can carry.
func (c *Client) shape(pt Point) (*Shape, error) {
	sh, err := newShape(&c.plan, pt, c.tr.Caps(), c.server.Caps)
	if err != nil {
		return nil, err
	}
	return sh, checkWindow(sh, c.server.MaxWindow)
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
	if c.raw != nil {
		c.raw.free()
	}
	return c.ctl.close()
}

// Run measures one point of the plan. When it ends early, by ctx or by a failure,
// the result holds what was measured until then (Operations > 0) beside the error.
func (c *Client) Run(ctx context.Context, index int) (reports.Result, error) {
	pt := c.plan.Points[index]
	sh, err := c.shape(pt)
	if err != nil {
		return reports.Result{}, err
	}
	m := &measurement{c: c, sh: sh}
	if c.broken {
		return m.result(), failed(pt.String(), errors.New("the client failed before"))
	}
	err = m.run(ctx)
	if err != nil {
		c.broken = true
		if ctx.Err() != nil && reports.Code(err) != reports.ExitCorruption {
			err = interrupted()
		}
	}
	return m.result(), err
}

// ask sends one line and waits for the answer of the given type.
func (c *Client) ask(ctx context.Context, sh *Shape, m *message, want messageType) (*message, error) {
	operation := sh.Point.String()
	if err := c.ctl.send(c.plan.Timeout, m); err != nil {
		return nil, peerError(operation, lossCause(err), "the server's log")
	}
	return c.hear(ctx, sh, want)
}

func (c *Client) hear(ctx context.Context, sh *Shape, want messageType) (*message, error) {
	operation := sh.Point.String()
	m, err := c.ctl.receive(ctx, patience(sh))
	switch {
	case err != nil && ctx.Err() != nil:
		return nil, interrupted()
	case err != nil:
		return nil, peerError(operation, lossCause(err), "the server's log")
	case m.Type == msgError && m.Error != nil:
		return nil, m.Error.asError(c.ctl.peer)
	case m.Type != want:
		return nil, peerError(operation, outOfTurn(m, want), "")
	}
	return m, nil
}

// dataAddr is where the server listens for the sessions of a point.
func (c *Client) dataAddr(sh *Shape, m *message) (string, error) {
	if m.Listening == nil {
		return "", peerError(sh.Point.String(), outOfTurn(m, msgListening), "")
	}
	addr := m.Listening.Addr
	if c.host == "" || m.Listening.Elsewhere {
		return addr, nil
	}
	// The server may know itself by another address, behind a translation.
	_, port, err := net.SplitHostPort(addr)
	if err != nil {
		return "", peerError(sh.Point.String(), fmt.Errorf("data address %q: %w", addr, err), "")
	}
	return net.JoinHostPort(c.host, port), nil
}

// gather opens the sessions of a point.
func (c *Client) gather(ctx context.Context, sh *Shape) (*crew, error) {
	m, err := c.ask(ctx, sh, &message{Type: msgPoint, Shape: sh}, msgListening)
	if err != nil {
		return nil, err
	}
	addr, err := c.dataAddr(sh, m)
	if err != nil {
		return nil, err
	}
	setup, cancel := context.WithTimeout(ctx, patience(sh))
	defer cancel()
	unhook := context.AfterFunc(c.ctl.alive, cancel)
	defer unhook()
	sessions := make([]transports.Session, 0, sh.QPs)
	for i := range sh.QPs {
		hello := binary.BigEndian.AppendUint32(append([]byte(nil), m.Listening.Token...), uint32(i))
		s, err := c.tr.Dial(setup, addr, hello, sh.config())
		if err != nil {
			closeAll(sessions)
			if ctx.Err() != nil {
				return nil, interrupted()
			}
			return nil, c.explain(transportError("connect session", err))
		}
		sessions = append(sessions, s)
	}
	crew, err := newCrew(sh, sideClient, sessions, c.plan.ClientCPU, c.tr.Caps())
	if err != nil {
		closeAll(sessions)
		return nil, err
	}
	if _, err := c.hear(ctx, sh, msgConnected); err != nil {
		crew.close()
		return nil, err
	}
	return crew, nil
}

// explainWait is how long the server's own account of a failure is waited for.
const explainWait = 250 * time.Millisecond

// explain prefers the server's account to that of a client which only knows that
// its session broke. What the client saw itself, such as a changed byte or an
// operation that was refused, stands.
func (c *Client) explain(err error) error {
	if reports.Code(err) != reports.ExitPeer {
		return err
	}
	m, e := c.ctl.receive(context.Background(), explainWait)
	switch {
	case e == nil && m.Type == msgError && m.Error != nil:
		return m.Error.asError(c.ctl.peer)
	case e == nil || errors.Is(e, errSilent):
		return err
	}
	var exit *reports.ExitError
	operation := "run"
	if errors.As(err, &exit) {
		operation = exit.Operation
	}
	return peerError(operation, fmt.Errorf("%s: %w", c.ctl.peer, lossCause(e)), "the server's log, then the same command again")
}
