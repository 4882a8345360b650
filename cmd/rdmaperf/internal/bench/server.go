package bench

import (
	"context"
	"crypto/rand"
	"crypto/subtle"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"github.com/rdmaperf/rdmaperf/reports"
	"github.com/rdmaperf/rdmaperf/transports"
)

// Server limits, used where a Server leaves them 0. All arbitrary: they keep one
// machine usable while strangers talk to it.
const (
	DefaultMaxClients = 16
	DefaultMaxWindow  = 4 << 30 // bytes

	firstLineWait = 5 * time.Second // for the plan of a new connection
	replyWait     = 5 * time.Second // for a line to leave
	maxRefusals   = 64              // busy answers under way
	// idleWait bounds how long a client may stay silent between points, and in a
	// phase without a duration; a dead host is noticed much earlier by keep-alive.
	idleWait = time.Hour
)

// Server answers clients: it opens the transport that a plan names and plays the
// target. It needs no options of the test.
type Server struct {
	Open        func(spec string) (transports.Transport, error)
	Environment func() reports.Environment // sent to clients; nil: none
	Log         *slog.Logger               // nil: silent
	// Counters gives a reader of the device counters of a stack by its full name;
	// nil, or a nil reader: none.
	Counters   func(stack string) func() []reports.DeviceCounters
	MaxClients int   // at once; more get a clear answer
	MaxWindow  int64 // bytes of windows per client

	clients atomic.Int32
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
	connections := make(chan struct{}, s.maxClients()+maxRefusals)
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
		select {
		case connections <- struct{}{}:
		default:
			conn.Close()
			continue
		}
		sessions.Add(1)
		go func() {
			defer sessions.Done()
			defer func() { <-connections }()
			s.ServeConn(ctx, conn)
		}()
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
	c := &clientSession{server: s, ctl: newControl(ctx, conn, conn.RemoteAddr().String()), host: hostOf(conn.LocalAddr())}
	defer c.ctl.close()
	c.log = s.log().With("client", c.ctl.peer)
	if err := c.serve(ctx); err != nil && ctx.Err() == nil {
		c.log.Warn("client ended", "err", err)
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

// clientSession is one client being served.
type clientSession struct {
	server *Server
	ctl    *control
	log    *slog.Logger
	host   string
	plan   Plan
	tr     transports.Transport

	counters func() []reports.DeviceCounters // nil: none
}

// serve is the dialogue. Its error was told to the client, if it was there to hear.
func (c *clientSession) serve(ctx context.Context) error {
	m, err := c.ctl.receive(ctx, firstLineWait)
	if err != nil {
		if errors.Is(err, io.EOF) {
			return nil // a port check
		}
		return c.refuse(ctx, peerError("read plan", err, "a client of the same version"))
	}
	if err := checkGreeting(m); err != nil {
		return c.refuse(ctx, err)
	}
	// Only a client that speaks the protocol counts: a port check is none.
	defer c.server.clients.Add(-1)
	if c.server.clients.Add(1) > int32(c.server.maxClients()) {
		return c.refuse(ctx, peerError("accept client", fmt.Errorf("busy: %d clients are being served", c.server.maxClients()), "again later, or serve --max-clients"))
	}
	if err := c.accept(m.Plan); err != nil {
		return c.refuse(ctx, err)
	}
	defer c.tr.Close()
	c.log.Info("plan accepted", "transport", c.tr.Name(), "points", len(c.plan.Points))
	for {
		m, err := c.ctl.receive(ctx, c.plan.Duration+idleWait)
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err == nil && (m.Type != msgPoint || m.Shape == nil) {
			err = outOfTurn(m, msgPoint)
		}
		if err != nil {
			return c.refuse(ctx, peerError("wait for a point", err, ""))
		}
		if err := c.point(ctx, m.Shape); err != nil {
			return c.refuse(ctx, err)
		}
	}
}

// refuse tells the client why this is the end. ctx ends with the server; what waited for
// the client was also cut short where that one left.
func (c *clientSession) refuse(ctx context.Context, err error) error {
	switch {
	case !errors.Is(err, context.Canceled):
	case ctx.Err() != nil:
		err = peerError("serve", errors.New("the server is shutting down"), "")
	default:
		err = peerError("serve", errors.New("the client left"), "what the client said")
	}
	c.ctl.send(replyWait, &message{Magic: controlMagic, Version: ControlVersion, Type: msgError, Error: toPeer(err)})
	return err
}

func outOfTurn(m *message, want messageType) error {
	return fmt.Errorf("%w: got %q, want %q", errLine, m.Type, want)
}

// checkGreeting tells whether the first line is a plan of this version.
func checkGreeting(m *message) error {
	switch {
	case m.Magic != controlMagic:
		return peerError("read plan", errLine, "a client of the same version")
	case m.Version != ControlVersion:
		return peerError("read plan", fmt.Errorf("the client speaks control version %d, this server %d", m.Version, ControlVersion), "the same rdmaperf version on both sides")
	case m.Type != msgPlan || m.Plan == nil:
		return peerError("read plan", outOfTurn(m, msgPlan), "")
	}
	return m.Plan.Validate()
}

// accept opens the plan's transport and checks what it can do.
func (c *clientSession) accept(p *Plan) error {
	c.plan = p.withDefaults()
	tr, err := c.server.Open(c.plan.Transport)
	if err != nil {
		return err
	}
	a := &acceptance{Stack: tr.Name(), Caps: tr.Caps(), MaxWindow: c.server.maxWindow()}
	if err := Check(&c.plan, tr.Name(), a.Caps); err != nil {
		tr.Close()
		return err
	}
	if c.server.Environment != nil {
		e := c.server.Environment()
		a.Environment = &e
	}
	c.tr = tr
	if c.server.Counters != nil {
		c.counters = c.server.Counters(tr.Name())
	}
	if err := c.ctl.send(replyWait, &message{Magic: controlMagic, Version: ControlVersion, Type: msgAccept, Accept: a}); err != nil {
		tr.Close()
		return err
	}
	return nil
}

// point serves one point: sessions, phases, end.
func (c *clientSession) point(ctx context.Context, sh *Shape) error {
	if err := sh.validate(); err != nil {
		return err
	}
	if err := checkWindow(sh, c.server.maxWindow()); err != nil {
		return err
	}
	if sh.Workload == WorkloadConnect {
		if err := c.connectPoint(ctx, sh); err != nil {
			return err
		}
		return c.ctl.send(replyWait, &message{Type: msgEnded})
	}
	if sh.calls() != nil {
		if err := c.callPoint(ctx, sh); err != nil {
			return err
		}
		return c.ctl.send(replyWait, &message{Type: msgEnded})
	}
	crew, err := c.gather(ctx, sh)
	if err != nil {
		return err
	}
	err = c.phases(ctx, func(ph *phaseStart) error { return c.phase(ctx, crew, ph) })
	if e := crew.close(); e != nil {
		c.log.Debug("close sessions", "err", e) // a client that died leaves them broken
	}
	if err != nil {
		return err
	}
	return c.ctl.send(replyWait, &message{Type: msgEnded})
}

// checkWindow holds the memory of a point against a limit.
func checkWindow(sh *Shape, limit int64) error {
	if need := sh.totalWindow(); need > limit {
		hint := "a smaller --size or fewer --qps"
		if sh.Workload == WorkloadParamServer {
			hint = "a smaller --tensor-bytes"
		}
		if stored := int64(sh.storeBytes()); stored > 0 && need-stored <= limit {
			return &reports.ExitError{Code: reports.ExitUsage, Operation: "check " + sh.Point.String(),
				Err:  fmt.Errorf("a store of %d bytes is above the server's limit of %d", stored, limit),
				Hint: "fewer --records, or serve with a larger --max-window"}
		}
		return &reports.ExitError{Code: reports.ExitUsage, Operation: "check " + sh.Point.String(),
			Err:  fmt.Errorf("windows of %d bytes for %d QPs are above the limit of %d", need, sh.QPs, limit),
			Hint: hint}
	}
	return nil
}

const tokenLen = 8

// gather listens for the point's sessions and takes them.
func (c *clientSession) gather(ctx context.Context, sh *Shape) (*crew, error) {
	setup, cancel := context.WithTimeout(c.ctl.alive, patience(sh))
	defer cancel()
	l, err := c.tr.Listen(setup, net.JoinHostPort(c.host, "0"), sh.config())
	if err != nil {
		return nil, transportError("listen for sessions", err)
	}
	defer l.Close()
	token := make([]byte, tokenLen)
	rand.Read(token) // never fails (crypto/rand)
	if err := c.ctl.send(replyWait, &message{Type: msgListening, Listening: &listening{Addr: l.Addr(), Elsewhere: elsewhere(c.host, l.Addr()), Token: token}}); err != nil {
		return nil, err
	}
	sessions := make([]transports.Session, sh.QPs)
	for taken := 0; taken < sh.QPs; {
		s, hello, err := l.Accept(setup)
		if err != nil {
			closeAll(sessions)
			return nil, transportError("accept sessions", err)
		}
		i, ok := helloIndex(hello, token, sessions)
		if !ok {
			s.Close()
			continue
		}
		sessions[i] = s
		taken++
	}
	crew, err := newCrew(sh, sideServer, sessions, c.plan.ServerCPU, c.tr.Caps())
	if err != nil {
		closeAll(sessions)
		return nil, err
	}
	if err := c.ctl.send(replyWait, &message{Type: msgConnected}); err != nil {
		crew.close()
		return nil, err
	}
	return crew, nil
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
	if len(hello) < tokenLen+4 || subtle.ConstantTimeCompare(hello[:tokenLen], token) != 1 {
		return 0, false
	}
	i := binary.BigEndian.Uint32(hello[tokenLen:])
	if int64(i) >= int64(len(taken)) || taken[i] != nil {
		return 0, false
	}
	return int(i), true
}

// phases plays the target until the client ends the point.
func (c *clientSession) phases(ctx context.Context, one func(*phaseStart) error) error {
	for {
		m, err := c.ctl.receive(ctx, c.plan.Duration+idleWait)
		switch {
		case err != nil:
			return peerError("wait for a phase", err, "")
		case m.Type == msgEnd:
			return nil
		case m.Type != msgPhase || m.Phase == nil:
			return peerError("wait for a phase", outOfTurn(m, msgPhase), "")
		}
		if err := one(m.Phase); err != nil {
			return err
		}
	}
}

func (c *clientSession) phase(ctx context.Context, crew *crew, ph *phaseStart) error {
	if err := crew.prepare(ph.Generation); err != nil {
		return err
	}
	release := holdCollector()
	defer release()
	changes := countersAround(c.counters, ph.Generation)
	var lim limits
	if crew.sh.Bidirectional {
		lim.ops = max(ph.Operations, 0)
	}
	r := crew.start(lim, false)
	stop, err := c.untilStop(ctx, r)
	if err != nil {
		r.halt(stopNow)
		r.wait()
		return err
	}
	r.halt(stopSoon)
	if err := c.join(ctx, r); err != nil {
		return err
	}
	out := r.wait()
	if out.err != nil {
		return out.err
	}
	rep := &phaseReport{Operations: out.ops, CPUSeconds: out.usage.cpu.Seconds(), Collections: out.usage.collections,
		Allocations: out.usage.allocations, Pinned: crew.workers[0].pinned, Procs: runtime.GOMAXPROCS(0), Sessions: int(c.server.clients.Load()), Counters: changes()}
	if crew.sh.Bidirectional {
		rep.WindowNs, rep.Lanes = int64(out.window), crew.counts()
	}
	if stop.Check {
		if err := crew.verifyTarget(ph.Generation, stop.Lanes); err != nil {
			return err
		}
		rep.Verified = true
	}
	return c.ctl.send(replyWait, &message{Type: msgReport, Report: rep})
}

// join waits for targets that were told to stop. One that still sends needs its
// peer for the end, and a peer may be gone.
func (c *clientSession) join(ctx context.Context, r *run) error {
	limit := time.NewTimer(c.plan.Timeout)
	defer limit.Stop()
	var err error
	select {
	case <-r.done:
		return nil
	case <-c.ctl.alive.Done():
		err = peerError("end phase", errors.New("client lost"), "")
	case <-limit.C:
		err = peerError("end phase", errSilent, "")
	case <-ctx.Done():
		err = ctx.Err()
	}
	r.halt(stopNow)
	r.wait()
	return err
}

// untilStop tells the client that the targets run and waits until it has enough.
func (c *clientSession) untilStop(ctx context.Context, r *run) (*phaseStop, error) {
	if err := c.ctl.send(replyWait, &message{Type: msgReady}); err != nil {
		return nil, err
	}
	limit := time.NewTimer(c.plan.Duration + idleWait)
	defer limit.Stop()
	select {
	case m, ok := <-c.ctl.in:
		switch {
		case !ok:
			return nil, peerError("serve phase", fmt.Errorf("client lost: %w", c.ctl.err), "")
		case m.Type != msgStop || m.Stop == nil:
			return nil, peerError("serve phase", outOfTurn(m, msgStop), "")
		}
		return m.Stop, nil
	case <-r.done: // only a failure ends a target by itself
		if err := r.wait().err; err != nil {
			return nil, err
		}
		return nil, failed("serve phase", errors.New("the target ended by itself"))
	case <-limit.C:
		return nil, peerError("serve phase", errSilent, "")
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}
