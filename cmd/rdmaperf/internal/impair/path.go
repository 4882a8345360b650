// Package impair makes two network namespaces with a path between them through a proxy of this process, which loses,
// doubles, reorders and delays packets by a seed. It needs root and TUN devices, and carries IPv4 of MTU 1500. Delays
// are Go timers: a millisecond and more.
package impair

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math/rand/v2"
	"os"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"github.com/vishvananda/netlink"
	"github.com/vishvananda/netns"
	"golang.org/x/sys/unix"
)

// Addresses of the two ends (RFC 5737).
var Addresses = [2]string{"192.0.2.1", "192.0.2.2"}

// Path is two namespaces and the proxy between them, owned until Close. Processes in a namespace must end first.
type Path struct {
	ns    [2]netns.NsHandle
	tun   [2]*os.File
	ways  [2]*proxy
	gates [2]gate
	group sync.WaitGroup
}

// Open makes a path. Error: what the system refused.
func Open(c Config) (*Path, error) {
	p := &Path{ns: [2]netns.NsHandle{netns.None(), netns.None()}}
	for end := range 2 {
		if err := p.makeEnd(end); err != nil {
			return nil, errors.Join(fmt.Errorf("make a namespace with a TUN device: %w", err), p.Close())
		}
	}
	for way := range 2 {
		p.ways[way] = newProxy(c, uint64(way))
		p.group.Go(func() {
			p.ways[way].run(p.tun[way], p.tun[1-way]) // ends when the devices are closed
		})
	}
	return p, nil
}

// tunDevice makes TUN devices (Documentation/networking/tuntap.rst of Linux).
const tunDevice = "/dev/net/tun"

// makeEnd works on a thread that is thrown away when it cannot come home.
func (p *Path) makeEnd(end int) error {
	result := make(chan error, 1)
	go func() {
		runtime.LockOSThread() // never unlocked: the thread ends with its namespace
		result <- func() (err error) {
			if p.ns[end], err = netns.New(); err != nil {
				return err
			}
			lo, err := netlink.LinkByName("lo")
			if err != nil {
				return err
			}
			if err := netlink.LinkSetUp(lo); err != nil {
				return err
			}
			fd, err := unix.Open(tunDevice, unix.O_RDWR|unix.O_CLOEXEC|unix.O_NONBLOCK, 0)
			if err != nil {
				return &os.PathError{Op: "open", Path: tunDevice, Err: err}
			}
			p.tun[end] = os.NewFile(uintptr(fd), "tun")
			req, err := unix.NewIfreq("path")
			if err != nil {
				return err
			}
			req.SetUint16(unix.IFF_TUN | unix.IFF_NO_PI)
			if err := unix.IoctlIfreq(fd, unix.TUNSETIFF, req); err != nil {
				return os.NewSyscallError("TUNSETIFF", err)
			}
			// A descriptor joins Go's poller only once it has its device: made again.
			dup, err := unix.FcntlInt(uintptr(fd), unix.F_DUPFD_CLOEXEC, 0)
			if err != nil {
				return err
			}
			p.tun[end].Close()
			p.tun[end] = os.NewFile(uintptr(dup), "tun")
			l, err := netlink.LinkByName("path")
			if err != nil {
				return err
			}
			addr, err := netlink.ParseAddr(Addresses[end] + "/24")
			if err != nil {
				return err
			}
			return errors.Join(netlink.AddrAdd(l, addr), netlink.LinkSetUp(l))
		}()
	}()
	return <-result
}

// Missing says what this machine lacks for a path, or "".
func Missing() string {
	f, err := os.OpenFile(tunDevice, os.O_RDWR, 0)
	switch {
	case errors.Is(err, fs.ErrNotExist), errors.Is(err, unix.ENODEV), errors.Is(err, unix.ENXIO):
		return "this kernel has no " + tunDevice + ", which a path that can be harmed is made of: modprobe tun"
	case errors.Is(err, fs.ErrPermission):
		return tunDevice + ", which a path that can be harmed is made of, cannot be opened here: a container needs " +
			"the device and CAP_NET_ADMIN"
	case err == nil:
		f.Close()
	}
	return ""
}

// In calls f on a thread in the namespace of an end, which what f starts inherits. The thread lives until hold is
// closed.
func (p *Path) In(end int, hold <-chan struct{}, f func() error) error {
	result := make(chan error, 1)
	go func() {
		runtime.LockOSThread()
		err := netns.Set(p.ns[end])
		if err == nil {
			err = f()
		}
		result <- err
		<-hold
	}()
	return <-result
}

// Counts are what went through so far.
func (p *Path) Counts() (n Counts) {
	for _, w := range p.ways {
		if w != nil {
			n.Packets += w.packets.Load()
			n.Lost += w.lost.Load()
			n.Duplicated += w.duplicated.Load()
			n.Reordered += w.reordered.Load()
		}
	}
	return n
}

// Close ends the proxy and gives the namespaces up.
func (p *Path) Close() error {
	var errs []error
	for _, t := range p.tun {
		if t != nil {
			errs = append(errs, t.Close())
		}
	}
	p.group.Wait()
	for i := range p.ns {
		if p.ns[i].IsOpen() {
			errs = append(errs, p.ns[i].Close())
		}
	}
	return errors.Join(errs...)
}

// Config is what becomes of packets, each way, by probabilities from 0 to 1. Loss of 1 cuts the path.
type Config struct {
	Loss, Duplicate, Reorder float64
	Delay                    time.Duration
	Seed                     uint64
}

type Counts struct {
	Packets, Lost, Duplicated, Reordered uint64
}

type proxy struct {
	cfg  atomic.Pointer[Config]
	rng  *rand.Rand
	held []byte // is overtaken by the next packet

	packets, lost, duplicated, reordered atomic.Uint64
}

func newProxy(c Config, way uint64) *proxy {
	x := &proxy{rng: rand.New(rand.NewPCG(c.Seed, way))}
	x.set(c)
	return x
}

// set takes effect with the next packet. Whether packets are delayed is fixed from the start.
func (x *proxy) set(c Config) { x.cfg.Store(&c) }

// pass gives in order what leaves for one packet that came, valid until the next call.
func (x *proxy) pass(p []byte) (out [3][]byte, n int) {
	x.packets.Add(1)
	cfg := x.cfg.Load()
	if x.chance(cfg.Loss) {
		x.lost.Add(1)
		return out, 0
	}
	if x.held == nil && x.chance(cfg.Reorder) {
		x.held = append([]byte(nil), p...)
		x.reordered.Add(1)
		return out, 0
	}
	out[0], n = p, 1
	if x.chance(cfg.Duplicate) {
		x.duplicated.Add(1)
		out[n] = p
		n++
	}
	if x.held != nil {
		out[n], x.held = x.held, nil
		n++
	}
	return out, n
}

func (x *proxy) chance(p float64) bool { return p > 0 && x.rng.Float64() < p }

type late struct {
	due time.Time
	b   []byte
}

func (x *proxy) run(from io.Reader, to io.Writer) error {
	var queue chan late
	delay := x.cfg.Load().Delay
	if delay > 0 {
		queue = make(chan late, 1<<14) // more is dropped, as by a path that is full
		done := make(chan struct{})
		defer func() { close(queue); <-done }()
		go func() {
			defer close(done)
			for l := range queue {
				time.Sleep(time.Until(l.due))
				to.Write(l.b) // a full device drops, as an interface does
			}
		}()
	}
	buf := make([]byte, 1<<16)
	for {
		n, err := from.Read(buf)
		if err != nil {
			if errors.Is(err, os.ErrClosed) {
				return nil
			}
			return err
		}
		out, k := x.pass(buf[:n])
		for _, b := range out[:k] {
			if queue == nil {
				to.Write(b)
				continue
			}
			select {
			case queue <- late{time.Now().Add(delay), append([]byte(nil), b...)}:
			default:
				x.lost.Add(1)
			}
		}
	}
}
