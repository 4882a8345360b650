package conform

import "github.com/rdmaperf/rdmaperf/transports/rdma"

const revocable = remoteAll | rdma.RemoteInvalidate

// refusedInv is that of an invalidation, which specifications put into different classes (IBTA 9.9.3 class J).
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
			"stays valid.", Run: func(e *Env) { e.refusesInvalidation(remoteAll, 0) }},
	{ID: "inv/unknown-key", Clause: "RFC 5040 §7.2 (4)", Needs: needSendInv,
		Requirement: "Invalidation of an unknown key is refused.",
		Run:         func(e *Env) { e.refusesInvalidation(revocable, 0x5a5a5a5a) }},
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

// revokedBySend requires the delivery that names the key, and the refusal of its next use.
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

// refusesInvalidation has the peer refuse to revoke a key that differs by bits from a registration's.
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

// MW: memory windows, which rdma.Device has no call for. Their requirements are listed by
// name and are unsupported everywhere, so that whoever looks for them finds them.
var mwCases = windows([]Case{
	{ID: "mw/bind", Clause: "man ibv_bind_mw; IBTA 10.6.7.2*",
		Requirement: "A window of type 1 gives the access that it was bound with, and none after it was bound to " +
			"nothing; its key changes each time."},
	{ID: "mw/bind-by-post", Clause: "man ibv_post_send (IBV_WR_BIND_MW)",
		Requirement: "A window of type 2 is bound by a work request, under the key that the request names."},
	{ID: "mw/needs-bind-right", Clause: "IBTA C10-73",
		Requirement: "A registration without the right to be bound is not bound."},
	{ID: "mw/needs-local-write", Clause: "IBTA C10-74",
		Requirement: "A window with remote write needs a registration with local write."},
	{ID: "mw/bounds", Clause: "IBTA C10-75", Requirement: "A window reaches over neither end of its registration."},
	{ID: "mw/other-domain", Clause: "IBTA C10-72",
		Requirement: "A window of type 2 is bound on a QP of its own protection domain only."},
	{ID: "mw/bind-twice", Clause: "IBTA o10-37.2.30",
		Requirement: "A window of type 2 that is bound is not bound again before it was invalidated."},
	{ID: "mw/bind-nothing", Clause: "IBTA o10-37.2.40", Requirement: "A window of type 2 is not bound to 0 bytes."},
	{ID: "mw/zero-based", Clause: "IBTA o10-36.2.2", Requirement: "A window of type 1 does not begin at address 0."},
	{ID: "mw/other-qp", Clause: "IBTA 10.6.7*",
		Requirement: "A window of type 2B gives no access over another QP than the one that bound it."},
	{ID: "mw/registration-in-use", Clause: "IBTA 10.6.7.2.6; man ibv_dereg_mr",
		Requirement: "A registration with a window does not close, or the window gives no access when it has."},
	{ID: "mw/qp-ends", Clause: "IBTA o10-2.2.5",
		Requirement: "A QP can be destroyed while windows of type 2B are bound on it."},
	{ID: "mw/bind-order", Clause: "man ibv_bind_mw",
		Requirement: "A peer that was told the key by a send behind the bind can use it at once."},
})

func windows(cases []Case) []Case {
	for i := range cases {
		cases[i].Lacks = "rdma.Device has no call for memory windows"
	}
	return cases
}
