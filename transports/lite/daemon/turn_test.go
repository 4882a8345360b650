package daemon

import (
	"testing"

	"github.com/rdmaperf/rdmaperf/internal/expect"
	"github.com/rdmaperf/rdmaperf/transports/lite"
)

// A client whose turn panics in the loop of all clients ends: the loop goes on, and drops it.
func TestAPanicEndsOneClientAlone(t *testing.T) {
	w := open(t, 2, Config{})
	w.dial(t, ClientConfig{})
	until(t, "the daemon serves its client", func() bool { return w.daemon.Clients() == 1 })
	real := (*w.daemon.conns.Load())[0]
	c := &conn{daemon: w.daemon, socket: real.socket, doorbell: real.doorbell, blocking: real.blocking,
		stopped: make(chan struct{})} // without a page
	if busy, waits := c.turn(); busy || waits || !c.closing.Load() {
		t.Errorf("busy %v, waits %v, closing %v", busy, waits, c.closing.Load())
	}
}

// A peer that does not answer keeps no daemon polling: it sleeps, although a call is under way.
func TestTheDaemonSleepsWhileAPeerDoesNotAnswer(t *testing.T) {
	w := open(t, 1, Config{})
	called, answer := make(chan struct{}), make(chan struct{})
	port, err := w.far.Serve(3, lite.PortConfig{Handle: func(r *lite.Request) {
		close(called)
		<-answer
		expect.OK(t, r.Reply(r.Payload))
	}})
	expect.OK(t, err)
	defer port.Close()
	c := w.dial(t, ClientConfig{})
	end := make(chan error, 1)
	go func() {
		_, err := c.Call(0, 3, []byte("late"))
		end <- err
	}()
	<-called
	page := (*w.daemon.conns.Load())[0].page
	until(t, "asleep", func() bool { return page.word(wordIdle).Load() == 1 })
	close(answer)
	expect.OK(t, <-end)
}
