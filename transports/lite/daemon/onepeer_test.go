package daemon

import "testing"

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
