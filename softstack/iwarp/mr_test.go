package iwarp

import (
	"bytes"
	"sync"
	"testing"
	"time"

	"github.com/rdmaperf/rdmaperf/softstack/rdmap"
	"github.com/rdmaperf/rdmaperf/softstack/wiretest"
	"github.com/rdmaperf/rdmaperf/transports/rdma"
)

// TestCloseMRUnderWrites: when Close returns, no write changes the memory any more, and the peer learns why.
func TestCloseMRUnderWrites(t *testing.T) {
	for name, cfg := range map[string]Config{"direct": {}, "checked": {StoreAndForward: true},
		"small": {MaxULPDU: 1024}, "nocrc": {NoCRC: true}} {
		t.Run(name, func(t *testing.T) {
			a, b := pair(t, cfg, rdma.QPConfig{})
			buf := need(rdma.Alloc(1 << 20))(t)
			defer buf.Free()
			m := need(b.dev.RegMR(0, buf, rdma.LocalWrite|rdma.RemoteWrite))(t)
			a.fill(1, 0, 1<<20)
			wr := rdma.SendWR{Op: rdma.OpWrite, Flags: rdma.Signaled, NumSGE: 1, SGE: [4]rdma.SGE{a.sge(0, 1<<20)},
				RKey: m.RKey(), RemoteAddr: m.Addr()}
			var wc rdma.WC
			var wg sync.WaitGroup
			first := make(chan struct{})
			wg.Go(func() { // the writer, until a write fails
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
			})
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
				d.q.soon(t, "a part of the segment placed", func() bool { return d.q.rx.direct && len(d.q.rx.dst) < 50000-10000 })
				if how == "close" {
					must(t, d.target.Close())
				} else {
					need(d.q.PostSend([]rdma.SendWR{{ID: readID, Op: rdma.OpLocalInv, InvKey: d.target.stag}}))(t)
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

// TestCloseMRUnderSends: memory that waits in the send queue is free when Close returns; the stream ends.
func TestCloseMRUnderSends(t *testing.T) {
	for name, cfg := range map[string]Config{"crc": {SendBuffer: 16 << 10},
		"nocrc": {SendBuffer: 16 << 10, NoCRC: true}} {
		t.Run(name, func(t *testing.T) {
			e := newEnd(t, cfg, rdma.QPConfig{})
			p := scripted(t, e, 1, 1)
			buf := need(rdma.Alloc(2 << 20))(t)
			m := need(e.dev.RegMR(0, buf, 0))(t)
			copy(buf.Bytes(), pattern(2<<20))
			sge := rdma.SGE{Addr: m.Addr(), Len: 2 << 20, LKey: m.LKey()}
			for id := uint64(1); id <= 4; id++ { // far more than the sockets hold
				e.post(rdma.SendWR{ID: id, Op: rdma.OpWrite, NumSGE: 1, SGE: [4]rdma.SGE{sge}, RKey: 5})
			}
			q := e.qp.(*qp)
			q.soon(t, "a full socket", func() bool { return q.tx.blocked })
			must(t, m.Close())
			must(t, buf.Free()) // any later access would crash
			end := p.Finish()
			if end.Kind != wiretest.EndFIN || len(end.Terminates()) != 1 {
				t.Errorf("the peer saw %v and %v", end.Terminates(), end.Kind)
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

// TestCloseMRBesideAnother: what waits to be sent by one registration does not mind the end of another.
func TestCloseMRBesideAnother(t *testing.T) {
	const n, writes = 128 << 10, 8 // more than the sockets hold
	for name, cfg := range map[string]Config{"crc": {SendBuffer: 16 << 10},
		"nocrc": {SendBuffer: 16 << 10, NoCRC: true}} {
		t.Run(name, func(t *testing.T) {
			a, b := pair(t, cfg, rdma.QPConfig{})
			a.fill(1, 0, n)
			other := need(a.dev.RegMR(0, a.buf, rdma.LocalWrite))(t)
			for id := uint64(1); id <= writes; id++ {
				a.post(a.remote(rdma.OpWrite, id, 0, n, b))
			}
			q := a.qp.(*qp)
			q.soon(t, "a full socket with pieces of the memory before it", func() bool {
				return q.tx.blocked && q.tx.touches(a.mr.(*mr))
			})
			must(t, other.Close())
			for id := uint64(1); id <= writes; id++ {
				a.want(b, rdma.WCWrite, id, rdma.StatusSuccess)
			}
			a.post(a.remote(rdma.OpRead, 9, 0, 0, b))
			a.want(b, rdma.WCRead, 9, rdma.StatusSuccess) // behind all writes
			equal(t, "written beside the end of another registration", b.bytes(0, n), a.bytes(0, n))
		})
	}
}
