package conform

import (
	"fmt"

	"github.com/rdmaperf/rdmaperf/transports/rdma"
)

// ACC: registrations, rights and protection.
var accCases = []Case{
	{ID: "acc/registration", Clause: "man ibv_reg_mr",
		Requirement: "A registration tells the address, length and rights that it was made with.",
		Run: func(e *Env) {
			for _, size := range []int{1, 4095, 4096, 4097, 1 << 20} {
				buf := e.memory("memory", size)
				for _, acc := range []rdma.Access{0, rdma.RemoteRead, localOnly, remoteAll, atomicAll} {
					mr, err := e.A.RegMR(0, buf.buf, acc)
					e.must("register", err)
					e.onClose(rankMR, e.A, "registration", mr.Close)
					if mr.Addr() != buf.buf.Addr() || mr.Len() != uint64(size) || mr.Access() != acc {
						e.failf(fmt.Sprintf("address %#x, %d bytes, rights %#x", buf.buf.Addr(), size, acc),
							"address %#x, %d bytes, rights %#x", mr.Addr(), mr.Len(), mr.Access())
					}
				}
			}
		}},
	{ID: "acc/remote-needs-local", Clause: "man ibv_reg_mr",
		Requirement: "Remote write and remote atomic without local write are refused, as are unknown rights.",
		Run: func(e *Env) {
			buf := e.memory("memory", 4096)
			for _, acc := range []rdma.Access{rdma.RemoteWrite, rdma.RemoteAtomic, rdma.RemoteWrite | rdma.RemoteRead, 1 << 7} {
				mr, err := e.A.RegMR(0, buf.buf, acc)
				if err == nil {
					e.must("close registration", mr.Close())
				}
				e.refusedWith(fmt.Sprintf("register with rights %#x", acc), err, rdma.ErrInvalid)
			}
		}},
	{ID: "acc/empty-buffer", Clause: "man ibv_reg_mr", Level: May,
		Requirement: "A registration of 0 bytes is refused or usable.",
		Run: func(e *Env) {
			mr, err := e.A.RegMR(0, rdma.Buffer{}, localOnly)
			if err != nil {
				e.Note("refused: %v", err)
				return
			}
			e.Note("usable, length %d", mr.Len())
			e.must("close registration", mr.Close())
		}},
	{ID: "acc/write-rights", Clause: "IBTA 10.6.6; man ibv_reg_mr; RFC 5040 §7.2", Unchecked: "IBTA 10.6.6", Needs: needSendWrite,
		Requirement: "A write is allowed exactly under registrations with remote write.",
		Run: func(e *Env) {
			e.rights(rdma.RemoteWrite, 0x0102,
				func(t target, near *region) rdma.SendWR { return write(1, t, near.all()) },
				func(near, far *region) { e.equal(far.name, far.data(), near.data()) })
		}},
	{ID: "acc/read-rights", Clause: "IBTA 10.6.6; man ibv_reg_mr; RFC 5040 §7.2", Unchecked: "IBTA 10.6.6", Needs: needRead,
		Requirement: "A read is allowed exactly under registrations with remote read.",
		Run: func(e *Env) {
			e.rights(rdma.RemoteRead, 0x0102,
				func(t target, near *region) rdma.SendWR { return read(1, t, near.all()) },
				func(near, far *region) { e.equal(near.name, near.data(), far.data()) })
		}},
	{ID: "acc/atomic-rights", Clause: "IBTA 10.6.6; man ibv_reg_mr", Unchecked: "IBTA 10.6.6", Needs: needFetchAdd,
		Requirement: "An atomic is allowed exactly under registrations with remote atomic.",
		Run: func(e *Env) {
			e.rights(rdma.RemoteAtomic, 0x0102,
				func(t target, near *region) rdma.SendWR { return fetchAdd(1, t, 1, near.all()) },
				func(near, far *region) { far.wordIs(0, near.word(0)+1, "value after the add") })
		}},
	{ID: "acc/receive-rights", Clause: "IBTA 10.6.6; man ibv_reg_mr", Unchecked: "IBTA 10.6.6", Needs: needSend,
		Requirement: "A receive needs local write.",
		Run: func(e *Env) {
			for _, acc := range []rdma.Access{0, rdma.RemoteRead, rdma.LocalWrite, remoteAll} {
				c := e.connect(connOpts{})
				src := e.region(c.a, "src", 64, 0) // a send needs no right
				dst := e.region(c.b, "dst", 64, acc)
				src.fill(1)
				dst.fill(2)
				dst.freeze()
				_, err := c.b.tryRecv(recv(1, dst.all()))
				switch {
				case acc.Has(rdma.LocalWrite):
					e.must("post of the receive", err)
					c.a.post(send(1, src.all()))
					c.a.s.expect(ok(1))
					c.b.r.expect(got(1, 64))
					e.equal(dst.name, dst.data(), src.data())
				case err != nil:
					dst.unchanged("without local write")
					c.works()
				default:
					c.refusal(c.a, workRefused(), send(1, src.all()))
					c.b.r.expect(recvFails(1, c.either(rdma.StatusLocProtErr, rdma.StatusLocAccessErr)...))
					c.dead()
					dst.unchanged("without local write")
				}
			}
		}},
	{ID: "acc/qp-rights", Clause: "IBTA 10.6.6; man ibv_modify_qp (qp_access_flags)", Unchecked: "IBTA 10.6.6", Needs: needWriteRead,
		Requirement: "Rights that the QP does not admit are refused whatever the registration says.",
		Run: func(e *Env) {
			for _, v := range []struct {
				qp    rdma.Access
				read  bool // tried operation
				legal bool
			}{
				{rdma.RemoteRead, false, false},
				{rdma.RemoteRead, true, true},
				{rdma.LocalWrite | rdma.RemoteWrite, true, false},
				{rdma.LocalWrite | rdma.RemoteWrite, false, true},
			} {
				c := e.connect(connOpts{access: v.qp})
				near := e.region(c.a, "near", 64, e.sinkAccess())
				far := e.region(c.b, "far", 64, remoteAll)
				near.fill(1)
				far.fill(2)
				near.freeze()
				far.freeze()
				wr := write(1, far.at(0), near.all())
				if v.read {
					wr = read(1, far.at(0), near.all())
				}
				if v.legal {
					c.a.post(wr)
					c.a.s.expect(ok(1))
					c.barrier()
					e.equal(near.name+" and "+far.name+" after the transfer", near.data(), far.data())
					continue
				}
				c.refuses(c.a, accessRefused(0x0102), wr)
				near.unchanged("by a request that the qp does not admit")
				far.unchanged("by a request that the qp does not admit")
			}
		}},
}

// validRights are all combinations that a registration may have, without invalidation.
func validRights() []rdma.Access {
	var all []rdma.Access
	for a := rdma.Access(0); a < rdma.RemoteInvalidate; a++ {
		if a.Validate() == nil {
			all = append(all, a)
		}
	}
	return all
}

// rights tries one remote operation against registrations of all rights.
func (e *Env) rights(need rdma.Access, code uint32, build func(t target, near *region) rdma.SendWR, check func(near, far *region)) {
	for _, acc := range validRights() {
		c := e.connect(connOpts{})
		near := e.region(c.a, "near", 8, e.sinkAccess())
		far := e.region(c.b, "far", 8, acc)
		near.fill(1)
		far.fill(2)
		near.freeze()
		far.freeze()
		wr := build(far.at(0), near)
		if acc.Has(need) {
			c.a.post(wr)
			c.a.s.expect(want{id: wr.ID})
			c.barrier()
			check(near, far)
		} else {
			c.refuses(c.a, accessRefused(code), wr)
			far.unchanged(fmt.Sprintf("under rights %#x", acc))
			near.unchanged(fmt.Sprintf("under rights %#x", acc))
		}
		c.a.close()
		c.b.close()
	}
}

// localFaultUnseen posts a send that is wrong on this side and requires that the
// peer receives nothing of it.
func (c *conn) localFaultUnseen(wr rdma.SendWR) {
	e := c.e
	dst := e.region(c.b, "dst", 4096, localOnly)
	dst.freeze()
	c.b.postRecv(recv(1, dst.all()))
	if c.a.localFault(wr) {
		c.a.post(send(2))
		c.a.s.expect(ok(2))
		c.b.r.expect(got(1, 0)) // the next message finds the receive unused
	} else {
		e.pause(quietTime / 5)
		for i := range c.b.r.done {
			if c.b.r.done[i].Status == rdma.StatusSuccess {
				e.failf("nothing of the request at the peer", "%s", c.b.r.text(&c.b.r.done[i]))
			}
		}
	}
	dst.unchanged("by a request that is wrong at its source")
}
