package suite

import (
	"bytes"
	"fmt"
	"time"

	"github.com/rdmaperf/rdmaperf/transports/lite"
)

func unmapped(c *cluster) {
	a, b := c.client(1, lite.ClientConfig{}), c.client(2, lite.ClientConfig{})
	h := region(c, a, "r", 100, lite.PermRead|lite.PermWrite, 0)
	g, err := b.Map("r", lite.PermRead|lite.PermWrite, "sesame")
	c.ok("map", err)
	c.ok("unmap", b.Unmap(g))
	c.wants("write", b.Write(g, 0, []byte{1}), lite.ErrDeadHandle)
	c.wants("read", b.Read(g, 0, make([]byte, 1)), lite.ErrDeadHandle)
	c.wants("unmap again", b.Unmap(g), lite.ErrDeadHandle)
	for _, never := range []lite.Handle{0, 1, ^lite.Handle(0), h + 1, h ^ 1<<32} {
		c.wants(fmt.Sprintf("the handle %#x", uint64(never)), a.Write(never, 0, []byte{1}), lite.ErrDeadHandle)
	}
	c.holds("nothing was written", read(c, a, h, 0, 1)[0] == 0, "a byte")
}

func freed(c *cluster) {
	a, b := c.client(1, lite.ClientConfig{}), c.client(2, lite.ClientConfig{})
	h := region(c, a, "r", 100, lite.PermRead|lite.PermWrite, 0)
	g, err := b.Map("r", lite.PermRead|lite.PermWrite, "sesame")
	c.ok("map", err)
	c.ok("free", a.FreeRegion(h))
	c.wants("write through the other's handle", b.Write(g, 0, []byte{1}), lite.ErrDeadHandle)
	c.wants("read through the own", a.Read(h, 0, make([]byte, 1)), lite.ErrDeadHandle)
	again := region(c, a, "r", 100, 0, 0)
	c.holds("the new region is zeros", read(c, a, again, 0, 1)[0] == 0, "a byte of the dead handle's")
}

func moved(c *cluster) {
	a, b := c.client(1, lite.ClientConfig{}), c.client(2, lite.ClientConfig{})
	h := region(c, a, "r", 5000, lite.PermRead|lite.PermWrite, 0)
	g, err := b.Map("r", lite.PermRead|lite.PermWrite, "sesame")
	c.ok("map", err)
	msg := pattern(5000, 7)
	c.ok("write", a.Write(h, 0, msg))
	read(c, a, h, 0, 1)
	h, err = a.Move(h, 2)
	c.ok("move", err)
	c.wants("through the old handle", b.Write(g, 0, []byte{1}), lite.ErrDeadHandle)
	c.holds("the bytes moved", bytes.Equal(read(c, a, h, 0, 5000), msg), "other bytes")
	g, err = b.Map("r", lite.PermRead, "sesame")
	c.ok("map anew", err)
	c.holds("and are there for who maps anew", bytes.Equal(read(c, b, g, 0, 5000), msg), "other bytes")
}

func nodeDies(c *cluster) {
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
	_, err = a.Call(1, 1, nil)
	c.wants("a new call", err, lite.ErrPeerDead)
}
