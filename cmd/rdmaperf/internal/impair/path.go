package impair

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"runtime"
	"sync"

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
