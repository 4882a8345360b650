package grpcrdma

import (
	"context"
	"encoding/binary"
	"errors"
	"net"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/rdmaperf/rdmaperf/transports/rdma"
)

// rogue is a peer that greets as it should and then does what it likes.
type rogue struct {
	t    *testing.T
	qp   rdma.QP
	cq   rdma.CQ
	mr   rdma.MR
	buf  rdma.Buffer
	peer greeting
}

func newRogue(t *testing.T, dev rdma.Device) *rogue {
	t.Helper()
	r := &rogue{t: t}
	var err error
	r.buf, err = rdma.Alloc(ringOffset + minRing)
	must(t, err)
	r.mr, err = dev.RegMR(0, r.buf, rdma.LocalWrite|rdma.RemoteWrite)
	must(t, err)
	r.cq, err = dev.NewCQ(4096)
	must(t, err)
	r.qp, err = dev.NewQP(rdma.QPConfig{SendCQ: r.cq, RecvCQ: r.cq, SendDepth: 1024, RecvDepth: 1024})
	must(t, err)
	for i := range 256 {
		_, err := r.qp.PostRecv([]rdma.RecvWR{{NumSGE: 1, ID: uint64(i),
			SGE: [rdma.MaxSGE]rdma.SGE{{Addr: r.mr.Addr(), Len: 4, LKey: r.mr.LKey()}}}})
		must(t, err)
	}
	t.Cleanup(func() {
		r.qp.Close()
		r.cq.Close()
		r.mr.Close()
		r.buf.Free()
	})
	return r
}

// connect joins the rogue to a listener with the given greeting.
func (r *rogue) connect(addr string, private []byte) error {
	ctx, cancel := context.WithTimeout(context.Background(), testTimeout)
	defer cancel()
	got, err := r.qp.Connect(ctx, addr, rdma.ConnParam{PrivateData: private})
	if err == nil {
		r.peer, err = parseGreeting(got.PrivateData)
	}
	return err
}

// intrude connects a rogue that asks for no notices to e's listener, and gives the
// connection that it is to attack, too.
func intrude(t *testing.T, e *pair) (*rogue, *Conn) {
	t.Helper()
	r := newRogue(t, e.da)
	g := greeting{depth: 16, rkey: r.mr.RKey(), addr: r.mr.Addr(), ring: minRing}
	got := make(chan net.Conn, 1)
	go func() { c, _ := e.l.Accept(); got <- c }()
	must(t, r.connect(e.l.Addr().String(), g.encode()))
	return r, (<-got).(*Conn)
}

func (r *rogue) post(op rdma.Opcode, data []byte, to uint64, imm uint32) {
	r.t.Helper()
	off := 1024
	copy(r.buf.Bytes()[off:], data)
	wr := rdma.SendWR{Op: op, Imm: imm, RKey: r.peer.rkey, RemoteAddr: to, Flags: rdma.Signaled}
	if len(data) > 0 {
		wr.NumSGE = 1
		wr.SGE[0] = rdma.SGE{Addr: r.mr.Addr() + uint64(off), Len: uint32(len(data)), LKey: r.mr.LKey()}
	}
	if _, err := r.qp.PostSend([]rdma.SendWR{wr}); err != nil {
		r.t.Fatal(err)
	}
	var wcs [16]rdma.WC
	for end := time.Now().Add(testTimeout); ; {
		if n, err := r.cq.Poll(wcs[:]); n > 0 || err != nil {
			return // the buffer is ours again; how it went is the other side's business
		}
		if time.Now().After(end) {
			r.t.Fatal("no completion")
		}
	}
}

// notice sends a notice in the way the device has, behind a write of data.
func (r *rogue) notice(imm bool, word uint32) {
	if imm {
		r.post(rdma.OpWriteImm, nil, 0, word)
		return
	}
	r.post(rdma.OpSend, binary.LittleEndian.AppendUint32(nil, word), 0, 0)
}

// control places the i-th of control records that carry an offer.
func (r *rogue) control(imm bool, i int, offer [offerLen]byte) {
	b := built(offer[:], ctlFlag)
	r.post(rdma.OpWrite, b, r.ring(i*len(b)), 0)
	r.notice(imm, uint32(len(b)/unit))
}

func (r *rogue) ring(off int) uint64 { return r.peer.addr + ringOffset + uint64(off) }

func cell(c credit) []byte {
	b := make([]byte, cellLen)
	putCredit(b, c)
	return b
}

func TestHostilePeersAreCutOff(t *testing.T) {
	badHeader := make([]byte, unit)
	binary.LittleEndian.PutUint32(badHeader, maxPayload)
	binary.LittleEndian.PutUint32(badHeader[4:], maxPayload^headerMark)
	for _, tc := range []struct {
		name    string
		arrival Arrival
		attack  func(r *rogue, imm bool)
	}{
		{"oversize frame", ArrivalWatch, func(r *rogue, _ bool) { r.post(rdma.OpWrite, badHeader, r.ring(0), 0) }},
		{"oversize frame noticed", ArrivalNotice, func(r *rogue, imm bool) {
			r.post(rdma.OpWrite, badHeader, r.ring(0), 0)
			r.notice(imm, 1)
		}},
		{"torn record noticed", ArrivalNotice, func(r *rogue, imm bool) {
			r.post(rdma.OpWrite, built(pattern(100, 1), 0)[:64], r.ring(0), 0)
			r.notice(imm, uint32(recordLen(100)/unit))
		}},
		{"offer of no ring", ArrivalNotice, func(r *rogue, imm bool) { r.control(imm, 0, putOffer(1, 12345, 0)) }},
		{"offer beside an offer", ArrivalNotice, func(r *rogue, imm bool) {
			for i := range 2 { // no credit has opened the stream: this side moves to none
				r.control(imm, i, putOffer(r.mr.RKey(), minRing, r.mr.Addr()))
			}
		}},
		{"on in a ring that was not offered", ArrivalNotice, func(r *rogue, imm bool) {
			r.post(rdma.OpWrite, built(nil, ctlFlag), r.ring(0), 0)
			r.notice(imm, 1)
		}},
		{"on in a watched ring", ArrivalWatch,
			func(r *rogue, _ bool) { r.post(rdma.OpWrite, built(nil, ctlFlag), r.ring(0), 0) }},
		{"notice of nothing", ArrivalNotice, func(r *rogue, imm bool) { r.notice(imm, 0) }},
		{"notice of more than the ring", ArrivalNotice, func(r *rogue, imm bool) { r.notice(imm, minRing/unit+1) }},
		{"notices of more than the ring", ArrivalNotice, func(r *rogue, imm bool) {
			for range minRing/unit/64 + 1 {
				r.notice(imm, 64)
			}
		}},
		{"undefined notice", ArrivalNotice, func(r *rogue, imm bool) { r.notice(imm, noticeCredit|5) }},
		{"notice of the wrong size", ArrivalNotice, func(r *rogue, _ bool) { r.post(rdma.OpSend, []byte{1, 2, 3}, 0, 0) }},
		{"notice longer than its receive", ArrivalNotice,
			func(r *rogue, _ bool) { r.post(rdma.OpSend, make([]byte, 500), 0, 0) }},
		{"notice nobody asked for", ArrivalWatch, func(r *rogue, imm bool) { r.notice(imm, 1) }},
		{"credit for what was not sent", ArrivalWatch, func(r *rogue, _ bool) {
			r.post(rdma.OpWrite, cell(credit{bytes: 1 << 40}), r.peer.addr, 0)
		}},
		{"credit for notices that were not sent", ArrivalNotice, func(r *rogue, imm bool) {
			r.post(rdma.OpWrite, cell(credit{notices: 1}), r.peer.addr, 0)
			r.notice(imm, noticeCredit)
		}},
		{"write behind the ring", ArrivalWatch,
			func(r *rogue, _ bool) { r.post(rdma.OpWrite, badHeader, r.ring(minRing), 0) }},
		{"write with a guessed key", ArrivalWatch, func(r *rogue, _ bool) {
			r.peer.rkey ^= 0x5555
			r.post(rdma.OpWrite, badHeader, r.ring(0), 0)
		}},
		{"read of the ring", ArrivalWatch,
			func(r *rogue, _ bool) { r.post(rdma.OpRead, make([]byte, 64), r.ring(0), 0) }},
	} {
		for _, p := range providers {
			t.Run(tc.name+"/"+p.name, func(t *testing.T) {
				if p.unwatched && tc.arrival == ArrivalWatch {
					return
				}
				if p.name != "iwarp" && tc.name == "read of the ring" {
					// Elsewhere a read without agreed depth is an error of the reader, which
					// the target never sees (IBTA 9.7.5.1.3).
					return
				}
				cfg := Config{Ring: minRing, Arrival: tc.arrival}
				e := newPair(t, p, cfg, cfg)
				// There a QP that fails tells its peer nothing, and has no stream that ends.
				silent := e.db.Caps().Completion == rdma.CompletionAck
				r, c := intrude(t, e)
				must(t, c.SetDeadline(time.Now().Add(testTimeout)))
				tc.attack(r, e.b.caps.Ops.Has(rdma.OpWriteImm))
				before := c.Memory()
				var err error
				for err == nil {
					_, err = c.Read(make([]byte, 100))
				}
				if errors.Is(err, os.ErrDeadlineExceeded) {
					t.Fatal("the peer was not cut off")
				}
				if _, err := c.Write([]byte{1}); err == nil {
					t.Error("a write to it succeeds")
				}
				if c.Memory() != before || e.b.Stats().Memory != before {
					t.Errorf("memory grew to %d, %+v", c.Memory(), e.b.Stats())
				}
				// The peer notices, and the next dialler is served.
				for end := time.Now().Add(testTimeout); r.qp.State() != rdma.QPErr; time.Sleep(time.Millisecond) {
					r.cq.Poll(make([]rdma.WC, 16))
					if silent || time.Now().After(end) {
						break
					}
				}
				if !silent && r.qp.State() != rdma.QPErr {
					t.Error("the peer's connection still stands")
				}
				c1, c2 := e.conn()
				_, err = c1.Write([]byte("fine"))
				must(t, err)
				if got := readFull(t, c2, 4); string(got) != "fine" {
					t.Errorf("%q", got)
				}
			})
		}
	}
}

// A record that never becomes whole costs the reader its deadline and nothing else.
func TestTornRecordWaitsForItsDeadline(t *testing.T) {
	onEach(t, func(t *testing.T, p provider) {
		if p.unwatched {
			return // a record that is not whole is not noticed
		}
		cfg := Config{Ring: minRing, Arrival: ArrivalWatch}
		e := newPair(t, p, cfg, cfg)
		r, c := intrude(t, e)
		rec := built(pattern(100, 1), 0)
		r.post(rdma.OpWrite, rec[:len(rec)-1], r.ring(0), 0)
		must(t, c.SetReadDeadline(time.Now().Add(30*time.Millisecond)))
		if n, err := c.Read(make([]byte, 100)); n != 0 || !errors.Is(err, os.ErrDeadlineExceeded) {
			t.Fatalf("%d bytes of a torn record, %v", n, err)
		}
		r.post(rdma.OpWrite, rec[len(rec)-1:], r.ring(len(rec)-1), 0)
		if got := readFull(t, c, 100); string(got) != string(pattern(100, 1)) {
			t.Error("the whole record differs")
		}
	})
}

// Credit that goes back is none: what was free once stays free, and no more is.
func TestCreditNeverGoesBack(t *testing.T) {
	onEach(t, func(t *testing.T, p provider) {
		if p.unwatched {
			return // credit without a notice is not noticed
		}
		cfg := Config{Ring: minRing, Arrival: ArrivalWatch}
		e := newPair(t, p, cfg, cfg)
		r, c := intrude(t, e)
		try := func() int { // what is taken while it does not take long
			must(t, c.SetWriteDeadline(time.Now().Add(50*time.Millisecond)))
			n, err := c.Write(make([]byte, 4*minRing))
			if !errors.Is(err, os.ErrDeadlineExceeded) {
				t.Fatalf("%d bytes into a ring of %d: %v", n, minRing, err)
			}
			return n
		}
		fill := func() (n int) { // what is taken until the ring is full again
			for end := time.Now().Add(testTimeout); ; {
				n += try()
				if free := c.tx.peer.Load().free(c.tx.sent.Load(), c.tx.consumed.Load()); n > 0 && free < unit ||
					time.Now().After(end) {
					return n
				}
			}
		}
		r.post(rdma.OpWrite, cell(credit{}), r.peer.addr, 0) // an initiator's first word
		one := fill()
		r.post(rdma.OpWrite, cell(credit{bytes: minRing / 2}), r.peer.addr, 0)
		half := fill()
		if one > minRing || half == 0 || one+half > minRing+minRing/2 {
			t.Errorf("%d bytes into a ring of %d, %d more when half of it was free again", one, minRing, half)
		}
		for _, back := range []uint64{0, minRing / 4} {
			r.post(rdma.OpWrite, cell(credit{bytes: back}), r.peer.addr, 0)
			if n := try(); n > 0 {
				t.Errorf("%d bytes behind credit that went back to %d", n, back)
			}
		}
		r.post(rdma.OpWrite, cell(credit{bytes: minRing}), r.peer.addr, 0)
		if n := fill(); n == 0 || one+half+n > 2*minRing {
			t.Errorf("%d bytes more when all of the ring was free again", n)
		}
	})
}

// Unknown peers are refused without taking the listener with them.
func TestListenerSkipsForeignPeers(t *testing.T) {
	onEach(t, func(t *testing.T, p provider) {
		e := newPair(t, p, Config{}, Config{})
		got := make(chan net.Conn, 1)
		go func() { c, _ := e.l.Accept(); got <- c }()
		for _, private := range [][]byte{nil, []byte("hello"), make([]byte, greetingLen),
			(&greeting{depth: 1, ring: 12345}).encode()} {
			r := newRogue(t, e.da)
			if err := r.connect(e.l.Addr().String(), private); !errors.Is(err, rdma.ErrRejected) {
				t.Errorf("private data %q: %v", private, err)
			}
		}
		c, err := e.a.DialContext(t.Context(), e.l.Addr().String())
		must(t, err)
		defer c.Close()
		if c2 := <-got; c2 == nil {
			t.Error("the listener is gone")
		}
	})
}

func TestDialErrorsSayWhatHappened(t *testing.T) {
	onEach(t, func(t *testing.T, p provider) {
		e := newPair(t, p, Config{}, Config{})
		must(t, e.l.Close())
		addr := e.l.Addr().String()
		_, err := e.a.DialContext(t.Context(), addr)
		if !errors.Is(err, rdma.ErrUnreachable) || !strings.Contains(err.Error(), addr) {
			t.Errorf("%v", err)
		}
		if s := e.a.Stats(); s.Conns != 0 {
			t.Errorf("%+v", s)
		}
		if _, err := e.l.Accept(); !errors.Is(err, net.ErrClosed) {
			t.Errorf("accept: %v", err)
		}
	})
}
