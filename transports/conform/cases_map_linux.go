package conform

import (
	"errors"
	"fmt"
	"os"
	"runtime"
	"syscall"
	"unsafe"

	"github.com/rdmaperf/rdmaperf/transports/rdma"
)

// MAP: registrations of pages of other kinds than those of private memory. They are listed with ACC.
var mapCases = []Case{
	{ID: "acc/huge-pages", Clause: "man ibv_reg_mr; man mmap (MAP_HUGETLB)", Needs: needWriteRead,
		Requirement: "Memory of huge pages is registered and used as any other, across their borders.",
		Run: func(e *Env) {
			c := e.connect(connOpts{})
			near := e.region(c.a, "near", 8192, e.sinkAccess())
			raw, kind, err := hugeMapping(2 * hugePage)
			mustRun(err)
			e.Note("%s", kind)
			far := e.mapped(c.b, "far", raw, raw, remoteAll)
			// Transparent ones begin at an aligned address, which is somewhere in the mapping.
			border := int(-far.buf.Addr() & (hugePage - 1))
			if border < 4096 {
				border += hugePage
			}
			c.bothWays(near, far.part(border-4096, near.n))
			e.allBytes(far.name+": bytes before", far.data()[:border-4096], 0)
			e.allBytes(far.name+": bytes behind", far.data()[border+4096:], 0)
		}},
	{ID: "acc/file-mapping", Clause: "man ibv_reg_mr; man mmap (MAP_SHARED)", Needs: needWriteRead,
		Requirement: "Of a shared mapping of a file, remote writes reach the file, and remote reads see what is " +
			"written to it.", Run: func(e *Env) {
			c := e.connect(connOpts{})
			f, err := os.CreateTemp("", "rdmaperf-conform-")
			mustRun(err)
			e.onClose(rankMem, nil, "file", func() error { f.Close(); return os.Remove(f.Name()) })
			const size = 8192
			mustRun(f.Truncate(size))
			raw, err := syscall.Mmap(int(f.Fd()), 0, size, syscall.PROT_READ|syscall.PROT_WRITE, syscall.MAP_SHARED)
			mustRun(err)
			near := e.region(c.a, "near", size, e.sinkAccess())
			far := e.mapped(c.b, "far", raw, raw, remoteAll)
			near.fill(1)
			c.writes(near, far)
			got := make([]byte, size)
			_, err = f.ReadAt(got, 0)
			mustRun(err)
			e.equal(far.name+", as the file has it", got, near.data())
			pattern(got, 2)
			_, err = f.WriteAt(got, 0)
			mustRun(err)
			c.a.do(read(2, far.at(0), near.all()))
			near.holds(got)
		}},
	{ID: "acc/fork", Clause: "man ibv_fork_init", Needs: needWriteRead,
		Requirement: "While a child of fork shares the pages, registered memory that was advised MADV_DONTFORK takes " +
			"part in transfers as before.", Run: func(e *Env) {
			// Both sides write while a child shares the pages. Without the advice the first
			// write of the processor would give the process another page than the device's.
			c := e.connect(connOpts{})
			raw := anonymous(2*os.Getpagesize(), 0)
			near := e.region(c.a, "near", len(raw), e.sinkAccess())
			const madvDontfork = 10
			mustRun(syscall.Madvise(raw, madvDontfork))
			far := e.mapped(c.b, "far", raw, raw, remoteAll)
			far.fill(1)
			end, err := forkIdle()
			mustRun(err)
			far.fill(2) // a copy on write, were the pages shared with the child
			c.reads(far, near)
			near.fill(4)
			c.writes(near, far)
			mustRun(end())
			e.equal(far.name+", after the child", far.data(), near.data())
		}},
	{ID: "lrg/above-4gib", Clause: "RFC 5041 §4.1 (64 bits of tagged offset); man ibv_reg_mr (size_t length)",
		Profile: Full, Memory: 6 << 30, Needs: needWriteRead,
		Requirement: "Of a registration above 4 GiB, writes and reads reach the bytes across and above that border, " +
			"and no others.", Run: func(e *Env) {
			// Few pages are touched, but a device may pin all of them.
			const border = 4 << 30
			raw := anonymous(border+1<<20, syscall.MAP_NORESERVE)
			c := e.connect(connOpts{})
			near := e.region(c.a, "near", 8192, e.sinkAccess())
			far := e.mapped(c.b, "far", raw, raw, remoteAll)
			if far.mr.Len() != uint64(len(raw)) {
				e.failf(fmt.Sprintf("a registration of %d bytes", len(raw)), "%d", far.mr.Len())
			}
			for _, off := range []int{border - 4096, border, border + 1<<20 - 8192, 0} {
				c.bothWays(near, far.part(off, near.n))
			}
			// An offset cut to 32 bits would have landed 4 GiB lower.
			e.allBytes(far.name+": bytes above the first", far.data()[8192:1<<20], 0)
		}},
}

const hugePage = 2 << 20 // of x86 and of arm64 with pages of 4 KiB

// hugeMapping maps n bytes of huge pages: reserved ones where the system has them,
// else by asking for transparent ones, which it may decline. It returns which.
func hugeMapping(n int) (raw []byte, kind string, err error) {
	const prot = syscall.PROT_READ | syscall.PROT_WRITE
	if raw, err = syscall.Mmap(-1, 0, n, prot, syscall.MAP_PRIVATE|syscall.MAP_ANON|syscall.MAP_HUGETLB); err == nil {
		return raw, "reserved huge pages", nil
	}
	if raw, err = syscall.Mmap(-1, 0, n+hugePage, prot, syscall.MAP_PRIVATE|syscall.MAP_ANON); err != nil {
		return nil, "", err
	}
	const madvHugepage = 14
	if syscall.Madvise(raw, madvHugepage) != nil {
		return raw, "ordinary pages: the system has no huge ones", nil
	}
	return raw, "transparent huge pages, as far as the system gives them", nil
}

// forkIdle makes a child of fork that waits until end is called, which also takes its exit code. The child has one
// thread and runs nothing but system calls, as Go's scheduler needs more.
func forkIdle() (end func() error, err error) {
	var p [2]int
	if err := syscall.Pipe2(p[:], syscall.O_CLOEXEC); err != nil {
		return nil, err
	}
	runtime.LockOSThread()
	pid, errno := forkWaiting(uintptr(p[0]), uintptr(p[1]))
	runtime.UnlockOSThread()
	syscall.Close(p[0])
	if errno != 0 {
		syscall.Close(p[1])
		return nil, errno
	}
	return func() error {
		syscall.Close(p[1])
		var st syscall.WaitStatus
		if _, err := syscall.Wait4(int(pid), &st, 0, nil); err != nil {
			return err
		}
		if st.ExitStatus() != 0 {
			return fmt.Errorf("child of fork: %v", st)
		}
		return nil
	}, nil
}

//go:norace
//go:nosplit
//go:noinline
func forkWaiting(wait, other uintptr) (pid uintptr, errno syscall.Errno) {
	var b [1]byte
	pid, _, errno = syscall.RawSyscall6(syscall.SYS_CLONE, uintptr(syscall.SIGCHLD), 0, 0, 0, 0, 0)
	if errno != 0 || pid != 0 {
		return pid, errno
	}
	syscall.RawSyscall(syscall.SYS_CLOSE, other, 0, 0)
	syscall.RawSyscall(syscall.SYS_READ, wait, uintptr(unsafe.Pointer(&b)), 1)
	for {
		syscall.RawSyscall(syscall.SYS_EXIT_GROUP, 0, 0, 0)
	}
}

// PAGE: what the pages of a mapping allow, and pages that come and go. They are listed with ACC and LRG.
var pageCases = []Case{
	{ID: "acc/read-only-pages", Clause: "man ibv_reg_mr (EFAULT); man mprotect", Needs: needRead,
		Requirement: "Memory that may only be read is not registered for writing; for reading it is, and a peer " +
			"reads it.", Run: func(e *Env) {
			c := e.connect(connOpts{})
			raw := anonymous(8192, 0)
			pattern(raw, 1)
			mustRun(syscall.Mprotect(raw, syscall.PROT_READ))
			far := e.mapped(c.b, "far", raw, raw, rdma.RemoteRead)
			for _, acc := range []rdma.Access{localOnly, remoteAll} {
				mr, err := c.b.dev.RegMR(c.b.pd, far.buf, acc)
				if err == nil {
					e.must("close registration", mr.Close())
				}
				if err == nil || errors.Is(err, rdma.ErrNotSupported) {
					e.failf(fmt.Sprintf("pages that may only be read are refused with rights %#x", acc), "%v", err)
				}
			}
			near := e.region(c.a, "near", 8192, e.sinkAccess())
			c.reads(far, near)
			c.works()
		}},
	{ID: "acc/on-demand", Clause: "man ibv_reg_mr (IBV_ACCESS_ON_DEMAND)",
		Needs: rdma.Need{Ops: rdma.Ops(rdma.OpWrite, rdma.OpRead), OnDemand: true},
		Requirement: "Under an on-demand registration a peer reaches pages that nobody has touched yet, and the new " +
			"ones of pages that were dropped.", Run: func(e *Env) {
			const pages, size = 64, 8192
			c := e.connect(connOpts{})
			near := e.region(c.a, "near", size, e.sinkAccess())
			far := e.mapping(c.b, "far", pages*4096, remoteAll|rdma.OnDemand)
			const off = 7*4096 + 100 // three pages that nobody has touched
			part := far.part(off, size)
			near.fill(1)
			c.writes(near, part)
			e.allBytes(far.name+": bytes before", far.data()[:off], 0)
			e.allBytes(far.name+": bytes behind", far.data()[off+size:], 0)
			drop(far.data()) // a device that had pinned them would go on with the old ones
			near.fill(2)
			c.reads(part, near)
			e.allBytes(near.name+": of dropped pages", near.data(), 0)
			near.fill(3)
			c.writes(near, part)
		}},
	{ID: "acc/on-demand-page", Clause: "man ibv_reg_mr (IBV_ACCESS_ON_DEMAND)",
		Needs: rdma.Need{Ops: rdma.Ops(rdma.OpWrite, rdma.OpRead), OnDemand: true},
		Requirement: "Under an on-demand registration a message that begins where a page does and ends in it finds a " +
			"page that nobody has touched, and the new one behind a drop.", Run: func(e *Env) {
			// A packet that begins with a page needs the right page and no offset in it.
			// 256 bytes are one packet under any MTU.
			const pages, size = 8, 256
			c := e.connect(connOpts{})
			near := e.region(c.a, "near", size, e.sinkAccess())
			far := e.mapping(c.b, "far", pages*4096, remoteAll|rdma.OnDemand)
			page := func(i int) []byte { return far.data()[i*4096 : (i+1)*4096] }
			for round := range 2 { // in the second one the registration has had other pages
				for i := 0; i < pages; i += 2 {
					near.fill(uint64(10*round + i))
					c.writes(near, far.part(i*4096, size))
					e.allBytes(fmt.Sprintf("%s: rest of page %d, round %d", far.name, i, round), page(i)[size:], 0)
					e.allBytes(fmt.Sprintf("%s: page %d, which was not written, round %d", far.name, i+1, round),
						page(i+1), 0)
				}
				drop(far.data())
				for i := range pages {
					near.fill(uint64(90 + i))
					c.a.do(read(i, far.at(i*4096), near.all()))
					e.allBytes(fmt.Sprintf("%s: dropped page %d, round %d", near.name, i, round), near.data(), 0)
				}
			}
		}},
	{ID: "acc/on-demand-in-flight", Clause: "man ibv_reg_mr (IBV_ACCESS_ON_DEMAND); man madvise (MADV_DONTNEED)",
		Needs: rdma.Need{Ops: rdma.Ops(rdma.OpWrite, rdma.OpRead), OnDemand: true},
		Requirement: "Pages of an on-demand registration that are dropped under a stream of writes end no write and " +
			"change no byte around them.", Run: func(e *Env) {
			const size = 16 * 4096
			c := e.connect(connOpts{})
			near := e.region(c.a, "near", size, e.sinkAccess())
			far := e.mapping(c.b, "far", 3*size, remoteAll|rdma.OnDemand)
			mid := far.data()[size : 2*size]
			near.fill(1)
			pattern(far.data()[:size], 2)
			pattern(far.data()[2*size:], 3)
			n := e.loops(500, 20000)
			for i := range n {
				c.a.push(write(i, far.at(size), near.all()))
				drop(mid) // whatever of it has come
				e.step()
			}
			c.a.s.expectOK(0, n)
			c.barrier()
			c.writes(near, far.part(size, size)) // behind the last drop
			e.equal(far.name+": pages before", far.data()[:size], patternOf(size, 2))
			e.equal(far.name+": pages behind", far.data()[2*size:], patternOf(size, 3))
		}},
	{ID: "lrg/longest", Clause: "IBTA 9.4.3: messages of up to 2^31 bytes; RFC 5041 §4: below 2^32", Profile: Full,
		Memory: 6 << 30, Needs: needSendWrite,
		Requirement: "Messages of the advertised limit, gathered from parts, arrive whole: written, and sent into " +
			"parts.", Run: func(e *Env) {
			// No power of two: bytes that land 2^31 or 2^32 too low would show.
			const ring, shift = 32<<20 + 4096, 4099
			n := int(min(e.Caps.MaxMsg, 1<<32-1))
			c := e.connect(connOpts{})
			raw := e.repeated(n+shift, ring)
			src := e.mapped(c.a, "src", raw, raw, localOnly)
			dst := e.mapping(c.b, "dst", n+4096, remoteAll)
			pattern(src.data()[:ring], e.salt)
			whole := func(how string, off int) {
				for at := 0; at < n; at += ring {
					to := min(at+ring, n)
					e.equal(fmt.Sprintf("%s: bytes %d to %d, %s", dst.name, at, to, how), dst.data()[at:to],
						src.data()[off+at:off+to])
				}
				e.allBytes(dst.name+": bytes behind, "+how, dst.data()[n:], 0)
			}
			c.a.do(write(1, dst.at(0), src.parts(0, n)...))
			c.barrier()
			whole("written", 0)
			c.message(send(2, src.parts(shift, n)...), recv(2, dst.parts(0, n)...))
			whole("sent", shift)
			e.Note("messages of %d bytes in %d parts", n, e.Caps.MaxSGE)
		}},
}

func drop(b []byte) { mustRun(syscall.Madvise(b, syscall.MADV_DONTNEED)) }

func (e *Env) mapping(x *end, name string, n int, access rdma.Access) *region {
	raw := anonymous(n, syscall.MAP_NORESERVE)
	return e.mapped(x, name, raw, raw, access)
}

// repeated maps ring bytes of shared memory over and over, for n bytes and what is left
// of the last round: a source of any length that takes little memory.
func (e *Env) repeated(n, ring int) []byte {
	f, err := os.CreateTemp("", "rdmaperf-conform-")
	mustRun(err)
	defer f.Close()
	mustRun(errors.Join(os.Remove(f.Name()), f.Truncate(int64(ring))))
	raw := anonymous((n+ring-1)/ring*ring, syscall.MAP_NORESERVE)
	for off := 0; off < len(raw); off += ring {
		_, _, errno := syscall.Syscall6(syscall.SYS_MMAP, uintptr(unsafe.Pointer(&raw[off])), uintptr(ring),
			syscall.PROT_READ|syscall.PROT_WRITE, syscall.MAP_SHARED|syscall.MAP_FIXED, f.Fd(), 0)
		if errno != 0 {
			panic(halt{errno})
		}
	}
	return raw
}

func (r *region) parts(off, n int) []rdma.SGE {
	var g []rdma.SGE
	most := r.e.Caps.MaxSGE
	for i := range most {
		from, to := n/most*i, n/most*(i+1)
		if i == most-1 {
			to = n
		}
		g = append(g, r.sge(off+from, to-from))
	}
	return g
}
