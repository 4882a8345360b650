package target

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/netip"
	"sync"
	"time"

	"github.com/rdmaperf/rdmaperf/transports/rdma"
)

// Config is what a test target is made of.
type Config struct {
	Transport string   // the name of the stack, for the greeting
	Variants  []string // what Open takes besides ""

	// Open opens the device under test, and says at which host it listens: "" for the
	// address that the control connection came to. The caller closes the device.
	Open func(variant string) (dev rdma.Device, host string, err error)

	Allow      func(netip.Addr) bool // who may come; nil for everybody
	MaxClients int                   // control connections at a time; 0 means 16
	Log        *slog.Logger
}

const (
	defaultClients = 16
	idleLimit      = 2 * time.Minute // of a control connection that asks nothing
	replyLimit     = 10 * time.Second
)

// Serve serves control connections until ctx ends, and then returns nil when all have ended. It closes l.
func Serve(ctx context.Context, l net.Listener, c Config) error {
	if c.MaxClients <= 0 {
		c.MaxClients = defaultClients
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	stop := context.AfterFunc(ctx, func() { l.Close() })
	defer stop()
	var group sync.WaitGroup
	defer group.Wait()
	places := make(chan struct{}, c.MaxClients)
	for {
		conn, err := l.Accept()
		if ctx.Err() != nil {
			return nil
		}
		if err != nil {
			cancel()
			return fmt.Errorf("accept control connection: %w", err)
		}
		if !c.allows(conn) {
			conn.Close()
			continue
		}
		select {
		case places <- struct{}{}:
		default:
			c.Log.Warn("all places are taken", "client", conn.RemoteAddr().String(), "places", c.MaxClients)
			conn.Close()
			continue
		}
		group.Go(func() {
			// The place first: who sees its connection end may come again at once.
			defer conn.Close()
			defer func() { <-places }()
			s := &session{cfg: &c, conn: conn, devices: map[string]*bench{}}
			if err := s.serve(ctx); err != nil {
				c.Log.Warn("control connection ended", "client", conn.RemoteAddr().String(), "err", err)
			}
		})
	}
}

func (c *Config) allows(conn net.Conn) bool {
	at, ok := conn.RemoteAddr().(*net.TCPAddr)
	return c.Allow == nil || ok && c.Allow(at.AddrPort().Addr().Unmap())
}

type session struct {
	cfg     *Config
	conn    net.Conn
	devices map[string]*bench // by variant
	stage   *stage            // nil before the first
}

// serve answers until the client leaves, or is silent for too long. The connection is the caller's to close.
func (s *session) serve(ctx context.Context) (err error) {
	stop := context.AfterFunc(ctx, func() { s.conn.SetDeadline(time.Unix(1, 0)) })
	defer stop()
	defer func() {
		if ctx.Err() != nil {
			err = nil
		}
		err = errors.Join(err, s.endStage())
		for _, b := range s.devices {
			err = errors.Join(err, b.close())
		}
	}()
	if err := s.say(&Hello{Magic: magic, Version: Version, Transport: s.cfg.Transport,
		Variants: s.cfg.Variants}); err != nil {
		return nil // somebody who only looked
	}
	in := bufio.NewReaderSize(s.conn, 4096)
	for ctx.Err() == nil {
		s.conn.SetReadDeadline(time.Now().Add(idleLimit))
		line, err := readLine(in, maxRequest)
		if err != nil {
			return nil // it left
		}
		var q request
		if err := json.Unmarshal(line, &q); err != nil {
			return fmt.Errorf("read request: %w", err)
		}
		r, err := s.do(ctx, &q)
		if r == nil {
			r = &reply{}
		}
		if err != nil {
			r.Error, r.Unsupported = err.Error(), errors.Is(err, rdma.ErrNotSupported)
		}
		if err := s.say(r); err != nil {
			return err
		}
	}
	return nil
}

func (s *session) say(v any) error {
	b, err := json.Marshal(v)
	if err != nil {
		return err
	}
	s.conn.SetWriteDeadline(time.Now().Add(replyLimit))
	_, err = s.conn.Write(append(b, '\n'))
	return err
}

func (s *session) do(ctx context.Context, q *request) (*reply, error) {
	if q.Do == doStage {
		return s.newStage(ctx, q.Stage)
	}
	if s.stage == nil {
		return nil, errors.New("no stage yet")
	}
	wait := min(time.Duration(max(q.WaitMS, 0))*time.Millisecond, longest)
	switch q.Do {
	case doJoined:
		return &reply{Joined: s.stage.joined(ctx, wait)}, nil
	case doPost:
		return nil, s.stage.postNow(q.Post)
	case doCompletions:
		return &reply{Completions: s.stage.completions(ctx, q.N, wait)}, nil
	case doMemory:
		return s.stage.bench.memory(q.Sum), nil
	case doState:
		return &reply{State: s.stage.qp.State().String()}, nil
	}
	return nil, fmt.Errorf("unknown request %q", q.Do)
}

func (s *session) endStage() error {
	if s.stage == nil {
		return nil
	}
	err := s.stage.close()
	s.stage = nil
	return err
}
