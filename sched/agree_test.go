package sched_test

import (
	"bytes"
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/rdmaperf/rdmaperf/sched"
	"github.com/rdmaperf/rdmaperf/transports/memdev"
	"github.com/rdmaperf/rdmaperf/transports/rdma"
)

// end is one end of a connection over memory devices.
type end struct {
	t    testing.TB
	dev  rdma.Device
	pd   rdma.PD
	cq   rdma.CQ
	qp   rdma.QP
	mem  rdma.Buffer
	mr   rdma.MR
	peer rdma.ConnParam // what came from the other end
}

const endMem = 4 << 20

func newEnd(t testing.TB, dev rdma.Device, srq bool) *end {
	e := &end{t: t, dev: dev}
	e.pd = need(dev.AllocPD())(t)
	e.cq = need(dev.NewCQ(128))(t)
	cfg := rdma.QPConfig{PD: e.pd, SendCQ: e.cq, RecvCQ: e.cq, SendDepth: 16, RecvDepth: 16}
	if srq {
		cfg.SRQ = need(dev.NewSRQ(rdma.SRQConfig{PD: e.pd, Depth: 16}))(t)
	}
	e.qp = need(dev.NewQP(cfg))(t)
	e.mem = need(rdma.Alloc(endMem))(t)
	e.mr = need(dev.RegMR(e.pd, e.mem, rdma.LocalWrite|rdma.RemoteWrite|rdma.RemoteInvalidate))(t)
	t.Cleanup(func() {
		err := errors.Join(e.qp.Close(), e.mr.Close())
		if srq {
			err = errors.Join(err, cfg.SRQ.Close())
		}
		if err = errors.Join(err, e.cq.Close(), e.mem.Free(), e.dev.FreePD(e.pd), e.dev.Close()); err != nil {
			t.Error(err)
		}
	})
	return e
}

// meet connects two devices over memory; a config of nil is a device without a tier.
func meet(t testing.TB, ca, cb *sched.Config, srq bool) (a, b *end) {
	t.Helper()
	f := memdev.NewFabric(memdev.Config{})
	open := func(name string, c *sched.Config) rdma.Device {
		dev := need(f.Open(name))(t)
		if c == nil {
			return dev
		}
		return need(sched.Wrap(dev, *c))(t)
	}
	a, b = newEnd(t, open("a", ca), false), newEnd(t, open("b", cb), srq)
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	l := need(b.dev.Listen(ctx, ":0", 1))(t)
	defer l.Close()
	done := make(chan error, 1)
	go func() {
		var err error
		a.peer, err = a.qp.Connect(ctx, l.Addr(), rdma.ConnParam{PrivateData: []byte("ask\x00"), IRD: 4, ORD: 4,
			RNRRetry: 7})
		done <- err
	}()
	req := need(l.Accept(ctx))(t)
	b.peer = req.Param()
	_, err := req.Accept(ctx, b.qp, rdma.ConnParam{PrivateData: []byte("answer"), IRD: 4, ORD: 4, RNRRetry: 7})
	must(t, errors.Join(err, <-done))
	return a, b
}

func (e *end) recv(id, n int) {
	e.t.Helper()
	wr := rdma.RecvWR{ID: uint64(id), NumSGE: 1}
	wr.SGE[0] = rdma.SGE{Addr: e.mem.Addr(), Len: uint32(n), LKey: e.mr.LKey()}
	need(e.qp.PostRecv([]rdma.RecvWR{wr}))(e.t)
}

func (e *end) send(id, n int, change func(*rdma.SendWR)) error {
	wr := rdma.SendWR{ID: uint64(id), Op: rdma.OpSend, Flags: rdma.Signaled, NumSGE: 1}
	wr.SGE[0] = rdma.SGE{Addr: e.mem.Addr(), Len: uint32(n), LKey: e.mr.LKey()}
	if change != nil {
		change(&wr)
	}
	_, err := e.qp.PostSend([]rdma.SendWR{wr})
	return err
}

// next waits for one completion, and lets others poll meanwhile.
func (e *end) next(others ...*end) rdma.WC {
	e.t.Helper()
	var wcs [1]rdma.WC
	for start := time.Now(); time.Since(start) < 10*time.Second; {
		if n, err := e.cq.Poll(wcs[:]); err != nil || n > 0 {
			must(e.t, err)
			return wcs[0]
		}
		for _, o := range others {
			if n, _ := o.cq.Poll(nil); n != 0 {
				e.t.Fatal("completions for nothing")
			}
		}
	}
	e.t.Fatal("no completion")
	return rdma.WC{}
}

// Ends cut only if both do; a peer without a tier finds the application's private data before the offer.
func TestBothEndsHaveToAgree(t *testing.T) {
	cut := &sched.Config{Slice: kib, Window: 2 * kib, Sends: sched.CutSends}
	for name, c := range map[string]struct {
		a, b   *sched.Config
		srq    bool
		agreed bool
		seen   int // bytes of private data beyond the application's, at b
	}{
		"both":          {cut, cut, false, true, 0},
		"peer whole":    {cut, &sched.Config{}, false, false, 0},
		"peer fifo":     {cut, &sched.Config{Policy: sched.FIFO, Sends: sched.CutSends}, false, false, 32},
		"peer alone":    {cut, nil, false, false, 32},
		"only the peer": {&sched.Config{}, cut, false, false, 0},
		"no tier here":  {nil, cut, false, false, 0},
		"peer's SRQ":    {cut, cut, true, false, 0},
		"other parameters": {cut, &sched.Config{Policy: sched.DRR, Sends: sched.CutOrRefuseSends, Room: 16 * kib},
			false, true, 0},
	} {
		t.Run(name, func(t *testing.T) {
			a, b := meet(t, c.a, c.b, c.srq)
			if string(a.peer.PrivateData) != "answer" {
				t.Errorf("answer %q", a.peer.PrivateData)
			}
			if p := b.peer.PrivateData; !bytes.HasPrefix(p, []byte("ask\x00")) || len(p) != 4+c.seen {
				t.Errorf("request %q", p)
			}
			for i, e := range []*end{a, b} {
				tally := sched.Tally(e.dev)
				if tally != nil && (tally["send_peers"] == 1) != c.agreed ||
					tally["send_peers"]+tally["send_peers_alone"] > 1 {
					t.Errorf("end %d: %v", i, tally)
				}
			}
			if c.srq {
				return
			}
			// Sends work in both directions all the same.
			for i, p := range [][2]*end{{a, b}, {b, a}} {
				from, to := p[0], p[1]
				to.recv(1, 20*kib)
				for k := range 12 * kib {
					from.mem.Bytes()[k] = byte(k*7 + k>>8*13 + i)
				}
				must(t, from.send(2, 12*kib, nil))
				if wc := to.next(from); wc.ID != 1 || wc.ByteLen != 12*kib || wc.Status != 0 ||
					!bytes.Equal(to.mem.Bytes()[:12*kib], from.mem.Bytes()[:12*kib]) {
					t.Errorf("direction %d: %+v", i, wc)
				}
				if wc := from.next(to); wc.ID != 2 || wc.Status != 0 {
					t.Errorf("direction %d: %+v", i, wc)
				}
			}
			if n := sched.Tally(a.dev)["sends_cut"]; (n > 0) != (c.agreed && c.a == cut) {
				t.Errorf("%d sends cut", n)
			}
		})
	}
}

// Where the peer takes no part, a send that would be cut goes whole or is refused.
func TestSendsAreRefusedWithoutAPeer(t *testing.T) {
	cfg := &sched.Config{Slice: kib, Window: 2 * kib, Sends: sched.CutOrRefuseSends, Room: 8 * kib}
	a, _ := meet(t, cfg, nil, false)
	if err := a.send(1, 2*kib, nil); !errors.Is(err, rdma.ErrInvalid) {
		t.Errorf("without a peer: %v", err)
	}
	a, b := meet(t, cfg, cfg, false)
	if err := a.send(1, 10*kib, nil); !errors.Is(err, rdma.ErrInvalid) {
		t.Errorf("longer than the peer's ring: %v", err)
	}
	b.recv(1, 20*kib)
	must(t, a.send(2, 8*kib, nil))
	if wc := b.next(a); wc.Status != 0 || wc.ByteLen != 8*kib {
		t.Errorf("%+v", wc)
	}
}

// The key that a send invalidates is invalid when the whole message is there.
func TestCutSendInvalidates(t *testing.T) {
	cfg := &sched.Config{Slice: kib, Window: 2 * kib, Sends: sched.CutSends}
	a, b := meet(t, cfg, cfg, false)
	spare := need(rdma.Alloc(kib))(t)
	mr := need(b.dev.RegMR(b.pd, spare, rdma.LocalWrite|rdma.RemoteWrite|rdma.RemoteInvalidate))(t)
	t.Cleanup(func() { mr.Close(); spare.Free() })
	b.recv(1, 40*kib)
	a.next0(b)
	must(t, a.send(2, 30*kib, func(w *rdma.SendWR) { w.Op, w.InvKey = rdma.OpSendInv, mr.RKey() }))
	want := rdma.WC{ID: 1, QPNum: b.qp.Num(), Opcode: rdma.WCRecv, ByteLen: 30 * kib, InvKey: mr.RKey(),
		Flags: rdma.WithInv}
	if wc := b.next(a); wc != want {
		t.Errorf("%+v, want %+v", wc, want)
	}
	if sched.Tally(a.dev)["sends_cut"] != 1 {
		t.Error("it was not cut")
	}
}

// next0 gives the ends time to tell each other of receives.
func (e *end) next0(o *end) {
	for range 100 {
		_, _ = e.cq.Poll(nil)
		_, _ = o.cq.Poll(nil)
	}
}

// flooded connects ends of which a has posted cut sends, each the most of b's ring, and b the receives.
func flooded(t *testing.T, sends int) (a, b *end) {
	t.Helper()
	cfg := &sched.Config{Slice: kib, Window: 4 * kib, Sends: sched.CutSends, Room: 16 * kib}
	a, b = meet(t, cfg, cfg, false)
	for i := range sends {
		b.recv(i, 16*kib)
	}
	a.next0(b)
	for i := range sends {
		must(t, a.send(i, 12*kib, nil))
	}
	return a, b
}

// A sender that fills the ring goes on though the receiver does not poll: the tier there takes what came.
func TestReceiverThatDoesNotPoll(t *testing.T) {
	const sends = 12
	a, b := flooded(t, sends)
	for i := range sends {
		if wc := a.next(); wc.ID != uint64(i) || wc.Status != 0 {
			t.Fatalf("send %d: %+v", i, wc)
		}
	}
	for i := range sends {
		if wc := b.next(); wc.ID != uint64(i) || wc.ByteLen != 12*kib {
			t.Fatalf("receive %d: %+v", i, wc)
		}
	}
	if n := sched.Tally(a.dev)["sends_cut"]; n != sends {
		t.Errorf("%d sends cut, want %d", n, sends)
	}
}

// Who waits for an event is notified of room in the peer's ring as well.
func TestSenderThatSleeps(t *testing.T) {
	const sends = 8
	a, b := flooded(t, sends)
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	var polls sync.WaitGroup
	defer polls.Wait()
	defer cancel()
	polls.Go(func() {
		var wcs [4]rdma.WC
		for ctx.Err() == nil {
			_, _ = b.cq.Poll(wcs[:])
		}
	})
	var wcs [4]rdma.WC
	for got := 0; got < sends; {
		must(t, a.cq.Arm(false))
		n := need(a.cq.Poll(wcs[:]))(t)
		if got += n; n == 0 {
			if err := a.cq.Wait(ctx); err != nil {
				t.Fatalf("after %d completions: %v", got, err)
			}
		}
	}
}

// FuzzOffer parts private data from a peer.
func FuzzOffer(f *testing.F) {
	f.Add([]byte{})
	f.Add([]byte("application"))
	f.Add(sched.Offer([]byte("application\x00\x00"), 1<<40, 7, 64*kib, 9))
	f.Add(append(sched.Offer(nil, 1<<12, 7, 8*kib, 0), make([]byte, 60)...))
	f.Fuzz(func(t *testing.T, private []byte) {
		app, addr, rkey, room, shortest, ok := sched.SplitOffer(private)
		if !bytes.HasPrefix(private, app) {
			t.Fatalf("%q is not the beginning of %q", app, private)
		}
		if !ok {
			return
		}
		if again := sched.Offer(app, addr, rkey, room, shortest); !bytes.HasPrefix(private, again) ||
			len(bytes.Trim(private[len(again):], "\x00")) > 0 {
			t.Errorf("%x is taken for %x", private, again)
		}
	})
}

// An offer is found behind private data of any kind, with zeros behind it or not.
func TestOfferIsFound(t *testing.T) {
	for shortest := range uint32(2000) { // sums that end in zeros among them
		for _, app := range []string{"", "\x00", "ask", "ask\x00\x00\x00"} {
			for _, pad := range []int{0, 1, 100} {
				b := append(sched.Offer([]byte(app), 1<<33, 5, 64*kib, shortest), make([]byte, pad)...)
				got, addr, rkey, room, s, ok := sched.SplitOffer(b)
				if string(got) != app || addr != 1<<33 || rkey != 5 || room != 64*kib || s != shortest || !ok {
					t.Fatalf("%q, %d zeros: %q %v", app, pad, got, ok)
				}
			}
		}
	}
	// What is broken is the application's.
	const app = "ask"
	b := sched.Offer([]byte(app), 1<<33, 5, 64*kib, 9)
	for i := len(app); i < len(b); i++ {
		b[i] ^= 1
		if app, _, _, _, _, ok := sched.SplitOffer(b); ok || !bytes.Equal(app, b) {
			t.Errorf("byte %d: %q", i, app)
		}
		b[i] ^= 1
	}
}
