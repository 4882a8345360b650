package conform

// FEN: fences.
var fenCases = []Case{
	{ID: "fen/read-then-send", Clause: "IBTA 10.8.3.3; man ibv_post_send (IBV_SEND_FENCE)", Needs: needFence,
		Requirement: "A fenced send starts only when earlier reads are done: it carries the bytes that they fetched.",
		Run: func(e *Env) {
			for _, size := range []int{8, 3000, 100000} {
				c := e.connect(connOpts{})
				src := e.region(c.b, "src", size, remoteAll)
				relay := e.region(c.a, "relay", size, e.sinkAccess())
				dst := e.region(c.b, "dst", size, localOnly)
				for i := range e.loops(50, 2000) {
					src.fill(uint64(i))
					fillByte(relay.data(), 0)
					c.b.postRecv(recv(i, dst.all()))
					c.a.post(read(1, src.at(0), relay.all()), fenced(send(2, relay.all())))
					c.a.s.expect(ok(1), ok(2))
					c.b.r.expect(got(i, size))
					e.equal(dst.name, dst.data(), src.data())
				}
			}
		}},
	{ID: "fen/read-then-write", Clause: "IBTA 10.8.3.3", Needs: needFence,
		Requirement: "A fenced write of a read's sink writes the bytes that the read fetched.",
		Run: func(e *Env) {
			const size = 5000
			c := e.connect(connOpts{})
			src := e.region(c.b, "src", size, remoteAll)
			relay := e.region(c.a, "relay", size, e.sinkAccess())
			dst := e.region(c.b, "dst", size, remoteAll)
			for i := range e.loops(50, 2000) {
				src.fill(uint64(i))
				fillByte(relay.data(), 0)
				c.a.post(unsignaled(read(1, src.at(0), relay.all())), fenced(write(2, dst.at(0), relay.all())))
				c.a.s.expect(ok(2))
				c.barrier()
				e.equal(dst.name, dst.data(), src.data())
			}
		}},
	{ID: "fen/atomic-then-write", Clause: "IBTA 10.8.3.3", Needs: needFenceAdd,
		Requirement: "A fenced write of an atomic's sink writes the value that the atomic returned.",
		Run: func(e *Env) {
			c := e.connect(connOpts{})
			counter := e.region(c.b, "counter", 8, atomicAll)
			relay := e.region(c.a, "relay", 8, e.sinkAccess())
			dst := e.region(c.b, "dst", 8, remoteAll)
			for i := range e.loops(100, 5000) {
				c.a.post(fetchAdd(1, counter.at(0), 3, relay.all()), fenced(write(2, dst.at(0), relay.all())))
				c.a.s.expect(ok(1), ok(2))
				c.barrier()
				dst.wordIs(0, uint64(3*i), "value that the atomic returned")
			}
		}},
	{ID: "fen/nothing-outstanding", Clause: "IBTA 10.8.3.3", Needs: needFence,
		Requirement: "A fence with nothing to wait for does not hold the request.",
		Run: func(e *Env) {
			c := e.connect(connOpts{})
			src := e.region(c.a, "src", 64, localOnly)
			dst := e.region(c.b, "dst", 64, remoteAll)
			src.fill(1)
			c.a.post(fenced(write(1, dst.at(0), src.all())))
			c.a.s.expect(ok(1))
			c.b.postRecv(recv(2))
			c.a.post(fenced(send(2)))
			c.a.s.expect(ok(2))
			c.b.r.expect(got(2, 0))
			e.equal(dst.name, dst.data(), src.data())
		}},
}
