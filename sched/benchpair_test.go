package sched_test

import (
	"context"
	"net"
	"testing"
	"time"

	"github.com/rdmaperf/rdmaperf/sched"
	"github.com/rdmaperf/rdmaperf/transports/rdma"
	"golang.org/x/sys/unix"
)

// One thread drives both ends of an iWARP connection and is timed by its own CPU
// clock. That counts all the work of a byte on both sides and nothing of what else
// the machine does, so arms can be compared on a busy machine; it says nothing
// about two ends that work at the same time.

type benchPair struct {
	a, b     rdma.QP
	ca, cb   rdma.CQ
	src, dst rdma.MR
	wcs      [32]rdma.WC
}

// newBenchPair connects two ends with memory of window bytes each.
func newBenchPair(tb testing.TB, open func() (rdma.Device, error), cfg *sched.Config, window int) *benchPair {
	tb.Helper()
	must := func(err error) {
		tb.Helper()
		if err != nil {
			tb.Fatal(err)
		}
	}
	p, host := &benchPair{}, "127.0.0.1"
	side := func() (rdma.Device, rdma.QP, rdma.CQ, rdma.MR) {
		dev, err := open()
		must(err)
		if h, ok := dev.(interface{ ListenHost() string }); ok {
			host = h.ListenHost()
		}
		if cfg != nil {
			dev, err = sched.Wrap(dev, *cfg)
			must(err)
		}
		buf, err := rdma.Alloc(window)
		must(err)
		mr, err := dev.RegMR(0, buf, rdma.LocalWrite|rdma.RemoteWrite)
		must(err)
		cq, err := dev.NewCQ(1024)
		must(err)
		qp, err := dev.NewQP(rdma.QPConfig{SendCQ: cq, RecvCQ: cq, SendDepth: 256, RecvDepth: 64})
		must(err)
		tb.Cleanup(func() {
			for _, f := range []func() error{qp.Close, cq.Close, mr.Close, dev.Close, buf.Free} {
				if err := f(); err != nil {
					tb.Error(err)
				}
			}
		})
		return dev, qp, cq, mr
	}
	_, a, ca, src := side()
	db, b, cb, dst := side()
	p.a, p.ca, p.src, p.b, p.cb, p.dst = a, ca, src, b, cb, dst
	l, err := db.Listen(context.Background(), net.JoinHostPort(host, "0"), 1)
	must(err)
	defer l.Close()
	done := make(chan error, 1)
	go func() {
		_, err := a.Connect(context.Background(), l.Addr(), rdma.ConnParam{IRD: 16, ORD: 16, RNRRetry: 7})
		done <- err
	}()
	req, err := l.Accept(context.Background())
	must(err)
	_, err = req.Accept(context.Background(), b, rdma.ConnParam{IRD: 16, ORD: 16, RNRRetry: 7})
	must(err)
	must(<-done)
	for i := range 64 {
		p.recv(tb, i)
	}
	return p
}

func (p *benchPair) recv(tb testing.TB, i int) {
	if _, err := p.b.PostRecv([]rdma.RecvWR{{ID: uint64(i)}}); err != nil {
		tb.Fatal(err)
	}
}

func (p *benchPair) write(size, n int) []rdma.SendWR {
	wrs := make([]rdma.SendWR, n)
	for i := range wrs {
		wrs[i] = rdma.SendWR{ID: 1, Op: rdma.OpWrite, Flags: rdma.Signaled, RKey: p.dst.RKey(),
			RemoteAddr: p.dst.Addr(), NumSGE: 1}
		wrs[i].SGE[0] = rdma.SGE{Addr: p.src.Addr(), Len: uint32(size), LKey: p.src.LKey()}
	}
	return wrs
}

// cpu is the time that this thread has worked.
func cpu() time.Duration {
	var ts unix.Timespec
	if unix.ClockGettime(unix.CLOCK_THREAD_CPUTIME_ID, &ts) != nil {
		return 0
	}
	return time.Duration(ts.Nano())
}

func sizeName(n int) string {
	switch {
	case n >= 1<<20:
		return map[int]string{1 << 20: "1M", 8 << 20: "8M", 16 << 20: "16M"}[n]
	case n >= 1<<10:
		return "64K"
	}
	return "64"
}
