package iwarp

import (
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/rdmaperf/rdmaperf/internal/leaktest"
	"github.com/rdmaperf/rdmaperf/transports/rdma"
)

func TestMain(m *testing.M) { leaktest.Main(m) }

const testTimeout = 30 * time.Second

// end is one side of a test connection: a device, a QP, one CQ and a window.
type end struct {
	t   testing.TB
	dev *Device
	cq  rdma.CQ
	qp  rdma.QP
	buf rdma.Buffer
	mr  rdma.MR
	wcs []rdma.WC
	id  uint64
}

const window = 4 << 20

func newEnd(t testing.TB, cfg Config, qcfg rdma.QPConfig) *end {
	t.Helper()
	dev := need(Open(cfg))(t)
	e := newEndOn(t, dev, qcfg)
	t.Cleanup(func() {
		e.free()
		must(t, dev.Close())
	})
	return e
}

// newEndOn makes an end on a device that the caller closes after free.
func newEndOn(t testing.TB, dev *Device, qcfg rdma.QPConfig) *end {
	t.Helper()
	e := &end{t: t, dev: dev, wcs: make([]rdma.WC, 64)}
	e.cq = need(dev.NewCQ(4096))(t)
	qcfg.SendCQ, qcfg.RecvCQ = e.cq, e.cq
	if qcfg.SendDepth == 0 {
		qcfg.SendDepth, qcfg.RecvDepth = 128, 128
	}
	if qcfg.MaxInline == 0 {
		qcfg.MaxInline = 64
	}
	e.qp = need(dev.NewQP(qcfg))(t)
	e.buf = need(rdma.Alloc(window))(t)
	e.mr = need(dev.RegMR(0, e.buf, rdma.LocalWrite|rdma.RemoteWrite|rdma.RemoteRead))(t)
	return e
}

func (e *end) free() {
	e.qp.Close()
	e.mr.Close()
	must(e.t, e.cq.Close())
	e.buf.Free()
}

// must ends the test with an error.
func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// need is the value of a call that must not fail.
func need[T any](v T, err error) func(testing.TB) T {
	return func(t testing.TB) T {
		t.Helper()
		must(t, err)
		return v
	}
}

// pair connects two devices over loopback TCP; a is the initiator.
func pair(t testing.TB, cfg Config, qcfg rdma.QPConfig) (a, b *end) {
	return pairOf(t, cfg, cfg, qcfg)
}

func pairOf(t testing.TB, ca, cb Config, qcfg rdma.QPConfig) (a, b *end) {
	t.Helper()
	a, b = newEnd(t, ca, qcfg), newEnd(t, cb, qcfg)
	join(t, a, b)
	return a, b
}

// join connects a to b.
func join(t testing.TB, a, b *end) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), testTimeout)
	defer cancel()
	l := need(b.dev.Listen(ctx, "127.0.0.1:0", 4))(t)
	defer l.Close()
	errs := b.accept(l, rdma.ConnParam{IRD: 16, ORD: 16})
	need(a.qp.Connect(ctx, l.Addr(), rdma.ConnParam{IRD: 16, ORD: 16}))(t)
	must(t, <-errs)
}

// connecting connects e in the background.
func (e *end) connecting(t testing.TB, addr string, p rdma.ConnParam) chan error {
	done := make(chan error, 1)
	go func() {
		_, err := e.qp.Connect(t.Context(), addr, p)
		done <- err
	}()
	return done
}

// remote is a write or a read of n octets, which are at off here and at the begin of the peer's window.
func (e *end) remote(op rdma.Opcode, id uint64, off, n int, peer *end) rdma.SendWR {
	return rdma.SendWR{ID: id, Op: op, NumSGE: 1, SGE: [4]rdma.SGE{e.sge(off, n)}, RKey: peer.mr.RKey(),
		RemoteAddr: peer.mr.Addr()}
}

func (e *end) sge(off, n int) rdma.SGE {
	return rdma.SGE{Addr: e.mr.Addr() + uint64(off), Len: uint32(n), LKey: e.mr.LKey()}
}

func (e *end) bytes(off, n int) []byte { return e.buf.Bytes()[off : off+n] }

func (e *end) fill(seed uint64, off, n int) {
	var key [32]byte
	binary.NativeEndian.PutUint64(key[:], seed)
	rand.NewChaCha8(key).Read(e.bytes(off, n))
}

func (e *end) post(wr rdma.SendWR) {
	e.t.Helper()
	wr.Flags |= rdma.Signaled
	if _, err := e.qp.PostSend([]rdma.SendWR{wr}); err != nil {
		e.t.Fatalf("post %s: %v", wr.Op, err)
	}
}

func (e *end) postRecv(id uint64, sges ...rdma.SGE) {
	e.t.Helper()
	wr := rdma.RecvWR{ID: id, NumSGE: uint8(len(sges))}
	copy(wr.SGE[:], sges)
	if _, err := e.qp.PostRecv([]rdma.RecvWR{wr}); err != nil {
		e.t.Fatalf("post receive: %v", err)
	}
}

// locked is what f finds in a queue pair.
func locked[T any](q *qp, f func() T) T {
	q.mu.Lock()
	defer q.mu.Unlock()
	return f()
}

// soon waits for a condition of the queue pair that needs no poll.
func (q *qp) soon(t testing.TB, what string, cond func() bool) {
	t.Helper()
	eventually(t, what, func() bool { return locked(q, cond) })
}

// waiter waits on a CQ, and is there when the call returns. The channel has its error.
func waiter(t testing.TB, ctx context.Context, c rdma.CQ) chan error {
	t.Helper()
	done := make(chan error, 1)
	go func() { done <- c.Wait(ctx) }()
	eventually(t, "a waiter", func() bool { return c.(*cq).waiters.Load() == 1 })
	return done
}

// next polls e, and its peer for progress, until e has a completion.
func (e *end) next(peer *end) rdma.WC {
	e.t.Helper()
	for stop := time.Now().Add(testTimeout); time.Now().Before(stop); {
		n, err := e.cq.Poll(e.wcs[:1])
		if err != nil {
			e.t.Fatalf("poll: %v", err)
		}
		if n == 1 {
			return e.wcs[0]
		}
		if peer != nil {
			peer.qp.(*qp).poll()
		}
	}
	e.t.Fatal("no completion in time")
	return rdma.WC{}
}

func (e *end) want(peer *end, op rdma.WCOpcode, id uint64, s rdma.Status) rdma.WC {
	e.t.Helper()
	wc := e.next(peer)
	if wc.ID != id || wc.Status != s || s == rdma.StatusSuccess && wc.Opcode != op {
		e.t.Fatalf("completion = %s id %d %s, want %s id %d %s", wc.Opcode, wc.ID, wc.Status, op, id, s)
	}
	return wc
}

func equal(t testing.TB, what string, got, want []byte) {
	t.Helper()
	if !bytes.Equal(got, want) {
		i := 0
		for got[i] == want[i] {
			i++
		}
		t.Fatalf("%s: byte %d of %d = %#x, want %#x", what, i, len(want), got[i], want[i])
	}
}

var sizes = []int{0, 1, 3, 4, 5, 63, 64, 1447, 1448, 2048, 2049, 4095, 4096, 8191, 65 << 10, 65<<10 - 1, 1 << 20,
	1<<20 + 1}

var configs = map[string]Config{
	"crc":     {},
	"nocrc":   {NoCRC: true},
	"markers": {Markers: true},
	"checked": {StoreAndForward: true},
	"p2p":     {PeerToPeer: true},
	"rev1":    {Revision: 1},
	"small":   {MaxULPDU: 128},
	"mtu1500": {MaxULPDU: 1442},
	"buffers": {SendBuffer: 32 << 10, RecvBuffer: 32 << 10},
}

func TestSendWriteReadCarryEveryByte(t *testing.T) {
	for name, cfg := range configs {
		t.Run(name, func(t *testing.T) {
			a, b := pair(t, cfg, rdma.QPConfig{})
			for i, n := range sizes {
				id := uint64(i)
				a.fill(id, 0, n)
				b.postRecv(id, b.sge(1<<20, n))
				a.post(rdma.SendWR{ID: id, Op: rdma.OpSend, NumSGE: 1, SGE: [4]rdma.SGE{a.sge(0, n)}})
				wc := b.want(a, rdma.WCRecv, id, rdma.StatusSuccess)
				if int(wc.ByteLen) != n {
					t.Fatalf("received %d bytes, want %d", wc.ByteLen, n)
				}
				a.want(b, rdma.WCSend, id, rdma.StatusSuccess)
				equal(t, fmt.Sprintf("send %d", n), b.bytes(1<<20, n), a.bytes(0, n))

				a.fill(id+100, 0, n)
				a.post(rdma.SendWR{ID: id, Op: rdma.OpWrite, NumSGE: 1, SGE: [4]rdma.SGE{a.sge(0, n)},
					RKey: b.mr.RKey(), RemoteAddr: b.mr.Addr() + 5})
				a.post(rdma.SendWR{ID: id + 1000, Op: rdma.OpRead, NumSGE: 1, SGE: [4]rdma.SGE{a.sge(2<<20, n)},
					RKey: b.mr.RKey(), RemoteAddr: b.mr.Addr() + 5})
				a.want(b, rdma.WCWrite, id, rdma.StatusSuccess)
				a.want(b, rdma.WCRead, id+1000, rdma.StatusSuccess)
				equal(t, fmt.Sprintf("write %d", n), b.bytes(5, n), a.bytes(0, n))
				equal(t, fmt.Sprintf("read %d", n), a.bytes(2<<20, n), a.bytes(0, n))
			}
		})
	}
}
