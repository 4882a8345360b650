package iwarp

import (
	"context"
	"errors"
	"runtime"
	"syscall"
	"testing"
	"time"

	"github.com/rdmaperf/rdmaperf/softstack/ddp"
	"github.com/rdmaperf/rdmaperf/softstack/mpa"
	"github.com/rdmaperf/rdmaperf/softstack/rdmap"
	"github.com/rdmaperf/rdmaperf/softstack/wiretest"
	"github.com/rdmaperf/rdmaperf/transports/rdma"
)

// tally wants each of n requests to complete once, in order, with success only before the first failure.
func (e *end) tally(n int) (good int) {
	e.t.Helper()
	var next [2]uint64
	failed := [2]bool{}
	for range n {
		wc := e.next(nil)
		kind := 0
		if wc.ID >= recvIDs {
			kind = 1
			wc.ID -= recvIDs
		}
		if wc.ID != next[kind] {
			e.t.Fatalf("completion %d of kind %d, want %d", wc.ID, kind, next[kind])
		}
		next[kind]++
		if wc.Status == rdma.StatusSuccess {
			if good++; failed[kind] {
				e.t.Errorf("request %d of kind %d succeeded behind a failed one", wc.ID, kind)
			}
		} else {
			failed[kind] = true
		}
	}
	if k, _ := e.cq.Poll(e.wcs); k != 0 {
		e.t.Errorf("%d completions too many: %+v", k, e.wcs[:k])
	}
	return good
}

const recvIDs = 1 << 20 // receives are numbered from here

// load posts n requests of all kinds and n receives, more than the sockets hold.
func (e *end) load(peer *end, n int) {
	e.t.Helper()
	for i := range n {
		e.postRecv(uint64(recvIDs+i), e.sge(2<<20, 1<<20))
	}
	for i := range n {
		wr := rdma.SendWR{ID: uint64(i), Op: []rdma.Opcode{rdma.OpWrite, rdma.OpSend, rdma.OpRead}[i%3], NumSGE: 1,
			SGE: [4]rdma.SGE{e.sge(0, 1<<20)}}
		wr.RKey, wr.RemoteAddr = peer.mr.RKey(), peer.mr.Addr()+1<<20
		if wr.Op == rdma.OpRead {
			wr.SGE[0] = e.sge(3<<20, 1<<20)
		}
		e.post(wr)
	}
}

// TestEndInMidTransfer: both ends complete everything once, in order, whatever ends traffic in both directions.
func TestEndInMidTransfer(t *testing.T) {
	const n = 24
	type ends struct{ a, b *end }
	for name, act := range map[string]func(t *testing.T, e ends){
		"close":        func(t *testing.T, e ends) { must(t, e.a.qp.Close()) },
		"fail":         func(t *testing.T, e ends) { must(t, e.a.qp.Fail()) },
		"kill":         func(t *testing.T, e ends) { e.a.dev.Kill() },
		"peer closes":  func(t *testing.T, e ends) { must(t, e.b.qp.Close()) },
		"peer killed":  func(t *testing.T, e ends) { e.b.dev.Kill() },
		"both fail":    func(t *testing.T, e ends) { go e.a.qp.Fail(); e.b.qp.Fail() },
		"close, close": func(t *testing.T, e ends) { must(t, e.a.qp.Close()); must(t, e.a.qp.Close()) },
		"disconnect cut short": func(t *testing.T, e ends) {
			ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
			defer cancel()
			if err := e.a.qp.Disconnect(ctx); err != nil && !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("disconnect: %v", err)
			}
		},
		"lost registration": func(t *testing.T, e ends) { must(t, e.a.mr.Close()) },
	} {
		for _, cfg := range []string{"crc", "nocrc", "buffers"} {
			t.Run(name+"/"+cfg, func(t *testing.T) {
				a, b := pair(t, configs[cfg], rdma.QPConfig{})
				a.load(b, n)
				b.load(a, n)
				time.Sleep(time.Duration(len(name)%3) * time.Millisecond) // somewhere in the middle
				act(t, ends{a, b})
				if name == "lost registration" {
					// The next access finds it, at the latest this one.
					a.qp.PostSend(nil)
					b.post(rdma.SendWR{ID: n, Op: rdma.OpRead, RKey: 1})
					a.tally(2 * n)
					b.tally(2*n + 1)
				} else {
					a.tally(2 * n)
					b.tally(2 * n)
				}
				for _, e := range []*end{a, b} {
					if s := e.qp.State(); s != rdma.QPErr {
						t.Errorf("qp is %v", s)
					}
					q := e.qp.(*qp)
					q.soon(t, "socket closed", func() bool { return q.phase == phaseClosed })
				}
			})
		}
	}
}

// TestDisconnectDelivers: what was posted before it arrives, whole.
func TestDisconnectDelivers(t *testing.T) {
	const n = 12
	for name, cfg := range configs {
		t.Run(name, func(t *testing.T) {
			a, b := pair(t, cfg, rdma.QPConfig{})
			for i := range n {
				b.postRecv(uint64(recvIDs+i), b.sge(2<<20, 1<<20))
			}
			a.load(b, n)
			ctx, cancel := context.WithTimeout(t.Context(), testTimeout)
			defer cancel()
			must(t, a.qp.Disconnect(ctx))
			if good := a.tally(2 * n); good != n {
				t.Errorf("%d of %d requests succeeded", good, n)
			}
			if good := b.tally(n); good != n/3 {
				t.Errorf("%d messages arrived, want %d", good, n/3)
			}
			if !disconnected(b.dev) {
				t.Error("the peer has no disconnect event")
			}
			must(t, a.qp.Disconnect(ctx)) // nothing left to do
		})
	}
}

func disconnected(d *Device) bool {
	for ev, ok := d.Event(); ok; ev, ok = d.Event() {
		if ev.Type == rdma.EventPeerDisconnect {
			return true
		}
	}
	return false
}

// TestDisconnectFromStuckPeer: who does not read holds neither Disconnect beyond its context nor memory.
func TestDisconnectFromStuckPeer(t *testing.T) {
	e := newEnd(t, Config{SendBuffer: 16 << 10}, rdma.QPConfig{})
	e.connectTo(t, rdma.ConnParam{IRD: 1, ORD: 1}, nil)
	e.overfill()
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	begin := time.Now()
	if err := e.qp.Disconnect(ctx); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("disconnect: %v", err)
	}
	if d := time.Since(begin); d > testTimeout/6 {
		t.Errorf("disconnect took %v", d)
	}
	e.tally(4)
	q := e.qp.(*qp)
	if locked(q, func() bool { return q.phase == phaseLinger && !q.tx.copied }) {
		t.Error("the lingering stream still points into the user's memory")
	}
}

// overfill posts four writes, more than the sockets hold.
func (e *end) overfill() {
	e.t.Helper()
	for i := range uint64(4) {
		e.post(rdma.SendWR{ID: i, Op: rdma.OpWrite, NumSGE: 1, SGE: [4]rdma.SGE{e.sge(0, window)}, RKey: 1})
	}
}

// TestHalfClose: DTH-05, a peer that sends FIN after its last FPDU still gets what was under way, and an orderly end.
func TestHalfClose(t *testing.T) {
	for _, m := range modes {
		t.Run(m.name, func(t *testing.T) {
			d := newDUT(t, m, dutOptions{bare: true})
			d.send(wiretest.ReadRequest(1, rdmap.ReadRequest{SinkSTag: 5, Size: 40000, SrcSTag: d.target.RKey(),
				SrcTO: d.target.Addr()}), d.message("last words"))
			must(t, d.peer.CloseWrite())
			d.received(0, "last words")
			d.checkEnd(nil, false, nil, []uint64{1}, nil)
			if !disconnected(d.dev) {
				t.Error("no disconnect event")
			}
		})
	}
}

// TestHalfCloseAnswers: the read that came before the FIN is answered in full.
func TestHalfCloseAnswers(t *testing.T) {
	d := newDUT(t, modes[0], dutOptions{bare: true})
	const size = 60000
	d.send(wiretest.ReadRequest(1, rdmap.ReadRequest{SinkSTag: 5, Size: size, SrcSTag: d.target.RKey(),
		SrcTO: d.target.Addr()}))
	must(t, d.peer.CloseWrite())
	end := d.peer.Finish()
	got := 0
	for _, f := range end.FPDUs {
		got += len(f.Payload())
	}
	if got != size || end.Kind != wiretest.EndFIN {
		t.Errorf("%d of %d octets, then %v", got, size, end.Kind)
	}
}

// TestStuckPeer: DTH-03, T-12. A peer that does not read stops the sender at bounded memory; nobody polls.
func TestStuckPeer(t *testing.T) {
	const n, size = 12, 1 << 20
	for name, cfg := range map[string]Config{"crc": {SendBuffer: 256 << 10},
		"nocrc": {SendBuffer: 256 << 10, NoCRC: true}} {
		t.Run(name, func(t *testing.T) {
			e := newEnd(t, cfg, rdma.QPConfig{})
			p := scripted(t, e, 4, 4)
			e.fill(1, 0, size)
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			for i := range n {
				e.post(rdma.SendWR{ID: uint64(i), Op: rdma.OpWrite, NumSGE: 1, SGE: [4]rdma.SGE{e.sge(0, size)},
					RKey: 1, RemoteAddr: uint64(i) << 32})
			}
			// A peer may read from us all the same: its requests pile up to IRD.
			for i := range 4 {
				must(t, p.Send(wiretest.ReadRequest(uint32(i+1), rdmap.ReadRequest{SinkSTag: 9, SinkTO: 0, Size: size,
					SrcSTag: e.mr.RKey(), SrcTO: e.mr.Addr()})))
			}
			q := e.qp.(*qp)
			q.soon(t, "a full socket", func() bool { return q.tx.blocked && q.irq.len() == 4 })
			time.Sleep(30 * time.Millisecond)
			if waiting := locked(q, func() uint64 { return q.tx.framed - q.tx.sent }); waiting > flushAt+128<<10 {
				t.Errorf("%d octets are framed and not sent", waiting)
			}
			runtime.ReadMemStats(&after)
			if grown := int64(after.HeapAlloc) - int64(before.HeapAlloc); grown > 2<<20 {
				t.Errorf("heap grew by %d KiB", grown>>10)
			}
			if k, _ := e.cq.Poll(e.wcs); k >= n {
				t.Errorf("%d of %d completed though nobody read", k, n)
			} else {
				for i, wc := range e.wcs[:k] {
					if wc.ID != uint64(i) || wc.Status != rdma.StatusSuccess {
						t.Errorf("completion %+v", wc)
					}
				}
				// The rest completes while the peer reads.
				writes, reads := 0, 0
				for writes < n*size || reads < 4*size {
					f := need(p.Next())(t)
					if f.Op() == rdmap.OpWrite {
						equal(t, "write", f.Payload(), e.bytes(writes%size, len(f.Payload())))
						writes += len(f.Payload())
					} else {
						equal(t, "response", f.Payload(), e.bytes(reads%size, len(f.Payload())))
						reads += len(f.Payload())
					}
				}
				for i := k; i < n; i++ {
					e.want(nil, rdma.WCWrite, uint64(i), rdma.StatusSuccess)
				}
			}
		})
	}
}

// narrow connects e to a scripted peer whose socket takes little.
func narrow(t *testing.T, e *end) *wiretest.Peer {
	t.Helper()
	s := need(wiretest.Listen(testTimeout))(t)
	defer s.Close()
	must(t, s.ReadBuffer(16<<10))
	done := e.connecting(t, s.Addr(), rdma.ConnParam{IRD: 1, ORD: 1})
	p := need(s.Accept())(t)
	t.Cleanup(func() { p.Close() })
	need(p.Respond(&mpa.Frame{Reply: true, Rev: 2, Enhanced: true, Enh: mpa.Enhanced{IRD: 1, ORD: 1}}))(t)
	must(t, <-done)
	return p
}

// TestLingeringDoesNotSpin: a peer that sent FIN and does not read costs no processor time until it is given up.
func TestLingeringDoesNotSpin(t *testing.T) {
	used := func() time.Duration {
		var r syscall.Rusage
		must(t, syscall.Getrusage(syscall.RUSAGE_SELF, &r))
		return time.Duration(r.Utime.Nano() + r.Stime.Nano())
	}
	e := newEnd(t, Config{SendBuffer: 16 << 10}, rdma.QPConfig{})
	p := narrow(t, e)
	e.overfill()
	must(t, p.CloseWrite())
	eventually(t, "qp in ERR", func() bool { return e.qp.State() == rdma.QPErr })
	const span = 300 * time.Millisecond
	before := used()
	time.Sleep(span)
	if d := used() - before; d > span/2 {
		t.Errorf("%v of processor time in %v", d, span)
	}
	q := e.qp.(*qp)
	if locked(q, func() phase { return q.phase }) != phaseLinger {
		t.Errorf("the stream does not linger any more")
	}
}

// TestCompletionMeansHandedOver: RFC 5040 §5.5, a write completes when the socket has its last octet.
func TestCompletionMeansHandedOver(t *testing.T) {
	const n, size = 128, 3000
	e := newEnd(t, Config{SendBuffer: 16 << 10}, rdma.QPConfig{})
	narrow(t, e)
	q := e.qp.(*qp)
	for i := range n {
		e.post(rdma.SendWR{ID: uint64(i), Op: rdma.OpWrite, NumSGE: 1, SGE: [4]rdma.SGE{e.sge(0, size)}, RKey: 1})
	}
	fpdu := uint64(mpa.FPDULen(ddp.TaggedLen + size))
	q.mu.Lock()
	framed, sent, complete := q.tx.framed/fpdu, q.tx.sent/fpdu, uint64(e.cq.(*cq).len())
	q.mu.Unlock()
	if framed <= sent {
		t.Fatalf("%d messages framed and all of them sent: the socket is not full", framed)
	}
	if complete != sent {
		t.Errorf("%d messages complete, the socket has %d of %d", complete, sent, framed)
	}
}

// TestSenderThatDoesNotPoll: what was posted leaves though the application does something else.
func TestSenderThatDoesNotPoll(t *testing.T) {
	for _, polls := range []int{0, 1, 2} {
		e := newEnd(t, Config{SendBuffer: 64 << 10}, rdma.QPConfig{})
		p := scripted(t, e, 1, 1)
		time.Sleep(2 * watchPeriod) // the QP is at rest
		e.overfill()
		for range polls {
			e.cq.Poll(e.wcs)
		}
		takeWrites(t, p, 4*window)
	}
}

// TestDeviceCloseEndsLingering: a device can be closed while streams still end.
func TestDeviceCloseEndsLingering(t *testing.T) {
	dev := need(Open(Config{}))(t)
	e := newEndOn(t, dev, rdma.QPConfig{})
	p, _ := e.connectTo(t, rdma.ConnParam{IRD: 1, ORD: 1}, nil)
	fds := openFDs(t)
	e.post(rdma.SendWR{ID: 1, Op: rdma.OpSend})
	e.free() // the peer keeps its side open: the stream lingers
	if dev.bg.size() != 1 {
		t.Errorf("%d streams linger, want 1", dev.bg.size())
	}
	must(t, dev.Close())
	if n := openFDs(t); n >= fds {
		t.Errorf("%d descriptors, %d before", n, fds)
	}
	if end := p.Finish(); len(end.FPDUs) != 1 {
		t.Errorf("the peer saw %v", end.FPDUs)
	}
}
