package shm

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"time"

	"golang.org/x/sys/unix"
)

const seals = unix.F_SEAL_SHRINK | unix.F_SEAL_GROW | unix.F_SEAL_SEAL

// sameUser checks who is at the other end (unix(7), SO_PEERCRED).
func sameUser(c *net.UnixConn) error {
	raw, err := c.SyscallConn()
	if err != nil {
		return err
	}
	var cred *unix.Ucred
	var cerr error
	if err := raw.Control(func(fd uintptr) {
		cred, cerr = unix.GetsockoptUcred(int(fd), unix.SOL_SOCKET, unix.SO_PEERCRED)
	}); err != nil {
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

// Knock meets the process that listens at port: the socket to it, and the memory.
func (f *Family) Knock(ctx context.Context, port string, h Hello) (*net.UnixConn, []byte, error) {
	ctx, cancel := context.WithTimeout(ctx, meetWithin)
	defer cancel()
	nc, err := (&net.Dialer{}).DialContext(ctx, "unix", f.room(port))
	if err != nil {
		return nil, nil, err
	}
	c := nc.(*net.UnixConn)
	if dl, ok := ctx.Deadline(); ok {
		c.SetDeadline(dl)
	}
	mem, err := f.Offer(c, h)
	if err != nil {
		c.Close()
		return nil, nil, err
	}
	c.SetDeadline(time.Time{})
	return c, mem, nil
}

// Offer makes the memory and hands it over on c, which stays the caller's. Its deadline bounds the call.
func (f *Family) Offer(c *net.UnixConn, h Hello) ([]byte, error) {
	if err := sameUser(c); err != nil {
		return nil, err
	}
	fd, err := unix.MemfdCreate("rdmaperf ring", unix.MFD_CLOEXEC|unix.MFD_ALLOW_SEALING)
	if err != nil {
		return nil, os.NewSyscallError("memfd_create", err)
	}
	defer unix.Close(fd)
	size := f.Size(h)
	if err := unix.Ftruncate(fd, int64(size)); err != nil {
		return nil, os.NewSyscallError("ftruncate", err)
	}
	if _, err := unix.FcntlInt(uintptr(fd), unix.F_ADD_SEALS, seals); err != nil {
		return nil, os.NewSyscallError("fcntl", err)
	}
	if _, _, err := c.WriteMsgUnix(f.put(h), unix.UnixRights(fd), nil); err != nil {
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

// welcome takes the memory of a process that knocked. c stays the caller's.
func (f *Family) welcome(c *net.UnixConn) (mem []byte, h Hello, err error) {
	if err := sameUser(c); err != nil {
		return nil, h, err
	}
	hello, oob := make([]byte, helloLen), make([]byte, unix.CmsgSpace(4*4))
	n, on, _, _, err := c.ReadMsgUnix(hello, oob)
	if err != nil {
		return nil, h, err
	}
	fds := received(oob[:on])
	defer func() {
		for _, fd := range fds {
			unix.Close(fd)
		}
	}()
	if h, err = f.parse(hello[:n]); err != nil {
		return nil, h, err
	}
	if len(fds) != 1 {
		return nil, h, fmt.Errorf("%d descriptors instead of one", len(fds))
	}
	// Memory that could shrink would be a SIGBUS at the sender's pleasure.
	if got, err := unix.FcntlInt(uintptr(fds[0]), unix.F_GET_SEALS, 0); err != nil || got&seals != seals {
		return nil, h, errors.New("the memory is not sealed")
	}
	var st unix.Stat_t
	size := f.Size(h)
	if err := unix.Fstat(fds[0], &st); err != nil || st.Size != int64(size) {
		return nil, h, fmt.Errorf("memory of %d bytes for %d frames: %w", st.Size, h.Frames,
			errors.Join(err, unix.EINVAL))
	}
	if mem, err = mapRing(fds[0], size); err != nil {
		return nil, h, err
	}
	if _, err := c.Write([]byte{1}); err != nil {
		unix.Munmap(mem)
		return nil, h, err
	}
	return mem, h, nil
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
