package sched_test

import (
	"context"
	"net"
	"runtime"
	"slices"
	"testing"
	"time"

	"github.com/rdmaperf/rdmaperf/sched"
	"github.com/rdmaperf/rdmaperf/softstack/iwarp"
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

const benchDepth = 16

func newIWARPPair(tb testing.TB, below iwarp.Config, cfg *sched.Config, window int) *benchPair {
	tb.Helper()
	return newBenchPair(tb, func() (rdma.Device, error) { return iwarp.Open(below) }, cfg, window)
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

// turn polls both ends once and counts completions by ID: of writes, of urgent
// sends, and arrivals of those.
func (p *benchPair) turn(tb testing.TB) (writes, sends, arrivals int) {
	n, err := p.ca.Poll(p.wcs[:])
	if err != nil {
		tb.Fatal(err)
	}
	for _, wc := range p.wcs[:n] {
		switch {
		case wc.Status != rdma.StatusSuccess:
			tb.Fatal(wc.Status)
		case wc.ID == 1:
			writes++
		default:
			sends++
		}
	}
	if n, err = p.cb.Poll(p.wcs[:]); err != nil {
		tb.Fatal(err)
	}
	for range n {
		p.recv(tb, 0)
	}
	return writes, sends, n
}

// cpu is the time that this thread has worked.
func cpu() time.Duration {
	var ts unix.Timespec
	if unix.ClockGettime(unix.CLOCK_THREAD_CPUTIME_ID, &ts) != nil {
		return 0
	}
	return time.Duration(ts.Nano())
}

var benchArms = []struct {
	name string
	cfg  *sched.Config
}{
	{"raw", nil},
	{"fifo", &sched.Config{Policy: sched.FIFO}},
	{"strict", &sched.Config{}},
	{"steady", &sched.Config{Steady: true}},
	{"slice16K", &sched.Config{Slice: 16 << 10}},
}

func BenchmarkBulk(b *testing.B) {
	for _, size := range []int{64, 64 << 10, 1 << 20, 16 << 20} {
		for _, arm := range benchArms {
			b.Run(arm.name+"/"+sizeName(size), func(b *testing.B) {
				runtime.LockOSThread()
				defer runtime.UnlockOSThread()
				p := newIWARPPair(b, iwarp.Config{}, arm.cfg, size)
				batch := max(1, min(16, (1<<20)/size))
				wrs := p.write(size, batch)
				b.SetBytes(int64(size))
				b.ResetTimer()
				start := cpu()
				posted, done, arrived := 0, 0, 0
				for done < b.N || arrived == 0 {
					for posted < b.N && posted-done+batch <= max(benchDepth, 8*batch) {
						k := min(batch, b.N-posted)
						if _, err := p.a.PostSend(wrs[:k]); err != nil {
							b.Fatal(err)
						}
						if posted += k; posted == b.N { // its arrival proves that of everything
							if _, err := p.a.PostSend([]rdma.SendWR{{Op: rdma.OpSend}}); err != nil {
								b.Fatal(err)
							}
						}
					}
					w, _, n := p.turn(b)
					done, arrived = done+w, arrived+n
				}
				b.StopTimer()
				used := cpu() - start
				b.ReportMetric(float64(used.Nanoseconds())/float64(b.N), "cpu-ns/op")
				b.ReportMetric(float64(used.Nanoseconds())/float64(b.N)/float64(size), "cpu-s/GB")
			})
		}
	}
}

// BenchmarkUrgent is how much work lies between the post of an urgent send and
// its arrival, beside a bulk stream on the same queue pair.
func BenchmarkUrgent(b *testing.B) {
	for _, size := range []int{64 << 10, 1 << 20, 16 << 20} {
		for _, arm := range benchArms {
			b.Run(arm.name+"/"+sizeName(size), func(b *testing.B) {
				runtime.LockOSThread()
				defer runtime.UnlockOSThread()
				p := newIWARPPair(b, iwarp.Config{}, arm.cfg, size)
				wrs := p.write(size, 1)
				urgent := []rdma.SendWR{{ID: 2, Op: rdma.OpSend, Flags: rdma.Signaled, Priority: 7}}
				var waits []time.Duration
				open, sent, start, next := 0, false, time.Duration(0), cpu()+20*time.Millisecond
				b.ResetTimer()
				for len(waits) < b.N {
					for ; open < benchDepth; open++ {
						if _, err := p.a.PostSend(wrs); err != nil {
							b.Fatal(err)
						}
					}
					if t := cpu(); !sent && t >= next {
						if _, err := p.a.PostSend(urgent); err != nil {
							b.Fatal(err)
						}
						sent, start = true, t
					}
					w, _, n := p.turn(b)
					open -= w
					if n > 0 {
						t := cpu()
						waits = append(waits, t-start)
						sent, next = false, t+500*time.Microsecond
					}
				}
				b.StopTimer()
				slices.Sort(waits)
				b.ReportMetric(float64(waits[len(waits)/2].Nanoseconds())/1000, "p50-us")
				b.ReportMetric(float64(waits[len(waits)*99/100].Nanoseconds())/1000, "p99-us")
			})
		}
	}
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
