package suite

import (
	"bytes"
	"fmt"
	"sync"
	"time"

	"github.com/rdmaperf/rdmaperf/transports/conform"
	"github.com/rdmaperf/rdmaperf/transports/lite"
)

// row is a case and what it does.
type row struct {
	conform.Case
	run func(c *cluster)
}

func must(id, clause, requirement string, run func(c *cluster)) row {
	return row{conform.Case{ID: id, Clause: clause, Requirement: requirement, Level: conform.Must}, run}
}

// table is all cases, in the order in which they run.
var table = []row{
	must("mem/shared-by-name", "SOSP'17 §4.1", "A region that one node made is mapped by name at another; what one writes the other reads.", sharedByName),
	must("mem/password", "lite.h ask_lmr", "Mapping with another password is refused, and gives no handle.", password),
	must("mem/read-only", "lite.h MR_READ_FLAG", "A handle for reading does not write: the bytes stay.", readOnly),
	must("mem/write-only", "lite.h MR_WRITE_FLAG", "A handle for writing does not read.", writeOnly),
	must("mem/atomic-permission", "lite.h MR_ATOMIC_FLAG", "Atomics need their own permission.", atomicPermission),
	must("mem/masters-alone", "SOSP'17 §4.1", "Who is no master neither frees, moves nor grants.", mastersAlone),
	must("mem/grant", "SOSP'17 §4.1", "Who was granted a permission maps without the password, with that permission.", granted),
	must("mem/bounds", "package lite, ErrBounds", "Nothing outside the region is read or written, however the range is put.", bounds),
	must("mem/spans-nodes", "SOSP'17 §4.1", "A range over chunks of several nodes is one operation.", spansNodes),
	must("mem/set-and-move", "SOSP'17 table 1, LT_memset, LT_memmove", "memset and memmove are exact, over nodes and where ranges overlap.", setAndMove),
	must("handle/unmapped", "package lite, ErrDeadHandle", "An unmapped handle, and one that never was, is dead and touches nothing.", unmapped),
	must("handle/freed-while-mapped", "SOSP'17 §4.1", "When a master frees a region, every other handle of it dies, and its name is free.", freed),
	must("handle/moved-while-mapped", "SOSP'17 §4.1", "When a master moves a region, other handles die; who maps anew finds the bytes.", moved),
	must("call/every-length", "lite.h IMM_MAX_SIZE", "Calls of 0 bytes to 2 MiB come back whole, through the end of the ring and back.", everyLength),
	must("call/no-port", "lite.h PORT_NOT_OPENED -103", "A call to a port that nobody opened is answered with -103.", noPort),
	must("call/ring-full", "lite.h PORT_IS_FULL -104", "A ring whose messages nobody releases refuses with -104, and nothing in it is written over.", ringFull),
	must("call/too-big", "lite.h SIZE_TOO_BIG -105", "A request longer than the port takes, and an answer longer than the caller's room, are -105.", tooBig),
	must("call/codes", "lite.h WAIT -101, EMPTY -102, FAIL -106", "The codes that a caller and a server can meet are named errors with LITE's numbers.", codes),
	must("call/deadline", "package lite, ErrTimeout", "A call that nobody answers ends at its deadline, and a late answer hurts nobody.", deadline),
	must("call/no-node", "package lite, ErrNoMember", "A call to a node that is no member is refused at once.", noNode),
	must("lock/excludes", "SOSP'17 §7.2", "At most one owner at a time, and every waiter gets its turn.", excludes),
	must("lock/first-come", "lite_core.c, tickets", "Who waits first is served first.", firstCome),
	must("lock/not-held", "package lite, ErrLockLost", "Unlocking what is not held is refused.", notHeld),
	must("lock/owner-dies", "package lite, Lock", "The lock of an owner that dies passes on to who waits.", ownerDies),
	must("node/death", "package lite, ErrPeerDead", "Calls to a node that dies, and handles of what lay there, fail with their own error in time.", nodeDies),
}

func region(c *cluster, cl Client, name string, size uint64, open lite.Perm, at ...int) lite.Handle {
	h, err := cl.Malloc(lite.RegionConfig{Name: name, Size: size, Nodes: at, Open: open, Password: "sesame"})
	c.ok("malloc of "+name, err)
	return h
}

func pattern(n int, seed byte) []byte {
	b := make([]byte, n)
	for i := range b {
		b[i] = byte(i*7+i>>8) + seed
	}
	return b
}

func read(c *cluster, cl Client, h lite.Handle, off uint64, n int) []byte {
	b := make([]byte, n)
	c.ok("read", cl.Read(h, off, b))
	return b
}

func sharedByName(c *cluster) {
	a, b := c.client(1, lite.ClientConfig{}), c.client(2, lite.ClientConfig{})
	h := region(c, a, "r", 10000, lite.PermRead|lite.PermWrite, 0)
	c.holds("zeros at first", bytes.Equal(read(c, a, h, 0, 10000), make([]byte, 10000)), "other bytes")
	g, err := b.Map("r", lite.PermRead|lite.PermWrite, "sesame")
	c.ok("map", err)
	msg := pattern(5000, 1)
	c.ok("write", a.Write(h, 100, msg))
	read(c, a, h, 0, 1) // behind the write, where completions are local
	c.holds("the bytes that were written", bytes.Equal(read(c, b, g, 100, 5000), msg), "other bytes")
	_, err = a.Malloc(lite.RegionConfig{Name: "r", Size: 8})
	c.wants("a second region of that name", err, lite.ErrExists)
	_, err = b.Map("none", lite.PermRead, "")
	c.wants("no such name", err, lite.ErrNoRegion)
}

func password(c *cluster) {
	a, b := c.client(1, lite.ClientConfig{}), c.client(2, lite.ClientConfig{})
	region(c, a, "r", 100, lite.PermRead, 0)
	for _, p := range []string{"", "sesam", "sesame ", "Sesame"} {
		h, err := b.Map("r", lite.PermRead, p)
		c.wants(fmt.Sprintf("map with the password %q", p), err, lite.ErrPassword)
		c.wants("a read through what came of it", b.Read(h, 0, make([]byte, 1)), lite.ErrDeadHandle)
	}
	_, err := b.Map("r", lite.PermRead|lite.PermWrite, "sesame")
	c.wants("more than is open", err, lite.ErrPermission)
}

func readOnly(c *cluster) {
	a, b := c.client(1, lite.ClientConfig{}), c.client(2, lite.ClientConfig{})
	h := region(c, a, "r", 100, lite.PermRead|lite.PermWrite, 0)
	g, err := b.Map("r", lite.PermRead, "sesame")
	c.ok("map", err)
	c.wants("write", b.Write(g, 0, []byte{1}), lite.ErrPermission)
	c.wants("memset", b.Memset(g, 0, 1, 10), lite.ErrPermission)
	c.holds("the bytes stay", read(c, a, h, 0, 1)[0] == 0, "a refused write arrived")
}

func writeOnly(c *cluster) {
	a, b := c.client(1, lite.ClientConfig{}), c.client(2, lite.ClientConfig{})
	region(c, a, "r", 100, lite.PermRead|lite.PermWrite, 0)
	g, err := b.Map("r", lite.PermWrite, "sesame")
	c.ok("map", err)
	c.ok("write", b.Write(g, 0, []byte{1}))
	got := []byte{9}
	c.wants("read", b.Read(g, 0, got), lite.ErrPermission)
	c.holds("nothing was read", got[0] == 9, got)
}

func atomicPermission(c *cluster) {
	c.atomics()
	a, b := c.client(1, lite.ClientConfig{}), c.client(2, lite.ClientConfig{})
	h := region(c, a, "r", 64, lite.PermAll&^lite.PermMaster, 0)
	g, err := b.Map("r", lite.PermRead|lite.PermWrite, "sesame")
	c.ok("map", err)
	_, err = b.FetchAdd(g, 0, 1)
	c.wants("fetch-add", err, lite.ErrPermission)
	_, err = b.CmpSwap(g, 0, 0, 1)
	c.wants("compare-swap", err, lite.ErrPermission)
	old, err := a.FetchAdd(h, 0, 5)
	c.holds("fetch-add finds 0", err == nil && old == 0, fmt.Sprint(old, err))
	_, err = a.FetchAdd(h, 4, 5)
	c.wants("an address that is no multiple of 8", err, lite.ErrBounds)
}

func mastersAlone(c *cluster) {
	a, b := c.client(1, lite.ClientConfig{}), c.client(2, lite.ClientConfig{})
	region(c, a, "r", 100, lite.PermRead|lite.PermWrite, 0)
	g, err := b.Map("r", lite.PermRead|lite.PermWrite, "sesame")
	c.ok("map", err)
	c.wants("free", b.FreeRegion(g), lite.ErrPermission)
	_, err = b.Move(g, 2)
	c.wants("move", err, lite.ErrPermission)
	c.wants("grant", b.Grant(g, 2, lite.PermMaster), lite.ErrPermission)
	read(c, b, g, 0, 1)
}

func granted(c *cluster) {
	a, b := c.client(1, lite.ClientConfig{}), c.client(2, lite.ClientConfig{})
	h := region(c, a, "r", 100, 0, 0)
	_, err := b.Map("r", lite.PermRead, "sesame")
	c.wants("before the grant", err, lite.ErrPermission)
	c.ok("grant", a.Grant(h, 2, lite.PermRead))
	g, err := b.Map("r", lite.PermRead, "nobody asks")
	c.ok("map", err)
	read(c, b, g, 0, 100)
	_, err = b.Map("r", lite.PermWrite, "sesame")
	c.wants("more than was granted", err, lite.ErrPermission)
}

func bounds(c *cluster) {
	a := c.client(1, lite.ClientConfig{})
	h := region(c, a, "r", 4096, 0, 0)
	next := region(c, a, "next", 4096, 0, 0)
	for _, r := range []struct {
		off uint64
		n   int
	}{{4096, 1}, {4090, 7}, {0, 4097}, {1 << 63, 1}, {^uint64(0), 8}, {1 << 32, 4096}} {
		c.wants(fmt.Sprintf("write of %d bytes at %d", r.n, r.off), a.Write(h, r.off, pattern(r.n, 1)), lite.ErrBounds)
		c.wants(fmt.Sprintf("read of %d bytes at %d", r.n, r.off), a.Read(h, r.off, make([]byte, r.n)), lite.ErrBounds)
	}
	c.holds("the region behind it is as it was", bytes.Equal(read(c, a, next, 0, 4096), make([]byte, 4096)), "other bytes")
	c.ok("the last byte", a.Write(h, 4095, []byte{1}))
}

func spansNodes(c *cluster) {
	a := c.client(1, lite.ClientConfig{})
	h := region(c, a, "r", 2*lite.ChunkSize+1000, 0, 0, 1, 2)
	msg := pattern(lite.ChunkSize+200, 3)
	c.ok("write", a.Write(h, lite.ChunkSize-100, msg))
	c.holds("the bytes that were written", bytes.Equal(read(c, a, h, lite.ChunkSize-100, len(msg)), msg), "other bytes")
	c.holds("the byte before", read(c, a, h, lite.ChunkSize-101, 1)[0] == 0, "changed")
}

func setAndMove(c *cluster) {
	a := c.client(1, lite.ClientConfig{})
	h := region(c, a, "r", lite.ChunkSize+8192, 0, 0, 2)
	model := pattern(lite.ChunkSize+8192, 5)
	c.ok("write", a.Write(h, 0, model))
	read(c, a, h, 0, 1)
	read(c, a, h, lite.ChunkSize, 1)
	c.ok("memset", a.Memset(h, lite.ChunkSize-50, 0xee, 100))
	copy(model[lite.ChunkSize-50:], bytes.Repeat([]byte{0xee}, 100))
	for _, m := range [][3]uint64{{0, 3000, 6000}, {3000, 0, 6000}, {lite.ChunkSize - 3, lite.ChunkSize - 9, 64}, {17, lite.ChunkSize - 500, 1000}} {
		c.ok("memmove", a.Memmove(h, m[0], h, m[1], m[2]))
		copy(model[m[0]:m[0]+m[2]], model[m[1]:m[1]+m[2]])
		c.holds(fmt.Sprintf("memmove of %d bytes from %d to %d is exact", m[2], m[1], m[0]), bytes.Equal(read(c, a, h, 0, len(model)), model), "other bytes")
	}
}

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
	c.note("%d messages of 4000 bytes filled the ring", sent)
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

func excludes(c *cluster) {
	c.atomics()
	first := c.client(0, lite.ClientConfig{})
	_, err := first.NewLock("l", 1)
	c.ok("new lock", err)
	h := region(c, first, "count", 8, lite.PermRead|lite.PermWrite, 2)
	var wg sync.WaitGroup
	const each = 20
	errs := make([]error, nodes*2)
	for i := range errs {
		cl := c.client(i%nodes, lite.ClientConfig{})
		wg.Add(1)
		go func() {
			defer wg.Done()
			errs[i] = turns(cl, each)
		}()
	}
	wg.Wait()
	for _, err := range errs {
		c.ok("every turn", err)
	}
	got := read(c, first, h, 0, 1)[0]
	c.holds(fmt.Sprintf("%d turns are counted", each*len(errs)), int(got) == each*len(errs), got)
}

// turns counts in a byte that only the lock protects.
func turns(cl Client, n int) error {
	l, err := cl.OpenLock("l")
	if err != nil {
		return err
	}
	defer l.Close()
	h, err := cl.Map("count", lite.PermRead|lite.PermWrite, "sesame")
	if err != nil {
		return err
	}
	b := make([]byte, 1)
	for range n {
		if err := l.Lock(); err != nil {
			return err
		}
		if err := cl.Read(h, 0, b); err != nil {
			return err
		}
		b[0]++
		if err := cl.Write(h, 0, b); err != nil {
			return err
		}
		if err := cl.Read(h, 0, make([]byte, 1)); err != nil { // it has arrived
			return err
		}
		if err := l.Unlock(); err != nil {
			return err
		}
	}
	return nil
}

func firstCome(c *cluster) {
	c.atomics()
	a := c.client(0, lite.ClientConfig{})
	l, err := a.NewLock("l", 1)
	c.ok("new lock", err)
	c.ok("lock", l.Lock())
	// Tickets are drawn one after the other: the lock's first word counts them.
	word, err := a.Map("l", lite.PermRead, "")
	c.must("map the lock", err)
	order := make(chan int, nodes)
	fail := make(chan error, nodes)
	for i := 1; i <= 2; i++ {
		cl := c.client(i, lite.ClientConfig{})
		m, err := cl.OpenLock("l")
		c.ok("open lock", err)
		go func() {
			if err := m.Lock(); err != nil {
				fail <- err
				return
			}
			order <- i
			fail <- m.Unlock()
		}()
		for read(c, a, word, 0, 1)[0] != byte(i+1) {
			c.must("draw a ticket in time", c.ctx.Err())
		}
	}
	c.ok("unlock", l.Unlock())
	for range 2 {
		c.ok("lock and unlock", <-fail)
	}
	first, second := <-order, <-order
	c.holds("who waited first is served first", first == 1 && second == 2, fmt.Sprint(first, ", ", second))
}

func notHeld(c *cluster) {
	c.atomics()
	a := c.client(1, lite.ClientConfig{})
	l, err := a.NewLock("l", 0)
	c.ok("new lock", err)
	c.wants("unlock", l.Unlock(), lite.ErrLockLost)
	c.ok("lock", l.Lock())
	c.ok("unlock", l.Unlock())
	c.wants("unlock again", l.Unlock(), lite.ErrLockLost)
}

func ownerDies(c *cluster) {
	c.atomics()
	a, b := c.client(1, lite.ClientConfig{}), c.client(2, lite.ClientConfig{Timeout: 3 * deadAfter})
	l, err := a.NewLock("l", 0)
	c.ok("new lock", err)
	m, err := b.OpenLock("l")
	c.ok("open lock", err)
	c.ok("lock", l.Lock())
	c.kill(1)
	begun := time.Now()
	c.ok("lock behind the death", m.Lock())
	c.note("passed on after %v", time.Since(begun).Round(time.Millisecond))
	c.ok("unlock", m.Unlock())
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
	c.note("noticed after %v", time.Since(begun).Round(time.Millisecond))
	c.wants("a read of what lay there", a.Read(h, 0, make([]byte, 1)), lite.ErrPeerDead)
	_, err = a.Call(1, 1, nil)
	c.wants("a new call", err, lite.ErrPeerDead)
}
