// Package daemon lets several processes of a machine share one node of LITE: a [Daemon] serves it at a Unix socket, and
// a [Client] is the [lite.Access] of one goroutine of another process.
//
// Each client maps a place of the node's arena (lite.Segment): a page of words, a ring of requests, one of their ends,
// and its bytes, so that none is copied. Names, handles, memset, memcpy, barriers and ports go over the socket. The
// crossing is polled (LITE, SOSP'17, §5.2), or with [ClientConfig].Cross signalled and slept for.
//
// The daemon copies a request before it checks it, against the client's own handles and place. A client that breaks the
// protocol is disconnected, and what it had is freed with it. A place is given again only to a process of the same
// user: a former client may have it mapped, and processes of one user can read each other anyway (ptrace(2)).
package daemon

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"

	"github.com/rdmaperf/rdmaperf/internal/procs"
	"github.com/rdmaperf/rdmaperf/transports/lite"
	"github.com/rdmaperf/rdmaperf/transports/rdma"
)

// Config is how a daemon serves. Zero values mean the defaults.
type Config struct {
	For time.Duration // how long it polls after the last work before it sleeps: 50 µs
	Log func(text string)
}

// Daemon serves a node to other processes.
type Daemon struct {
	node *lite.Node
	cfg  Config
	lis  *net.UnixListener
	path string

	ctx    context.Context
	cancel context.CancelFunc
	wg     sync.WaitGroup
	wake   chan struct{}

	mu     sync.Mutex
	places []place
	conns  atomic.Pointer[[]*conn] // those that the loop serves; written under mu
}

type place struct {
	taken bool
	user  uint32 // the last user
	used  bool
}

// helloTime bounds a client's introduction.
const helloTime = 5 * time.Second

// Serve takes clients at a Unix socket, which it makes for this user alone. node must have segments
// (lite.Config.Segments) and stays the caller's.
func Serve(node *lite.Node, path string, cfg Config) (*Daemon, error) {
	if len(node.Segments()) == 0 {
		return nil, &rdma.OpError{Op: "serve", Object: path, Err: fmt.Errorf("the node has no places for processes: %w",
			rdma.ErrInvalid)}
	}
	if cfg.For <= 0 {
		cfg.For = 50 * time.Microsecond
	}
	if cfg.Log == nil {
		cfg.Log = func(string) {}
	}
	addr := &net.UnixAddr{Name: path, Net: "unixpacket"}
	lis, err := net.ListenUnix("unixpacket", addr)
	if errors.Is(err, unix.EADDRINUSE) && abandoned(addr) {
		if err = os.Remove(path); err == nil {
			lis, err = net.ListenUnix("unixpacket", addr)
		}
	}
	if err != nil {
		return nil, &rdma.OpError{Op: "serve", Object: path, Err: err}
	}
	if err := os.Chmod(path, 0o600); err != nil {
		return nil, &rdma.OpError{Op: "serve", Object: path, Err: errors.Join(err, lis.Close())}
	}
	d := &Daemon{node: node, cfg: cfg, lis: lis, path: path, wake: make(chan struct{}, 1),
		places: make([]place, len(node.Segments()))}
	d.conns.Store(new([]*conn))
	d.ctx, d.cancel = context.WithCancel(context.Background())
	d.wg.Go(d.accept)
	d.wg.Go(d.loop)
	return d, nil
}

// abandoned reports whether a socket is left over from a daemon that was killed.
func abandoned(addr *net.UnixAddr) bool {
	c, err := net.DialUnix("unixpacket", nil, addr)
	if err == nil {
		c.Close()
	}
	return errors.Is(err, unix.ECONNREFUSED)
}

// Close ends all clients and removes the socket. Idempotent.
func (d *Daemon) Close() error {
	if d.ctx.Err() != nil {
		return nil
	}
	d.cancel()
	err := d.lis.Close()
	d.kick()
	d.mu.Lock() // a client that comes now is refused
	conns := *d.conns.Load()
	d.mu.Unlock()
	for _, c := range conns {
		c.end(nil)
	}
	d.wg.Wait()
	return err
}

// Clients is how many processes are served.
func (d *Daemon) Clients() int { return len(*d.conns.Load()) }

func (d *Daemon) kick() {
	select {
	case d.wake <- struct{}{}:
	default:
	}
}

func (d *Daemon) accept() {
	for {
		c, err := d.lis.AcceptUnix()
		if d.ctx.Err() != nil {
			if err == nil {
				_ = c.Close()
			}
			return
		}
		if err != nil { // no files, for one: the next may find some
			d.cfg.Log(err.Error())
			time.Sleep(10 * time.Millisecond)
			continue
		}
		d.wg.Go(func() { d.serve(c) })
	}
}

// userOf is the user of the process at the other end (unix(7), SO_PEERCRED).
func userOf(c *net.UnixConn) (user uint32, err error) {
	raw, err := c.SyscallConn()
	if err != nil {
		return 0, err
	}
	var cred *unix.Ucred
	e := raw.Control(func(fd uintptr) { cred, err = unix.GetsockoptUcred(int(fd), unix.SOL_SOCKET, unix.SO_PEERCRED) })
	if err = cmp.Or(e, err); err != nil {
		return 0, err
	}
	return cred.Uid, nil
}

// take is a free place, for a process of a user; -1 without one.
func (d *Daemon) take(user uint32) int {
	d.mu.Lock()
	defer d.mu.Unlock()
	for i := range d.places {
		if p := &d.places[i]; !p.taken && (!p.used || p.user == user) {
			*p = place{taken: true, user: user, used: true}
			return i
		}
	}
	return -1
}

func (d *Daemon) give(i int) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.places[i].taken = false
}

func (d *Daemon) serve(socket *net.UnixConn) {
	defer socket.Close()
	c, err := d.admit(socket)
	if err != nil {
		_ = sendLine(socket, welcome{Version: version, Refuse: err.Error()}) // a client that left needs none
		return
	}
	c.end(c.control())
	<-c.stopped
	if why := c.cause.Load(); why != nil && d.ctx.Err() == nil && !errors.Is(*why, errEnded) {
		d.cfg.Log(fmt.Sprintf("client in place %d ended: %v", c.place, *why))
	}
	if c.clear() {
		d.give(c.place)
	}
}

func (d *Daemon) admit(socket *net.UnixConn) (*conn, error) {
	_ = socket.SetDeadline(time.Now().Add(helloTime)) // a socket takes deadlines
	user, err := userOf(socket)
	if err != nil {
		return nil, err
	}
	var h hello
	if _, err := receiveLine(socket, &h, 0); err != nil {
		return nil, err
	}
	if h.Version != version {
		return nil, fmt.Errorf("the client speaks version %d, this daemon %d", h.Version, version)
	}
	if h.Calls < 1 || h.Calls > depth || h.MaxReply < 0 || h.MaxReply > 1<<30 {
		return nil, fmt.Errorf("%d calls with answers of %d bytes: %w", h.Calls, h.MaxReply, rdma.ErrInvalid)
	}
	i := d.take(user)
	if i < 0 {
		return nil, fmt.Errorf("all %d places for processes are taken: start the daemon with more (--places)",
			len(d.places))
	}
	c, err := d.newConn(socket, i, h)
	if err == nil {
		err = sendLine(socket, welcome{Version: version, Size: len(c.page), Node: d.node.ID(), Addr: d.node.Addr()},
			d.node.Segments()[i].File, c.doorbell)
		if err != nil {
			c.discard()
		}
	}
	if err != nil {
		d.give(i)
		return nil, err
	}
	_ = socket.SetDeadline(time.Time{})
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.ctx.Err() != nil {
		c.discard()
		return nil, rdma.ErrClosed
	}
	d.wg.Go(c.readDoorbell)
	list := append(slices.Clone(*d.conns.Load()), c)
	d.conns.Store(&list)
	d.kick()
	return c, nil
}

// drop takes a client out of the loop, which alone calls it.
func (d *Daemon) drop(c *conn) {
	d.mu.Lock()
	defer d.mu.Unlock()
	list := slices.DeleteFunc(slices.Clone(*d.conns.Load()), func(o *conn) bool { return o == c })
	d.conns.Store(&list)
	close(c.stopped)
}

// underWay is how long it polls for what is under way to another node, which a peer that has stopped does not answer.
const underWay = 100 * time.Millisecond

// loop is the one thread for all clients.
func (d *Daemon) loop() {
	last := time.Now()
	for idle := 0; ; {
		conns := *d.conns.Load()
		if d.ctx.Err() != nil && len(conns) == 0 {
			return
		}
		busy, waits := d.node.Progress() > 0, false
		for _, c := range conns {
			if c.closing.Load() {
				d.drop(c)
				continue
			}
			did, out := c.turn()
			busy, waits = busy || did, waits || out
		}
		if busy {
			idle = 0
			continue
		}
		if idle++; idle%64 != 0 {
			continue
		}
		now := time.Now()
		if idle == 64 {
			last = now
		}
		limit := d.cfg.For
		if waits {
			limit = max(limit, underWay)
		}
		if now.Sub(last) < limit {
			procs.Yield()
			continue
		}
		d.pause(conns)
	}
}

func (d *Daemon) pause(conns []*conn) {
	some := false
	for _, c := range conns {
		c.page.word(wordIdle).Store(1)
		some = some || c.hasWork()
	}
	if !some {
		d.node.SleepUntil(d.wake, 100*time.Millisecond)
	}
	for _, c := range conns {
		c.page.word(wordIdle).Store(0)
	}
}
