package conform

import (
	"math/bits"
	"sync/atomic"
	"time"

	"github.com/rdmaperf/rdmaperf/transports/rdma"
)

// keyCases are about keys: how long they hold, where, and how well they are hidden.
var keyCases = []Case{
	{ID: "acc/rkey-after-dereg", Clause: "IBTA 10.6.7*; RFC 5040 §8.1.1 (6)", Needs: needWriteRead,
		Requirement: "A key whose registration was closed gives no access, even to memory that is registered again.",
		Run: func(e *Env) {
			for _, again := range []bool{false, true} {
				for _, op := range oneSided(0x1100, 0x0100) {
					c := e.connect(connOpts{})
					near, far := c.nearFar(64, remoteAll)
					old := far.at(0)
					e.must("close registration", far.mr.Close())
					if again {
						far.register(c.b.dev, c.b.pd, remoteAll)
						if far.mr.RKey() == old.key {
							e.failf("a new key for a new registration", "%#x again", old.key)
						}
					}
					c.noEffect(op.refused, op.build(1, old, near.all()), far, near)
				}
			}
		}},
	{ID: "acc/dereg-while-writing", Clause: "IBTA 10.6.7*; RFC 5040 §8.1.1 (6)", Needs: needWrite,
		Requirement: "When the close of a registration returns, a peer that still streams writes touches the memory " +
			"no more.", Run: func(e *Env) {
			const size = 8192
			for round := range e.loops(4, 50) {
				c, src, dst := e.writing(size)
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
				c.close()
			}
		}},
	{ID: "acc/other-domain", Clause: "IBTA 10.2.3*; RFC 5040 §8.1.1 (1), RFC 5041 §7.1", Needs: needWriteRead,
		Requirement: "A key gives no access over a QP of another protection domain.", Run: func(e *Env) {
			pd := e.newPD(e.B)
			for _, op := range oneSided(0x1102, 0x0103) {
				c := e.connect(connOpts{})
				near := e.region(c.a, "near", 64, e.sinkAccess())
				far := e.regionOf(e.B, pd, "far", 64, remoteAll)
				near.fill(1)
				far.fill(2)
				c.noEffect(op.refused, op.build(1, far.at(0), near.all()), far, near)
			}
			// The same key works over a QP of its own domain.
			c := e.connect(connOpts{pdB: pd})
			near := e.region(c.a, "near", 64, localOnly)
			far := e.regionOf(e.B, pd, "far", 64, remoteAll)
			near.fill(3)
			c.writes(near, far)
		}},
	{ID: "acc/wrong-keys", Clause: "IBTA 10.6.7*; RFC 5041 §7.1, RFC 5040 §8.1.1 (8)", Needs: needWrite,
		Requirement: "A key that is off by one or has one bit or byte changed, and a random one, give no access.",
		Run: func(e *Env) {
			first := e.connect(connOpts{})
			far := e.region(first.b, "far", 64, remoteAll)
			far.fill(1)
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
				wr := write(1, target{far.at(0).addr, k}, near.all())
				c.noEffect(accessRefused(0x1100, 0x1101, 0x1102, 0x0102), wr, far)
				c.close()
			}
			first.works()
		}},
	{ID: "acc/keys-unpredictable", Clause: "RFC 5040 §8.1.1 (8)", Level: Should,
		Requirement: "Keys differ, do not follow from each other by a constant step, and use their bits.",
		Run: func(e *Env) {
			const n = 64
			buf := e.memory("memory", 4096)
			var keys []uint32
			seen := map[uint32]bool{}
			var ever, always uint32 = 0, ^uint32(0)
			for range n {
				mr := e.register(e.B, 0, buf.buf, remoteAll)
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
		}},
	{ID: "acc/two-registrations", Clause: "IBTA 10.6*", Needs: needWriteRead,
		Requirement: "Two registrations of the same memory have their own rights and lives: what moves by one is not " +
			"touched by the end of the other.", Run: func(e *Env) {
			c := e.connect(connOpts{})
			near := e.region(c.a, "near", 64, e.sinkAccess())
			far := e.region(c.b, "far", 64, rdma.RemoteRead)
			second := e.register(c.b.dev, c.b.pd, far.buf, localOnly|rdma.RemoteWrite)
			near.fill(1)
			writable := target{far.at(0).addr, second.RKey()}
			c.a.do(write(1, writable, near.all()))
			c.barrier()
			far.holds(near.data())
			fillByte(near.data(), 0)
			c.reads(far, near)
			// The end of one is not the end of the other.
			e.must("close second registration", second.Close())
			e.otherEnds(c)
			c.a.do(read(3, far.at(0), near.all()))
			near.fill(2)
			c.noEffect(accessRefused(0x0102), write(4, far.at(0), near.all()), far)
		}},
	{ID: "acc/lkey-unknown", Clause: "IBTA 10.6.6*; man ibv_poll_cq", Needs: needSend,
		Requirement: "A send from an unknown key is a local fault, and the peer sees nothing of it.",
		Run: func(e *Env) {
			c := e.connect(connOpts{})
			src := e.region(c.a, "src", 64, remoteAll)
			g := src.all()
			g.LKey ^= 0x5a5a5a5a
			c.localFaultUnseen(send(1, g))
		}},
	{ID: "acc/lkey-other-domain", Clause: "IBTA 10.2.3*", Needs: needSend,
		Requirement: "A send from a registration of another protection domain is a local fault.", Run: func(e *Env) {
			src := e.regionOf(e.A, e.newPD(e.A), "src", 64, remoteAll)
			e.connect(connOpts{}).localFaultUnseen(send(1, src.all()))
		}},
	{ID: "acc/lkey-after-dereg", Clause: "IBTA 10.6.7*", Needs: needSend,
		Requirement: "A send from a closed registration is a local fault.", Run: func(e *Env) {
			c := e.connect(connOpts{})
			src := e.region(c.a, "src", 64, remoteAll)
			e.must("close registration", src.mr.Close())
			c.localFaultUnseen(send(1, src.all()))
		}},
	{ID: "acc/lkey-bounds", Clause: "IBTA 10.6.6*", Needs: needSend,
		Requirement: "A send of bytes outside the registration is a local fault, also when address and length exceed " +
			"2^64.", Run: func(e *Env) {
			for _, r := range []reach{{off: 1000, n: 1}, {off: 999, n: 2}, {n: 1001}, {off: minus(1), n: 2},
				{off: minus(8), n: 1 << 31}, {off: ^uint64(0) - 7, n: 16, absolute: true}} {
				c := e.connect(connOpts{})
				src := e.exact(c.a, "src", 1000, remoteAll)
				c.localFaultUnseen(send(1, rdma.SGE{Addr: r.of(src.mr.Addr()), Len: uint32(r.n), LKey: src.mr.LKey()}))
			}
		}},
}

// otherEnds moves more than a stream takes at once, and ends other registrations of that memory meanwhile.
func (e *Env) otherEnds(c *conn) {
	const n, writes = 1 << 20, 8
	from, to := c.writing(n)
	var others []rdma.MR
	for x, r := range map[*end]*region{c.a: from, c.b: to} {
		mr := e.register(x.dev, x.pd, r.buf, localOnly)
		others = append(others, mr)
	}
	for i := range writes {
		c.a.post(write(100+i, to.at(0), from.all()))
	}
	for _, mr := range others {
		e.must("close the other registration", mr.Close())
	}
	for i := range writes {
		c.a.s.expect(ok(100 + i))
	}
	c.barrier()
	to.holds(from.data())
}
