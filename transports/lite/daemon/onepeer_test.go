package daemon

import (
	"testing"

	"github.com/rdmaperf/rdmaperf/transports/lite"
)

// A client that makes the loop of all clients panic ends alone.
func TestAPanicEndsOneClientAlone(t *testing.T) {
	w := open(t, 2, Config{})
	a, b := w.dial(t, ClientConfig{}), w.dial(t, ClientConfig{})
	h, err := b.Malloc(lite.RegionConfig{Name: "r", Size: 4096, Nodes: []int{0}, Open: lite.PermAll})
	check(t, err)
	w.daemon.mu.Lock()
	list := append([]*conn(nil), *w.daemon.conns.Load()...)
	real := list[0]
	// Of the first client, one without its page beside the true one.
	list = append(list, &conn{daemon: w.daemon, socket: real.socket, doorbell: real.doorbell, blocking: real.blocking,
		stopped: make(chan struct{})})
	w.daemon.conns.Store(&list)
	w.daemon.mu.Unlock()
	w.daemon.kick()
	until(t, "the end of the first client", a.ended.Load)
	check(t, b.Write(h, 0, []byte("x")))
}
