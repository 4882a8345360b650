//go:build cgo && linux

package verbs

import (
	"context"
	"errors"
	"net"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/rdmaperf/rdmaperf/transports/rdma"
)

// devicesVariable names the devices that tests may use, comma separated: the lab's script sets it.
const devicesVariable = "RDMAPERF_VERBS_DEVICES"

func eachConfig(t *testing.T, f func(t *testing.T, cfg Config)) {
	names := os.Getenv(devicesVariable)
	if names == "" {
		t.Skip("optional RDMA devices absent: set " + devicesVariable)
	}
	for _, name := range strings.Split(names, ",") {
		for _, cm := range []bool{false, true} {
			cfg := Default()
			cfg.Device, cfg.CM = name, cm
			t.Run(cfg.name(), func(t *testing.T) { f(t, cfg) })
		}
	}
}

type end struct {
	dev *Device
	cq  rdma.CQ
	qp  rdma.QP
	mr  rdma.MR
	buf rdma.Buffer
}

const (
	testMemory = 1 << 20
	testDepth  = 16
)

func newEnd(t *testing.T, cfg Config) *end {
	t.Helper()
	dev := must(Open(cfg))(t)
	e := &end{dev: dev.(*Device)}
	t.Cleanup(func() { ended(t, dev.Close()) })
	e.buf = must(rdma.Alloc(testMemory))(t)
	t.Cleanup(func() { ended(t, e.buf.Free()) })
	access := rdma.LocalWrite | rdma.RemoteWrite | rdma.RemoteRead
	e.mr = must(dev.RegMR(0, e.buf, access))(t)
	t.Cleanup(func() { ended(t, e.mr.Close()) })
	e.cq = must(dev.NewCQ(4 * testDepth))(t)
	t.Cleanup(func() { ended(t, e.cq.Close()) })
	e.qp = must(dev.NewQP(rdma.QPConfig{SendCQ: e.cq, RecvCQ: e.cq, SendDepth: testDepth, RecvDepth: testDepth}))(t)
	t.Cleanup(func() { ended(t, e.qp.Close()) })
	return e
}

func ended(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Errorf("close: %v", err)
	}
}

func (e *end) sge(off, n int) rdma.SGE {
	return rdma.SGE{Addr: e.mr.Addr() + uint64(off), Len: uint32(n), LKey: e.mr.LKey()}
}

// A device gives as many queues as its limits say, whatever else it has given. Those of
// 1, 3 and 8 pages reach any one page of mmap offsets as a first and as a second mapping.
func TestManyQueuesOfOneDevice(t *testing.T) {
	eachConfig(t, func(t *testing.T, cfg Config) {
		for _, depth := range []int{1, 60, 250} {
			dev := must(Open(cfg))(t)
			var all []interface{ Close() error }
			for i := range 60 {
				cq, err := dev.NewCQ(depth)
				if err != nil {
					t.Errorf("cq %d of depth %d: %v", i, depth, err)
					break
				}
				all = append(all, cq)
				qp, err := dev.NewQP(rdma.QPConfig{SendCQ: cq, RecvCQ: cq, SendDepth: depth, RecvDepth: depth})
				if err != nil {
					t.Errorf("qp %d of depth %d: %v", i, depth, err)
					break
				}
				all = append(all, qp)
			}
			for i := len(all) - 1; i >= 0; i-- {
				ended(t, all[i].Close())
			}
			ended(t, dev.Close())
		}
	})
}

func pair(t *testing.T, cfg Config) (a, b *end) {
	t.Helper()
	a, b = newEnd(t, cfg), newEnd(t, cfg)
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	l := must(b.dev.Listen(ctx, net.JoinHostPort(b.dev.ListenHost(), "0"), 1))(t)
	defer l.Close()
	noError(t, <-connect(ctx, t, l, a.qp, b.qp, rdma.ConnParam{IRD: 1, ORD: 1, RNRRetry: 7}))
	return a, b
}

func connect(ctx context.Context, t *testing.T, l rdma.Listener, from, to rdma.QP, p rdma.ConnParam) <-chan error {
	t.Helper()
	done := make(chan error, 1)
	go func() {
		r, err := l.Accept(ctx)
		if err == nil {
			_, err = r.Accept(ctx, to, p)
		}
		done <- err
	}()
	must(from.Connect(ctx, l.Addr(), p))(t)
	return done
}

// backlog is of a listener that connections come to one after the other. The kernel's iWARP
// connection manager refuses one while the event of the one before is still at work, when
// there is room for one alone (iwcm.c: work entries are as many as the backlog).
const backlog = 8

// TestFirstMessageArrives: whatever the accepting side is at when the initiator's first
// message comes, and although no second one follows.
func TestFirstMessageArrives(t *testing.T) {
	eachConfig(t, func(t *testing.T, cfg Config) {
		slowest := time.Duration(0)
		a, b := newEnd(t, cfg), newEnd(t, cfg)
		ctx, cancel := context.WithTimeout(context.Background(), 60*time.Second)
		defer cancel()
		l := must(b.dev.Listen(ctx, net.JoinHostPort(b.dev.ListenHost(), "0"), backlog))(t)
		defer l.Close()
		for i := range 40 {
			q := func(e *end) rdma.QP {
				return must(e.dev.NewQP(rdma.QPConfig{SendCQ: e.cq, RecvCQ: e.cq, SendDepth: 1, RecvDepth: 1}))(t)
			}
			from, to := q(a), q(b)
			must(to.PostRecv([]rdma.RecvWR{{ID: 1, NumSGE: 1, SGE: [4]rdma.SGE{b.sge(0, 64)}}}))(t)
			done := connect(ctx, t, l, from, to, rdma.ConnParam{RNRRetry: 7})
			must(from.PostSend([]rdma.SendWR{{Op: rdma.OpSend, NumSGE: 1, SGE: [4]rdma.SGE{a.sge(0, 8)}}}))(t)
			begun := time.Now()
			noError(t, <-done)
			wcs := make([]rdma.WC, 4)
			for n := 0; n == 0; {
				n = must(b.cq.Poll(wcs))(t)
				if n > 0 && (n != 1 || wcs[0].ID != 1 || wcs[0].Status != rdma.StatusSuccess) {
					t.Fatalf("connection %d: %+v", i, wcs[:n])
				}
				if time.Since(begun) > 5*time.Second {
					t.Errorf("connection %d: the first message does not arrive", i)
					break
				}
			}
			slowest = max(slowest, time.Since(begun))
			ended(t, from.Close())
			ended(t, to.Close())
			for n := 1; n > 0; {
				a.cq.Poll(wcs)
				n, _ = b.cq.Poll(wcs)
			}
		}
		t.Logf("the slowest took %v", slowest)
	})
}

func TestDataPathAllocatesNothing(t *testing.T) {
	eachConfig(t, func(t *testing.T, cfg Config) {
		a, b := pair(t, cfg)
		const size = 64
		wcs := make([]rdma.WC, testDepth)
		recvs := []rdma.RecvWR{{NumSGE: 1}}
		sends := []rdma.SendWR{
			{Op: rdma.OpWrite, NumSGE: 1, SGE: [4]rdma.SGE{a.sge(0, size)}, RKey: b.mr.RKey(), RemoteAddr: b.mr.Addr() +
				4096},
			{Op: rdma.OpSend, Flags: rdma.Signaled, NumSGE: 1, SGE: [4]rdma.SGE{a.sge(0, size)}},
		}
		recvs[0].SGE[0] = b.sge(0, size)
		collect := func(e *end) {
			deadline := time.Now().Add(20 * time.Second)
			for spins := 0; ; spins++ {
				n, err := e.cq.Poll(wcs)
				if err != nil || n > 0 && wcs[0].Status != rdma.StatusSuccess {
					t.Fatalf("%v, %v", err, wcs[0].Status)
				}
				if n > 0 {
					return
				}
				if spins%1024 == 1023 && time.Now().After(deadline) {
					t.Fatal("no completion")
				}
			}
		}
		trip := func() {
			if n, err := b.qp.PostRecv(recvs); n != 1 {
				t.Fatal(err)
			}
			if n, err := a.qp.PostSend(sends); n != len(sends) {
				t.Fatal(err)
			}
			collect(a)
			collect(b)
		}
		if n := testing.AllocsPerRun(50, trip); n != 0 {
			t.Errorf("%v allocations a round trip", n)
		}
		if n := testing.AllocsPerRun(100, func() { a.cq.Poll(wcs) }); n != 0 {
			t.Errorf("%v allocations an empty poll", n)
		}
	})
}

// TestQueueRefusesBeyondDepth: places are counted here, whatever the device
// rounds its own queue up to, and a poll frees them.
func TestQueueRefusesBeyondDepth(t *testing.T) {
	eachConfig(t, func(t *testing.T, cfg Config) {
		a, b := pair(t, cfg)
		write := rdma.SendWR{Op: rdma.OpWrite, Flags: rdma.Signaled, NumSGE: 1, SGE: [4]rdma.SGE{a.sge(0, 8)},
			RKey: b.mr.RKey(), RemoteAddr: b.mr.Addr()}
		list := make([]rdma.SendWR, testDepth+1)
		for i := range list {
			list[i] = write
			list[i].ID = uint64(i) << 40
		}
		n, err := a.qp.PostSend(list)
		if n != testDepth || !errors.Is(err, rdma.ErrQueueFull) {
			t.Fatalf("%d taken, %v, want %d and a full queue", n, err, testDepth)
		}
		wcs := make([]rdma.WC, 4*testDepth)
		for got := 0; got < testDepth; {
			k := must(a.cq.Poll(wcs))(t)
			for _, wc := range wcs[:k] {
				if wc.ID != uint64(got)<<40 || wc.Status != rdma.StatusSuccess || wc.QPNum != a.qp.Num() {
					t.Fatalf("completion %d: %+v", got, wc)
				}
				got++
			}
		}
		if n, err := a.qp.PostSend(list[:1]); n != 1 {
			t.Errorf("after the poll: %v", err)
		}
	})
}

func TestCloseKeepsCompletions(t *testing.T) {
	eachConfig(t, func(t *testing.T, cfg Config) {
		_, b := pair(t, cfg)
		recvs := make([]rdma.RecvWR, testDepth)
		for i := range recvs {
			recvs[i].ID = uint64(i + 1)
		}
		if n, err := b.qp.PostRecv(recvs); n != testDepth {
			t.Fatal(err)
		}
		noError(t, b.qp.Close())
		wcs := make([]rdma.WC, 4*testDepth)
		n, err := b.cq.Poll(wcs)
		if n != testDepth || err != nil {
			t.Fatalf("%d completions, %v, want %d", n, err, testDepth)
		}
		for i, wc := range wcs[:n] {
			if wc.ID != uint64(i+1) || wc.Status != rdma.StatusWRFlushErr {
				t.Errorf("completion %d: %+v", i, wc)
			}
		}
	})
}

func TestCapabilitiesAreKept(t *testing.T) {
	eachConfig(t, func(t *testing.T, cfg Config) {
		dev := must(Open(cfg))(t)
		defer dev.Close()
		c := dev.Caps()
		t.Logf("%+v", c)
		if c.Label != rdma.LabelSoft && c.Label != rdma.LabelDevice {
			t.Errorf("label %s", c.Label)
		}
		cq := must(dev.NewCQ(c.MaxCQE))(t)
		defer cq.Close()
		qp, err := dev.NewQP(rdma.QPConfig{SendCQ: cq, RecvCQ: cq, SendDepth: c.MaxQPWR, RecvDepth: c.MaxQPWR,
			MaxInline: c.MaxInline})
		if err != nil {
			t.Fatal(err)
		}
		qp.Close()
	})
}

// TestPacketsAreMarked: the traffic class that was asked for stands in the path of both
// ends, which the device is asked for, by either way to connect. iWARP has no such path.
func TestPacketsAreMarked(t *testing.T) {
	eachConfig(t, func(t *testing.T, cfg Config) {
		for _, tos := range []int{0, 104} {
			cfg.TOS = tos
			a, b := pair(t, cfg)
			if a.dev.iwarp {
				return // that it connects is all that can be seen from here
			}
			for side, e := range map[string]*end{"initiator": a, "responder": b} {
				if got, err := e.qp.(*qp).trafficClass(); err != nil || got != tos {
					t.Errorf("%s: traffic class %d, %v, want %d", side, got, err, tos)
				}
			}
		}
	})
}
