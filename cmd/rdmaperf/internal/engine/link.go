package engine

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"time"
)

// Link carries JSON values of at most 1 MiB between both sides of a run, in order. It belongs to one goroutine.
type Link struct {
	ctl    *Control
	limit  time.Duration // of one wait
	where  string        // the point in words, for messages
	side   string        // whose end it is
	host   string        // of the other side, to dial
	ended  bool          // the client said that its run ended
	closes bool          // the connection is the link's own
	stop   func() error  // ends the process behind it; nil: it is not the link's own
}

// Send sends a value of any type that JSON can hold.
func (l *Link) Send(v any) error {
	b, err := json.Marshal(v)
	if err != nil {
		return fmt.Errorf("send %T: %w", v, err)
	}
	return l.say(&Message{Type: msgData, Data: b})
}

// say sends a message. Where that fails, what the server said before it closed says why.
func (l *Link) say(m *Message) error {
	err := l.ctl.Send(ReplyWait, m)
	if err == nil {
		return nil
	}
	if l.side == SideClient {
		if m, e := l.ctl.receive(context.Background(), explainWait); e == nil && m.Type == MsgError && m.Error != nil {
			return m.Error.AsError(l.ctl.peer)
		}
	}
	return PeerError(l.where, l.loss(err), "the log of the other side")
}

// Receive waits for a value, into what v points to. On the server it is io.EOF when the client's run ended.
func (l *Link) Receive(ctx context.Context, v any) error { return l.within(ctx, l.limit, v) }

func (l *Link) within(ctx context.Context, d time.Duration, v any) error {
	if l.ended {
		return io.EOF
	}
	m, err := l.ctl.receive(ctx, d)
	switch {
	case err != nil && ctx.Err() != nil && context.Cause(ctx) != errServerGone:
		return context.Cause(ctx)
	case err != nil:
		if ctx.Err() != nil {
			err = l.ctl.err // why the channel ended
		}
		return PeerError(l.where, l.loss(err), "the log of the other side")
	}
	return l.take(m, v)
}

func (l *Link) take(m *Message, v any) error {
	switch {
	case m.Type == MsgError && m.Error != nil && l.side == SideClient:
		return m.Error.AsError(l.ctl.peer)
	case m.Type == MsgEnd && l.side == SideServer:
		l.ended = true
		return io.EOF
	case m.Type != msgData:
		return PeerError(l.where, outOfTurn(m, msgData), "")
	}
	if err := json.Unmarshal(m.Data, v); err != nil {
		return PeerError(l.where, fmt.Errorf("%w: %v", ErrLine, err), "the same rdmaperf version on both sides")
	}
	return nil
}

func (l *Link) loss(err error) error {
	if e := lossCause(err); l.side == SideClient || e == err {
		return e
	}
	return errors.New("client lost")
}

// Host is the address of the other side of the link, to dial what it listens on; "" where both are in one process.
func (l *Link) Host() string { return l.host }

// end ends the run at the server, and unless something failed waits until the server is through with the point.
func (l *Link) end(ctx context.Context, well bool) (err error) {
	if well && !l.ended {
		l.ended = true
		if err = l.ctl.Send(ReplyWait, &Message{Type: MsgEnd}); err == nil {
			var m *Message
			if m, err = l.ctl.receive(ctx, l.limit); err == nil && m.Type == MsgError && m.Error != nil {
				err = m.Error.AsError(l.ctl.peer)
			} else if err == nil && m.Type != MsgEnded {
				err = outOfTurn(m, MsgEnded)
			}
		}
	}
	if l.closes {
		err = errors.Join(err, l.ctl.close())
	}
	if l.stop != nil {
		err = errors.Join(err, l.stop())
	}
	return err
}

func (c *Client) begin(ctl *Control, pt Point, limit time.Duration, host string) (*Link, error) {
	l := &Link{ctl: ctl, limit: limit, where: pt.String(), side: SideClient, host: host}
	return l, l.say(&Message{Type: MsgPoint, Point: &pt})
}

// Process starts one more server process, or on another host has the server serve once more, until the run ends.
func (r *Run) Process(ctx context.Context) (*Link, error) {
	c := r.client
	if c.More == nil || r.Peer == nil {
		return nil, Failed(r.Point.String(), errors.New("no further server can be started"))
	}
	addr, stop, err := c.More(ctx)
	if err != nil {
		return nil, err
	}
	fail := func(err error) (*Link, error) {
		if stop != nil {
			err = errors.Join(err, stop())
		}
		return nil, err
	}
	o, err := Connect(ctx, addr, c.Tr, c.Plan)
	if err != nil {
		return fail(err)
	}
	l, err := c.begin(o.Ctl, r.Point, r.Peer.limit, o.host)
	if err != nil {
		return fail(errors.Join(err, o.Close()))
	}
	l.closes, l.stop = true, stop
	r.links = append(r.links, l)
	return l, nil
}

// NewServe is the server's side of a point, whose single waits have a limit.
func (c *ServedClient) NewServe(pt Point, limit time.Duration) *Serve {
	host, _, _ := net.SplitHostPort(c.Ctl.peer)
	l := &Link{ctl: c.Ctl, limit: limit, where: pt.String(), side: SideServer, host: host}
	s := &Serve{Setup: Setup{Plan: &c.Plan, Point: pt}, Stack: c.Tr, Open: Opener{c.Server.Open, c.Server.Device},
		Peer: l, Host: c.Host, client: c}
	if c.Tr != nil {
		s.Caps = able(c.caps, c.Tr.Caps())
	}
	return s
}

func (c *ServedClient) point(pt Point) error {
	w, ok := c.Server.Workloads[pt.Workload]
	if !ok {
		return PeerError("check point", fmt.Errorf("the workload %q is not known here", pt.Workload),
			"the same rdmaperf version on both sides")
	}
	if err := pt.Validate(); err != nil {
		return Failed("check point", err)
	}
	limit := c.Plan.limit(pt)
	c.Server.seen(c.who, time.Now().Add(limit))
	defer c.Server.seen(c.who, time.Time{})
	ctx, cancel := context.WithTimeoutCause(c.Ctl.Alive, limit, fmt.Errorf("not done within %v", limit))
	defer cancel()
	s := c.NewServe(pt, limit)
	l := s.Peer
	defer s.Release()
	err := w.Server(ctx, s)
	// The client's end is what the server is to return at; it may be through before.
	for !l.ended && (err == nil || errors.Is(err, io.EOF)) {
		err = l.Receive(ctx, new(json.RawMessage))
	}
	if err != nil && !errors.Is(err, io.EOF) {
		return err
	}
	return c.Ctl.Send(ReplyWait, &Message{Type: MsgEnded})
}
