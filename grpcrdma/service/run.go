package service

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"sync"
	"time"

	"github.com/rdmaperf/rdmaperf/grpcrdma"
	"github.com/rdmaperf/rdmaperf/grpcrdma/shmqueue"
	"github.com/rdmaperf/rdmaperf/transports/rdma"
)

const (
	// relayBuffer is what moves at once between a queue and a ring; a record of grpcrdma is shorter.
	relayBuffer = 64 << 10
	// queueBytes is the queue of one direction: as long as grpcrdma's ring by default.
	queueBytes = 256 << 10
)

type service struct {
	sock socket
	n    *grpcrdma.Net
	busy time.Duration
	ctx  context.Context
	wg   sync.WaitGroup

	mu        sync.Mutex
	listeners map[uint64]net.Listener
}

// Fail reports to the program on SocketFD why there is no service.
func Fail(why error, code int) error {
	conn, err := inherited()
	if err != nil {
		return err
	}
	defer conn.Close()
	s := socket{conn: conn}
	return s.send(&message{Op: "about", About: &About{Failed: why.Error(), Code: code}})
}

func inherited() (*net.UnixConn, error) {
	f := os.NewFile(SocketFD, "program")
	defer f.Close()
	c, err := net.FileConn(f)
	if err != nil {
		return nil, fmt.Errorf("no program at descriptor %d: %w", SocketFD, err)
	}
	u, ok := c.(*net.UnixConn)
	if !ok {
		c.Close()
		return nil, fmt.Errorf("descriptor %d is no socket of a program", SocketFD)
	}
	return u, nil
}

// Run serves the program on SocketFD over n until that program, or ctx, ends. busy is how long this side polls its
// queues before it sleeps.
func Run(ctx context.Context, n *grpcrdma.Net, about About, busy time.Duration) error {
	conn, err := inherited()
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(ctx)
	s := &service{sock: socket{conn: conn}, n: n, busy: busy, ctx: ctx, listeners: map[uint64]net.Listener{}}
	defer context.AfterFunc(ctx, func() { conn.Close() })()
	err = s.sock.send(&message{Op: "about", About: &about})
	for err == nil {
		m, end := s.sock.receive()
		if end != nil { // the program's end is the service's
			break
		}
		s.do(m)
	}
	cancel()
	s.mu.Lock()
	for _, l := range s.listeners {
		l.Close()
	}
	s.mu.Unlock()
	s.wg.Wait()
	return err
}

func (s *service) do(m *message) {
	switch m.Op {
	case "dial":
		s.wg.Go(func() {
			conn, err := s.n.DialContext(s.ctx, m.Addr)
			s.join(&message{ID: m.ID, Op: "done", Addr: m.Addr}, conn, err)
		})
	case "listen":
		l, err := s.n.Listen(s.ctx, m.Addr)
		if err != nil {
			s.sock.send(&message{ID: m.ID, Op: "done", Err: err.Error()})
			return
		}
		s.mu.Lock()
		s.listeners[m.ID] = l
		s.mu.Unlock()
		s.sock.send(&message{ID: m.ID, Op: "done", Addr: l.Addr().String()})
		s.wg.Go(func() {
			for {
				conn, err := l.Accept()
				if err != nil {
					return
				}
				s.wg.Go(func() { s.join(&message{ID: m.ID, Op: "came", Addr: conn.RemoteAddr().String()}, conn, nil) })
			}
		})
	case "close":
		s.mu.Lock()
		l := s.listeners[m.ID]
		delete(s.listeners, m.ID)
		s.mu.Unlock()
		if l != nil {
			l.Close()
		}
	}
}

// join gives the program a queue for a connection, and moves bytes until either ends.
func (s *service) join(m *message, conn net.Conn, err error) {
	var q *shmqueue.Conn
	if err == nil {
		if q, m.files, err = shmqueue.Pair(m.Addr, queueBytes, s.busy); err != nil {
			conn.Close()
		}
	}
	if err != nil {
		m.Err, m.Gone = err.Error(), errors.Is(err, rdma.ErrUnreachable)
		s.sock.send(m)
		return
	}
	defer conn.Close()
	defer q.Close()
	err = s.sock.send(m)
	m.close()
	if err != nil {
		return
	}
	end := func() { conn.Close(); q.Close() }
	defer context.AfterFunc(s.ctx, end)()
	var both sync.WaitGroup
	for _, way := range [2]struct{ to, from net.Conn }{{conn, q}, {q, conn}} {
		both.Go(func() {
			defer end()
			// Without ReadFrom and WriteTo, which would choose a buffer of their own.
			io.CopyBuffer(struct{ io.Writer }{way.to}, struct{ io.Reader }{way.from}, make([]byte, relayBuffer))
		})
	}
	both.Wait()
}
