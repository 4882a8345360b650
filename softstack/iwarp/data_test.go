package iwarp

import (
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/rdmaperf/rdmaperf/transports/rdma"
)

// TestScatterGather: every split of a message over SGEs on both sides, segments shorter and longer than an SGE.
func TestScatterGather(t *testing.T) {
	splits := [][]int{{3000}, {1, 2999}, {1000, 0, 1000, 1000}, {7, 13, 2979, 1}, {2999, 1}, {750, 750, 750, 750}}
	for name, cfg := range map[string]Config{"large segments": {}, "small segments": {MaxULPDU: 300},
		"markers": {Markers: true, MaxULPDU: 1000}, "checked": {StoreAndForward: true}} {
		t.Run(name, func(t *testing.T) {
			a, b := pair(t, cfg, rdma.QPConfig{})
			id := uint64(0)
			for _, out := range splits {
				for _, in := range splits {
					id++
					a.fill(id, 0, 65536)
					clear(b.bytes(0, 65536))
					wr := rdma.SendWR{ID: id, Op: rdma.OpSend, NumSGE: uint8(len(out))}
					var want []byte
					for i, n := range out {
						wr.SGE[i] = a.sge(i*10000+i, n)
						want = append(want, a.bytes(i*10000+i, n)...)
					}
					var sges []rdma.SGE
					for i, n := range in {
						sges = append(sges, b.sge(i*9000+3*i, n))
					}
					b.postRecv(id, sges...)
					a.post(wr)
					wc := b.want(a, rdma.WCRecv, id, rdma.StatusSuccess)
					a.want(b, rdma.WCSend, id, rdma.StatusSuccess)
					if wc.ByteLen != 3000 {
						t.Fatalf("received %d octets", wc.ByteLen)
					}
					var got []byte
					for i, n := range in {
						got = append(got, b.bytes(i*9000+3*i, n)...)
						if b.bytes(i*9000+3*i+n, 1)[0] != 0 {
							t.Fatalf("%v into %v: octet behind SGE %d", out, in, i)
						}
					}
					equal(t, "scattered", got, want)
					// A write gathers alike.
					wr.ID, wr.Op, wr.RKey, wr.RemoteAddr = id, rdma.OpWrite, b.mr.RKey(), b.mr.Addr()+100000
					a.post(wr)
					a.want(b, rdma.WCWrite, id, rdma.StatusSuccess)
				}
			}
			a.post(rdma.SendWR{ID: 1, Op: rdma.OpRead, RKey: b.mr.RKey(), RemoteAddr: b.mr.Addr()})
			a.want(b, rdma.WCRead, 1, rdma.StatusSuccess)
		})
	}
}

// TestLargeScatter: a long message over SGEs that do not end at segments.
func TestLargeScatter(t *testing.T) {
	for name, cfg := range map[string]Config{"default": {}, "mtu1500": {MaxULPDU: 1442}, "small": {MaxULPDU: 128}} {
		t.Run(name, func(t *testing.T) {
			a, b := pair(t, cfg, rdma.QPConfig{})
			a.fill(1, 0, 500000)
			b.postRecv(1, b.sge(0, 100001), b.sge(200000, 7), b.sge(300000, 250000), b.sge(600000, 200000))
			a.post(rdma.SendWR{ID: 1, Op: rdma.OpSend, NumSGE: 3, SGE: [4]rdma.SGE{a.sge(0, 70003), a.sge(70003, 1),
				a.sge(70004, 429996)}})
			if wc := b.want(a, rdma.WCRecv, 1, rdma.StatusSuccess); wc.ByteLen != 500000 {
				t.Errorf("received %d octets", wc.ByteLen)
			}
			got := slices.Concat(b.bytes(0, 100001), b.bytes(200000, 7), b.bytes(300000, 250000), b.bytes(600000, 149992))
			equal(t, "message", got, a.bytes(0, 500000))
		})
	}
}

// TestDataPathAllocatesNothing: a round trip of posts and polls on both sides.
func TestDataPathAllocatesNothing(t *testing.T) {
	for name, cfg := range map[string]Config{"crc": {}, "nocrc": {NoCRC: true}, "checked": {StoreAndForward: true}} {
		for _, size := range []int{64, 64 << 10} {
			a, b := pair(t, cfg, rdma.QPConfig{})
			wcs := make([]rdma.WC, 8)
			type side struct {
				*end
				send  []rdma.SendWR
				recv  []rdma.RecvWR
				reads []rdma.SendWR // a write, and a read behind it
			}
			newSide := func(e, peer *end) *side {
				reads := []rdma.SendWR{e.remote(rdma.OpWrite, 0, 0, size, peer), e.remote(rdma.OpRead, 0, 2<<20, size, peer)}
				reads[1].Flags = rdma.Signaled
				return &side{e,
					[]rdma.SendWR{{Op: rdma.OpSend, Flags: rdma.Signaled, NumSGE: 1, SGE: [4]rdma.SGE{e.sge(0, size)}}},
					[]rdma.RecvWR{{NumSGE: 1, SGE: [4]rdma.SGE{e.sge(1<<20, size)}}}, reads}
			}
			x, y := newSide(a, b), newSide(b, a)
			// collect polls s, and the other side for its progress, for n completions.
			collect := func(s, other *side, n int) {
				for spins := 0; n > 0; spins++ {
					k, err := s.cq.Poll(wcs)
					for _, wc := range wcs[:k] {
						if wc.Status != rdma.StatusSuccess {
							t.Fatal(wc.Status)
						}
					}
					if err != nil || spins > 10_000_000 {
						t.Fatalf("%d completions missing: %v", n, err)
					}
					n -= k
					other.qp.(*qp).poll()
				}
			}
			trip := func() {
				y.qp.PostRecv(y.recv)
				x.qp.PostRecv(x.recv)
				x.qp.PostSend(x.send)
				collect(y, x, 1)
				y.qp.PostSend(y.send)
				collect(x, y, 2)
				collect(y, x, 1)
				x.qp.PostSend(x.reads)
				collect(x, y, 1)
			}
			for range 100 {
				trip()
			}
			if n := testing.AllocsPerRun(200, trip); n != 0 {
				t.Errorf("%s, %d octets: %v allocations a round trip", name, size, n)
			}
			if n := testing.AllocsPerRun(1000, func() { x.cq.Poll(wcs) }); n != 0 {
				t.Errorf("%s: %v allocations an empty poll", name, n)
			}
		}
	}
}

// A connection has small buffers until it carries much at once, and loses no octet when they are replaced.
func TestBuffersAreLongWhereMuchComesAtOnce(t *testing.T) {
	const burst, depth = 200, 256 // twice leastBuf in messages of 64 octets
	for name, more := range map[string]func(t *testing.T, a, b *end){
		"one long segment": func(t *testing.T, a, b *end) {
			a.fill(1, 0, 60_000)
			b.postRecv(2, b.sge(0, 60_000))
			a.post(rdma.SendWR{ID: 2, Op: rdma.OpSend, NumSGE: 1, SGE: [4]rdma.SGE{a.sge(0, 60_000)}})
			b.want(a, rdma.WCRecv, 2, rdma.StatusSuccess)
			a.want(b, rdma.WCSend, 2, rdma.StatusSuccess)
			equal(t, "segment", b.bytes(0, 60_000), a.bytes(0, 60_000))
		},
		"many small ones": func(t *testing.T, a, b *end) {
			a.fill(1, 0, burst*64)
			list := make([]rdma.SendWR, burst)
			for i := range list {
				b.postRecv(uint64(i), b.sge(i*64, 64))
				list[i] = rdma.SendWR{ID: uint64(i), Op: rdma.OpSend, NumSGE: 1, SGE: [4]rdma.SGE{a.sge(i*64, 64)}}
			}
			if n, err := a.qp.PostSend(list); n != burst || err != nil {
				t.Fatal(n, err)
			}
			for i := range list {
				b.want(a, rdma.WCRecv, uint64(i), rdma.StatusSuccess)
			}
			equal(t, "messages", b.bytes(0, burst*64), a.bytes(0, burst*64))
		},
	} {
		t.Run(name, func(t *testing.T) {
			a, b := pair(t, Config{}, rdma.QPConfig{SendDepth: depth, RecvDepth: depth})
			sender, receiver := a.qp.(*qp), b.qp.(*qp)
			lengths := func() (tx, rx int) {
				return locked(sender, func() int { return len(sender.tx.buf) }),
					locked(receiver, func() int { return len(receiver.rx.buf) })
			}
			for i := range 100 {
				b.postRecv(1, b.sge(0, 64))
				a.post(rdma.SendWR{ID: 1, Op: rdma.OpSend, NumSGE: 1, SGE: [4]rdma.SGE{a.sge(0, 64)}})
				b.want(a, rdma.WCRecv, 1, rdma.StatusSuccess)
				a.want(b, rdma.WCSend, 1, rdma.StatusSuccess)
				if tx, rx := lengths(); tx != leastBuf || rx != leastBuf {
					t.Fatalf("message %d: buffers of %d and %d octets", i, tx, rx)
				}
			}
			more(t, a, b)
			if tx, rx := lengths(); rx != mostBuf || name == "many small ones" && tx != mostBuf {
				t.Errorf("buffers of %d and %d octets", tx, rx)
			}
		})
	}
}

// Who watches the last octet of a large write owns the memory from then on, which spoils no CRC.
func TestWatcherMayWriteBehindTheLastOctet(t *testing.T) {
	const size, rounds = 60_000, 100
	for name, cfg := range map[string]Config{"crc": {}, "nocrc": {NoCRC: true}} {
		t.Run(name, func(t *testing.T) {
			a, b := pair(t, cfg, rdma.QPConfig{SendDepth: 8, RecvDepth: 8, Access: rdma.RemoteWrite})
			a.fill(1, 0, size)
			a.bytes(0, size)[size-1] = 1
			var stop atomic.Bool
			var taken atomic.Int64
			var wg sync.WaitGroup
			wg.Go(func() { // drives the stack, as a background poller does
				for !stop.Load() {
					b.qp.(*qp).poll()
					runtime.Gosched()
				}
			})
			wg.Go(func() {
				for !stop.Load() {
					if w := b.bytes(0, size); w[size-1] == 1 {
						clear(w)
						taken.Add(1)
					}
				}
			})
			defer func() { stop.Store(true); wg.Wait() }()
			for i := range int64(rounds) {
				a.post(a.remote(rdma.OpWrite, uint64(i), 0, size, b))
				a.want(nil, rdma.WCWrite, uint64(i), rdma.StatusSuccess)
				for begun := time.Now(); taken.Load() <= i; runtime.Gosched() {
					a.qp.(*qp).poll()
					if time.Since(begun) > testTimeout {
						t.Fatalf("write %d was never seen; the queue pair of the watcher is %v", i, b.qp.State())
					}
				}
			}
		})
	}
}
