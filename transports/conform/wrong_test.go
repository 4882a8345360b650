package conform_test

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/rdmaperf/rdmaperf/transports/conform"
	"github.com/rdmaperf/rdmaperf/transports/memdev"
	"github.com/rdmaperf/rdmaperf/transports/rdma"
)

type bendRow struct {
	name  string
	bend  func(b *bend)
	cases string // separated by spaces
}

func onCaps(f func(c *rdma.Caps)) func(*bend) {
	return func(b *bend) { b.caps = func(c *rdma.Caps, _ int) { f(c) } }
}
func onRights(f func(a *rdma.Access)) func(*bend) { return func(b *bend) { b.regMR = f } }
func onBuffer(f func(b *rdma.Buffer)) func(*bend) { return func(b *bend) { b.regBuf = f } }
func onWC(f func(wc *rdma.WC)) func(*bend)        { return func(b *bend) { b.wc = f } }
func onPost(f func(inner rdma.QP, wrs []rdma.SendWR) (int, error)) func(*bend) {
	return func(b *bend) { b.send = f }
}

func onModify(f func(inner rdma.RawQP, to rdma.QPState, given rdma.QPAttrs) error) func(*bend) {
	return func(b *bend) { b.modify = f }
}

func onSend(f func(w *rdma.SendWR)) func(*bend) {
	return onPost(func(inner rdma.QP, wrs []rdma.SendWR) (int, error) {
		own := slices.Clone(wrs)
		for i := range own {
			f(&own[i])
		}
		return inner.PostSend(own)
	})
}

func when[T any](holds func(*T) bool, change func(*T)) func(*T) {
	return func(v *T) {
		if holds(v) {
			change(v)
		}
	}
}

func isRead(wc *rdma.WC) bool { return wc.Opcode == rdma.WCRead }

func without(f rdma.Features) func(*bend) {
	return onCaps(func(c *rdma.Caps) {
		c.Features &^= f
		if f.Has(rdma.FeatSRQ) {
			c.MaxSRQWR = 0
		}
		if f.Has(rdma.FeatInline) {
			c.MaxInline = 0
		}
		if f.Has(rdma.FeatReadMultiSGE) {
			c.MaxReadSGE = 1
		}
	})
}

func lie(error) error { return nil }

func swallow(target error) func(error) error {
	return func(err error) error {
		if errors.Is(err, target) {
			return nil
		}
		return err
	}
}

func taken[Q, W any](target error, post func(Q, []W) (int, error)) func(Q, []W) (int, error) {
	return func(inner Q, wrs []W) (int, error) {
		n, err := post(inner, wrs)
		if errors.Is(err, target) {
			return len(wrs), nil
		}
		return n, err
	}
}

// halved says half of the limits, and enforces the whole ones.
func halved(c *rdma.Caps) {
	c.MaxQPWR /= 2
	c.MaxCQE /= 2
	c.MaxSGE--
	c.MaxInline /= 2
	c.MaxRDAtom /= 2
	c.MaxSRQWR /= 2
	c.MaxPrivate /= 2
	c.MaxMsg = 1 << 20
}

func doubled(c *rdma.Caps) {
	c.MaxQPWR *= 2
	c.MaxCQE *= 2
	c.MaxPrivate *= 2
	c.MaxRDAtom *= 2
}

// copied registers a copy in place of memory that somebody else mapped; the process's end frees it.
func copied(buf *rdma.Buffer) {
	if !buf.Foreign() {
		return
	}
	if own, err := rdma.Alloc(buf.Len()); err == nil {
		*buf = own
	}
}

var bends = append([]bendRow{
	{"a priority shortens", onSend(when(func(w *rdma.SendWR) bool { return w.Priority > 0 && w.NumSGE > 0 },
		func(w *rdma.SendWR) { w.SGE[0].Len-- })), "pri/accepted"},
	{"an empty read is a write", onSend(when(func(w *rdma.SendWR) bool { return w.Op == rdma.OpRead && w.NumSGE == 0 },
		func(w *rdma.SendWR) { w.Op = rdma.OpWrite })), "rdr/empty-among-others"},
	{"every priority is taken", onCaps(fourPriorities), "pri/limit-refused"},
	{"a list goes backwards", prioritized(backwards), "pri/same-keeps-order pri/fence-holds"},
	{"unsignalled writes are forgotten", prioritized(forgetQuiet), "pri/covers-unsignaled ord/unsignaled-reuse"},
	{"capabilities change", func(b *bend) { b.caps = func(c *rdma.Caps, calls int) { c.MaxQPWR += calls & 1 } },
		"dev/caps-constant"},
	{"memory that somebody else mapped is used by a copy", onBuffer(copied), "acc/huge-pages acc/file-mapping " +
		"acc/fork lrg/above-4gib acc/read-only-pages acc/on-demand acc/on-demand-page acc/on-demand-in-flight"},
	{"an address of IPv6 is another", leave[bend], "cm/over-ipv6"},
	{"limits are not kept", onCaps(halved), "dev/limits-exceeded cqo/depth-range cm/ird-ord-range " +
		"cm/private-data-too-long snd/too-many-elements lrg/over-max"},
	{"limits are not reached", onCaps(doubled), "dev/limits-creatable cm/private-data cm/ird-ord cm/reject"},
	{"undeclared operation", onCaps(func(c *rdma.Caps) { c.Ops &^= rdma.Ops(rdma.OpFetchAdd) }),
		"dev/undeclared-refused"},
	{"undeclared paging on demand", onCaps(func(c *rdma.Caps) { c.OnDemand = false }), "dev/undeclared-refused"},

	{"domains are freed in use", func(b *bend) { b.freePD = lie }, "dev/pd-busy"},
	{"devices close in use", func(b *bend) { b.close = lie }, "dev/close-busy"},
	{"queues close in use", func(b *bend) { b.closeCQ = swallow(rdma.ErrBusy) }, "qps/cq-busy srq/busy"},
	{"a missing cq is replaced", func(b *bend) {
		b.newQP = func(cfg *rdma.QPConfig) {
			cfg.SendCQ = cmp.Or(cfg.SendCQ, cfg.RecvCQ)
			cfg.RecvCQ = cmp.Or(cfg.RecvCQ, cfg.SendCQ)
		}
	}, "dev/qp-needs-cqs"},

	{"a list goes on behind the refused request", onPost(onwards(rdma.QP.PostSend)), "dev/post-list-partial"},
	{"an srq list goes on behind the refused receive",
		func(b *bend) { b.srqRecv = onwards(rdma.SRQ.PostRecv) }, "srq/list-partial"},
	{"a full send queue drops", onPost(taken(rdma.ErrQueueFull, rdma.QP.PostSend)), "snd/send-queue-full"},
	{"full receive queues drop", func(b *bend) {
		b.recv = taken(rdma.ErrQueueFull, rdma.QP.PostRecv)
		b.srqRecv = taken(rdma.ErrQueueFull, rdma.SRQ.PostRecv)
	}, "snd/receive-queue-full srq/full"},
	{"a qp with an srq takes receives", func(b *bend) { b.recv = taken(rdma.ErrInvalid, rdma.QP.PostRecv) },
		"srq/receive-on-qp"},
	{"sends before connect vanish", onPost(taken(rdma.ErrState, rdma.QP.PostSend)), "qps/send-before-connect"},
	{"lists are read late", onSend(func(w *rdma.SendWR) { w.ID &= 0xffffffff }), "snd/list rdw/sizes rdr/sizes"},

	{"inline is ignored", onSend(func(w *rdma.SendWR) { w.Flags &^= rdma.Inline }),
		"inl/key-unchecked inl/over-max inl/read-refused"},
	{"solicited is ignored", onSend(func(w *rdma.SendWR) { w.Flags &^= rdma.Solicited }),
		"evt/solicited inv/solicited"},
	{"everything is fenced off", onSend(when(func(w *rdma.SendWR) bool { return w.Flags&rdma.Fence != 0 },
		func(w *rdma.SendWR) { w.Flags &^= rdma.Signaled })), "fen/nothing-outstanding"},
	{"local keys are not checked", func(b *bend) {
		onSend(when(func(w *rdma.SendWR) bool { return w.Op == rdma.OpSend && w.NumSGE > 0 && w.Len() <= 512 },
			func(w *rdma.SendWR) { w.Flags |= rdma.Inline }))(b)
		b.newQP = func(cfg *rdma.QPConfig) { cfg.MaxInline = 512 }
	}, "acc/lkey-unknown acc/lkey-other-domain acc/lkey-after-dereg"},
	{"local bounds are cut", onSend(when(
		func(w *rdma.SendWR) bool {
			return w.NumSGE == 1 && w.Len() > 0 && rdma.BufferAt(w.SGE[0].Addr, int(w.SGE[0].Len)) == nil
		},
		func(w *rdma.SendWR) { w.NumSGE = 0 })), "acc/lkey-bounds"},
	{"zero bytes are checked", onSend(when(
		func(w *rdma.SendWR) bool {
			return w.Len() == 0 && (w.Op == rdma.OpWrite || w.Op == rdma.OpRead || w.Op == rdma.OpWriteImm)
		},
		func(w *rdma.SendWR) { w.Op = rdma.Opcode(rdma.NumOpcodes) })),
		"rdw/zero-valid rdw/zero-any-key rdr/zero wim/zero-any-key"},
	{"inline elements change places", onSend(when(
		func(w *rdma.SendWR) bool { return w.Flags&rdma.Inline != 0 && w.NumSGE == 2 },
		func(w *rdma.SendWR) { w.SGE[0], w.SGE[1] = w.SGE[1], w.SGE[0] })), "inl/gather"},
	{"single bytes get lost", onSend(when(func(w *rdma.SendWR) bool { return w.Len() == 1 },
		func(w *rdma.SendWR) { w.NumSGE = 0 })), "rdw/edges rdr/passive-target lrg/outstanding"},
	{"the last byte is written first", onPost(lastByteFirst), "ord/last-byte-last"},
	{"atomics take any sink", onSend(when(func(w *rdma.SendWR) bool { return w.Op.IsAtomic() && w.Len() == 4 },
		func(w *rdma.SendWR) { w.SGE[0].Len = 8 })), "atm/sink-length"},
	{"atomics look at one sink of two", onSend(when(
		func(w *rdma.SendWR) bool { return w.Op.IsAtomic() && w.NumSGE == 2 },
		func(w *rdma.SendWR) { w.SGE[0].Len, w.NumSGE = 8, 1 })), "atm/two-sinks"},
	{"unaligned atomics are rounded", onSend(when(func(w *rdma.SendWR) bool { return w.Op.IsAtomic() },
		func(w *rdma.SendWR) { w.RemoteAddr &^= 7 })), "atm/unaligned"},
	{"compare-swap always swaps", onSend(when(func(w *rdma.SendWR) bool { return w.Op == rdma.OpCmpSwap },
		func(w *rdma.SendWR) { w.Op, w.CompareAdd = rdma.OpFetchAdd, w.Swap-w.CompareAdd })), "atm/cmp-swap"},
	{"invalidation is forgotten", onSend(when(func(w *rdma.SendWR) bool { return w.Op == rdma.OpSendInv },
		func(w *rdma.SendWR) { w.Op = rdma.OpSend })), "inv/send-inv inv/zero-length inv/unknown-key inv/solicited"},
	{"local invalidation does nothing", onSend(when(func(w *rdma.SendWR) bool { return w.Op == rdma.OpLocalInv },
		func(w *rdma.SendWR) { w.Op, w.NumSGE = rdma.OpWrite, 0 })),
		"inv/local-inv inv/local-inv-wrong-key inv/local-inv-order"},
	{"local invalidation overtakes", onPost(invalidateFirst), "inv/local-inv-order"},
	{"reads are turned round", onPost(reverseReads), "rdr/overlapping-sinks ord/write-write-send"},

	{"completions lose their qp", onWC(func(wc *rdma.WC) { wc.QPNum++ }), "qps/numbers ord/two-qps-one-cq"},
	{"completions carry a wrong opcode", onWC(when(isRead, func(wc *rdma.WC) { wc.Opcode = rdma.WCWrite })),
		"dev/opcodes rdr/sizes ord/mixed-order"},
	{"reads tell no length", onWC(when(isRead, func(wc *rdma.WC) { wc.ByteLen = 0 })),
		"rdr/sizes rdr/scatter rdr/passive-target"},
	{"revoked keys are not named", onWC(func(wc *rdma.WC) { wc.Flags &^= rdma.WithInv }),
		"inv/send-inv inv/zero-length"},
	{"errors are successes", onWC(func(wc *rdma.WC) { wc.Status = rdma.StatusSuccess }), "ord/unsignaled-error " +
		"flu/unsignaled snd/receive-bad-key snd/receive-revoked acc/receive-rights wim/bad-key wim/no-receive " +
		"inv/not-before-delivery rdr/ird-zero rdr/sink-read-only dth/waiting-read"},
	{"polls tell more than they give", func(b *bend) {
		b.poll = func(inner rdma.CQ, dst []rdma.WC) (int, error) {
			n, err := inner.Poll(dst)
			if n == 3 {
				n++
			}
			return n, err
		}
	}, "cqo/short-polls"},
	{"overruns are hidden", func(b *bend) {
		b.poll = func(inner rdma.CQ, dst []rdma.WC) (int, error) {
			n, err := inner.Poll(dst)
			if errors.Is(err, rdma.ErrCQOverrun) {
				return 0, nil
			}
			return n, err
		}
	}, "cqo/overrun"},

	{"registrations allow everything", onRights(func(a *rdma.Access) {
		*a |= rdma.LocalWrite | rdma.RemoteWrite | rdma.RemoteRead | rdma.RemoteAtomic | rdma.RemoteInvalidate
	}), "acc/registration acc/write-rights acc/receive-rights rdr/sink-read-only inv/ordinary-safe " +
		"acc/two-registrations"},
	{"registrations are of the whole mapping", onBuffer(func(b *rdma.Buffer) { *b = b.Mapping() }),
		"acc/part acc/part-bounds acc/part-local-bounds"},
	{"memory that begins inside a page is refused", onBuffer(when(
		func(b *rdma.Buffer) bool { return b.Mapping().Addr()%4096 != 0 },
		func(b *rdma.Buffer) { *b = rdma.Buffer{} })), "acc/foreign"},
	{"registrations are of memory that is gone", func(b *bend) {
		var first rdma.Buffer
		b.caps = func(c *rdma.Caps, _ int) { c.Features |= rdma.FeatKeepsKeys }
		b.regBuf = func(buf *rdma.Buffer) {
			if first.Len() == 0 {
				first, _ = rdma.Alloc(buf.Len())
			}
			*buf = first
		}
	}, "acc/kept"},
	{"registrations add rights", onRights(when(func(a *rdma.Access) bool { return a.Validate() != nil },
		func(a *rdma.Access) { *a = rdma.LocalWrite })), "acc/remote-needs-local"},
	{"registrations demand more of a sink", onRights(when(func(a *rdma.Access) bool { return *a == rdma.LocalWrite },
		func(a *rdma.Access) { *a = 0 })), "rdr/sink-local-write"},
	{"a sink with remote write is no sink", func(b *bend) {
		b.caps = func(c *rdma.Caps, _ int) { c.Features |= rdma.FeatSinkNeedsRemoteWrite }
		b.regMR = func(a *rdma.Access) {
			if *a == rdma.LocalWrite|rdma.RemoteWrite {
				*a = 0
			}
		}
	}, "rdr/sink-remote-write"},
	{"registrations tell a wrong length",
		func(b *bend) { b.mrLen = func(n uint64) uint64 { return (n + 4095) &^ 4095 } }, "acc/registration"},
	{"registrations never end", func(b *bend) { b.closeMR = func(rdma.MR) error { return nil } },
		"acc/rkey-after-dereg acc/dereg-while-writing snd/receive-revoked"},
	{"keys count up", func(b *bend) {
		var next atomic.Uint32
		b.rkey = func(uint32) uint32 { return 0x100 * next.Add(1) }
	}, "acc/keys-unpredictable"},

	{"events come from nowhere", func(b *bend) {
		calls := 0
		b.event = func(ev rdma.Event, some bool) (rdma.Event, bool) {
			if calls++; !some && calls%2 == 1 {
				return rdma.Event{Type: rdma.EventQPFatal, QPNum: 1}, true
			}
			return ev, some
		}
	}, "evt/clean-run"},
	{"arming is for anything", func(b *bend) { b.arm = func(bool) bool { return false } }, "evt/solicited"},
	{"arming is for solicited", func(b *bend) { b.arm = func(bool) bool { return true } },
		"evt/stronger-wins evt/one-event evt/no-lost-wakeup"},
	{"waiting does not wait", func(b *bend) { b.wait = func(rdma.CQ, context.Context) error { return nil } },
		"evt/one-shot evt/wait-deadline"},
	{"errors do not wake", func(b *bend) { b.fail = nothing }, "evt/solicited-error qps/fail-anywhere flu/each-once " +
		"dth/fail-in-transfer srq/last-wqe-event srq/qp-error-keeps"},
	{"an srq limit stays armed", func(b *bend) { b.srqArm = func(limit int) int { return cmp.Or(limit, 7) } },
		"srq/limit-range"},
	{"an srq limit is one lower", func(b *bend) { b.srqArm = func(limit int) int { return max(limit-1, 0) } },
		"srq/limit-event"},

	{"receives are retried for ever", func(b *bend) { b.connect = func(p *rdma.ConnParam) { p.RNRRetry = 7 } },
		"rnr/retry-exhausted wim/no-receive inv/not-before-delivery"},
	{"receives are not retried", func(b *bend) { b.connect = func(p *rdma.ConnParam) { p.RNRRetry = 0 } },
		"rnr/late-receive rnr/retries-take-time"},
	{"undeclared retries", without(rdma.FeatRNRRetry), "rnr/ends-connection wim/ends-connection"},
	{"undeclared first message", without(rdma.FeatPassiveFirst), "cm/passive-waits"},
	{"the acceptor cannot send", onPost(func(inner rdma.QP, wrs []rdma.SendWR) (int, error) {
		if inner.Num()%2 == 0 {
			return len(wrs), nil
		}
		return inner.PostSend(wrs)
	}), "cm/passive-first snd/both-directions"},
	{"a second answer is taken", func(b *bend) { b.answer = lie }, "cm/answer-once"},
	{"accept errors are vague", func(b *bend) { b.taken = func(error) error { return rdma.ErrProtocol } },
		"cm/listener-close cm/accept-deadline"},
	{"writes need receives", onSend(when(func(w *rdma.SendWR) bool { return w.Op == rdma.OpWrite },
		func(w *rdma.SendWR) { w.Op = rdma.OpWriteImm })),
		"rnr/write-is-free rdw/no-target-completion evt/clean-run lrg/outstanding"},
	{"ping-pong answers another receive",
		func(b *bend) { b.pingPong = func(v *rdma.PingPongStep) { v.Expect ^= 1 } }, "qps/volley"},
	{"attributes that an edge needs have defaults",
		onModify(func(inner rdma.RawQP, to rdma.QPState, given rdma.QPAttrs) error {
			needs, _ := rdma.AttrsOf(inner.State(), to)
			return inner.Modify(to, given|needs)
		}), "qps/attribute-missing"},
	{"attributes that nobody asked for are ignored",
		onModify(func(inner rdma.RawQP, to rdma.QPState, given rdma.QPAttrs) error {
			needs, _ := rdma.AttrsOf(inner.State(), to)
			return inner.Modify(to, given&needs)
		}), "qps/attribute-unwanted"},
	{"refused edges are half taken", onModify(func(inner rdma.RawQP, to rdma.QPState, given rdma.QPAttrs) error {
		err := inner.Modify(to, given)
		if err != nil {
			inner.Fail()
		}
		return err
	}), "qps/attribute-missing qps/attribute-unwanted qps/no-shortcuts"},
	{"edges that there are not are taken for nothing",
		onModify(func(inner rdma.RawQP, to rdma.QPState, given rdma.QPAttrs) error {
			if !rdma.CanTransition(inner.State(), to) {
				return nil
			}
			return inner.Modify(to, given)
		}), "qps/no-shortcuts"},
	{"RTS is RTR", ignored(rdma.QPRTS), "qps/edges-by-hand qps/use-after-reset"},
	{"reset flushes", onModify(func(inner rdma.RawQP, to rdma.QPState, given rdma.QPAttrs) error {
		if to == rdma.QPReset {
			inner.Fail()
		}
		return inner.Modify(to, given)
	}), "qps/reset-discards qps/use-after-reset"},
	{"reset does nothing", ignored(rdma.QPReset), "qps/reset-discards qps/use-after-reset"},
	{"drain does nothing", func(b *bend) { b.drain = nothing }, "qps/drain-resume qps/forbidden-edges"},
	{"new queue pairs are in reset", func(b *bend) {
		b.state = func(s rdma.QPState) rdma.QPState {
			if s == rdma.QPInit {
				return rdma.QPReset
			}
			return s
		}
	}, "qps/starts-in-init qps/recv-in-init"},
	{"closing a qp does nothing at first", func(b *bend) { b.closeQP = nothing },
		"dth/close-in-transfer qps/close-outstanding flu/closed-qp cm/close-while-connecting"},
	{"disconnect does nothing", func(b *bend) { b.bye = func(rdma.QP, context.Context) error { return nil } },
		"cm/disconnect flu/disconnect evt/disconnect-event cm/cycles cm/simultaneous-disconnect " +
			"cm/disconnect-in-transfer"},
	{"long messages are dropped", onPost(func(inner rdma.QP, wrs []rdma.SendWR) (int, error) {
		if wrs[0].Len() > 10000 {
			return len(wrs), nil
		}
		return inner.PostSend(wrs)
	}), "cm/disconnect-delivers lrg/send lrg/write lrg/read"},
	{"a qp that fails takes the others along", func(b *bend) {
		var mu sync.Mutex
		var all []rdma.QP
		b.made = func(qp rdma.QP) {
			mu.Lock()
			defer mu.Unlock()
			all = append(all, qp)
		}
		b.fail = func(rdma.QP) error {
			for _, qp := range all {
				if err := qp.Fail(); err != nil {
					return err
				}
			}
			return nil
		}
	}, "qps/independent"},
	{"a dead device lives on", func(b *bend) { b.kill = func(*memdev.Device) {} }, "dth/kill-in-transfer"},

	{"private data is cut", func(b *bend) {
		b.asked = func(p *rdma.ConnParam) { p.PrivateData = p.PrivateData[:min(len(p.PrivateData), 255)] }
	}, "cm/private-data"},
	{"private data gets lost", func(b *bend) { b.asked = func(p *rdma.ConnParam) { p.PrivateData = nil } },
		"cm/private-data cm/parallel"},
	{"refusals lose their reason", func(b *bend) { b.reject = func([]byte) []byte { return nil } }, "cm/reject"},
	{"ORD is not negotiated", func(b *bend) {
		b.result = func(p *rdma.ConnParam, err error) error { p.ORD = 99; return err }
	}, "cm/ird-ord ord/reads-beyond-ord"},
	{"IRD and ORD are exchanged", func(b *bend) { b.asked = func(p *rdma.ConnParam) { p.IRD, p.ORD = p.ORD, p.IRD } },
		"cm/ird-ord"},
	{"connect errors are vague", func(b *bend) {
		b.result = func(_ *rdma.ConnParam, err error) error {
			if err != nil {
				return rdma.ErrProtocol
			}
			return nil
		}
	}, "cm/no-listener cm/never-accepted cm/backlog cm/reject qps/forbidden-edges"},
	{"connect errors are hidden", func(b *bend) { b.result = func(*rdma.ConnParam, error) error { return nil } },
		"cm/abandoned cm/close-while-connecting dth/kill-before-accept cm/no-listener"},
	{"the listener hides its port", func(b *bend) { b.addr = func(string) string { return "b:0" } },
		"cm/listen-port-zero"},
	{"an address is shared", func(b *bend) { b.listen = func(string) string { return "b:0" } }, "cm/listen-in-use"},
	{"accept has no deadline", func(b *bend) { b.accept = context.WithoutCancel }, "cm/accept-deadline"},
	{"connections move one direction", func(b *bend) {
		b.recv = func(inner rdma.QP, wrs []rdma.RecvWR) (int, error) {
			if inner.Num()%2 == 1 && inner.State() == rdma.QPRTS {
				return len(wrs), nil // the first QP of each pair has an odd number
			}
			return inner.PostRecv(wrs)
		}
	}, "snd/both-directions cm/ird-ord-range cm/private-data-too-long dth/listener-survives dth/neighbour-unharmed " +
		"cm/accept-deadline"},
}, undeclared(rdma.FeatSRQ, rdma.FeatInline, rdma.FeatFence, rdma.FeatSQD, rdma.FeatEvents|rdma.FeatSolicited,
	rdma.FeatSolicited, rdma.FeatReadMultiSGE, rdma.FeatPingPong)...)

func undeclared(each ...rdma.Features) (rows []bendRow) {
	for _, f := range each {
		rows = append(rows, bendRow{"undeclared " + f.String(), without(f), "dev/undeclared-refused"})
	}
	return rows
}

func nothing(rdma.QP) error { return nil }

func ignored(state rdma.QPState) func(*bend) {
	return onModify(func(inner rdma.RawQP, to rdma.QPState, given rdma.QPAttrs) error {
		if to == state {
			return nil
		}
		return inner.Modify(to, given)
	})
}

// TestBendsTurnRed proves the cases about everything that is not payload: each wrong answer of a provider is noticed.
func TestBendsTurnRed(t *testing.T) {
	t.Parallel()
	var runs []proof
	for _, row := range bends {
		runs = append(runs, proof{row.name, strings.Fields(row.cases), func() *conform.Harness {
			return bentMem(row.bend, memdev.Config{Seed: 1})
		}})
	}
	// Some bends leave objects open by what they are.
	turnRed(t, runs)
}

// cannotFail are the cases that nothing in this file or the fault table turns red, each with the reason.
var cannotFail = map[string]string{
	"dth/link-cut":     needsPath,
	"dth/stopped-peer": needsPath,
	"dth/loss":         needsPath,
	"dth/loss-atomics": needsPath,
	"lrg/longest":      "full profile, gigabytes of memory; lrg/write and snd/gather-scatter are the same procedure",
	"lrg/max-message":  "full profile, a gigabyte of memory; lrg/write is the same procedure",
}

// needsPath: the reference device has no wire below it.
const needsPath = "TestBadPaths of cmd/rdmaperf shows it red over a path that nothing happens to"

// TestEveryCaseCanFail: a case that was never seen to fail proves nothing.
func TestEveryCaseCanFail(t *testing.T) {
	seen := map[string]bool{}
	var all strings.Builder
	for _, f := range faultRows {
		fmt.Fprintln(&all, f.cases)
	}
	for _, row := range bends {
		fmt.Fprintln(&all, row.cases)
	}
	for id := range strings.FieldsSeq(all.String()) {
		seen[id] = true
	}
	known := map[string]bool{}
	for _, c := range conform.Catalogue() {
		known[c.ID] = true
		if c.Level == conform.May || c.Lacks != "" {
			continue
		}
		if _, excused := cannotFail[c.ID]; seen[c.ID] == excused {
			t.Errorf("%s: turned red %v, excused %v", c.ID, seen[c.ID], excused)
		}
	}
	for id := range maps.Keys(seen) {
		if !known[id] {
			t.Errorf("%s is in a table and not in the catalogue", id)
		}
	}
}
