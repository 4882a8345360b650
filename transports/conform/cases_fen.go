package conform

// FEN: fences.
var fenCases = []Case{
	{ID: "fen/read-then-send", Clause: "IBTA 10.8.3.3; man ibv_post_send (IBV_SEND_FENCE)", Needs: needFence,
		Requirement: "A fenced send starts only when earlier reads are done: it carries the bytes that they fetched.",
		Run: func(e *Env) {
			for _, size := range []int{8, 3000, 100000} {
				c, src, relay := e.reading(size)
				dst := e.region(c.b, "dst", size, localOnly)
				for i := range e.loops(50, 2000) {
					src.fill(uint64(i))
					fillByte(relay.data(), 0)
					c.b.postRecv(recv(i, dst.all()))
					c.a.do(read(1, src.at(0), relay.all()), fenced(send(2, relay.all())))
					c.b.r.expect(got(i, size))
					dst.holds(src.data())
				}
			}
		}},
	{ID: "fen/read-then-write", Clause: "IBTA 10.8.3.3", Needs: needFence,
		Requirement: "A fenced write of a read's sink writes the bytes that the read fetched.", Run: func(e *Env) {
			const size = 5000
			c, src, relay := e.reading(size)
			dst := e.region(c.b, "dst", size, remoteAll)
			for i := range e.loops(50, 2000) {
				src.fill(uint64(i))
				fillByte(relay.data(), 0)
				c.a.do(unsignaled(read(1, src.at(0), relay.all())), fenced(write(2, dst.at(0), relay.all())))
				c.barrier()
				dst.holds(src.data())
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
				c.a.do(fetchAdd(1, counter.at(0), 3, relay.all()), fenced(write(2, dst.at(0), relay.all())))
				c.barrier()
				dst.wordIs(0, uint64(3*i), "value that the atomic returned")
			}
		}},
	{ID: "fen/nothing-outstanding", Clause: "IBTA 10.8.3.3", Needs: needFence,
		Requirement: "A fence with nothing to wait for does not hold the request.", Run: func(e *Env) {
			c, src, dst := e.writing(64)
			c.a.do(fenced(write(1, dst.at(0), src.all())))
			c.message(fenced(send(2)), recv(2))
			dst.holds(src.data())
		}},
}
