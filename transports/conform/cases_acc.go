package conform

import (
	"context"
	"fmt"
	"math/bits"
	"sync/atomic"
	"time"

	"github.com/rdmaperf/rdmaperf/transports/rdma"
)

// ACC: registrations, rights and protection.
var accCases = []Case{
	{ID: "acc/registration", Clause: "man ibv_reg_mr",
		Requirement: "A registration tells the address, length and rights that it was made with.",
		Run:         accRegistration},
	{ID: "acc/remote-needs-local", Clause: "man ibv_reg_mr",
		Requirement: "Remote write and remote atomic without local write are refused, as are unknown rights.",
		Run:         accRemoteNeedsLocal},
	{ID: "acc/empty-buffer", Clause: "man ibv_reg_mr", Level: May,
		Requirement: "A registration of 0 bytes is refused or usable.",
		Run:         accEmptyBuffer},
	{ID: "acc/write-rights", Clause: "IBTA 10.6.6; man ibv_reg_mr; RFC 5040 §7.2", Unchecked: "IBTA 10.6.6", Needs: needSendWrite,
		Requirement: "A write is allowed exactly under registrations with remote write.",
		Run:         accWriteRights},
	{ID: "acc/read-rights", Clause: "IBTA 10.6.6; man ibv_reg_mr; RFC 5040 §7.2", Unchecked: "IBTA 10.6.6", Needs: needRead,
		Requirement: "A read is allowed exactly under registrations with remote read.",
		Run:         accReadRights},
	{ID: "acc/atomic-rights", Clause: "IBTA 10.6.6; man ibv_reg_mr", Unchecked: "IBTA 10.6.6", Needs: needFetchAdd,
		Requirement: "An atomic is allowed exactly under registrations with remote atomic.",
		Run:         accAtomicRights},
	{ID: "acc/receive-rights", Clause: "IBTA 10.6.6; man ibv_reg_mr", Unchecked: "IBTA 10.6.6", Needs: needSend,
		Requirement: "A receive needs local write.",
		Run:         accReceiveRights},
	{ID: "acc/qp-rights", Clause: "IBTA 10.6.6; man ibv_modify_qp (qp_access_flags)", Unchecked: "IBTA 10.6.6", Needs: needWriteRead,
		Requirement: "Rights that the QP does not admit are refused whatever the registration says.",
		Run:         accQPRights},
	{ID: "acc/rkey-after-dereg", Clause: "IBTA 10.6.7; RFC 5040 §8.1.1 (6)", Unchecked: "IBTA 10.6.7", Needs: needWriteRead,
		Requirement: "A key whose registration was closed gives no access, even to memory that is registered again.",
		Run:         accRKeyAfterDereg},
	{ID: "acc/dereg-while-writing", Clause: "IBTA 10.6.7; RFC 5040 §8.1.1 (6)", Unchecked: "IBTA 10.6.7", Needs: needWrite,
		Requirement: "When the close of a registration returns, a peer that still streams writes touches the memory no more.",
		Run:         accDeregWhileWriting},
	{ID: "acc/other-domain", Clause: "IBTA 10.2.3; RFC 5040 §8.1.1 (1), RFC 5041 §7.1", Unchecked: "IBTA 10.2.3", Needs: needWriteRead,
		Requirement: "A key gives no access over a QP of another protection domain.",
		Run:         accOtherDomain},
	{ID: "acc/wrong-keys", Clause: "IBTA 10.6.7; RFC 5041 §7.1, RFC 5040 §8.1.1 (8)", Unchecked: "IBTA 10.6.7", Needs: needWrite,
		Requirement: "A key that is off by one or has one bit or byte changed, and a random one, give no access.",
		Run:         accWrongKeys},
	{ID: "acc/keys-unpredictable", Clause: "RFC 5040 §8.1.1 (8)", Level: Should,
		Requirement: "Keys differ, do not follow from each other by a constant step, and use their bits.",
		Run:         accKeysUnpredictable},
	{ID: "acc/two-registrations", Clause: "IBTA 10.6", Unchecked: "IBTA 10.6", Needs: needWriteRead,
		Requirement: "Two registrations of the same memory have their own rights and lives: what moves by one is not touched by the end of the other.",
		Run:         accTwoRegistrations},
	{ID: "acc/lkey-unknown", Clause: "IBTA 10.6.6; man ibv_poll_cq", Unchecked: "IBTA 10.6.6", Needs: needSend,
		Requirement: "A send from an unknown key is a local fault, and the peer sees nothing of it.",
		Run:         accLKeyUnknown},
	{ID: "acc/lkey-other-domain", Clause: "IBTA 10.2.3", Unchecked: "IBTA 10.2.3", Needs: needSend,
		Requirement: "A send from a registration of another protection domain is a local fault.",
		Run:         accLKeyOtherDomain},
	{ID: "acc/lkey-after-dereg", Clause: "IBTA 10.6.7", Unchecked: "IBTA 10.6.7", Needs: needSend,
		Requirement: "A send from a closed registration is a local fault.",
		Run:         accLKeyAfterDereg},
	{ID: "acc/lkey-bounds", Clause: "IBTA 10.6.6", Unchecked: "IBTA 10.6.6", Needs: needSend,
		Requirement: "A send of bytes outside the registration is a local fault, also when address and length exceed 2^64.",
		Run:         accLKeyBounds},
}

func accRegistration(_ context.Context, e *Env) error {
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
	return nil
}

func accRemoteNeedsLocal(_ context.Context, e *Env) error {
	buf := e.memory("memory", 4096)
	for _, acc := range []rdma.Access{rdma.RemoteWrite, rdma.RemoteAtomic, rdma.RemoteWrite | rdma.RemoteRead, 1 << 7} {
		mr, err := e.A.RegMR(0, buf.buf, acc)
		if err == nil {
			e.must("close registration", mr.Close())
		}
		e.refusedWith(fmt.Sprintf("register with rights %#x", acc), err, rdma.ErrInvalid)
	}
	return nil
}

func accEmptyBuffer(_ context.Context, e *Env) error {
	mr, err := e.A.RegMR(0, rdma.Buffer{}, localOnly)
	if err != nil {
		e.Note("refused: %v", err)
		return nil
	}
	e.Note("usable, length %d", mr.Len())
	e.must("close registration", mr.Close())
	return nil
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

func accWriteRights(_ context.Context, e *Env) error {
	e.rights(rdma.RemoteWrite, 0x0102,
		func(t target, near *region) rdma.SendWR { return write(1, t, near.all()) },
		func(near, far *region) { e.equal(far.name, far.data(), near.data()) })
	return nil
}

func accReadRights(_ context.Context, e *Env) error {
	e.rights(rdma.RemoteRead, 0x0102,
		func(t target, near *region) rdma.SendWR { return read(1, t, near.all()) },
		func(near, far *region) { e.equal(near.name, near.data(), far.data()) })
	return nil
}

func accAtomicRights(_ context.Context, e *Env) error {
	e.rights(rdma.RemoteAtomic, 0x0102,
		func(t target, near *region) rdma.SendWR { return fetchAdd(1, t, 1, near.all()) },
		func(near, far *region) { far.wordIs(0, near.word(0)+1, "value after the add") })
	return nil
}

func accReceiveRights(_ context.Context, e *Env) error {
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
	return nil
}

func accQPRights(_ context.Context, e *Env) error {
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
	return nil
}

func accRKeyAfterDereg(_ context.Context, e *Env) error {
	for _, again := range []bool{false, true} {
		for _, isRead := range []bool{false, true} {
			c := e.connect(connOpts{})
			near := e.region(c.a, "near", 64, e.sinkAccess())
			far := e.region(c.b, "far", 64, remoteAll)
			near.fill(1)
			far.fill(2)
			near.freeze()
			far.freeze()
			old := far.at(0)
			e.must("close registration", far.mr.Close())
			if again {
				far.register(c.b.dev, c.b.pd, remoteAll)
				if far.mr.RKey() == old.key {
					e.failf("a new key for a new registration", "%#x again", old.key)
				}
			}
			wr, code := write(1, old, near.all()), uint32(0x1100)
			if isRead {
				wr, code = read(1, old, near.all()), 0x0100
			}
			c.refuses(c.a, accessRefused(code), wr)
			far.unchanged("by a closed key")
			near.unchanged("by a closed key")
		}
	}
	return nil
}

func accDeregWhileWriting(_ context.Context, e *Env) error {
	const size = 8192
	for round := range e.loops(4, 50) {
		c := e.connect(connOpts{})
		src := e.region(c.a, "src", size, localOnly)
		dst := e.region(c.b, "dst", size, remoteAll)
		src.fill(uint64(round))
		var closing atomic.Bool
		delay := time.Duration(e.Rand.IntN(3000)) * time.Microsecond
		closer := e.start("close registration", func() error {
			time.Sleep(delay)
			closing.Store(true)
			if err := dst.mr.Close(); err != nil {
				return err
			}
			fillByte(dst.buf.Bytes(), canaryByte) // ours again: the data too is canary now
			return nil
		})
		for n := 0; c.a.qp.State() == rdma.QPRTS; {
			if len(c.a.s.open) < c.a.depth {
				c.a.post(write(n, dst.at(0), src.all()))
				n++
			}
			e.step()
			if e.ctx.Err() != nil {
				e.failf("the writes fail after the key is closed", "%d writes, still in RTS", n)
			}
		}
		early := !closing.Load()
		e.must("close registration", e.await(closer))
		c.a.s.endedBy(accessRefused(0x1100))
		if early {
			e.failf("the writes go on until the key is closed", "an error before")
		}
		c.b.waitState(rdma.QPErr)
		e.allBytes(dst.name+" after its key was closed", dst.data(), canaryByte)
		c.a.close()
		c.b.close()
	}
	return nil
}

func accOtherDomain(_ context.Context, e *Env) error {
	pd, err := e.B.AllocPD()
	e.must("allocate pd", err)
	e.onClose(rankPD, e.B, "pd", func() error { return e.B.FreePD(pd) })
	for _, isRead := range []bool{false, true} {
		c := e.connect(connOpts{})
		near := e.region(c.a, "near", 64, e.sinkAccess())
		far := e.regionOf(e.B, pd, "far", 64, remoteAll)
		near.fill(1)
		far.fill(2)
		near.freeze()
		far.freeze()
		wr, code := write(1, far.at(0), near.all()), uint32(0x1102)
		if isRead {
			wr, code = read(1, far.at(0), near.all()), 0x0103
		}
		c.refuses(c.a, accessRefused(code), wr)
		far.unchanged("over a qp of another domain")
		near.unchanged("over a qp of another domain")
	}
	// The same key works over a QP of its own domain.
	c := e.connect(connOpts{pdB: pd})
	near := e.region(c.a, "near", 64, localOnly)
	far := e.regionOf(e.B, pd, "far", 64, remoteAll)
	near.fill(3)
	c.a.post(write(1, far.at(0), near.all()))
	c.a.s.expect(ok(1))
	c.barrier()
	e.equal(far.name, far.data(), near.data())
	return nil
}

func accWrongKeys(_ context.Context, e *Env) error {
	first := e.connect(connOpts{})
	far := e.region(first.b, "far", 64, remoteAll)
	far.fill(1)
	far.freeze()
	key := far.mr.RKey()
	keys := []uint32{key + 1, key - 1, 0, ^uint32(0), ^key, bits.ReverseBytes32(key)}
	for i := range 4 {
		keys = append(keys, key^0xff<<(8*i), key^1<<(8*i))
	}
	for range e.loops(16, 1000) {
		keys = append(keys, e.Rand.Uint32())
	}
	for _, k := range keys {
		if k == key {
			continue
		}
		c := e.connect(connOpts{})
		near := e.region(c.a, "near", 64, localOnly)
		near.fill(2)
		c.refuses(c.a, accessRefused(0x1100, 0x1101, 0x1102, 0x0102), write(1, target{far.at(0).addr, k}, near.all()))
		far.unchanged(fmt.Sprintf("by key %#x", k))
		c.a.close()
		c.b.close()
	}
	first.works()
	return nil
}

func accKeysUnpredictable(_ context.Context, e *Env) error {
	const n = 64
	buf := e.memory("memory", 4096)
	var keys []uint32
	seen := map[uint32]bool{}
	var ever, always uint32 = 0, ^uint32(0)
	for range n {
		mr, err := e.B.RegMR(0, buf.buf, remoteAll)
		e.must("register", err)
		e.onClose(rankMR, e.B, "registration", mr.Close)
		k := mr.RKey()
		if seen[k] {
			e.failf("a key for every registration", "%#x twice", k)
		}
		seen[k] = true
		keys = append(keys, k)
		ever |= k
		always &= k
	}
	steps := map[uint32]int{}
	for i := 1; i < n; i++ {
		steps[keys[i]-keys[i-1]]++
	}
	for step, times := range steps {
		if times > n/8 {
			e.failf("no constant step between keys", "step %#x %d times in %d", step, times, n-1)
		}
	}
	if used := bits.OnesCount32(ever &^ always); used < 16 {
		e.failf("keys of at least 16 changing bits", "%d changing bits", used)
	}
	return nil
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

func accLKeyUnknown(_ context.Context, e *Env) error {
	c := e.connect(connOpts{})
	src := e.region(c.a, "src", 64, remoteAll)
	g := src.all()
	g.LKey ^= 0x5a5a5a5a
	c.localFaultUnseen(send(1, g))
	return nil
}

func accLKeyOtherDomain(_ context.Context, e *Env) error {
	pd, err := e.A.AllocPD()
	e.must("allocate pd", err)
	e.onClose(rankPD, e.A, "pd", func() error { return e.A.FreePD(pd) })
	c := e.connect(connOpts{})
	src := e.regionOf(e.A, pd, "src", 64, remoteAll)
	c.localFaultUnseen(send(1, src.all()))
	return nil
}

func accLKeyAfterDereg(_ context.Context, e *Env) error {
	c := e.connect(connOpts{})
	src := e.region(c.a, "src", 64, remoteAll)
	e.must("close registration", src.mr.Close())
	c.localFaultUnseen(send(1, src.all()))
	return nil
}

func accLKeyBounds(_ context.Context, e *Env) error {
	base := uint64(0)
	for _, g := range []rdma.SGE{{Addr: 1000, Len: 1}, {Addr: 999, Len: 2}, {Addr: 0, Len: 1001}, {Addr: base - 1, Len: 2}, {Addr: base - 8, Len: 1 << 31}} {
		c := e.connect(connOpts{})
		src := e.exact(c.a, "src", 1000, remoteAll)
		g.Addr += src.mr.Addr()
		g.LKey = src.mr.LKey()
		c.localFaultUnseen(send(1, g))
	}
	c := e.connect(connOpts{})
	src := e.exact(c.a, "src", 1000, remoteAll)
	c.localFaultUnseen(send(1, rdma.SGE{Addr: ^uint64(0) - 7, Len: 16, LKey: src.mr.LKey()}))
	return nil
}
