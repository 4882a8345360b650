package suite

import (
	"fmt"
	"time"

	"github.com/rdmaperf/rdmaperf/transports/lite"
)

var callCases = []row{
	must("call/every-length", "lite.h IMM_MAX_SIZE",
		"Calls of 0 bytes to 2 MiB come back whole, through the end of the ring and back.", func(c *cluster) {
			c.answered(0, 5, 2<<20)
			a := c.client(1, lite.ClientConfig{})
			for _, n := range []int{0, 1, 31, 223, 224, 225, 4096, 40960, 40961, 1 << 20, 2<<20 - 1, 2 << 20} {
				for i := range 3 {
					msg := pattern(n, byte(n+i))
					got, err := a.Call(0, 5, msg)
					c.ok(fmt.Sprintf("call of %d bytes", n), err)
					c.same(fmt.Sprintf("%d bytes come back as they were", n), got, msg)
				}
			}
		}),
	must("call/no-port", "lite.h PORT_NOT_OPENED -103", "A call to a port that nobody opened is answered with -103.",
		func(c *cluster) {
			a := c.client(1, lite.ClientConfig{})
			c.wants("call", errOf(a.Call(0, 7, []byte("x"))), lite.ErrNoPort)
			c.wants("message", a.Send(0, 7, []byte("x")), lite.ErrNoPort)
			p := c.serve(0, 7, lite.PortConfig{Handle: func(r *lite.Request) { _ = r.Reply(nil) }})
			c.ok("call to the open port", errOf(a.Call(0, 7, nil)))
			p.Close()
			c.wants("call to the closed port", errOf(a.Call(0, 7, nil)), lite.ErrNoPort)
		}),
	must("call/ring-full", "lite.h PORT_IS_FULL -104",
		"A ring whose messages nobody releases refuses with -104, and nothing in it is written over.",
		func(c *cluster) {
			p := c.serve(0, 1, lite.PortConfig{})
			a := c.client(1, lite.ClientConfig{Timeout: 100 * time.Millisecond})
			sent := 0
			err := a.Send(0, 1, pattern(4000, 0))
			for sent < 300 && err == nil { // 262 fill a ring of 1 MiB
				sent++
				err = a.Send(0, 1, pattern(4000, byte(sent)))
			}
			c.wants("a message more than the ring takes", err, lite.ErrPortFull)
			var open []lite.Request
			for i := range sent {
				r, err := p.Recv(time.Second, lite.WaitPoll)
				c.ok("receive", err)
				c.same(fmt.Sprintf("message %d is as it was sent", i), r.Payload, pattern(4000, byte(i)))
				open = append(open, r)
			}
			c.wants("all taken and none released", a.Send(0, 1, pattern(4000, 0)), lite.ErrPortFull)
			for i := len(open) - 1; i >= 0; i-- {
				c.same(fmt.Sprintf("message %d was not written over", i), open[i].Payload, pattern(4000, byte(i)))
				open[i].Release()
			}
			c.ok("a message behind the release", a.Send(0, 1, pattern(4000, 0)))
			c.Note("%d messages of 4000 bytes filled the ring", sent)
		}),
	must("call/too-big", "lite.h SIZE_TOO_BIG -105",
		"A request longer than the port takes, and an answer longer than the caller's room, are -105.",
		func(c *cluster) {
			c.answered(0, 2, 1000)
			a := c.client(1, lite.ClientConfig{MaxReply: 100})
			c.wants("request longer than the port takes", errOf(a.Call(0, 2, make([]byte, 1001))), lite.ErrTooBig)
			c.wants("answer longer than the caller's room", errOf(a.Call(0, 2, make([]byte, 101))), lite.ErrTooBig)
			got, err := a.Call(0, 2, make([]byte, 100))
			c.holds("what fits is answered", err == nil && len(got) == 100, fmt.Sprint(len(got), err))
		}),
	must("call/codes", "lite.h WAIT -101, EMPTY -102, FAIL -106",
		"The codes that a caller and a server can meet are named errors with LITE's numbers.", func(c *cluster) {
			for want, code := range map[int32]lite.Code{-101: lite.ErrWait, -102: lite.ErrEmpty, -103: lite.ErrNoPort,
				-104: lite.ErrPortFull, -105: lite.ErrTooBig, -106: lite.ErrFail} {
				c.holds(fmt.Sprintf("%v has the number %d", code, want), int32(code) == want, int32(code))
			}
			p := c.serve(0, 1, lite.PortConfig{})
			c.wants("nothing there", errOf(p.TryRecv()), lite.ErrEmpty)
			cl, err := c.nodes[1].Client(lite.ClientConfig{})
			c.must("make a client", err)
			pend, err := cl.Start(0, 1, []byte("x"))
			c.ok("start", err)
			c.wants("not answered yet", errOf(cl.TryFinish(pend)), lite.ErrWait)
			r, err := p.Recv(time.Second, lite.WaitPoll)
			c.ok("receive", err)
			c.ok("refuse", r.ReplyError(lite.ErrFail))
			c.wants("refused by the server", errOf(cl.Finish(pend, false)), lite.ErrFail)
		}),
	must("call/deadline", "package lite, ErrTimeout",
		"A call that nobody answers ends at its deadline, and a late answer hurts nobody.", func(c *cluster) {
			p := c.serve(0, 1, lite.PortConfig{})
			a := c.client(1, lite.ClientConfig{Timeout: time.Second, MaxReply: 4096})
			begun := time.Now()
			c.wants("call", errOf(a.Call(0, 1, []byte("early"))), lite.ErrTimeout)
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
			c.holds("the next call gets its own answer", err == nil &&
				string(got) == "in time", fmt.Sprintf("%q, %v", got, err))
		}),
	must("call/no-node", "package lite, ErrNoMember", "A call to a node that is no member is refused at once.",
		func(c *cluster) {
			a := c.client(1, lite.ClientConfig{})
			for _, node := range []int{nodes, lite.MaxNodes - 1, lite.MaxNodes, -1} {
				c.wants(fmt.Sprintf("call to node %d", node), errOf(a.Call(node, 1, nil)), lite.ErrNoMember)
			}
		}),
}

// answered serves a port that answers with what it was asked.
func (c *cluster) answered(node, port, most int) {
	_, err := c.nodes[node].Serve(port, lite.PortConfig{MaxRequest: most, Handle: func(r *lite.Request) {
		_ = r.Reply(r.Payload) // an error is the caller's, and the case sees it
	}})
	c.must("serve", err)
}
