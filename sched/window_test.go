package sched_test

import (
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/rdmaperf/rdmaperf/sched"
	"github.com/rdmaperf/rdmaperf/softstack/ddp"
	"github.com/rdmaperf/rdmaperf/softstack/iwarp"
	"github.com/rdmaperf/rdmaperf/softstack/mpa"
	"github.com/rdmaperf/rdmaperf/softstack/rdmap"
	"github.com/rdmaperf/rdmaperf/softstack/wiretest"
	"github.com/rdmaperf/rdmaperf/transports/rdma"
)

const (
	bulkSize  = 1 << 20
	bulkCount = 4
	waitLimit = 30 * time.Second
)

// slowPeer is an iWARP peer that reads only when told to, behind a QP with bulk writes that is polled.
type slowPeer struct {
	t     *testing.T
	peer  *wiretest.Peer
	qp    rdma.QP
	done  atomic.Int64 // completions
	bulk  int          // octets of writes received
	reads int          // read requests received
	sent  bool         // the urgent send was received
}

func newSlowPeer(t *testing.T, cfg *sched.Config) *slowPeer {
	t.Helper()
	bare := need(iwarp.Open(iwarp.Config{NoCRC: true}))(t)
	var dev rdma.Device = bare
	if cfg != nil {
		dev = need(sched.Wrap(bare, *cfg))(t)
	}
	s := need(wiretest.Listen(waitLimit))(t)
	defer s.Close()
	buf := need(rdma.Alloc(bulkSize))(t)
	mr := need(dev.RegMR(0, buf, rdma.LocalWrite))(t)
	cq := need(dev.NewCQ(64))(t)
	qp := need(dev.NewQP(rdma.QPConfig{SendCQ: cq, RecvCQ: cq, SendDepth: 16}))(t)
	p := &slowPeer{t: t, qp: qp}
	connected := make(chan error, 1)
	go func() {
		_, err := qp.Connect(t.Context(), s.Addr(), rdma.ConnParam{IRD: 16, ORD: 16})
		connected <- err
	}()
	p.peer = need(s.Accept())(t)
	need(p.peer.Respond(&mpa.Frame{Rev: 2, Reply: true, Enhanced: true, Enh: mpa.Enhanced{IRD: 16, ORD: 16}}))(t)
	must(t, <-connected)
	var quit atomic.Bool
	var polls sync.WaitGroup
	polls.Go(func() {
		var wcs [16]rdma.WC
		for !quit.Load() {
			n, err := cq.Poll(wcs[:])
			if err != nil {
				return
			}
			p.done.Add(int64(n))
			runtime.Gosched()
		}
	})
	t.Cleanup(func() {
		quit.Store(true)
		polls.Wait()
		p.peer.Close()
		for _, f := range []func() error{qp.Close, cq.Close, mr.Close, dev.Close, buf.Free} {
			must(t, f())
		}
	})
	for range bulkCount {
		p.post(rdma.SendWR{Op: rdma.OpWrite, Flags: rdma.Signaled, RKey: 7, NumSGE: 1,
			SGE: [4]rdma.SGE{{Addr: mr.Addr(), Len: bulkSize, LKey: mr.LKey()}}})
	}
	return p
}

func (p *slowPeer) post(wr rdma.SendWR) {
	p.t.Helper()
	need(p.qp.PostSend([]rdma.SendWR{wr}))(p.t)
}

// read takes FPDUs off the socket until enough is true.
func (p *slowPeer) read(enough func() bool) {
	p.t.Helper()
	for !enough() {
		f, err := p.peer.Next()
		if err != nil {
			p.t.Fatalf("after %d octets of bulk and %d read requests: %v", p.bulk, p.reads, err)
		}
		switch f.Op() {
		case rdmap.OpWrite:
			p.bulk += len(f.Payload())
		case rdmap.OpSend:
			p.sent = true
		case rdmap.OpReadReq:
			p.reads++
			if r := rdmap.GetReadRequest(f.ULPDU[ddp.UntaggedLen:]); r.Size != 0 {
				p.t.Fatalf("a read of %d octets that nobody asked for", r.Size)
			}
		}
	}
}

// beforeUrgent is how many octets of bulk an urgent send finds before it at a peer that has stopped reading.
func (p *slowPeer) beforeUrgent() int {
	time.Sleep(50 * time.Millisecond) // until the device has handed over all that it is going to
	p.post(rdma.SendWR{Op: rdma.OpSend, Flags: rdma.Signaled, Priority: 7})
	p.read(func() bool { return p.sent })
	return p.bulk
}

// Where completions are local, an urgent send finds no more than a window before it all the same.
func TestWindowCountsWhatThePeerHasNotTaken(t *testing.T) {
	const window = 64 << 10
	p := newSlowPeer(t, &sched.Config{Slice: 16 << 10, Window: window})
	if got := p.beforeUrgent(); got > window || got < window/2 {
		t.Errorf("%d octets before the urgent send, window %d", got, window)
	}
	// Everything comes when the peer answers, each answer making room.
	answered := 0
	answer := func() {
		for ; answered < p.reads; answered++ {
			must(t, p.peer.Send(wiretest.ReadResponse(0, 0, nil)))
		}
	}
	for p.bulk < bulkCount*bulkSize {
		answer()
		before := p.bulk
		p.read(func() bool { return p.bulk == bulkCount*bulkSize || p.reads > answered })
		if got := p.bulk - before; got > window {
			t.Fatalf("%d octets without a mark, window %d", got, window)
		}
	}
	answer()
	for stop := time.Now().Add(waitLimit); p.done.Load() < bulkCount+1; time.Sleep(time.Millisecond) {
		if time.Now().After(stop) {
			t.Fatalf("%d completions, want %d", p.done.Load(), bulkCount+1)
		}
	}
}

// Without the tier all of the bulk is before the urgent send, which shows that the test above would see it.
func TestWithoutTheTierNothingIsBounded(t *testing.T) {
	for _, cfg := range []*sched.Config{nil, {Policy: sched.FIFO}} {
		if got := newSlowPeer(t, cfg).beforeUrgent(); got != bulkCount*bulkSize {
			t.Errorf("%+v: %d octets before the urgent send, want all %d", cfg, got, bulkCount*bulkSize)
		}
	}
}

// A poll ends after one window, as the application may have something urgent to post.
func TestPollEndsAfterOneWindow(t *testing.T) {
	const slice, window, whole = 4 << 10, 16 << 10, 1 << 20
	dev := newNull()
	qp, cq := bareQueue(t, sched.WithoutKeeper(wrapped(t, dev, sched.Config{Slice: slice, Window: window})), 16)
	need(qp.PostSend(requests(1, whole)))(t)
	wcs := make([]rdma.WC, 4)
	for sent, told := dev.bytes, 0; told == 0; {
		n := need(cq.Poll(wcs))(t)
		now := dev.bytes
		if now-sent > window || now == sent && n == 0 {
			t.Fatalf("one poll posted %d bytes after %d, want 1 to %d", now-sent, sent, window)
		}
		sent, told = now, told+n
	}
	if dev.bytes != whole {
		t.Errorf("%d bytes posted at the completion, want %d", dev.bytes, whole)
	}
}
