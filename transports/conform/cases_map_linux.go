package conform

import (
	"fmt"
	"os"
	"runtime"
	"syscall"
	"unsafe"
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
