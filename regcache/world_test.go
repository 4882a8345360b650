package regcache

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/rdmaperf/rdmaperf/internal/expect"
	"github.com/rdmaperf/rdmaperf/internal/leaktest"
	"github.com/rdmaperf/rdmaperf/regcache/pin"
	"github.com/rdmaperf/rdmaperf/softstack/iwarp"
	"github.com/rdmaperf/rdmaperf/transports/memdev"
	"github.com/rdmaperf/rdmaperf/transports/rdma"
)

func TestMain(m *testing.M) { leaktest.Main(m) }

// mover is a device that a cache stands over, with somebody who writes and reads its
// memory by key: a peer, or the kernel. An error is a refusal.
type mover interface {
	Registrar
	Write(key uint32, addr uint64, p []byte) error
	Read(key uint32, addr uint64, p []byte) error
}

// worlds runs a test over every device that has real operations.
func worlds(t *testing.T, f func(t *testing.T, m mover)) {
	t.Run("mem", func(t *testing.T) {
		fab := memdev.NewFabric(memdev.Config{})
		a, errA := fab.Open("a")
		b, errB := fab.Open("b")
		expect.OK(t, errors.Join(errA, errB))
		f(t, newPeers(t, a, b, "b:0"))
	})
	t.Run("iwarp", func(t *testing.T) {
		a, errA := iwarp.Open(iwarp.Config{})
		b, errB := iwarp.Open(iwarp.Config{})
		expect.OK(t, errors.Join(errA, errB))
		f(t, newPeers(t, a, b, "127.0.0.1:0"))
	})
	t.Run("pin", func(t *testing.T) { f(t, pinned(t, pin.Config{})) })
}

func pinned(t testing.TB, cfg pin.Config) *pin.Registrar {
	t.Helper()
	g, err := pin.Open(cfg)
	if errors.Is(err, unix.ENOSYS) || errors.Is(err, unix.EPERM) {
		t.Skipf("no io_uring here: %v", err)
	}
	expect.OK(t, err)
	t.Cleanup(func() { expect.OK(t, g.Close()) })
	return g
}

// peers are two devices: the first writes to memory of the second.
type peers struct {
	rdma.Device // the second
	t           testing.TB
	near        rdma.Device
	listener    rdma.Listener
	src         rdma.Buffer
	mr          rdma.MR

	mu     sync.Mutex
	cqs    [2]rdma.CQ
	qps    [2]rdma.QP // nil when a refusal has ended the connection
	joined int
}

const peerBytes = 1 << 20

func newPeers(t testing.TB, near, far rdma.Device, addr string) *peers {
	p := &peers{Device: far, near: near, t: t}
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	p.listener = expect.Get(far.Listen(ctx, addr, 4))(t)
	p.src = expect.Get(rdma.Alloc(peerBytes))(t)
	p.mr = expect.Get(near.RegMR(0, p.src, rdma.LocalWrite|rdma.RemoteWrite))(t)
	for i, d := range []rdma.Device{near, far} {
		p.cqs[i] = expect.Get(d.NewCQ(64))(t)
	}
	t.Cleanup(func() {
		p.hangUp()
		expect.OK(t, errors.Join(p.listener.Close(), p.cqs[0].Close(), p.cqs[1].Close(), p.mr.Close(), p.src.Free(),
			near.Close(), far.Close()))
	})
	return p
}

func (p *peers) hangUp() {
	for i, q := range p.qps {
		if q != nil {
			q.Close()
		}
		p.qps[i] = nil
		var wc [64]rdma.WC
		for {
			if n, err := p.cqs[i].Poll(wc[:]); n == 0 || err != nil {
				break
			}
		}
	}
}

func (p *peers) connect() error {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	for i, d := range []rdma.Device{p.near, p.Device} {
		q, err := d.NewQP(rdma.QPConfig{SendCQ: p.cqs[i], RecvCQ: p.cqs[i], SendDepth: 8, RecvDepth: 8})
		if err != nil {
			return err
		}
		p.qps[i] = q
	}
	par := rdma.ConnParam{IRD: 4, ORD: 4}
	done := make(chan error, 1)
	go func() {
		r, err := p.listener.Accept(ctx)
		if err == nil {
			_, err = r.Accept(ctx, p.qps[1], par)
		}
		done <- err
	}()
	_, err := p.qps[0].Connect(ctx, p.listener.Addr(), par)
	p.joined++
	return errors.Join(err, <-done)
}

// do posts one request and waits for its end. A failure ends the connection.
func (p *peers) do(op rdma.Opcode, key uint32, addr uint64, n int) error {
	wr := rdma.SendWR{ID: 1, Op: op, RKey: key, RemoteAddr: addr, Flags: rdma.Signaled, NumSGE: 1}
	wr.SGE[0] = rdma.SGE{Addr: p.src.Addr(), Len: uint32(n), LKey: p.mr.LKey()}
	if op == rdma.OpRead {
		wr.SGE[0].Addr += peerBytes / 2
	}
	if _, err := p.qps[0].PostSend([]rdma.SendWR{wr}); err != nil {
		return err
	}
	var wc [8]rdma.WC
	for end := time.Now().Add(10 * time.Second); ; {
		n, err := p.cqs[0].Poll(wc[:])
		if err != nil {
			return err
		}
		if n > 0 {
			if wc[0].Status != rdma.StatusSuccess {
				return &rdma.StatusError{WC: wc[0]}
			}
			return nil
		}
		if k, _ := p.cqs[1].Poll(wc[:]); k == 0 && time.Now().After(end) {
			return errors.New("no completion in 10 s")
		}
	}
}

// Write writes p by key. Only a read behind it proves that it landed (RFC 5040 §5.5).
func (p *peers) Write(key uint32, addr uint64, b []byte) error {
	return p.move(func() error {
		copy(p.src.Bytes(), b)
		if err := p.do(rdma.OpWrite, key, addr, len(b)); err != nil {
			return err
		}
		return p.do(rdma.OpRead, key, addr, 1)
	})
}

// Read reads by key.
func (p *peers) Read(key uint32, addr uint64, b []byte) error {
	return p.move(func() error {
		err := p.do(rdma.OpRead, key, addr, len(b))
		copy(b, p.src.Bytes()[peerBytes/2:])
		return err
	})
}

func (p *peers) move(f func() error) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.qps[0] == nil {
		if err := p.connect(); err != nil {
			p.t.Errorf("connect: %v", err)
			return err
		}
	}
	err := f()
	if err != nil {
		p.hangUp()
	}
	return err
}

// over is a cache and a scope over a device, closed at the end of the test.
func over(t testing.TB, reg Registrar, cfg Config) (*Cache, *Scope) {
	t.Helper()
	c := expect.Get(New(reg, cfg))(t)
	t.Cleanup(func() { expect.OK(t, c.Close()) })
	s := expect.Get(c.Scope(0))(t)
	return c, s
}

// used gets and puts a region whose key lands.
func used(t testing.TB, m mover, s *Scope, b rdma.Buffer, v byte) (key uint32) {
	t.Helper()
	g := get(t, s, b, all)
	defer g.Put()
	lands(t, m, g, b, v)
	return g.RKey()
}

// lands requires that a write by the region's key is seen at the buffer's first bytes.
func lands(t testing.TB, m mover, g *Region, b rdma.Buffer, v byte) {
	t.Helper()
	if err := m.Write(g.RKey(), b.Addr(), []byte{v, ^v}); err != nil {
		t.Fatalf("write by a good key: %v", err)
	}
	if got := b.Bytes(); got[0] != v || got[1] != ^v {
		t.Fatalf("the write is not in the memory: %v instead of %v", got[:2], []byte{v, ^v})
	}
	b.Bytes()[0] = v + 1
	var back [1]byte
	if err := m.Read(g.RKey(), b.Addr(), back[:]); err != nil || back[0] != v+1 {
		t.Fatalf("the device reads %d instead of %d: %v", back[0], v+1, err)
	}
}

// refused requires that a key is good for nothing.
func refused(t testing.TB, m mover, key uint32, addr uint64, why string) {
	t.Helper()
	if err := m.Write(key, addr, []byte{0xEE}); err == nil {
		t.Fatalf("a write by the key of %s was carried out", why)
	}
}

const all = rdma.LocalWrite | rdma.RemoteWrite | rdma.RemoteRead

type counts map[string]int64

// counted requires that some of a cache's counters have those values.
func counted(t testing.TB, c *Cache, want counts) {
	t.Helper()
	got := c.Counters().Map()
	for name, n := range want {
		if got[name] != n {
			t.Errorf("%s are %d, want %d: %+v", name, got[name], n, got)
		}
	}
}
