package daemon

import (
	"errors"
	"fmt"
	"net"
	"os"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"

	"github.com/rdmaperf/rdmaperf/transports/lite"
)

const (
	budget      = 32      // requests of a client that one turn of the loop takes
	handlesMost = 1 << 14 // handles of one client
)

// conn is a client at the daemon. The loop owns it but for what mu guards and atomics.
type conn struct {
	daemon   *Daemon
	place    int
	page     page
	base     uint64 // of the place in the arena
	socket   *net.UnixConn
	doorbell *os.File
	client   *lite.Client // of the loop
	blocking *lite.Client // of the goroutine at the socket, which may wait

	queuePair atomic.Int32 // one more than the queue pair that the loop is to take from now on; 0: none
	closing   atomic.Bool
	cause     atomic.Pointer[error]
	stopped   chan struct{} // closed when the loop has dropped it

	taken       uint32 // requests
	ended       uint32 // ends
	ops         [budget]lite.Op
	done        [budget]lite.Done
	flight      [depth]flight // operations that were posted, in their order
	first       uint32
	next        uint32
	calls       []call
	turns       int
	outstanding int // requests that have no end yet and will
	recvs       [portsMost][]request

	mu         sync.Mutex
	handles    []handle
	free       []uint32
	owned      map[lite.Handle]bool // published: the place itself
	ports      [portsMost]*lite.Port
	arrived    []arrival // messages to its ports that no receive has taken
	queued     atomic.Int32
	tokens     []lite.Request // messages that wait for an answer
	freeTokens []uint32       // tokens that are free
}

const portsMost = 64

type handle struct {
	h   lite.Handle
	gen uint32
}

type arrival struct {
	port int
	r    lite.Request
}

func (d *Daemon) newConn(socket *net.UnixConn, i int, h hello) (_ *conn, err error) {
	at := d.node.Segments()[i]
	c := &conn{daemon: d, place: i, page: page(at.Mem), base: at.Off, socket: socket, stopped: make(chan struct{}),
		calls: make([]call, h.Calls), owned: map[lite.Handle]bool{}}
	clear(c.page) // what the last one left
	defer func() {
		if err != nil {
			c.discard()
		}
	}()
	cfg := lite.ClientConfig{Depth: depth, Outstanding: h.Calls, MaxReply: h.MaxReply, Wait: lite.WaitPoll,
		Wake: d.wake}
	if c.client, err = d.node.Client(cfg); err != nil {
		return nil, err
	}
	if c.blocking, err = d.node.Client(lite.ClientConfig{}); err != nil {
		return nil, err
	}
	fd, err := unix.Eventfd(0, unix.EFD_CLOEXEC|unix.EFD_NONBLOCK)
	if err != nil {
		return nil, os.NewSyscallError("eventfd", err)
	}
	c.doorbell = os.NewFile(uintptr(fd), "doorbell")
	return c, nil
}

// discard frees a conn that the loop never had.
func (c *conn) discard() {
	for _, client := range []*lite.Client{c.client, c.blocking} {
		if client != nil {
			_ = client.Close() // nothing was posted
		}
	}
	if c.doorbell != nil {
		_ = c.doorbell.Close() // nothing was written
	}
}

// end closes the connection. The first reason is kept.
func (c *conn) end(err error) {
	if err == nil {
		err = errEnded
	}
	c.cause.CompareAndSwap(nil, &err)
	c.closing.Store(true)
	_ = c.socket.Close() // the goroutine at the socket ends
	c.blocking.Interrupt()
	_ = c.doorbell.SetReadDeadline(time.Now())
	c.daemon.kick()
}

func (c *conn) readDoorbell() {
	var b [8]byte
	for {
		if _, err := c.doorbell.Read(b[:]); err != nil {
			return
		}
		c.daemon.kick()
	}
}

// clear frees what the client had, behind the loop. It is false when something may still access its place.
func (c *conn) clear() bool {
	n := c.daemon.node
	for i, p := range c.ports {
		if p != nil {
			p.Close()
			c.ports[i] = nil
		}
	}
	c.mu.Lock()
	arrived, tokens := c.arrived, c.tokens
	c.arrived, c.tokens = nil, nil
	c.mu.Unlock()
	for i := range arrived {
		refuse(&arrived[i].r, lite.ErrNoPort)
	}
	for i := range tokens {
		if tokens[i].Payload != nil || tokens[i].From != noNode {
			refuse(&tokens[i], lite.ErrPeerDead)
		}
	}
	for i := range c.calls {
		if k := &c.calls[i]; k.busy {
			c.client.GiveUp(k.p)
		}
	}
	clean := true
	for h := range c.owned {
		if err := c.blocking.FreeRegion(h); err != nil && !errors.Is(err, lite.ErrDeadHandle) {
			clean = false
			c.daemon.cfg.Log(fmt.Sprintf("place %d is not given again: %v", c.place, err))
		}
	}
	for _, e := range c.handles {
		if e.h != 0 {
			_ = c.blocking.Unmap(e.h) // dead ones fail
		}
	}
	_ = c.client.Close()
	_ = c.blocking.Close()
	_ = c.doorbell.Close()
	return clean && n.Dead(n.ID()) == nil
}

// noNode marks a token that is free.
const noNode = -1

func refuse(r *lite.Request, code lite.Code) {
	if r.OneWay {
		r.Release()
		return
	}
	_ = r.ReplyError(code) // a caller that left needs no answer
}

func (c *conn) inPlace(off uint64, n uint32) bool {
	size := uint64(len(c.page))
	return off >= dataAt && off <= size && uint64(n) <= size-off
}

// handle is the node's handle for a number of the client's own table; 0, which is dead, for another one.
func (c *conn) handle(h uint64) lite.Handle {
	c.mu.Lock()
	defer c.mu.Unlock()
	i := uint32(h)
	if uint64(i) >= uint64(len(c.handles)) || c.handles[i].gen != uint32(h>>32) {
		return 0
	}
	return c.handles[i].h
}

func (c *conn) hasWork() bool {
	return c.page.word(wordPosted).Load() != c.taken || c.queued.Load() > 0 && c.hasReceives()
}

func (c *conn) hasReceives() bool {
	return slices.ContainsFunc(c.recvs[:], func(of []request) bool { return len(of) > 0 })
}

type flight struct {
	slot uint32
	kind kind
}

type call struct {
	p       lite.Pending
	slot    uint32
	to      uint64
	room    uint32
	started time.Time
	busy    bool
}
