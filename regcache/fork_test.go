package regcache

import (
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// whileForked runs f while a child of fork(2) shares this process's pages, and tells
// whether the child has the page at addr. The child runs nothing but system calls: it
// has one thread, and Go's scheduler needs more.
func whileForked(addr uint64, f func()) (has bool, err error) {
	var wait, ready [2]int
	if err := unix.Pipe2(wait[:], unix.O_CLOEXEC); err != nil {
		return false, err
	}
	defer unix.Close(wait[0])
	if err := unix.Pipe2(ready[:], unix.O_CLOEXEC); err != nil {
		return false, err
	}
	defer unix.Close(ready[0])
	defer unix.Close(ready[1])
	pid, errno := forkChild(uintptr(addr), uintptr(wait[0]), uintptr(wait[1]), uintptr(ready[1]))
	if errno != 0 {
		return false, errno
	}
	var b [1]byte
	if _, err := unix.Read(ready[0], b[:]); err != nil {
		return false, err
	}
	f()
	unix.Close(wait[1]) // the child ends
	var st syscall.WaitStatus
	if _, err := syscall.Wait4(int(pid), &st, 0, nil); err != nil {
		return false, err
	}
	return st.ExitStatus() == 0, nil
}

//go:norace
//go:nosplit
//go:noinline
func forkChild(addr, wait, end, ready uintptr) (pid uintptr, errno syscall.Errno) {
	var vec, b [8]byte
	pid, _, errno = syscall.RawSyscall6(syscall.SYS_CLONE, uintptr(syscall.SIGCHLD), 0, 0, 0, 0, 0)
	if errno != 0 || pid != 0 {
		return pid, errno
	}
	code := uintptr(0)
	if _, _, e := syscall.RawSyscall(syscall.SYS_MINCORE, addr, 4096, uintptr(unsafe.Pointer(&vec))); e != 0 {
		code = 1
	}
	syscall.RawSyscall(syscall.SYS_CLOSE, end, 0, 0)
	syscall.RawSyscall(syscall.SYS_WRITE, ready, uintptr(unsafe.Pointer(&b)), 1)
	syscall.RawSyscall(syscall.SYS_READ, wait, uintptr(unsafe.Pointer(&b)), 1)
	for {
		syscall.RawSyscall(syscall.SYS_EXIT_GROUP, code, 0, 0)
	}
}
