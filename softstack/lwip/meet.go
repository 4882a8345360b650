//go:build lwip && cgo

package lwip

// #include "lw.h"
import "C"

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math/bits"
	"net"
	"os"
	"strconv"
	"time"

	"golang.org/x/sys/unix"
)

// How two processes meet. The one that dials makes the memory and sends
//
//	magic (8) · frames a direction, big endian (4) · 0 (4), with the memfd
//
// and the one that listens answers with one octet, 1. From then on an octet either
// way is a bell.
const (
	magic      = "rdmpring"
	helloLen   = 16
	meetWithin = 2 * time.Second // arbitrary: both sides are on this machine
	seals      = unix.F_SEAL_SHRINK | unix.F_SEAL_GROW | unix.F_SEAL_SEAL
)

// room is the name of a listener's socket.
func room(port string) string { return "@rdmaperf/lwip/" + port }

// sameUser checks who is at the other end (unix(7), SO_PEERCRED).
func sameUser(c *net.UnixConn) error {
	raw, err := c.SyscallConn()
	if err != nil {
		return err
	}
	var cred *unix.Ucred
	var cerr error
	if err := raw.Control(func(fd uintptr) { cred, cerr = unix.GetsockoptUcred(int(fd), unix.SOL_SOCKET, unix.SO_PEERCRED) }); err != nil {
		return err
	}
	if cerr != nil {
		return os.NewSyscallError("getsockopt", cerr)
	}
	if me := uint32(os.Geteuid()); cred.Uid != me && cred.Uid != 0 && me != 0 {
		return fmt.Errorf("the other process belongs to user %d: link=shm joins processes of one user", cred.Uid)
	}
	return nil
}

// knock makes a link to the process that listens at port.
func knock(ctx context.Context, s *Stack, port string) (*link, error) {
	ctx, cancel := context.WithTimeout(ctx, meetWithin)
	defer cancel()
	nc, err := (&net.Dialer{}).DialContext(ctx, "unix", room(port))
	if err != nil {
		return nil, err
	}
	c := nc.(*net.UnixConn)
	if dl, ok := ctx.Deadline(); ok {
		c.SetDeadline(dl)
	}
	mem, err := offer(c, s.cfg.Ring)
	if err != nil {
		c.Close()
		return nil, err
	}
	c.SetDeadline(time.Time{})
	return newLink(s, c, mem, s.cfg.Ring, 0, port)
}

func offer(c *net.UnixConn, slots int) ([]byte, error) {
	if err := sameUser(c); err != nil {
		return nil, err
	}
	fd, err := unix.MemfdCreate("rdmaperf ring", unix.MFD_CLOEXEC|unix.MFD_ALLOW_SEALING)
	if err != nil {
		return nil, os.NewSyscallError("memfd_create", err)
	}
	defer unix.Close(fd)
	size := int(C.lw_shm_size(C.uint32_t(slots)))
	if err := unix.Ftruncate(fd, int64(size)); err != nil {
		return nil, os.NewSyscallError("ftruncate", err)
	}
	if _, err := unix.FcntlInt(uintptr(fd), unix.F_ADD_SEALS, seals); err != nil {
		return nil, os.NewSyscallError("fcntl", err)
	}
	var hello [helloLen]byte
	copy(hello[:], magic)
	binary.BigEndian.PutUint32(hello[8:], uint32(slots))
	if _, _, err := c.WriteMsgUnix(hello[:], unix.UnixRights(fd), nil); err != nil {
		return nil, err
	}
	var yes [1]byte
	if _, err := c.Read(yes[:]); err != nil {
		return nil, fmt.Errorf("the listener refused the ring: %w", err)
	}
	if yes[0] != 1 {
		return nil, errors.New("the listener speaks another version of the ring")
	}
	return mapRing(fd, size)
}

func mapRing(fd, size int) ([]byte, error) {
	mem, err := unix.Mmap(fd, 0, size, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
	return mem, os.NewSyscallError("mmap", err)
}

// admit makes a link of a process that knocked. It owns c.
func admit(s *Stack, c *net.UnixConn) error {
	c.SetDeadline(time.Now().Add(meetWithin))
	mem, slots, err := welcome(c)
	if err != nil {
		c.Close()
		return err
	}
	c.SetDeadline(time.Time{})
	_, err = newLink(s, c, mem, slots, 1, "")
	return err
}

// parseHello is the number of frames that a hello asks for.
func parseHello(b []byte) (slots int, err error) {
	if len(b) != helloLen || string(b[:len(magic)]) != magic || binary.BigEndian.Uint32(b[12:]) != 0 {
		return 0, errors.New("not a hello")
	}
	n := binary.BigEndian.Uint32(b[8:])
	if n < MinRing || n > MaxRing || bits.OnesCount32(n) != 1 {
		return 0, fmt.Errorf("ring of %d frames", n)
	}
	return int(n), nil
}

func welcome(c *net.UnixConn) (mem []byte, slots int, err error) {
	if err := sameUser(c); err != nil {
		return nil, 0, err
	}
	hello, oob := make([]byte, helloLen), make([]byte, unix.CmsgSpace(4*4))
	n, on, _, _, err := c.ReadMsgUnix(hello, oob)
	if err != nil {
		return nil, 0, err
	}
	fds := received(oob[:on])
	defer func() {
		for _, fd := range fds {
			unix.Close(fd)
		}
	}()
	if slots, err = parseHello(hello[:n]); err != nil {
		return nil, 0, err
	}
	if len(fds) != 1 {
		return nil, 0, fmt.Errorf("%d descriptors instead of one", len(fds))
	}
	// Memory that could shrink would be a SIGBUS at the sender's pleasure.
	if got, err := unix.FcntlInt(uintptr(fds[0]), unix.F_GET_SEALS, 0); err != nil || got&seals != seals {
		return nil, 0, errors.New("the memory is not sealed")
	}
	var st unix.Stat_t
	size := int(C.lw_shm_size(C.uint32_t(slots)))
	if err := unix.Fstat(fds[0], &st); err != nil || st.Size != int64(size) {
		return nil, 0, fmt.Errorf("memory of %d bytes for %d frames: %w", st.Size, slots, errors.Join(err, unix.EINVAL))
	}
	if mem, err = mapRing(fds[0], size); err != nil {
		return nil, 0, err
	}
	if _, err := c.Write([]byte{1}); err != nil {
		unix.Munmap(mem)
		return nil, 0, err
	}
	return mem, slots, nil
}

// received are the descriptors in a control message.
func received(oob []byte) (fds []int) {
	msgs, err := unix.ParseSocketControlMessage(oob)
	if err != nil {
		return nil
	}
	for i := range msgs {
		if f, err := unix.ParseUnixRights(&msgs[i]); err == nil {
			fds = append(fds, f...)
		}
	}
	return fds
}

// local tells whether a host is this machine.
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

// target takes "host:port" apart.
func target(addr string) (host, port string, n uint16, err error) {
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
