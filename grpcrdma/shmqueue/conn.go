package shmqueue

import (
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"runtime"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

const (
	headLen = 4096 // of a queue, before its bytes: positions, each on its own cache lines
	minSize = 4 << 10
	maxSize = 1 << 30
	numFDs  = 5 // the memory, then the eventfds: reader and writer of each queue
)

// ErrCorrupt: the other process left positions that no queue can have.
var ErrCorrupt = errors.New("the peer corrupted the shared queue")

// queue is one direction. head and tail count bytes since the beginning.
type queue struct {
	head, tail       *atomic.Uint64 // of the consumer, of the producer
	readers, writers *atomic.Uint32 // 1: sleeps
	closed           *atomic.Uint32
	data             []byte // a power of two long
	readable, room   *os.File
}

func at[T any](m []byte, off int) *T { return (*T)(unsafe.Pointer(&m[off])) }

func newQueue(m []byte, readable, room *os.File) queue {
	return queue{head: at[atomic.Uint64](m, 0), tail: at[atomic.Uint64](m, 128), readers: at[atomic.Uint32](m, 256),
		writers: at[atomic.Uint32](m, 384), closed: at[atomic.Uint32](m, 512), data: m[headLen:], readable: readable,
		room: room}
}

// Conn is one end. It implements net.Conn.
type Conn struct {
	in, out queue
	busy    time.Duration
	name    string

	reading, writing sync.Mutex // both are held to unmap
	mapping          []byte
	files            []*os.File
	closed           atomic.Bool
	rd, wd           atomic.Int64 // deadlines in nanoseconds of the clock; 0 for none
}

var _ net.Conn = (*Conn)(nil)

// Pair makes a stream whose queues hold size bytes each, a power of two from 4 KiB to 1 GiB. busy is how long this side
// polls before it sleeps. files are the other end, for Open; the caller closes them when they are passed on.
func Pair(name string, size int, busy time.Duration) (c *Conn, files []*os.File, err error) {
	if size < minSize || size > maxSize || size&(size-1) != 0 {
		return nil, nil, fmt.Errorf("shared queue of %d bytes, want a power of two from %d to %d", size, minSize, maxSize)
	}
	defer func() {
		if err != nil {
			closeAll(files)
			files = nil
		}
	}()
	fd, err := unix.MemfdCreate("rdmaperf-queue", unix.MFD_CLOEXEC|unix.MFD_ALLOW_SEALING)
	if err != nil {
		return nil, nil, os.NewSyscallError("memfd_create", err)
	}
	files = append(files, os.NewFile(uintptr(fd), "queue"))
	if err = unix.Ftruncate(fd, int64(2*(headLen+size))); err != nil {
		return nil, files, os.NewSyscallError("ftruncate", err)
	}
	// A peer that shrank the memory would end this process with SIGBUS.
	if _, err = unix.FcntlInt(uintptr(fd), unix.F_ADD_SEALS,
		unix.F_SEAL_SHRINK|unix.F_SEAL_GROW|unix.F_SEAL_SEAL); err != nil {
		return nil, files, os.NewSyscallError("fcntl", err)
	}
	for range numFDs - 1 {
		e, err := unix.Eventfd(0, unix.EFD_CLOEXEC|unix.EFD_NONBLOCK)
		if err != nil {
			return nil, files, os.NewSyscallError("eventfd", err)
		}
		files = append(files, os.NewFile(uintptr(e), "eventfd"))
	}
	var own []*os.File
	for _, f := range files {
		d, err := unix.FcntlInt(f.Fd(), unix.F_DUPFD_CLOEXEC, 0)
		if err != nil {
			closeAll(own)
			return nil, files, os.NewSyscallError("dup", err)
		}
		unix.SetNonblock(d, true) // Fd made the description block
		own = append(own, os.NewFile(uintptr(d), f.Name()))
	}
	c, err = open(name, own, busy, false)
	return c, files, err
}

// Open is the other end of a Pair. It owns files from success on.
func Open(name string, files []*os.File, busy time.Duration) (*Conn, error) {
	return open(name, files, busy, true)
}

func open(name string, files []*os.File, busy time.Duration, other bool) (*Conn, error) {
	fail := func(err error) (*Conn, error) { return nil, fmt.Errorf("open shared queue: %w", err) }
	if len(files) != numFDs {
		return fail(fmt.Errorf("%d files, want %d", len(files), numFDs))
	}
	info, err := files[0].Stat()
	if err != nil {
		return fail(err)
	}
	n := int(info.Size())
	size := n/2 - headLen
	seals, err := unix.FcntlInt(files[0].Fd(), unix.F_GET_SEALS, 0)
	if err != nil || seals&unix.F_SEAL_SHRINK == 0 || size < minSize || size > maxSize || size&(size-1) != 0 || n%2 != 0 {
		return fail(fmt.Errorf("memory of %d bytes with seals %#x: %w", n, seals, ErrCorrupt))
	}
	m, err := unix.Mmap(int(files[0].Fd()), 0, n, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
	if err != nil {
		return fail(os.NewSyscallError("mmap", err))
	}
	c := &Conn{mapping: m, files: files, busy: busy, name: name}
	a := newQueue(m[:n/2], files[1], files[2])
	b := newQueue(m[n/2:], files[3], files[4])
	c.in, c.out = a, b
	if other {
		c.in, c.out = b, a
	}
	return c, nil
}

func closeAll(files []*os.File) {
	for _, f := range files {
		f.Close()
	}
}

// Read takes at least a byte. It returns io.EOF when the other end is closed and all it wrote was taken.
func (c *Conn) Read(p []byte) (int, error) {
	c.reading.Lock()
	defer c.reading.Unlock()
	q := &c.in
	for len(p) > 0 {
		if err := c.open(&c.rd); err != nil {
			return 0, err
		}
		over := q.closed.Load() != 0 // before the position: what was written before is still taken
		head := q.head.Load()
		have := q.tail.Load() - head
		switch {
		case have > uint64(len(q.data)):
			return 0, ErrCorrupt
		case have == 0 && over:
			return 0, io.EOF
		case have == 0:
			if err := c.wait(q, true); err != nil {
				return 0, err
			}
			continue
		}
		i := int(head) & (len(q.data) - 1)
		n := copy(p, q.data[i:min(len(q.data), i+int(have))])
		n += copy(p[n:], q.data[:int(have)-min(int(have), len(q.data)-i)])
		q.head.Store(head + uint64(n))
		wake(q.writers, q.room)
		return n, nil
	}
	return 0, nil
}

// Write writes all of p, and waits for room.
func (c *Conn) Write(p []byte) (n int, err error) {
	c.writing.Lock()
	defer c.writing.Unlock()
	q := &c.out
	for n < len(p) {
		if err := c.open(&c.wd); err != nil {
			return n, err
		}
		if q.closed.Load() != 0 {
			return n, syscall.EPIPE
		}
		tail := q.tail.Load()
		used := tail - q.head.Load()
		switch {
		case used > uint64(len(q.data)):
			return n, ErrCorrupt
		case used == uint64(len(q.data)):
			if err := c.wait(q, false); err != nil {
				return n, err
			}
			continue
		}
		k := min(len(p)-n, len(q.data)-int(used))
		i := int(tail) & (len(q.data) - 1)
		first := copy(q.data[i:], p[n:n+k])
		copy(q.data, p[n+first:n+k])
		q.tail.Store(tail + uint64(k))
		n += k
		wake(q.readers, q.readable)
	}
	return n, nil
}

// open is an error at the end of this side, or at its deadline.
func (c *Conn) open(deadline *atomic.Int64) error {
	if c.closed.Load() {
		return net.ErrClosed
	}
	if d := deadline.Load(); d != 0 && time.Now().UnixNano() >= d {
		return os.ErrDeadlineExceeded
	}
	return nil
}

var one = [8]byte{0: 1} // what an eventfd counts, on a little-endian machine; any count wakes

func wake(sleeps *atomic.Uint32, ev *os.File) {
	if sleeps.Load() != 0 {
		ev.Write(one[:])
	}
}

func (q *queue) ready(reader bool) bool {
	used := q.tail.Load() - q.head.Load()
	if q.closed.Load() != 0 {
		return true
	}
	if reader {
		return used > 0
	}
	return used < uint64(len(q.data))
}

// wait polls, and then sleeps, until the queue may be ready.
func (c *Conn) wait(q *queue, reader bool) error {
	for begun := time.Now(); time.Since(begun) < c.busy; {
		for range 16 {
			if q.ready(reader) || c.closed.Load() {
				return nil
			}
			runtime.Gosched()
		}
		unix.Syscall(unix.SYS_SCHED_YIELD, 0, 0, 0) // the other side may share this processor
	}
	sleeps, ev := q.writers, q.room
	if reader {
		sleeps, ev = q.readers, q.readable
	}
	sleeps.Store(1)
	defer sleeps.Store(0)
	if q.ready(reader) {
		return nil
	}
	var b [8]byte
	_, err := ev.Read(b[:])
	switch {
	case errors.Is(err, os.ErrClosed):
		return net.ErrClosed
	case errors.Is(err, os.ErrDeadlineExceeded):
		return os.ErrDeadlineExceeded // itself: a net.Error, as callers ask for
	}
	return err
}

// Close ends both directions; the other side still takes what was written. Idempotent.
func (c *Conn) Close() error {
	if c.closed.Swap(true) {
		return nil
	}
	for _, q := range []*queue{&c.in, &c.out} {
		q.closed.Store(1)
		q.readable.Write(one[:])
		q.room.Write(one[:])
	}
	closeAll(c.files) // wakes sleepers
	c.reading.Lock()
	defer c.reading.Unlock()
	c.writing.Lock()
	defer c.writing.Unlock()
	return unix.Munmap(c.mapping)
}

// SetDeadline, SetReadDeadline and SetWriteDeadline are net.Conn's.
func (c *Conn) SetDeadline(t time.Time) error {
	return errors.Join(c.SetReadDeadline(t), c.SetWriteDeadline(t))
}

func (c *Conn) SetReadDeadline(t time.Time) error  { return set(&c.rd, c.in.readable, t) }
func (c *Conn) SetWriteDeadline(t time.Time) error { return set(&c.wd, c.out.room, t) }

func set(d *atomic.Int64, ev *os.File, t time.Time) error {
	n := int64(0)
	if !t.IsZero() {
		n = max(t.UnixNano(), 1)
	}
	d.Store(n)
	err := ev.SetReadDeadline(t)
	if errors.Is(err, os.ErrClosed) {
		return net.ErrClosed
	}
	return err
}

// Addr is the name of a queue, or where a service listens.
func Addr(name string) net.Addr { return &net.UnixAddr{Name: name, Net: "shm"} }

// LocalAddr and RemoteAddr are the name that the stream was given.
func (c *Conn) LocalAddr() net.Addr  { return Addr(c.name) }
func (c *Conn) RemoteAddr() net.Addr { return Addr(c.name) }
