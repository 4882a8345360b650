package daemon

import (
	"testing"

	"github.com/rdmaperf/rdmaperf/internal/expect"
	"github.com/rdmaperf/rdmaperf/transports/lite"
)

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
