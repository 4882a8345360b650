package engine

import (
	"errors"
	"io"
	"net"
	"os"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

func policies(policy uint32) (n int) {
	for _, tid := range Threads(nil) {
		if a, err := unix.SchedGetAttr(tid, 0); err == nil && a.Policy == policy {
			n++
		}
	}
	return n
}

// slackOf is a thread's timer slack, empty where it may not be read.
func slackOf(tid int) string {
	b, _ := os.ReadFile("/proc/" + strconv.Itoa(tid) + "/timerslack_ns")
	return strings.TrimSpace(string(b))
}

// Where slack may be changed, workers keep theirs and the others have it back.
func TestTimersOfOthersHaveSlackUntilTheLastWorkerEnds(t *testing.T) {
	var mayChange bool
	var before, within map[int]string
	slacks := func() map[int]string {
		all := map[int]string{}
		for _, tid := range Threads(nil) {
			all[tid] = slackOf(tid)
		}
		return all
	}
	worker := 0
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		runtime.LockOSThread() // and never unlocks, as a worker
		worker = unix.Gettid()
		before = slacks()
		restore := demoteOthers(true)
		within = slacks()
		restore()
	}()
	<-ended
	for tid, was := range before {
		if now, still := within[tid]; still && tid != worker && now != was {
			mayChange = true
		}
	}
	if !mayChange {
		t.Skip("the slack of other threads takes CAP_SYS_NICE")
	}
	for tid, was := range before {
		now, still := within[tid]
		switch {
		case !still || was == "":
		case tid == worker && now != was:
			t.Errorf("the worker's slack went from %s to %s ns", was, now)
		case tid != worker && now != strconv.Itoa(demotedSlack):
			t.Errorf("thread %d has %s ns, want %d", tid, now, demotedSlack)
		}
		if after := slackOf(tid); after != "" && after != was {
			t.Errorf("thread %d has %s ns behind the worker, had %s", tid, after, was)
		}
	}
}

func TestThreadsAreThoseOfTheProcess(t *testing.T) {
	release, started := make(chan struct{}), make(chan int)
	defer close(release)
	mine := map[int]bool{}
	for range 150 { // more than one read of the directory tells
		go func() {
			runtime.LockOSThread()
			started <- unix.Gettid()
			<-release
		}()
		mine[<-started] = true
	}
	for _, tid := range Threads(nil) {
		if _, err := os.Stat("/proc/self/task/" + strconv.Itoa(tid)); err != nil && mine[tid] {
			t.Error(err)
		}
		delete(mine, tid)
	}
	if len(mine) > 0 {
		t.Errorf("%d threads are missing", len(mine))
	}
}

// Only workers keep their policy while there are any, and everybody has it back behind the last.
func TestOthersAreDemotedUntilTheLastWorkerEnds(t *testing.T) {
	if a, err := unix.SchedGetAttr(0, 0); err != nil || a.Policy != unix.SCHED_NORMAL {
		t.Skip("the tests were started under another scheduling policy")
	}
	enter, leave, ended := make(chan int), make(chan struct{}), make(chan struct{})
	for range 2 {
		go func() {
			runtime.LockOSThread() // and never unlocks, as a worker
			restore := demoteOthers(true)
			enter <- unix.Gettid()
			<-leave
			restore()
			ended <- struct{}{}
		}()
	}
	workers := []int{<-enter, <-enter}
	for _, tid := range Threads(nil) {
		a, err := unix.SchedGetAttr(tid, 0)
		if err != nil {
			continue
		}
		if want := slices.Contains(workers, tid); (a.Policy == unix.SCHED_NORMAL) != want {
			t.Errorf("thread %d, worker %v: policy %d", tid, want, a.Policy)
		}
	}
	leave <- struct{}{}
	<-ended
	if policies(unix.SCHED_BATCH) == 0 {
		t.Error("nobody is demoted although a worker is left")
	}
	leave <- struct{}{}
	<-ended
	if n := policies(unix.SCHED_BATCH); n > 0 {
		t.Errorf("%d threads are still demoted behind the last worker", n)
	}
}

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

// A thread with files of its own has no sockets among them, so that a connection closed by another ends at once.
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
