package suite

import (
	"fmt"
	"time"

	"github.com/rdmaperf/rdmaperf/transports/lite"
)

var nodeCases = []row{
	must("node/death", "package lite, ErrPeerDead",
		"Calls to a node that dies, and handles of what lay there, fail with their own error in time.",
		func(c *cluster) {
			a := c.client(2, lite.ClientConfig{Timeout: 3 * deadAfter})
			h := region(c, a, "r", 100, 0, 1)
			_, err := c.nodes[1].Serve(1, lite.PortConfig{}) // it never answers
			c.must("serve", err)
			ended := make(chan error, 1)
			go func() {
				_, err := a.Call(1, 1, nil)
				ended <- err
			}()
			for c.nodes[1].Counts().Messages == 0 && c.ctx.Err() == nil {
				time.Sleep(time.Millisecond) // until its ring is asked for, which is a message
			}
			c.kill(1)
			begun := time.Now()
			c.wants("a call under way", <-ended, lite.ErrPeerDead)
			c.Note("noticed after %v", time.Since(begun).Round(time.Millisecond))
			c.wants("a read of what lay there", a.Read(h, 0, make([]byte, 1)), lite.ErrPeerDead)
			c.wants("a new call", errOf(a.Call(1, 1, nil)), lite.ErrPeerDead)
		}),
}

var handleCases = []row{
	pair("handle/unmapped", "package lite, ErrDeadHandle",
		"An unmapped handle, and one that never was, is dead and touches nothing.", func(c *cluster, a, b Client) {
			h := region(c, a, "r", 100, readWrite, 0)
			g := mapped(c, b, readWrite)
			c.ok("unmap", b.Unmap(g))
			c.wants("write", b.Write(g, 0, []byte{1}), lite.ErrDeadHandle)
			c.wants("read", b.Read(g, 0, make([]byte, 1)), lite.ErrDeadHandle)
			c.wants("unmap again", b.Unmap(g), lite.ErrDeadHandle)
			for _, never := range []lite.Handle{0, 1, ^lite.Handle(0), h + 1, h ^ 1<<32} {
				c.wants(fmt.Sprintf("the handle %#x", uint64(never)), a.Write(never, 0, []byte{1}), lite.ErrDeadHandle)
			}
			c.holds("nothing was written", read(c, a, h, 0, 1)[0] == 0, "a byte")
		}),
	pair("handle/freed-while-mapped", "SOSP'17 §4.1",
		"When a master frees a region, every other handle of it dies, and its name is free.", func(c *cluster, a, b Client) {
			h := region(c, a, "r", 100, readWrite, 0)
			g := mapped(c, b, readWrite)
			c.ok("free", a.FreeRegion(h))
			c.wants("write through the other's handle", b.Write(g, 0, []byte{1}), lite.ErrDeadHandle)
			c.wants("read through the own", a.Read(h, 0, make([]byte, 1)), lite.ErrDeadHandle)
			again := region(c, a, "r", 100, 0, 0)
			c.holds("the new region is zeros", read(c, a, again, 0, 1)[0] == 0, "a byte of the dead handle's")
		}),
	pair("handle/moved-while-mapped", "SOSP'17 §4.1",
		"When a master moves a region, other handles die; who maps anew finds the bytes.", func(c *cluster, a, b Client) {
			h := region(c, a, "r", 5000, readWrite, 0)
			g := mapped(c, b, readWrite)
			msg := pattern(5000, 7)
			c.ok("write", a.Write(h, 0, msg))
			read(c, a, h, 0, 1)
			h, err := a.Move(h, 2)
			c.ok("move", err)
			c.wants("through the old handle", b.Write(g, 0, []byte{1}), lite.ErrDeadHandle)
			c.same("the bytes moved", read(c, a, h, 0, 5000), msg)
			g = mapped(c, b, lite.PermRead)
			c.same("and are there for who maps anew", read(c, b, g, 0, 5000), msg)
		}),
}
