package conform

import "github.com/rdmaperf/rdmaperf/transports/rdma"

const revocable = remoteAll | rdma.RemoteInvalidate

// refusedInv is the outcome of an invalidation that the peer does not allow. The
// specifications put it into different classes (IBTA 9.9.3 class J).
var refusedInv = outcome{
	ack:   []rdma.Status{rdma.StatusRemInvReqErr, rdma.StatusRemAccessErr, rdma.StatusRemOpErr},
	local: lateRefusal, codes: []uint32{0x0109, 0x0209, 0x0100},
}

// INV: invalidation of keys.
var invCases = []Case{
	{ID: "inv/send-inv", Clause: "IBTA 9.4.1.1; RFC 5040 §4.7, §5.3", Unchecked: "IBTA 9.4.1.1", Needs: needSendInv,
		Requirement: "Send with invalidate delivers its message, names the revoked key in the completion, and the key gives no access any more.",
		Run:         func(e *Env) { e.revokedBySend(64) }},
	{ID: "inv/zero-length", Clause: "IBTA 9.4.1.1; RFC 5041 §5.2", Unchecked: "IBTA 9.4.1.1", Needs: needSendInv,
		Requirement: "A send with invalidate of 0 bytes revokes as well.",
		Run:         func(e *Env) { e.revokedBySend(0) }},
	{ID: "inv/ordinary-safe", Clause: "IBTA 9.9.3 class J; RFC 5040 §8.1.1 (7)", Needs: needSendInv,
		Requirement: "A peer cannot revoke a registration that does not allow it: the request is refused and the key stays valid.",
		Run: func(e *Env) {
			c := e.connect(connOpts{})
			far := e.region(c.b, "far", 64, remoteAll)
			c.b.postRecv(recv(1))
			c.refusal(c.a, refusedInv, sendInv(1, far.mr.RKey()))
			// IBTA leaves open how the receive ends; it cannot claim the invalidation.
			if wc := c.b.r.next("recv#1"); wc.Status == rdma.StatusSuccess {
				e.failf("no success of a receive whose invalidation was refused", "%s", c.b.r.text(&wc))
			}
			c.dead()
			e.notRevoked(far)
		}},
	{ID: "inv/unknown-key", Clause: "RFC 5040 §7.2 (4)", Needs: needSendInv,
		Requirement: "Invalidation of an unknown key is refused.",
		Run: func(e *Env) {
			c := e.connect(connOpts{})
			far := e.region(c.b, "far", 64, revocable)
			c.b.postRecv(recv(1))
			c.refusal(c.a, refusedInv, sendInv(1, far.mr.RKey()^0x5a5a5a5a))
			if wc := c.b.r.next("recv#1"); wc.Status == rdma.StatusSuccess {
				e.failf("no success of a receive whose invalidation was refused", "%s", c.b.r.text(&wc))
			}
			c.dead()
			e.notRevoked(far)
		}},
	{ID: "inv/not-before-delivery", Clause: "IBTA 9.7", Unchecked: "IBTA 9.7", Needs: rdma.Need{Ops: rdma.Ops(rdma.OpSendInv, rdma.OpWrite), Features: rdma.FeatRNRRetry},
		Requirement: "A send with invalidate that finds no receive revokes nothing.",
		Run: func(e *Env) {
			c := e.rnrRetries(0)
			far := e.region(c.b, "far", 64, revocable)
			c.a.post(sendInv(1, far.mr.RKey()))
			c.a.s.expect(sendFails(1, rdma.StatusRNRRetryExcErr))
			c.a.waitState(rdma.QPErr)
			e.notRevoked(far)
		}},
	{ID: "inv/solicited", Clause: "RFC 5040 §4.7, §5.3",
		Needs:       rdma.Need{Ops: rdma.Ops(rdma.OpSendInv, rdma.OpWrite), Features: rdma.FeatEvents | rdma.FeatSolicited},
		Requirement: "A solicited send with invalidate raises the event and revokes.",
		Run: func(e *Env) {
			c := e.connect(connOpts{})
			far := e.region(c.b, "far", 64, revocable)
			src := e.region(c.a, "src", 64, localOnly)
			c.b.postRecv(recv(1))
			e.arm(c.b.box, true)
			c.a.post(solicited(sendInv(1, far.mr.RKey())))
			e.expectWake(c.b.box, "solicited send with invalidate")
			c.a.s.expect(ok(1))
			c.b.r.expect(got(1, 0).withInv(far.mr.RKey()))
			far.freeze()
			src.fill(1)
			c.refuses(c.a, accessRefused(0x1100), write(2, far.at(0), src.all()))
			far.unchanged("under the revoked key")
		}},
	{ID: "inv/local-inv", Clause: "IBTA 10.6.5.1; man ibv_post_send", Needs: needLocalInv,
		Requirement: "After a local invalidate has completed the key gives no access.",
		Run: func(e *Env) {
			c := e.connect(connOpts{})
			far := e.region(c.b, "far", 64, remoteAll)
			src := e.region(c.a, "src", 64, localOnly)
			src.fill(1)
			c.a.do(write(1, far.at(0), src.all()))
			c.barrier()
			c.b.do(localInv(2, far.mr.RKey()))
			src.fill(2)
			c.noEffect(accessRefused(0x1100), write(3, far.at(0), src.all()), far)
		}},
	{ID: "inv/local-inv-order", Clause: "IBTA 10.6.5.1", Needs: needLocalInv,
		Requirement: "Requests posted before a local invalidate still use the registration.",
		Run: func(e *Env) {
			c := e.connect(connOpts{})
			for i, size := range []int{64, 5000, 100000} {
				src := e.region(c.a, "src", size, localOnly)
				far := e.region(c.b, "far", size, remoteAll)
				src.fill(uint64(i))
				c.a.do(write(1, far.at(0), src.all()), localInv(2, src.mr.RKey()))
				c.barrier()
				far.holds(src.data())
			}
		}},
	{ID: "inv/local-inv-wrong-key", Clause: "IBTA 11.6.2", Needs: needLocalInv,
		Requirement: "A local invalidate of an unknown key fails.",
		Run: func(e *Env) {
			c := e.connect(connOpts{})
			own := e.region(c.a, "own", 64, localOnly)
			if c.a.localFault(localInv(1, own.mr.RKey()^0x5a5a5a5a), rdma.StatusLocQPOpErr, rdma.StatusLocAccessErr) {
				c.works()
			}
		}},
}

// revokedBySend runs the two halves that all variants share: the delivery that
// names the key, and the refusal of its next use.
func (e *Env) revokedBySend(size int) {
	c := e.connect(connOpts{})
	src := e.region(c.a, "src", 64, localOnly)
	in := e.region(c.b, "receive", 64, localOnly)
	far := e.region(c.b, "far", 64, revocable)
	src.fill(1)
	c.a.do(write(1, far.at(0), src.all()))
	c.b.postRecv(recv(2, in.all()))
	wr := sendInv(2, far.mr.RKey(), src.sge(0, size))
	if size == 0 {
		wr = sendInv(2, far.mr.RKey())
	}
	c.a.post(wr)
	c.a.s.expect(ok(2))
	c.b.r.expect(got(2, size).withInv(far.mr.RKey()))
	e.equal(in.name, in.data()[:size], src.data()[:size])
	src.fill(2)
	c.noEffect(accessRefused(0x1100), write(3, far.at(0), src.all()), far)
}

// notRevoked proves over a new connection that the key still gives access.
func (e *Env) notRevoked(far *region) {
	c := e.connect(connOpts{})
	src := e.region(c.a, "proof", far.n, localOnly)
	src.fill(77)
	c.a.do(write(1, far.at(0), src.all()))
	c.barrier()
	e.equal(far.name+": still valid", far.data(), src.data())
}
