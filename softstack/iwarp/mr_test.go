package iwarp

import (
	"bytes"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/rdmaperf/rdmaperf/softstack/rdmap"
	"github.com/rdmaperf/rdmaperf/softstack/wiretest"
	"github.com/rdmaperf/rdmaperf/transports/rdma"
)

// TestCloseMRUnderWrites: the memory belongs to its owner when Close returns,
// though the peer streams writes into it, and the peer learns why.
func TestCloseMRUnderWrites(t *testing.T) {
	for name, cfg := range map[string]Config{"direct": {}, "checked": {StoreAndForward: true},
		"small": {MaxULPDU: 1024}, "nocrc": {NoCRC: true}} {
		t.Run(name, func(t *testing.T) {
			a, b := pairOf(t, cfg, cfg, rdma.QPConfig{})
			buf, err := rdma.Alloc(1 << 20)
			must(t, err)
			defer buf.Free()
			m, err := b.dev.RegMR(0, buf, rdma.LocalWrite|rdma.RemoteWrite)
			must(t, err)
			a.fill(1, 0, 1<<20)
			wr := rdma.SendWR{Op: rdma.OpWrite, Flags: rdma.Signaled, NumSGE: 1, SGE: [4]rdma.SGE{a.sge(0, 1<<20)},
				RKey: m.RKey(), RemoteAddr: m.Addr()}
			var wc rdma.WC
			var wg sync.WaitGroup
			wg.Add(1)
			first := make(chan struct{})
			go func() { // the writer, until a write fails
				defer wg.Done()
				room, done := 8, 0
				for stop := time.Now().Add(testTimeout); time.Now().Before(stop); {
					for ; room > 0; room-- {
						if _, err := a.qp.PostSend([]rdma.SendWR{wr}); err != nil {
							return
						}
					}
					n, _ := a.cq.Poll(a.wcs)
					for _, w := range a.wcs[:n] {
						room++
						if done++; done == 20 {
							close(first)
						}
						if w.Status != rdma.StatusSuccess {
							wc = w
							return
						}
					}
				}
			}()
			<-first
			must(t, m.Close())
			canary := bytes.Repeat([]byte{0xc5}, 1<<20)
			copy(buf.Bytes(), canary)
			wg.Wait()
			if wc.Status != rdma.StatusWRFlushErr || wc.VendorErr != 0x1100 {
				t.Errorf("the writer saw %v with %#x, want a flush with 0x1100", wc.Status, wc.VendorErr)
			}
			eventually(t, "b in ERR", func() bool { return b.qp.State() == rdma.QPErr })
			if !bytes.Equal(buf.Bytes(), canary) {
				t.Error("memory was written after Close had returned")
			}
		})
	}
}

// TestRevokedInAWrite: Close and LocalInv in the middle of one large segment.
func TestRevokedInAWrite(t *testing.T) {
	for _, how := range []string{"close", "invalidate"} {
		for _, m := range modes[:2] {
			t.Run(how+"/"+m.name, func(t *testing.T) {
				d := newDUT(t, m, dutOptions{bare: true})
				d.send(wiretest.Write(0, 0, nil)) // a responder does nothing before the first FPDU
				s := wiretest.Write(d.target.RKey(), d.target.Addr(), pattern(50000))
				fpdu := d.peer.Encode(s)
				must(t, d.peer.Write(fpdu[:20000]))
				eventually(t, "a part of the segment placed", func() bool {
					d.q.mu.Lock()
					defer d.q.mu.Unlock()
					return d.q.rx.direct && len(d.q.rx.dst) < 50000-10000
				})
				if how == "close" {
					must(t, d.target.Close())
				} else {
					_, err := d.q.PostSend([]rdma.SendWR{{ID: readID, Op: rdma.OpLocalInv, InvKey: d.target.stag}})
					must(t, err)
				}
				d.q.mu.Lock()
				for i := range targetLen { // the owner's again
					d.arena.Bytes()[targetOff+i] = 0xc5
				}
				d.placed(targetOff, bytes.Repeat([]byte{0xc5}, targetLen))
				d.q.mu.Unlock()
				d.peer.Write(fpdu[20000:]) // may fail: the connection is ending
				d.checkEnd(codes(rdmap.TermTaggedSTag), false, s, nil, nil)
			})
		}
	}
}

// TestCloseMRUnderSends: memory that waits in the send queue is free when Close
// returns; the stream ends.
func TestCloseMRUnderSends(t *testing.T) {
	for name, cfg := range map[string]Config{"crc": {SendBuffer: 16 << 10},
		"nocrc": {SendBuffer: 16 << 10, NoCRC: true}} {
		t.Run(name, func(t *testing.T) {
			e := newEnd(t, cfg, rdma.QPConfig{})
			p, _ := e.connectTo(t, rdma.ConnParam{IRD: 1, ORD: 1}, func(s *wiretest.Startup) {
				if cfg.NoCRC {
					s.Flags = wiretest.FlagS
				}
			})
			p.FullOperation(!cfg.NoCRC, false, false)
			buf, err := rdma.Alloc(2 << 20)
			must(t, err)
			m, err := e.dev.RegMR(0, buf, 0)
			must(t, err)
			copy(buf.Bytes(), pattern(2<<20))
			sge := rdma.SGE{Addr: m.Addr(), Len: 2 << 20, LKey: m.LKey()}
			for id := uint64(1); id <= 4; id++ { // far more than the sockets hold
				e.post(rdma.SendWR{ID: id, Op: rdma.OpWrite, NumSGE: 1, SGE: [4]rdma.SGE{sge}, RKey: 5})
			}
			eventually(t, "a full socket", func() bool {
				q := e.qp.(*qp)
				q.mu.Lock()
				defer q.mu.Unlock()
				return q.tx.blocked
			})
			must(t, m.Close())
			must(t, buf.Free()) // any later access would crash
			end := p.Finish()
			if end.Kind != wiretest.EndFIN || len(end.Terminates()) != 1 {
				t.Errorf("the peer saw %v and %v", end.Terminates(), end.Kind)
			}
			if f := p.Check.Faults(); len(f) > 0 {
				t.Errorf("on the wire: %q", f)
			}
			off := 0
			for _, f := range end.FPDUs {
				if f.Op() == rdmap.OpWrite {
					if !bytes.Equal(f.Payload(), pattern(2 << 20)[off:off+len(f.Payload())]) {
						t.Fatal("the peer got octets of another time")
					}
					if off += len(f.Payload()); f.Last() {
						off = 0
					}
				}
			}
			last := uint64(0)
			for range 4 {
				wc := e.next(nil)
				if wc.ID != last+1 || wc.ID == 4 && wc.Status == rdma.StatusSuccess {
					t.Errorf("completion %+v after %d", wc, last)
				}
				last = wc.ID
			}
		})
	}
}

// TestCloseMRBesideAnother: memory may be registered more than once, and what waits in the send
// queue by one registration does not mind the end of another.
func TestCloseMRBesideAnother(t *testing.T) {
	const n, writes = 128 << 10, 8 // more than the sockets hold
	for name, cfg := range map[string]Config{"crc": {SendBuffer: 16 << 10},
		"nocrc": {SendBuffer: 16 << 10, NoCRC: true}} {
		t.Run(name, func(t *testing.T) {
			a, b := pair(t, cfg, rdma.QPConfig{})
			a.fill(1, 0, n)
			other, err := a.dev.RegMR(0, a.buf, rdma.LocalWrite)
			must(t, err)
			for id := uint64(1); id <= writes; id++ {
				a.post(rdma.SendWR{ID: id, Op: rdma.OpWrite, NumSGE: 1, SGE: [4]rdma.SGE{a.sge(0, n)},
					RemoteAddr: b.mr.Addr(), RKey: b.mr.RKey()})
			}
			q := a.qp.(*qp)
			eventually(t, "a full socket with pieces of the memory before it", func() bool {
				q.mu.Lock()
				defer q.mu.Unlock()
				return q.tx.blocked && q.tx.touches(a.mr.(*mr))
			})
			must(t, other.Close())
			for id := uint64(1); id <= writes; id++ {
				a.want(b, rdma.WCWrite, id, rdma.StatusSuccess)
			}
			a.post(rdma.SendWR{ID: 9, Op: rdma.OpRead, NumSGE: 1, SGE: [4]rdma.SGE{a.sge(0, 0)},
				RemoteAddr: b.mr.Addr(), RKey: b.mr.RKey()})
			a.want(b, rdma.WCRead, 9, rdma.StatusSuccess) // behind all writes
			equal(t, "written beside the end of another registration", b.bytes(0, n), a.bytes(0, n))
		})
	}
}

// TestStaleSendBuffer: a send whose memory is not registered any more fails with
// a protection error, in its place, and nothing of it reaches the peer's application.
func TestStaleSendBuffer(t *testing.T) {
	a, b := pair(t, Config{}, rdma.QPConfig{})
	buf, err := rdma.Alloc(4096)
	must(t, err)
	defer buf.Free()
	m, err := a.dev.RegMR(0, buf, 0)
	must(t, err)
	stale := rdma.SGE{Addr: m.Addr(), Len: 64, LKey: m.LKey()}
	must(t, m.Close())
	for i := range 3 {
		b.postRecv(uint64(i), b.sge(i*4096, 4096))
	}
	_, err = a.qp.PostSend([]rdma.SendWR{
		{ID: 1, Op: rdma.OpSend, Flags: rdma.Signaled, NumSGE: 1, SGE: [4]rdma.SGE{a.sge(0, 8)}},
		{ID: 2, Op: rdma.OpSend, NumSGE: 2, SGE: [4]rdma.SGE{a.sge(0, 8), stale}},
		{ID: 3, Op: rdma.OpSend, NumSGE: 1, SGE: [4]rdma.SGE{a.sge(0, 8)}},
	})
	must(t, err)
	a.want(b, rdma.WCSend, 1, rdma.StatusSuccess)
	a.want(b, 0, 2, rdma.StatusLocProtErr)
	a.want(b, 0, 3, rdma.StatusWRFlushErr)
	b.want(a, rdma.WCRecv, 0, rdma.StatusSuccess)
	b.want(a, 0, 1, rdma.StatusWRFlushErr)
	b.want(a, 0, 2, rdma.StatusWRFlushErr)
}

// TestLocalSGEFaults: every way a local SGE can be wrong.
func TestLocalSGEFaults(t *testing.T) {
	for name, bend := range map[string]func(e *end, pd rdma.PD) (rdma.SGE, func()){
		"unknown key": func(e *end, _ rdma.PD) (rdma.SGE, func()) { s := e.sge(0, 64); s.LKey ^= 1; return s, nil },
		"before":      func(e *end, _ rdma.PD) (rdma.SGE, func()) { s := e.sge(0, 64); s.Addr--; return s, nil },
		"beyond":      func(e *end, _ rdma.PD) (rdma.SGE, func()) { return e.sge(window-63, 64), nil },
		"wraps": func(e *end, _ rdma.PD) (rdma.SGE, func()) {
			s := e.sge(0, 64)
			s.Addr = ^uint64(0) - 3
			return s, nil
		},
		"other domain": func(e *end, pd rdma.PD) (rdma.SGE, func()) {
			m, err := e.dev.RegMR(pd, e.buf, rdma.LocalWrite)
			must(e.t, err)
			return rdma.SGE{Addr: m.Addr(), Len: 64, LKey: m.LKey()}, func() { m.Close() }
		},
	} {
		for _, op := range []rdma.Opcode{rdma.OpSend, rdma.OpWrite, rdma.OpRead} {
			t.Run(name+"/"+op.String(), func(t *testing.T) {
				a, b := pair(t, Config{}, rdma.QPConfig{})
				pd, err := a.dev.AllocPD()
				must(t, err)
				sge, undo := bend(a, pd)
				if undo != nil {
					defer undo()
				}
				b.postRecv(1, b.sge(0, 64))
				a.post(rdma.SendWR{ID: 7, Op: op, NumSGE: 1, SGE: [4]rdma.SGE{sge}, RKey: b.mr.RKey(),
					RemoteAddr: b.mr.Addr()})
				a.want(b, 0, 7, rdma.StatusLocProtErr)
				b.want(a, 0, 1, rdma.StatusWRFlushErr)
			})
		}
	}
	t.Run("sink without local write", func(t *testing.T) {
		a, b := pair(t, Config{}, rdma.QPConfig{})
		m, err := a.dev.RegMR(0, a.buf, rdma.RemoteRead)
		must(t, err)
		defer m.Close()
		a.post(rdma.SendWR{ID: 7, Op: rdma.OpRead, NumSGE: 1,
			SGE: [4]rdma.SGE{{Addr: m.Addr(), Len: 8, LKey: m.LKey()}}, RKey: b.mr.RKey(), RemoteAddr: b.mr.Addr()})
		a.want(b, 0, 7, rdma.StatusLocProtErr)
	})
	t.Run("receive without local write", func(t *testing.T) {
		a, b := pair(t, Config{}, rdma.QPConfig{})
		m, err := b.dev.RegMR(0, b.buf, rdma.RemoteRead)
		must(t, err)
		defer m.Close()
		b.postRecv(1, rdma.SGE{Addr: m.Addr(), Len: 64, LKey: m.LKey()})
		a.post(rdma.SendWR{ID: 7, Op: rdma.OpSend, NumSGE: 1, SGE: [4]rdma.SGE{a.sge(0, 8)}})
		b.want(a, 0, 1, rdma.StatusLocProtErr)
	})
}

// TestRemoteAccess: the rights of registration and QP, from the requester's side.
func TestRemoteAccess(t *testing.T) {
	all := rdma.LocalWrite | rdma.RemoteWrite | rdma.RemoteRead
	for _, c := range []struct {
		name   string
		access rdma.Access // of the registration
		qp     rdma.Access // of the target's QP, 0 for all
		op     rdma.Opcode
		vendor uint32 // 0 for success
	}{
		{"write allowed", all, 0, rdma.OpWrite, 0},
		{"read allowed", all, 0, rdma.OpRead, 0},
		{"write only: write", rdma.LocalWrite | rdma.RemoteWrite, 0, rdma.OpWrite, 0},
		{"write only: read", rdma.LocalWrite | rdma.RemoteWrite, 0, rdma.OpRead, 0x0102},
		{"read only: read", rdma.RemoteRead, 0, rdma.OpRead, 0},
		{"read only: write", rdma.RemoteRead, 0, rdma.OpWrite, 0x0102},
		{"local only: write", rdma.LocalWrite, 0, rdma.OpWrite, 0x0102},
		{"qp refuses writes", all, rdma.RemoteRead, rdma.OpWrite, 0x0102},
		{"qp refuses reads", all, rdma.RemoteWrite, rdma.OpRead, 0x0102},
		{"qp admits reads", all, rdma.RemoteRead, rdma.OpRead, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			a := newEnd(t, Config{}, rdma.QPConfig{})
			b := newEnd(t, Config{}, rdma.QPConfig{Access: c.qp})
			join(t, a, b)
			buf, err := rdma.Alloc(4096)
			must(t, err)
			m, err := b.dev.RegMR(0, buf, c.access)
			must(t, err)
			defer func() { m.Close(); buf.Free() }()
			a.fill(1, 0, 64)
			copy(buf.Bytes(), pattern(64))
			a.post(rdma.SendWR{ID: 1, Op: c.op, NumSGE: 1, SGE: [4]rdma.SGE{a.sge(0, 64)}, RKey: m.RKey(),
				RemoteAddr: m.Addr()})
			if c.op == rdma.OpWrite { // local completion proves nothing: the fence makes the fault visible
				a.want(b, rdma.WCWrite, 1, rdma.StatusSuccess)
				a.post(rdma.SendWR{ID: 1, Op: rdma.OpRead, RKey: m.RKey(), RemoteAddr: m.Addr()})
			}
			wc := a.next(b)
			if c.vendor == 0 {
				if wc.Status != rdma.StatusSuccess {
					t.Fatalf("%v %#x", wc.Status, wc.VendorErr)
				}
				equal(t, "target", buf.Bytes()[:64], a.bytes(0, 64))
				return
			}
			if wc.Status != rdma.StatusWRFlushErr && wc.Status != rdma.StatusRemAccessErr || wc.VendorErr != c.vendor {
				t.Errorf("%v with %#x, want a refusal with %#x", wc.Status, wc.VendorErr, c.vendor)
			}
			if c.op == rdma.OpRead && wc.Status != rdma.StatusRemAccessErr {
				t.Errorf("read ended with %v, want remote access error", wc.Status)
			}
			equal(t, "target", buf.Bytes()[:64], pattern(64))
		})
	}
}

// TestInvalidation: local_inv and send_inv revoke a key; send_inv says so at the
// receiver, and only where the owner allowed it.
func TestInvalidation(t *testing.T) {
	a, b := pair(t, Config{}, rdma.QPConfig{})
	buf, err := rdma.Alloc(4096)
	must(t, err)
	defer buf.Free()
	m, err := b.dev.RegMR(0, buf, rdma.LocalWrite|rdma.RemoteWrite|rdma.RemoteRead|rdma.RemoteInvalidate)
	must(t, err)
	defer m.Close()
	a.post(rdma.SendWR{ID: 1, Op: rdma.OpRead, NumSGE: 1, SGE: [4]rdma.SGE{a.sge(0, 8)}, RKey: m.RKey(),
		RemoteAddr: m.Addr()})
	a.want(b, rdma.WCRead, 1, rdma.StatusSuccess)
	b.postRecv(2, b.sge(0, 8))
	a.post(rdma.SendWR{ID: 2, Op: rdma.OpSendInv, NumSGE: 1, SGE: [4]rdma.SGE{a.sge(0, 8)}, InvKey: m.RKey()})
	a.want(b, rdma.WCSend, 2, rdma.StatusSuccess)
	wc := b.want(a, rdma.WCRecv, 2, rdma.StatusSuccess)
	if wc.Flags != rdma.WithInv || wc.InvKey != m.RKey() {
		t.Errorf("completion %+v, want the revoked key %#x", wc, m.RKey())
	}
	// The owner's own local_inv of another key, in order with what follows.
	m2, err := b.dev.RegMR(0, buf, rdma.LocalWrite)
	must(t, err)
	defer m2.Close()
	b.post(rdma.SendWR{ID: 3, Op: rdma.OpLocalInv, InvKey: m2.LKey()})
	b.want(a, rdma.WCLocalInv, 3, rdma.StatusSuccess)
	a.postRecv(4, a.sge(0, 8))
	b.post(rdma.SendWR{ID: 4, Op: rdma.OpSend, NumSGE: 1, SGE: [4]rdma.SGE{{Addr: m2.Addr(), Len: 8, LKey: m2.LKey()}}})
	b.want(a, 0, 4, rdma.StatusLocProtErr)
	a.want(b, 0, 4, rdma.StatusWRFlushErr)
}

// TestDomains: a domain in use cannot be freed, and Close of a device with
// objects is refused.
func TestDomains(t *testing.T) {
	e := newEnd(t, Config{}, rdma.QPConfig{})
	pd, err := e.dev.AllocPD()
	must(t, err)
	m, err := e.dev.RegMR(pd, e.buf, 0)
	must(t, err)
	if err := e.dev.FreePD(pd); !errors.Is(err, rdma.ErrBusy) {
		t.Errorf("free used domain: %v", err)
	}
	must(t, m.Close())
	must(t, m.Close())
	must(t, e.dev.FreePD(pd))
	if err := e.dev.FreePD(pd); !errors.Is(err, rdma.ErrInvalid) {
		t.Errorf("free twice: %v", err)
	}
	if _, err := e.dev.RegMR(pd, e.buf, 0); !errors.Is(err, rdma.ErrInvalid) {
		t.Errorf("register in a freed domain: %v", err)
	}
	if _, err := e.dev.RegMR(0, rdma.Buffer{}, 0); !errors.Is(err, rdma.ErrInvalid) {
		t.Errorf("register nothing: %v", err)
	}
	if err := e.dev.Close(); !errors.Is(err, rdma.ErrBusy) {
		t.Errorf("close with objects: %v", err)
	}
	if err := e.cq.Close(); !errors.Is(err, rdma.ErrBusy) {
		t.Errorf("close a cq in use: %v", err)
	}
}

// TestKeysAreUnpredictable: RFC 5042 §6.2.2; distinct, not 0, and spread over
// all 32 bits.
func TestKeysAreUnpredictable(t *testing.T) {
	e := newEnd(t, Config{}, rdma.QPConfig{})
	seen := map[uint32]bool{}
	var or, and uint32 = 0, ^uint32(0)
	for range 200 {
		m, err := e.dev.RegMR(0, e.buf, 0)
		must(t, err)
		if seen[m.RKey()] || m.RKey() == 0 {
			t.Fatalf("key %#x", m.RKey())
		}
		seen[m.RKey()] = true
		or, and = or|m.RKey(), and&m.RKey()
		defer m.Close()
	}
	if or != ^uint32(0) || and != 0 {
		t.Errorf("bits never 1: %032b, never 0: %032b", ^or, and)
	}
}
