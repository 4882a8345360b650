//go:build cgo && linux

package verbs

import (
	"os"
	"syscall"
	"time"
)

// watcher is a goroutine that sleeps until a descriptor is readable, of which it has a duplicate.
type watcher struct {
	file *os.File
	done chan struct{}
}

// watch calls drain whenever the non-blocking fd may have something to read, from one goroutine that stop joins.
func watch(fd int, drain func()) (*watcher, error) {
	dup, err := syscall.Dup(fd)
	if err != nil {
		return nil, err
	}
	syscall.CloseOnExec(dup)
	w := &watcher{file: os.NewFile(uintptr(dup), "rdma events"), done: make(chan struct{})}
	raw, err := w.file.SyscallConn()
	if err == nil {
		err = w.file.SetReadDeadline(time.Time{}) // fails where the descriptor cannot be polled
	}
	if err != nil {
		w.file.Close()
		return nil, err
	}
	go func() {
		defer close(w.done)
		raw.Read(func(uintptr) bool {
			drain()
			return false
		})
	}()
	return w, nil
}

func (w *watcher) stop() {
	w.file.SetReadDeadline(time.Unix(1, 0))
	<-w.done
	w.file.Close()
}
