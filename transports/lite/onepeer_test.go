package lite

import (
	"testing"
	"time"

	"github.com/rdmaperf/rdmaperf/internal/expect"
)

// A node whose message makes this one panic is lost alone: the others are served behind it.
func TestAPanicEndsOneNodeAlone(t *testing.T) {
	c := onMem(t, 3, Config{Timeout: time.Second})
	for _, n := range c.nodes {
		expect.OK(t, n.Await(soon(t), 3))
	}
	defer expect.Get(c.nodes[0].Serve(3, PortConfig{MaxRequest: 100, Handle: func(r *Request) {
		if string(r.Payload) == "panic" {
			panic("injected")
		}
		_ = r.Reply(r.Payload)
	}}))(t).Close()
	bad, good := c.client(1, ClientConfig{MaxReply: 100}), c.client(2, ClientConfig{MaxReply: 100})
	if _, err := bad.Call(0, 3, []byte("panic")); err == nil {
		t.Error("a call that made the other node panic has an answer")
	}
	eventually(t, "the end of the node", c.nodes[0].peers[1].Load().dead.Load)
	got := expect.Get(good.Call(0, 3, []byte("more")))(t)
	if string(got) != "more" {
		t.Errorf("another node: %q", got)
	}
}
