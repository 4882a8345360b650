package conform

import (
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/rdmaperf/rdmaperf/transports/rdma"
)

// DEV: the device, its limits and its protection domains.
var devCases = []Case{
	{ID: "dev/caps-constant", Clause: "IBTA 11.2.1.2*; man ibv_query_device",
		Requirement: "Abilities and limits are the same at every query, from every thread, and they agree with each " +
			"other.", Run: func(e *Env) {
			for _, dev := range []rdma.Device{e.A, e.B} {
				first := dev.Caps()
				var wg sync.WaitGroup
				var others atomic.Int32
				for range 16 {
					wg.Go(func() {
						for range 100 {
							if dev.Caps() != first {
								others.Add(1)
							}
						}
					})
				}
				wg.Wait()
				if n := others.Load(); n > 0 {
					e.failf("the same capabilities at every query", "others at %d of 1600", n)
				}
				e.capsAgree(&first)
				if dev.Name() == "" {
					e.failf("a device name", "an empty one")
				}
			}
		}},
	{ID: "dev/limits-creatable", Clause: "man ibv_create_qp",
		Requirement: "Objects of the advertised maximum size can be created: the result is at least what was asked " +
			"for.", Run: func(e *Env) {
			c := e.A.Caps()
			e.newCQ(e.A, "cq of MaxCQE", c.MaxCQE)
			o := connOpts{depth: c.MaxQPWR, rdepth: c.MaxQPWR, inline: c.MaxInline, cqDepth: 1}
			e.newEnd(e.A, "largest", o, nil, nil, 0, 0)
			if c.Features.Has(rdma.FeatSRQ) {
				srq, err := e.A.NewSRQ(rdma.SRQConfig{Depth: c.MaxSRQWR})
				e.must("create srq of MaxSRQWR", err)
				e.onClose(rankCQ, e.A, "largest srq", srq.Close)
			}
			// Zero depths mean 1.
			e.newEnd(e.A, "smallest", connOpts{cqDepth: 1, depth: -1, rdepth: -1}, nil, nil, 0, 0)
		}},
	{ID: "dev/limits-exceeded", Clause: "man ibv_create_qp; man ibv_create_cq",
		Requirement: "A request above a limit fails and leaves nothing behind.", Run: func(e *Env) {
			c := e.A.Caps()
			pd, err := e.A.AllocPD()
			e.must("allocate pd", err)
			cq := e.newCQ(e.A, "cq", 4).cq
			for _, cfg := range []struct {
				what string
				qp   rdma.QPConfig
			}{
				{"create qp of MaxQPWR+1 sends", rdma.QPConfig{SendDepth: c.MaxQPWR + 1}},
				{"create qp of MaxQPWR+1 receives", rdma.QPConfig{RecvDepth: c.MaxQPWR + 1}},
				{"create qp of MaxInline+1 bytes", rdma.QPConfig{MaxInline: c.MaxInline + 1}},
				{"create qp of negative depth", rdma.QPConfig{SendDepth: -1}},
			} {
				cfg.qp.PD, cfg.qp.SendCQ, cfg.qp.RecvCQ = pd, cq, cq
				e.notCreated(cfg.what, rdma.ErrInvalid, rdma.ErrNotSupported)(e.A.NewQP(cfg.qp))
			}
			if c.Features.Has(rdma.FeatSRQ) {
				e.notCreated("create srq of MaxSRQWR+1",
					rdma.ErrInvalid)(e.A.NewSRQ(rdma.SRQConfig{PD: pd, Depth: c.MaxSRQWR + 1}))
			}
			// An object left behind would hold the domain.
			e.must("free the pd after refused creations", e.A.FreePD(pd))
		}},
	{ID: "dev/pd-busy", Clause: "IBTA 11.2.1.5*; man ibv_alloc_pd",
		Requirement: "A protection domain that an object uses cannot be freed, and the object stays usable.",
		Run: func(e *Env) {
			pd, err := e.A.AllocPD()
			e.must("allocate pd", err)
			busy := func(what string) { e.refusedWith("free pd with "+what, e.A.FreePD(pd), rdma.ErrBusy) }

			r := e.regionOf(e.A, pd, "region", 64, remoteAll)
			busy("a registration")
			if r.mr.Len() != uint64(r.buf.Len()) {
				e.failf("registration still usable", "length %d", r.mr.Len())
			}
			e.must("close registration", r.mr.Close())

			c := e.connect(connOpts{pdA: pd})
			busy("a queue pair")
			c.works()
			c.a.close()

			if e.Caps.Features.Has(rdma.FeatSRQ) {
				srq, err := e.A.NewSRQ(rdma.SRQConfig{PD: pd, Depth: 4})
				e.must("create srq", err)
				busy("a shared receive queue")
				e.must("close srq", srq.Close())
			}
			e.must("free the unused pd", e.A.FreePD(pd))
		}},
	{ID: "dev/close-busy", Clause: "man ibv_close_device",
		Requirement: "A device with open objects refuses to close and stays usable; Close of an object may be " +
			"repeated.", Run: func(e *Env) {
			c := e.connect(connOpts{})
			r := e.region(c.a, "region", 64, localOnly)
			e.refusedWith("close device with open objects", e.A.Close(), rdma.ErrBusy)
			c.works()
			e.must("close registration", r.mr.Close())
			e.must("close registration again", r.mr.Close())
			c.a.close()
			e.must("close qp again", c.a.qp.Close())
			c.a.box.closed = true
			e.must("close cq", c.a.box.cq.Close())
			e.must("close cq again", c.a.box.cq.Close())
			if n, err := c.a.qp.PostSend([]rdma.SendWR{send(1)}); err == nil || n != 0 {
				e.failf("post on a closed qp fails", "n=%d, error %v", n, err)
			}
		}},
	{ID: "dev/opcodes", Clause: "man ibv_post_send, table of opcodes",
		Requirement: "Every declared operation can be posted on a connected QP and completes under its own opcode.",
		Run: func(e *Env) {
			access := remoteAll
			if e.Caps.Ops.Has(rdma.OpFetchAdd) || e.Caps.Ops.Has(rdma.OpCmpSwap) {
				access |= rdma.RemoteAtomic
			}
			c := e.connect(connOpts{})
			src, dst := c.nearFar(64, access)
			for op := rdma.Opcode(0); int(op) < rdma.NumOpcodes; op++ {
				if !e.Caps.Ops.Has(op) {
					continue
				}
				e.Note("%s", op)
				wr := e.anyRequest(op, int(op), src, dst)
				if op == rdma.OpSendInv {
					wr.InvKey = e.region(c.b, "revocable", 64, remoteAll|rdma.RemoteInvalidate).mr.RKey()
				}
				if op == rdma.OpLocalInv {
					wr.InvKey = e.region(c.a, "own", 64, localOnly).mr.RKey()
				}
				consumes := op == rdma.OpSend || op == rdma.OpSendInv || op == rdma.OpSendImm || op == rdma.OpWriteImm
				if consumes {
					c.b.postRecv(recv(int(op), dst.all()))
				}
				c.a.do(wr) // file compares the opcode and the length
				if consumes {
					if wc := c.b.r.next("a receive"); wc.Status != rdma.StatusSuccess || wc.ID != recvID(int(op)) {
						e.failf("receive of "+op.String()+" succeeds", "%s", c.b.r.text(&wc))
					}
				}
			}
		}},
	{ID: "dev/undeclared-refused", Clause: "man ibv_post_send: an unsupported request fails at once",
		Requirement: "An operation or feature that is not declared is refused at once as not supported, and the QP " +
			"is unharmed.", Run: func(e *Env) {
			caps := e.A.Caps()
			c := e.connect(connOpts{})
			src, dst := c.nearFar(64, remoteAll)
			probed := 0
			refused := func(what string, f func() error) {
				probed++
				start := time.Now()
				err := f()
				e.refusedWith(what+", which is not declared", err, rdma.ErrNotSupported)
				e.within(soon, start, what+" refused at once")
				c.works()
			}
			post := func(wr rdma.SendWR) func() error {
				return func() error { _, err := c.a.tryPost(wr); return err }
			}
			for op := rdma.Opcode(0); int(op) < rdma.NumOpcodes; op++ {
				if !caps.Ops.Has(op) {
					refused("operation "+op.String(), post(e.anyRequest(op, int(op), src, dst)))
				}
			}
			lacks := func(f rdma.Features) bool { return !caps.Features.Has(f) }
			if lacks(rdma.FeatSRQ) {
				refused("srq", func() error { _, err := e.A.NewSRQ(rdma.SRQConfig{Depth: 4}); return err })
			}
			if lacks(rdma.FeatEvents) {
				refused("arm", func() error { return c.a.box.cq.Arm(false) })
				refused("wait", func() error { return c.a.box.cq.Wait(e.short(soon)) })
			} else if lacks(rdma.FeatSolicited) {
				refused("arm for solicited events", func() error { return c.a.box.cq.Arm(true) })
			}
			if lacks(rdma.FeatInline) {
				refused("inline", post(inline(send(100, src.sge(0, 8)))))
			}
			if lacks(rdma.FeatImmPayload) && caps.Ops.Has(rdma.OpSendImm) {
				refused("send_imm of bytes", post(sendImm(104, 1, src.sge(0, 8))))
			}
			if lacks(rdma.FeatFence) {
				refused("fence", post(fenced(send(101, src.sge(0, 8)))))
			}
			if lacks(rdma.FeatSQD) {
				refused("drain", c.a.qp.Drain)
				refused("resume", c.a.qp.Resume)
			}
			if lacks(rdma.FeatPingPong) {
				refused("ping_pong", func() error {
					_, err := c.a.qp.PingPong(make([]rdma.PingPongStep, 1), make([]rdma.WC, 1))
					return err
				})
			}
			if lacks(rdma.FeatReadMultiSGE) && caps.Ops.Has(rdma.OpRead) && caps.MaxSGE > 1 {
				probed++
				_, err := c.a.tryPost(read(102, dst.at(0), src.sge(0, 8), src.sge(8, 8)))
				e.refusedWith("read into two elements, which is not declared", err, rdma.ErrNotSupported,
					rdma.ErrInvalid)
				c.works()
			}
			if !caps.OnDemand {
				refused("a registration on demand", func() error {
					mr, err := e.A.RegMR(c.a.pd, src.buf, remoteAll|rdma.OnDemand)
					if err == nil {
						e.onClose(rankMR, e.A, "registration on demand", mr.Close)
					}
					return err
				})
			}
			if lacks(rdma.FeatAsyncEvents) {
				if _, some := e.A.Event(); some {
					e.failf("no asynchronous events", "one")
				}
			}
			e.Note("%d undeclared abilities probed", probed)
		}},
	{ID: "dev/post-list-partial", Clause: "IBTA 11.4.1.1; man ibv_post_send (bad_wr)",
		Needs: rdma.Need{Ops: rdma.Ops(rdma.OpWrite)}, Requirement: "When the second of three requests is refused, " +
			"the first is executed, the third is not, and the QP stays in RTS.", Run: func(e *Env) {
			c, src, dst := e.writing(128)
			dst.blank()
			bad := write(2, dst.at(0), src.sge(0, 8))
			bad.NumSGE = rdma.MaxSGE + 1
			n, err := c.a.tryPost(write(1, dst.at(0), src.sge(0, 64)), bad, write(3, dst.at(64), src.sge(0, 64)))
			if n != 1 || err == nil {
				e.failf("one request taken and an error for the second", "n=%d, error %v", n, err)
			}
			c.a.s.expect(ok(1))
			c.barrier()
			c.a.state(rdma.QPRTS)
			dst.holdsOnly(0, src.data()[:64])
			c.works()
		}},
	{ID: "dev/qp-needs-cqs", Clause: "man ibv_create_qp",
		Requirement: "A queue pair cannot be created without completion queues.", Run: func(e *Env) {
			cq := e.newCQ(e.A, "cq", 4).cq
			for _, cfg := range []rdma.QPConfig{{}, {SendCQ: cq}, {RecvCQ: cq}} {
				e.notCreated("create qp with a cq missing", rdma.ErrInvalid)(e.A.NewQP(cfg))
			}
		}},
}

// capsAgree checks limits against the operations and features they belong to.
func (e *Env) capsAgree(c *rdma.Caps) {
	atomics := c.Ops.Has(rdma.OpFetchAdd) || c.Ops.Has(rdma.OpCmpSwap)
	e.kept(fmt.Sprintf("%+v", *c),
		rule{"a label", c.Label != ""},
		rule{"MaxQPWR of at least 1", c.MaxQPWR >= 1},
		rule{"MaxCQE of at least 1", c.MaxCQE >= 1},
		rule{fmt.Sprintf("MaxSGE in 1..%d", rdma.MaxSGE), c.MaxSGE >= 1 && c.MaxSGE <= rdma.MaxSGE},
		rule{"MaxMsg of at least 1", c.MaxMsg >= 1},
		rule{"MaxInline above 0 exactly with the inline feature", (c.MaxInline > 0) == c.Features.Has(rdma.FeatInline)},
		rule{"MaxSRQWR above 0 exactly with the srq feature", (c.MaxSRQWR > 0) == c.Features.Has(rdma.FeatSRQ)},
		rule{"MaxRDAtom of at least 1 with reads or atomics", c.MaxRDAtom >= 1 || !atomics && !c.Ops.Has(rdma.OpRead)},
		rule{"MaxReadSGE of at least 1 with reads", c.MaxReadSGE >= 1 || !c.Ops.Has(rdma.OpRead)},
		rule{"MaxReadSGE above 1 exactly with the read_multi_sge feature",
			(c.MaxReadSGE > 1) == c.Features.Has(rdma.FeatReadMultiSGE)},
		rule{"solicited only together with events", c.Features.Has(rdma.FeatEvents) || !c.Features.Has(rdma.FeatSolicited)})
}

type rule struct {
	text string
	ok   bool
}

func (e *Env) kept(got string, rules ...rule) {
	for _, r := range rules {
		if !r.ok {
			e.Fail(got, r.text)
		}
	}
}

// anyRequest is a well-formed request of any operation on 8 aligned bytes.
func (e *Env) anyRequest(op rdma.Opcode, n int, src, dst *region) rdma.SendWR {
	g := []rdma.SGE{src.sge(0, 8)}
	if op == rdma.OpLocalInv || op == rdma.OpSendImm && !e.Caps.Features.Has(rdma.FeatImmPayload) {
		g = nil
	}
	return request(op, n, dst.at(0), g)
}
