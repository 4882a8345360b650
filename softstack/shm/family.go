package shm

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math/bits"
	"net"
	"net/netip"
	"strconv"
	"time"
)

// Family is what both sides of a kind of link agree on.
type Family struct {
	// Name is in the names of its sockets. Magic is 8 octets, and changes when the layout of the memory does.
	Name, Magic string
	// MinFrames and MaxFrames bound a hello; the number is a power of two.
	MinFrames, MaxFrames int
	// Size is the memory in octets that a hello asks for.
	Size func(Hello) int
}

// Hello is what the side that dials chooses.
type Hello struct {
	Frames int // a direction
}

const (
	magicLen   = 8
	helloLen   = magicLen + 4 + 4 // the last four are zero
	meetWithin = 2 * time.Second  // both sides are on this machine
)

// room is the name of a listener's socket.
func (f *Family) room(port string) string { return "@rdmaperf/" + f.Name + "/" + port }

func (f *Family) put(h Hello) []byte {
	b := make([]byte, helloLen)
	copy(b, f.Magic)
	binary.BigEndian.PutUint32(b[magicLen:], uint32(h.Frames))
	return b
}

// parse is what a hello asks for, within the family's bounds.
func (f *Family) parse(b []byte) (Hello, error) {
	if len(b) != helloLen || string(b[:magicLen]) != f.Magic {
		return Hello{}, errors.New("not a hello")
	}
	n, option := binary.BigEndian.Uint32(b[magicLen:]), binary.BigEndian.Uint32(b[magicLen+4:])
	if uint64(n) < uint64(f.MinFrames) || uint64(n) > uint64(f.MaxFrames) || bits.OnesCount32(n) != 1 {
		return Hello{}, fmt.Errorf("ring of %d frames", n)
	}
	if option != 0 {
		return Hello{}, fmt.Errorf("option %d", option)
	}
	return Hello{int(n)}, nil
}

// local reports whether a host is this machine.
func local(host string) bool {
	if host == "" || host == "localhost" {
		return true
	}
	ip := net.ParseIP(host)
	if ip == nil {
		ips, err := net.LookupIP(host)
		if err != nil || len(ips) == 0 {
			return false
		}
		ip = ips[0]
	}
	if ip.IsLoopback() || ip.IsUnspecified() {
		return true
	}
	addrs, _ := net.InterfaceAddrs()
	for _, a := range addrs {
		if n, ok := a.(*net.IPNet); ok && n.IP.Equal(ip) {
			return true
		}
	}
	return false
}

// Six reports whether a host is an address of IPv6. A name is not, nor is no host at all.
func Six(host string) bool {
	ip, err := netip.ParseAddr(host)
	return err == nil && ip.Is6() && !ip.Is4In6()
}

// Target takes "host:port" apart. Error: another machine, or no port.
func Target(addr string) (host, port string, n uint16, err error) {
	host, port, err = net.SplitHostPort(addr)
	if err != nil {
		return "", "", 0, err
	}
	if !local(host) {
		return "", "", 0, fmt.Errorf("%s is another machine: link=shm joins processes of one", host)
	}
	v, err := strconv.ParseUint(port, 10, 16)
	if err != nil {
		return "", "", 0, fmt.Errorf("port %q", port)
	}
	return host, port, uint16(v), nil
}
