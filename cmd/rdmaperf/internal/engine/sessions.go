package engine

import (
	"context"
	"crypto/rand"
	"encoding/binary"
	"fmt"
	"net"
	"slices"
	"time"

	"github.com/rdmaperf/rdmaperf/transports"
)

type connected struct{ Sessions int }

// NewSide makes one side of a point from its sessions.
type NewSide func(*Group) (Side, error)

// Connect opens the sessions of a point and makes the client's side. Any number of phases may be run until Close.
func (r *Run) Connect(ctx context.Context, sh *Shape, side NewSide) (*Measurement, error) {
	m, err := r.Measurement(sh)
	if err != nil {
		return nil, err
	}
	addr, at, err := m.Address(ctx)
	if err != nil {
		return nil, err
	}
	tr, err := SessionsOf(r.Stack)
	if err != nil {
		return nil, err
	}
	setup, cancel := context.WithTimeout(ctx, SetupTimeout(sh))
	defer cancel()
	sessions := make([]transports.Session, 0, sh.QPs)
	for i := range sh.QPs {
		hello := binary.BigEndian.AppendUint32(slices.Clone(SessionToken(r.Plan.Token, at.Token)), uint32(i))
		cfg := sh.Config
		cfg.Secret = m.Secret(at.Token)
		s, err := tr.Dial(setup, addr, hello, cfg)
		if err != nil {
			closeAll(sessions)
			if WasInterrupted(ctx) {
				return nil, Interrupted()
			}
			return nil, m.Explain(TransportError("connect session", err))
		}
		sessions = append(sessions, s)
	}
	if m.Group, err = NewGroup(sh, SideClient, sessions, r.Plan.ClientCPU, r.Stack.Caps(), side); err != nil {
		closeAll(sessions)
		return nil, err
	}
	if err := m.receive(ctx, new(connected)); err != nil {
		m.Group.Close()
		return nil, err
	}
	return m, nil
}

// End ends the point with the server, unless it failed with err. It returns err, or its own error where that is nil.
func (m *Measurement) End(ctx context.Context, err error) error {
	if err == nil {
		err = m.r.Peer.end(ctx, true)
		if err != nil && WasInterrupted(ctx) {
			err = Interrupted()
		}
	}
	return err
}

// Close is End, and then it closes the sessions.
func (m *Measurement) Close(ctx context.Context, err error) error {
	err = m.End(ctx, err)
	if e := m.Group.Close(); err == nil && e != nil {
		err = Failed(m.Sh.String(), e)
	}
	return err
}

// Address waits until the server listens, and returns where and what it said.
func (m *Measurement) Address(ctx context.Context) (string, *Listening, error) {
	l := new(Listening)
	if err := m.receive(ctx, l); err != nil {
		return "", nil, err
	}
	host := m.r.client.host
	if host == "" || l.Elsewhere {
		return l.Addr, l, nil
	}
	// The server may know itself by another address, behind a translation.
	_, port, err := net.SplitHostPort(l.Addr)
	if err != nil {
		return "", nil, PeerError(m.Sh.String(), fmt.Errorf("data address %q: %w", l.Addr, err), "")
	}
	return net.JoinHostPort(host, port), l, nil
}

// Sessions serves a point of sessions: it takes them, and runs phases until the client ends the point.
func (s *Serve) Sessions(ctx context.Context, sh *Shape, side NewSide) error {
	if err := s.HoldShape(sh, 0); err != nil {
		return err
	}
	group, err := s.gather(ctx, sh, side)
	if err != nil {
		return err
	}
	err = s.Phases(ctx, func(ph *PhaseStart) error { return s.phase(ctx, group, ph) })
	if e := group.Close(); e != nil {
		s.client.Log.Debug("close sessions", "err", e) // a client that died leaves them broken
	}
	return err
}

// HoldShape asks for what a point of this shape needs, and stored bytes beside its windows.
func (s *Serve) HoldShape(sh *Shape, stored int64) error {
	s.finish(sh)
	if err := checkWindow(sh.Point, sh.QPs, sh.TotalWindow(), s.MaxWindow()); err != nil {
		return err
	}
	return s.Hold(Memory{Windows: sh.TotalWindow() + stored, Queues: QueueBytes(sh.QPs, sh.Depth+sh.RecvDepth),
		Threads: sh.Threads})
}

// MaxWindow is the limit of one client's windows, bytes.
func (s *Serve) MaxWindow() int64 { return s.client.Server.maxWindow() }

// Listen listens for sessions of a point, and sends the client the address. They show token.
func (s *Serve) Listen(ctx context.Context, cfg transports.Config) (l transports.Listener, token []byte, err error) {
	tr, err := SessionsOf(s.Stack)
	if err != nil {
		return nil, nil, err
	}
	number := make([]byte, TokenLen)
	rand.Read(number) // never fails (crypto/rand)
	token = SessionToken(s.client.Server.Token, number)
	if len(s.client.Server.Token) > 0 {
		cfg.Secret = token
	}
	if l, err = tr.Listen(ctx, net.JoinHostPort(s.Host, "0"), cfg); err != nil {
		return nil, nil, TransportError("listen for sessions", err)
	}
	if err := s.Peer.Send(&Listening{Addr: l.Addr(), Elsewhere: Elsewhere(s.Host, l.Addr()),
		Token: number}); err != nil {
		l.Close()
		return nil, nil, err
	}
	return l, token, nil
}

func (s *Serve) gather(ctx context.Context, sh *Shape, side NewSide) (*Group, error) {
	setup, cancel := context.WithTimeout(ctx, SetupTimeout(sh))
	defer cancel()
	l, token, err := s.Listen(setup, sh.Config)
	if err != nil {
		return nil, err
	}
	defer l.Close()
	sessions := make([]transports.Session, sh.QPs)
	for taken := 0; taken < sh.QPs; {
		one, hello, err := l.Accept(setup)
		if err != nil {
			closeAll(sessions)
			return nil, TransportError("accept sessions", err)
		}
		i, ok := HelloIndex(hello, token, len(sessions))
		if !ok || sessions[i] != nil {
			one.Close()
			continue
		}
		sessions[i] = one
		taken++
	}
	group, err := NewGroup(sh, SideServer, sessions, s.Plan.ServerCPU, s.Stack.Caps(), side)
	if err != nil {
		closeAll(sessions)
		return nil, err
	}
	if err := s.Peer.Send(connected{sh.QPs}); err != nil {
		group.Close()
		return nil, err
	}
	return group, nil
}

// SetupTimeout is how long one side waits for the other to set up or to verify a point: the timeout, and time for the
// pages of the windows at 100 MB/s.
func SetupTimeout(sh *Shape) time.Duration {
	return sh.Timeout + time.Duration(sh.TotalWindow())*10
}

// Lane is one session of a point. It belongs to one worker; between phases to the goroutine that prepares them. Loops
// have copies in types of their own: nothing here changes but Pair.
type Lane struct {
	S     transports.Session
	Sh    *Shape
	Index int
	Mem   []byte // the local window
	Kind  transports.Kind
	Flags transports.OpFlags
	Pair  [2]transports.Op // operations under construction
}

// NewLane takes a session whose window has the shape's size.
func NewLane(s transports.Session, sh *Shape, index int) *Lane {
	return &Lane{S: s, Sh: sh, Index: index, Mem: s.Local(), Kind: sh.Kind(), Flags: sh.Flags()}
}

// ClearSlots empties the destinations before a phase.
func (l *Lane) ClearSlots() { clear(l.Mem[l.Sh.RxOff():l.Sh.Layout.DataEnd]) }

// PostAll posts receives before the first phase, when all queues are empty.
func (l *Lane) PostAll(ops []transports.Op) error {
	n, err := l.S.Post(ops)
	if n == len(ops) {
		return nil
	}
	return Failed("post receives", fmt.Errorf("qp %d: %d of %d: %w", l.Index, n, len(ops), err))
}
