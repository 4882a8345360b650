package engine

import (
	"errors"
	"io"
	"net"
	"os"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// A worker's thread is never the main one, whose changes would stay until the process ends.
func TestWorkersAreNotOnTheMainThread(t *testing.T) {
	for range 100 {
		tid := make(chan int)
		onOwnThread(func() { tid <- unix.Gettid() })
		if got := <-tid; got == unix.Getpid() {
			t.Fatal("a worker ran on the main thread")
		}
	}
}

// A thread with files of its own has no sockets among them, so that a connection that
// another thread closes ends at once; it has everything else.
func TestAThreadOfOwnFilesHoldsNoConnection(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	near, err := net.Dial("tcp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	far, err := l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	defer far.Close()
	file, err := os.CreateTemp(t.TempDir(), "")
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	ready, finish, ended := make(chan error), make(chan struct{}), make(chan struct{})
	fd := int(file.Fd())
	onOwnThread(func() {
		defer close(ended)
		ownFiles()
		var st unix.Stat_t
		ready <- unix.Fstat(fd, &st)
		<-finish
	})
	if err := <-ready; err != nil {
		t.Errorf("the thread lost an open file: %v", err)
	}
	near.Close()
	far.SetReadDeadline(time.Now().Add(10 * time.Second))
	if _, err := far.Read(make([]byte, 1)); !errors.Is(err, io.EOF) {
		t.Errorf("the peer of a closed connection reads %v, want the end", err)
	}
	close(finish)
	<-ended
}
