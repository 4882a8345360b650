package suite

import (
	"bytes"
	"fmt"
	"time"

	"github.com/rdmaperf/rdmaperf/transports/lite"
)

// answered serves a port that answers with what it was asked.
func (c *cluster) answered(node, port, most int) {
	_, err := c.nodes[node].Serve(port, lite.PortConfig{MaxRequest: most, Handle: func(r *lite.Request) {
		_ = r.Reply(r.Payload) // who is gone or has no room is told, and the case sees it
	}})
	c.must("serve", err)
}

func everyLength(c *cluster) {
	c.answered(0, 5, 2<<20)
	a := c.client(1, lite.ClientConfig{})
	for _, n := range []int{0, 1, 31, 223, 224, 225, 4096, 40960, 40961, 1 << 20, 2<<20 - 1, 2 << 20} {
		for i := range 3 {
			msg := pattern(n, byte(n+i))
			got, err := a.Call(0, 5, msg)
			c.ok(fmt.Sprintf("call of %d bytes", n), err)
			c.holds(fmt.Sprintf("%d bytes come back as they were", n), bytes.Equal(got, msg), fmt.Sprintf("%d bytes", len(got)))
		}
	}
}

func noPort(c *cluster) {
	a := c.client(1, lite.ClientConfig{})
	_, err := a.Call(0, 7, []byte("x"))
	c.wants("call", err, lite.ErrNoPort)
	c.wants("message", a.Send(0, 7, []byte("x")), lite.ErrNoPort)
	p, err := c.nodes[0].Serve(7, lite.PortConfig{Handle: func(r *lite.Request) { _ = r.Reply(nil) }})
	c.must("serve", err)
	_, err = a.Call(0, 7, nil)
	c.ok("call to the open port", err)
	p.Close()
	_, err = a.Call(0, 7, nil)
	c.wants("call to the closed port", err, lite.ErrNoPort)
}

func ringFull(c *cluster) {
	p, err := c.nodes[0].Serve(1, lite.PortConfig{})
	c.must("serve", err)
	a := c.client(1, lite.ClientConfig{Timeout: 100 * time.Millisecond})
	sent := 0
	for ; sent < 300 && err == nil; sent++ { // 262 fill a ring of 1 MiB
		if err = a.Send(0, 1, pattern(4000, byte(sent))); err != nil {
			break
		}
	}
	c.wants("a message more than the ring takes", err, lite.ErrPortFull)
	var open []lite.Request
	for i := range sent {
		r, err := p.Recv(time.Second, lite.WaitPoll)
		c.ok("receive", err)
		c.holds(fmt.Sprintf("message %d is as it was sent", i), bytes.Equal(r.Payload, pattern(4000, byte(i))), "other bytes")
		open = append(open, r)
	}
	c.wants("all taken and none released", a.Send(0, 1, pattern(4000, 0)), lite.ErrPortFull)
	for i := len(open) - 1; i >= 0; i-- {
		c.holds(fmt.Sprintf("message %d was not written over", i), bytes.Equal(open[i].Payload, pattern(4000, byte(i))), "other bytes")
		open[i].Release()
	}
	c.ok("a message behind the release", a.Send(0, 1, pattern(4000, 0)))
	c.Note("%d messages of 4000 bytes filled the ring", sent)
}

func tooBig(c *cluster) {
	c.answered(0, 2, 1000)
	a := c.client(1, lite.ClientConfig{MaxReply: 100})
	_, err := a.Call(0, 2, make([]byte, 1001))
	c.wants("request longer than the port takes", err, lite.ErrTooBig)
	_, err = a.Call(0, 2, make([]byte, 101))
	c.wants("answer longer than the caller's room", err, lite.ErrTooBig)
	got, err := a.Call(0, 2, make([]byte, 100))
	c.holds("what fits is answered", err == nil && len(got) == 100, fmt.Sprint(len(got), err))
}

func codes(c *cluster) {
	for want, code := range map[int32]lite.Code{-101: lite.ErrWait, -102: lite.ErrEmpty, -103: lite.ErrNoPort, -104: lite.ErrPortFull, -105: lite.ErrTooBig, -106: lite.ErrFail} {
		c.holds(fmt.Sprintf("%v has the number %d", code, want), int32(code) == want, int32(code))
	}
	p, err := c.nodes[0].Serve(1, lite.PortConfig{})
	c.must("serve", err)
	_, err = p.TryRecv()
	c.wants("nothing there", err, lite.ErrEmpty)
	cl, err := c.nodes[1].Client(lite.ClientConfig{})
	c.must("make a client", err)
	pend, err := cl.Start(0, 1, []byte("x"))
	c.ok("start", err)
	_, err = cl.TryFinish(pend)
	c.wants("not answered yet", err, lite.ErrWait)
	r, err := p.Recv(time.Second, lite.WaitPoll)
	c.ok("receive", err)
	c.ok("refuse", r.ReplyError(lite.ErrFail))
	_, err = cl.Finish(pend, false)
	c.wants("refused by the server", err, lite.ErrFail)
}

func deadline(c *cluster) {
	p, err := c.nodes[0].Serve(1, lite.PortConfig{})
	c.must("serve", err)
	a := c.client(1, lite.ClientConfig{Timeout: time.Second, MaxReply: 4096})
	begun := time.Now()
	_, err = a.Call(0, 1, []byte("early"))
	c.wants("call", err, lite.ErrTimeout)
	c.holds("it ends in time", time.Since(begun) < timeout, time.Since(begun))
	r, err := p.Recv(time.Second, lite.WaitAdaptive)
	c.ok("receive", err)
	_ = r.Reply([]byte("late")) // to nobody
	done := make(chan struct{})
	go func() {
		defer close(done)
		if r, err := p.Recv(time.Second, lite.WaitAdaptive); err == nil {
			_ = r.Reply([]byte("in time")) // the case sees what comes of it
		}
	}()
	got, err := a.Call(0, 1, []byte("next"))
	<-done
	c.holds("the next call gets its own answer", err == nil && string(got) == "in time", fmt.Sprintf("%q, %v", got, err))
}

func noNode(c *cluster) {
	a := c.client(1, lite.ClientConfig{})
	for _, node := range []int{nodes, lite.MaxNodes - 1, lite.MaxNodes, -1} {
		_, err := a.Call(node, 1, nil)
		c.wants(fmt.Sprintf("call to node %d", node), err, lite.ErrNoMember)
	}
}
