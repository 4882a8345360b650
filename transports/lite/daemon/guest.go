package daemon

import (
	"errors"
	"fmt"
	"net"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"

	"github.com/rdmaperf/rdmaperf/transports/lite"
)

const (
	// budget is how many requests of a client one turn of the loop takes. Arbitrary.
	budget = 32
	// handlesMost bounds what one client keeps. Arbitrary.
	handlesMost = 1 << 14
)

// guest is a client at the daemon. The loop owns what is not said to be otherwise.
type guest struct {
	daemon *Daemon
	place  int
	page   page
	base   uint64 // of the place in the arena
	conn   *net.UnixConn
	bell   *os.File
	client *lite.Client // of the loop
	aside  *lite.Client // of the goroutine at the socket, which may wait

	pair atomic.Int32 // one more than the queue pair that the loop is to take from now on; 0: none
	gone atomic.Bool
	why  atomic.Pointer[error]
	left chan struct{} // closed when the loop looks no more

	taken  uint32 // requests
	ended  uint32 // ends
	ops    [budget]lite.Op
	done   [budget]lite.Done
	flight [depth]flight // operations that were posted, in their order
	first  uint32
	next   uint32
	calls  []call
	turns  int
	out    int // requests that have no end yet and will
	recvs  [portsMost][]request

	mu      sync.Mutex
	handles []handle
	free    []uint32
	owned   map[lite.Handle]bool // published: the place itself
	ports   [portsMost]*lite.Port
	arrived []arrival // messages to its ports that no receive has taken
	some    atomic.Int32
	tokens  []lite.Request // messages that wait for an answer
	spare   []uint32       // tokens that are free
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

func (d *Daemon) newGuest(c *net.UnixConn, i int, h hello) (g *guest, err error) {
	at := d.node.Guests()[i]
	g = &guest{daemon: d, place: i, page: page(at.Mem), base: at.Off, conn: c, left: make(chan struct{}), calls: make([]call, h.Calls), owned: map[lite.Handle]bool{}}
	clear(g.page) // what the last one left
	defer func() {
		if err != nil {
			g.undo()
		}
	}()
	cfg := lite.ClientConfig{Depth: depth, Outstanding: h.Calls, MaxReply: h.MaxReply, Wait: lite.WaitPoll, Wake: d.wake}
	if g.client, err = d.node.Client(cfg); err != nil {
		return nil, err
	}
	if g.aside, err = d.node.Client(lite.ClientConfig{}); err != nil {
		return nil, err
	}
	fd, err := unix.Eventfd(0, unix.EFD_CLOEXEC|unix.EFD_NONBLOCK)
	if err != nil {
		return nil, os.NewSyscallError("eventfd", err)
	}
	g.bell = os.NewFile(uintptr(fd), "doorbell")
	return g, nil
}

// undo frees a guest that the loop never saw.
func (g *guest) undo() {
	for _, c := range []*lite.Client{g.client, g.aside} {
		if c != nil {
			_ = c.Close() // nothing was posted
		}
	}
	if g.bell != nil {
		_ = g.bell.Close() // nothing was written
	}
}

// end makes the loop let go of the client. The first reason is kept.
func (g *guest) end(err error) {
	if err == nil {
		err = errEnded
	}
	g.why.CompareAndSwap(nil, &err)
	g.gone.Store(true)
	_ = g.conn.Close() // the goroutine at the socket ends
	g.aside.Interrupt()
	_ = g.bell.SetReadDeadline(time.Now())
	g.daemon.kick()
}

// listen hears the doorbell.
func (g *guest) listen() {
	defer g.daemon.wg.Done()
	var b [8]byte
	for {
		if _, err := g.bell.Read(b[:]); err != nil {
			return
		}
		g.daemon.kick()
	}
}

// clear gives back what the client had. The loop looks at it no more. False: something may
// still touch its place.
func (g *guest) clear() bool {
	n := g.daemon.node
	for i, p := range g.ports {
		if p != nil {
			p.Close()
			g.ports[i] = nil
		}
	}
	g.mu.Lock()
	arrived, tokens := g.arrived, g.tokens
	g.arrived, g.tokens = nil, nil
	g.mu.Unlock()
	for i := range arrived {
		refuse(&arrived[i].r, lite.ErrNoPort)
	}
	for i := range tokens {
		if tokens[i].Payload != nil || tokens[i].From != noNode {
			refuse(&tokens[i], lite.ErrPeerDead)
		}
	}
	for i := range g.calls {
		if c := &g.calls[i]; c.busy {
			g.client.GiveUp(c.p)
		}
	}
	clean := true
	for h := range g.owned {
		if err := g.aside.FreeRegion(h); err != nil && !errors.Is(err, lite.ErrDeadHandle) {
			clean = false
			g.daemon.cfg.Log(fmt.Sprintf("place %d is not given again: %v", g.place, err))
		}
	}
	for _, e := range g.handles {
		if e.h != 0 {
			_ = g.aside.Unmap(e.h) // dead ones say so
		}
	}
	_ = g.client.Close()
	_ = g.aside.Close()
	_ = g.bell.Close()
	return clean && n.Dead(n.ID()) == nil
}

// noNode marks a token that nobody waits for.
const noNode = -1

func refuse(r *lite.Request, code lite.Code) {
	if r.OneWay {
		r.Release()
		return
	}
	_ = r.ReplyError(code) // who is gone needs no answer
}

// local checks bytes of the place behind its front.
func (g *guest) local(off uint64, n uint32) bool {
	size := uint64(len(g.page))
	return off >= dataAt && off <= size && uint64(n) <= size-off
}

// handle is what a number of the client's own table stands for.
func (g *guest) handle(h uint64) (lite.Handle, bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	i := uint32(h)
	if uint64(i) >= uint64(len(g.handles)) || g.handles[i].gen != uint32(h>>32) || g.handles[i].h == 0 {
		return 0, false
	}
	return g.handles[i].h, true
}

// waiting tells whether the client wrote requests that were not taken.
func (g *guest) waiting() bool {
	return g.page.word(wordPosted).Load() != g.taken || g.some.Load() > 0 && g.receives()
}

func (g *guest) receives() bool {
	for i := range g.recvs {
		if len(g.recvs[i]) > 0 {
			return true
		}
	}
	return false
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
