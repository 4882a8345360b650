package service

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/rdmaperf/rdmaperf/grpcrdma/shmqueue"
	"github.com/rdmaperf/rdmaperf/transports/rdma"
)

const (
	// SocketFD is the descriptor of the socket in the service process.
	SocketFD = 3
	// startLimit bounds the start of a service: it opens a device.
	startLimit = 30 * time.Second
	// killAfter bounds how long a service closes its device.
	killAfter = 5 * time.Second
	// cameMost is how many connections wait for Accept here; more wait at the service.
	cameMost = 256
)

// ErrGone: the service process has ended.
var ErrGone = errors.New("the rdma service is gone")

// FailedError is why a service did not start.
type FailedError struct{ About About }

// Error is the reason.
func (e *FailedError) Error() string { return e.About.Failed }

// Client is a program's hold on its service. All methods are safe for concurrent use.
type Client struct {
	about About
	sock  socket
	cmd   *exec.Cmd
	busy  time.Duration

	mu        sync.Mutex
	lastID    uint64
	waiting   map[uint64]chan *message // for answers; each has room for one
	listeners map[uint64]*listener
	conns     map[*conn]struct{}
	err       error
	over      chan struct{} // closed by the reader
}

// Start runs a command that calls Run, and returns when the service is ready. busy is how long this side polls its
// queues before it sleeps. stderr takes the process's output.
func Start(ctx context.Context, argv []string, stderr io.Writer, busy time.Duration) (*Client, error) {
	fail := func(err error) (*Client, error) { return nil, fmt.Errorf("start the rdma service: %w", err) }
	fds, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_SEQPACKET|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return fail(os.NewSyscallError("socketpair", err))
	}
	own, theirs := os.NewFile(uintptr(fds[0]), "service"), os.NewFile(uintptr(fds[1]), "program")
	nc, err := net.FileConn(own)
	own.Close()
	if err != nil {
		theirs.Close()
		return fail(err)
	}
	c := &Client{cmd: exec.Command(argv[0], argv[1:]...), busy: busy, waiting: map[uint64]chan *message{},
		listeners: map[uint64]*listener{}, conns: map[*conn]struct{}{}, over: make(chan struct{})}
	c.sock.conn = nc.(*net.UnixConn)
	c.cmd.ExtraFiles = []*os.File{theirs}
	c.cmd.Stderr = stderr
	err = c.cmd.Start()
	theirs.Close()
	if err != nil {
		nc.Close()
		return fail(err)
	}
	ctx, cancel := context.WithTimeout(ctx, startLimit)
	defer cancel()
	deadline, _ := ctx.Deadline()
	nc.SetReadDeadline(deadline)
	m, err := c.sock.receive()
	switch {
	case err != nil:
	case m.About == nil:
		err = errors.New("it does not say what it is")
	case m.About.Failed != "":
		err = &FailedError{*m.About}
	}
	if err != nil {
		nc.Close()
		c.cmd.Process.Kill()
		c.cmd.Wait()
		return fail(err)
	}
	nc.SetReadDeadline(time.Time{})
	c.about = *m.About
	go c.read()
	return c, nil
}

// Pid is the process's number.
func (c *Client) Pid() int { return c.cmd.Process.Pid }

// About is the service's description of itself.
func (c *Client) About() About { return c.about }

func (c *Client) read() {
	defer close(c.over)
	for {
		m, err := c.sock.receive()
		if err != nil {
			break
		}
		c.mu.Lock()
		answer, l := c.waiting[m.ID], c.listeners[m.ID]
		delete(c.waiting, m.ID)
		c.mu.Unlock()
		switch {
		case m.Op == "done" && answer != nil:
			answer <- m
		case m.Op == "came" && l != nil && l.offer(m):
		default:
			m.close()
		}
	}
	c.mu.Lock()
	c.err = ErrGone
	conns, waiting, listeners := c.conns, c.waiting, c.listeners
	c.conns, c.waiting, c.listeners = map[*conn]struct{}{}, map[uint64]chan *message{}, map[uint64]*listener{}
	c.mu.Unlock()
	for _, ch := range waiting {
		ch <- &message{Err: ErrGone.Error()}
	}
	for _, l := range listeners {
		l.end()
	}
	for k := range conns {
		k.Conn.Close()
	}
}

func (c *Client) ask(ctx context.Context, op, addr string, l *listener) (*message, error) {
	answer := make(chan *message, 1)
	c.mu.Lock()
	if c.err != nil {
		c.mu.Unlock()
		return nil, c.err
	}
	c.lastID++
	id := c.lastID
	c.waiting[id] = answer
	if l != nil {
		l.id = id
		c.listeners[id] = l
	}
	c.mu.Unlock()
	if err := c.sock.send(&message{ID: id, Op: op, Addr: addr}); err != nil {
		return nil, errors.Join(ErrGone, err)
	}
	select {
	case m := <-answer:
		if m.Gone {
			return nil, fmt.Errorf("%w: %s", rdma.ErrUnreachable, m.Err)
		}
		if m.Err != "" {
			return nil, errors.New(m.Err)
		}
		return m, nil
	case <-ctx.Done():
		go func() { (<-answer).close() }() // the answer, or the service's end, comes
		return nil, ctx.Err()
	}
}

// DialContext connects to a listener of a service, or of grpcrdma, at addr.
func (c *Client) DialContext(ctx context.Context, addr string) (net.Conn, error) {
	m, err := c.ask(ctx, "dial", addr, nil)
	if err != nil {
		return nil, &net.OpError{Op: "dial", Net: "shm", Addr: shmqueue.Addr(addr), Err: err}
	}
	return c.open(m, addr)
}

type conn struct {
	*shmqueue.Conn
	c *Client
}

func (c *Client) open(m *message, name string) (net.Conn, error) {
	q, err := shmqueue.Open(name, m.files, c.busy)
	if err != nil {
		m.close()
		return nil, err
	}
	k := &conn{q, c}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.err != nil {
		q.Close()
		return nil, c.err
	}
	c.conns[k] = struct{}{}
	return k, nil
}

func (k *conn) Close() error {
	k.c.mu.Lock()
	delete(k.c.conns, k)
	k.c.mu.Unlock()
	return k.Conn.Close()
}

// Listen accepts connections at addr, where the service listens.
func (c *Client) Listen(ctx context.Context, addr string) (net.Listener, error) {
	l := &listener{c: c, came: make(chan *message, cameMost), done: make(chan struct{})}
	m, err := c.ask(ctx, "listen", addr, l)
	if err != nil {
		return nil, &net.OpError{Op: "listen", Net: "shm", Addr: shmqueue.Addr(addr), Err: err}
	}
	l.addr = shmqueue.Addr(m.Addr)
	return l, nil
}

type listener struct {
	c    *Client
	id   uint64
	addr net.Addr
	came chan *message
	done chan struct{}
	once sync.Once
}

func (l *listener) offer(m *message) bool {
	select {
	case l.came <- m:
		return true
	case <-l.done:
		return false
	}
}

func (l *listener) end() { l.once.Do(func() { close(l.done) }) }

func (l *listener) Accept() (net.Conn, error) {
	for {
		select {
		case m := <-l.came:
			if k, err := l.c.open(m, m.Addr); err == nil {
				return k, nil
			}
		case <-l.done:
			return nil, &net.OpError{Op: "accept", Net: "shm", Addr: l.addr, Err: net.ErrClosed}
		}
	}
}

func (l *listener) Addr() net.Addr { return l.addr }

func (l *listener) Close() error {
	l.end()
	l.c.mu.Lock()
	_, was := l.c.listeners[l.id]
	delete(l.c.listeners, l.id)
	l.c.mu.Unlock()
	if was {
		l.c.sock.send(&message{ID: l.id, Op: "close"})
	}
	for {
		select {
		case m := <-l.came:
			m.close()
		default:
			return nil
		}
	}
}

// Close ends all connections and the process, and kills it after killAfter. ErrGone for a process that was killed.
func (c *Client) Close() error {
	c.sock.conn.Close()
	<-c.over
	kill := time.AfterFunc(killAfter, func() { c.cmd.Process.Kill() })
	defer kill.Stop()
	err := c.cmd.Wait()
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		if s, ok := exit.Sys().(syscall.WaitStatus); ok && s.Signaled() {
			return fmt.Errorf("%w: %v", ErrGone, err)
		}
	}
	return err
}
