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
	{ID: "inv/send-inv", Clause: "IBTA 9.4.1.1*; RFC 5040 §4.7, §5.3", Needs: needSendInv,
		Requirement: "Send with invalidate delivers its message, names the revoked key in the completion, and the " +
			"key gives no access any more.",
		Run: func(e *Env) { e.revokedBySend(64) }},
	{ID: "inv/zero-length", Clause: "IBTA 9.4.1.1*; RFC 5041 §5.2", Needs: needSendInv,
		Requirement: "A send with invalidate of 0 bytes revokes as well.",
		Run:         func(e *Env) { e.revokedBySend(0) }},
	{ID: "inv/ordinary-safe", Clause: "IBTA 9.9.3 class J; RFC 5040 §8.1.1 (7)", Needs: needSendInv,
		Requirement: "A peer cannot revoke a registration that does not allow it: the request is refused and the key " +
			"stays valid.", Run: func(e *Env) {
			e.refusesInvalidation(remoteAll, 0)
		}},
	{ID: "inv/unknown-key", Clause: "RFC 5040 §7.2 (4)", Needs: needSendInv,
		Requirement: "Invalidation of an unknown key is refused.", Run: func(e *Env) {
			e.refusesInvalidation(revocable, 0x5a5a5a5a)
		}},
	{ID: "inv/not-before-delivery", Clause: "IBTA 9.7*",
		Needs:       rdma.Need{Ops: rdma.Ops(rdma.OpSendInv, rdma.OpWrite), Features: rdma.FeatRNRRetry},
		Requirement: "A send with invalidate that finds no receive revokes nothing.", Run: func(e *Env) {
			c := e.rnrRetries(0)
			far := e.region(c.b, "far", 64, revocable)
			c.noReceive(sendInv(1, far.mr.RKey()))
			e.notRevoked(far)
		}},
	{ID: "inv/solicited", Clause: "RFC 5040 §4.7, §5.3", Needs: rdma.Need{Ops: rdma.Ops(rdma.OpSendInv, rdma.OpWrite),
		Features: rdma.FeatEvents | rdma.FeatSolicited},
		Requirement: "A solicited send with invalidate raises the event and revokes.", Run: func(e *Env) {
			c := e.connect(connOpts{})
			near, far := c.nearFar(64, revocable)
			c.b.postRecv(recv(1))
			e.arm(c.b.box, true)
			c.wakes(solicited(sendInv(1, far.mr.RKey())), "solicited send with invalidate")
			c.b.r.expect(got(1, 0).withInv(far.mr.RKey()))
			c.noEffect(accessRefused(0x1100), write(2, far.at(0), near.all()), far)
		}},
	{ID: "inv/local-inv", Clause: "IBTA 10.6.5.1; man ibv_post_send", Needs: needLocalInv,
		Requirement: "After a local invalidate has completed the key gives no access.", Run: func(e *Env) {
			c, src, dst := e.writing(64)
			c.writes(src, dst)
			c.b.do(localInv(2, dst.mr.RKey()))
			src.fill(2)
			c.noEffect(accessRefused(0x1100), write(3, dst.at(0), src.all()), dst)
		}},
	{ID: "inv/local-inv-order", Clause: "IBTA 10.6.5.1", Needs: needLocalInv,
		Requirement: "Requests posted before a local invalidate still use the registration.", Run: func(e *Env) {
			c := e.connect(connOpts{})
			for _, size := range []int{64, 5000, 100000} {
				src, dst := c.writing(size)
				c.a.do(write(1, dst.at(0), src.all()), localInv(2, src.mr.RKey()))
				c.barrier()
				dst.holds(src.data())
			}
		}},
	{ID: "inv/local-inv-wrong-key", Clause: "IBTA 11.6.2", Needs: needLocalInv,
		Requirement: "A local invalidate of an unknown key fails.", Run: func(e *Env) {
			c := e.connect(connOpts{})
			own := e.region(c.a, "own", 64, localOnly)
			c.localFault(localInv(1, own.mr.RKey()^0x5a5a5a5a), own, rdma.StatusLocQPOpErr, rdma.StatusLocAccessErr)
		}},
}

// revokedBySend runs the two halves that all variants share: the delivery that
// names the key, and the refusal of its next use.
func (e *Env) revokedBySend(size int) {
	c, src, in := e.sending(64)
	far := e.region(c.b, "far", 64, revocable)
	c.a.do(write(1, far.at(0), src.all()))
	wr := sendInv(2, far.mr.RKey(), src.sge(0, size))
	if size == 0 {
		wr = sendInv(2, far.mr.RKey())
	}
	c.message(wr, recv(2, in.all()))
	e.equal(in.name, in.data()[:size], src.data()[:size])
	src.fill(2)
	c.noEffect(accessRefused(0x1100), write(3, far.at(0), src.all()), far)
}

func (e *Env) notRevoked(far *region) {
	c := e.connect(connOpts{})
	src := e.region(c.a, "proof", far.n, localOnly)
	src.fill(77)
	c.writes(src, far)
}

// refusesInvalidation has the peer refuse to revoke a key that differs by bits from that of
// a registration with the access.
func (e *Env) refusesInvalidation(access rdma.Access, bits uint32) {
	c := e.connect(connOpts{})
	far := e.region(c.b, "far", 64, access)
	c.b.postRecv(recv(1))
	c.refusal(c.a, refusedInv, sendInv(1, far.mr.RKey()^bits))
	// IBTA leaves open how the receive ends; it cannot claim the invalidation.
	if wc := c.b.r.next("recv#1"); wc.Status == rdma.StatusSuccess {
		e.failf("no success of a receive whose invalidation was refused", "%s", c.b.r.text(&wc))
	}
	c.dead()
	e.notRevoked(far)
}
