package conform

import (
	"fmt"

	"github.com/rdmaperf/rdmaperf/transports/rdma"
)

// ACC: registrations, rights and protection.
var accCases = []Case{
	{ID: "acc/registration", Clause: "man ibv_reg_mr",
		Requirement: "A registration tells the address, length and rights that it was made with.", Run: func(e *Env) {
			for _, size := range []int{1, 4095, 4096, 4097, 1 << 20} {
				buf := e.memory("memory", size)
				for _, acc := range []rdma.Access{0, rdma.RemoteRead, localOnly, remoteAll, atomicAll} {
					mr := e.register(e.A, 0, buf.buf, acc)
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
			for _, acc := range []rdma.Access{rdma.RemoteWrite, rdma.RemoteAtomic, rdma.RemoteWrite | rdma.RemoteRead,
				1 << 7} {
				e.notCreated(fmt.Sprintf("register with rights %#x", acc), rdma.ErrInvalid)(e.A.RegMR(0, buf.buf, acc))
			}
		}},
	{ID: "acc/empty-buffer", Clause: "man ibv_reg_mr", Level: May,
		Requirement: "A registration of 0 bytes is refused or usable.", Run: func(e *Env) {
			mr, err := e.A.RegMR(0, rdma.Buffer{}, localOnly)
			if err != nil {
				e.Note("refused: %v", err)
				return
			}
			e.Note("usable, length %d", mr.Len())
			e.must("close registration", mr.Close())
		}},
	{ID: "acc/write-rights", Clause: "IBTA 10.6.6*; man ibv_reg_mr; RFC 5040 §7.2", Needs: needSendWrite,
		Requirement: "A write is allowed exactly under registrations with remote write.", Run: func(e *Env) {
			e.rights(rdma.RemoteWrite, 0x0102,
				func(t target, near *region) rdma.SendWR { return write(1, t, near.all()) },
				func(near, far *region) { far.holds(near.data()) })
		}},
	{ID: "acc/read-rights", Clause: "IBTA 10.6.6*; man ibv_reg_mr; RFC 5040 §7.2", Needs: needRead,
		Requirement: "A read is allowed exactly under registrations with remote read.", Run: func(e *Env) {
			e.rights(rdma.RemoteRead, 0x0102,
				func(t target, near *region) rdma.SendWR { return read(1, t, near.all()) },
				func(near, far *region) { near.holds(far.data()) })
		}},
	{ID: "acc/atomic-rights", Clause: "IBTA 10.6.6*; man ibv_reg_mr", Needs: needFetchAdd,
		Requirement: "An atomic is allowed exactly under registrations with remote atomic.", Run: func(e *Env) {
			e.rights(rdma.RemoteAtomic, 0x0102,
				func(t target, near *region) rdma.SendWR { return fetchAdd(1, t, 1, near.all()) },
				func(near, far *region) { far.wordIs(0, near.word(0)+1, "value after the add") })
		}},
	{ID: "acc/receive-rights", Clause: "IBTA 10.6.6*; man ibv_reg_mr", Needs: needSend,
		Requirement: "A receive needs local write.", Run: func(e *Env) {
			for _, acc := range []rdma.Access{0, rdma.RemoteRead, rdma.LocalWrite, remoteAll} {
				c := e.connect(connOpts{})
				src := e.region(c.a, "src", 64, 0) // a send needs no right
				dst := e.region(c.b, "dst", 64, acc)
				src.fill(1)
				dst.freeze()
				_, err := c.b.tryRecv(recv(1, dst.all()))
				switch {
				case acc.Has(rdma.LocalWrite):
					e.must("post of the receive", err)
					c.a.do(send(1, src.all()))
					c.b.r.expect(got(1, 64))
					dst.holds(src.data())
				case err != nil:
					dst.unchanged("without local write")
					c.works()
				default:
					c.receiveFails(src, dst)
				}
			}
		}},
	{ID: "acc/qp-rights", Clause: "IBTA 10.6.6*; man ibv_modify_qp (qp_access_flags)", Needs: needWriteRead,
		Requirement: "Rights that the QP does not admit are refused whatever the registration says.",
		Run: func(e *Env) {
			for _, admitted := range []rdma.Access{rdma.RemoteRead, rdma.LocalWrite | rdma.RemoteWrite} {
				for i, op := range oneSided(0x0102, 0x0102) {
					c := e.connect(connOpts{access: admitted})
					near, far := c.nearFar(64, remoteAll)
					wr := op.build(1, far.at(0), near.all())
					if admitted.Has([...]rdma.Access{rdma.RemoteWrite, rdma.RemoteRead}[i]) {
						c.a.do(wr)
						c.barrier()
						e.equal(near.name+" and "+far.name+" after the transfer", near.data(), far.data())
						continue
					}
					c.noEffect(op.refused, wr, near, far)
				}
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
func (e *Env) rights(need rdma.Access, code uint32, build func(t target, near *region) rdma.SendWR,
	check func(near, far *region)) {
	for _, acc := range validRights() {
		c := e.connect(connOpts{})
		near, far := c.nearFar(8, acc)
		wr := build(far.at(0), near)
		if acc.Has(need) {
			c.a.do(wr)
			c.barrier()
			check(near, far)
		} else {
			c.noEffect(accessRefused(code), wr, far, near)
		}
		c.close()
	}
}

// localFaultUnseen posts a send that is wrong on this side and requires that the peer receives nothing of it.
func (c *conn) localFaultUnseen(wr rdma.SendWR) {
	e := c.e
	dst := e.region(c.b, "dst", 4096, localOnly)
	dst.freeze()
	c.b.postRecv(recv(1, dst.all()))
	if c.a.localFault(wr) {
		c.a.do(send(2))
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
