package iwarp

import (
	"bytes"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"unsafe"

	"github.com/rdmaperf/rdmaperf/softstack/mpa"
	"github.com/rdmaperf/rdmaperf/softstack/rdmap"
	"github.com/rdmaperf/rdmaperf/softstack/wiretest"
	"github.com/rdmaperf/rdmaperf/transports/rdma"
)

var extensionOps = []rdma.Opcode{rdma.OpSendImm, rdma.OpWriteImm, rdma.OpFetchAdd, rdma.OpCmpSwap}

// extended is a well-formed request of one of them on 8 octets.
func extended(op rdma.Opcode, id uint64, local, remote rdma.SGE) rdma.SendWR {
	wr := rdma.SendWR{ID: id, Op: op, Flags: rdma.Signaled, NumSGE: 1, SGE: [4]rdma.SGE{local}, RKey: remote.LKey,
		RemoteAddr: remote.Addr}
	if op == rdma.OpSendImm {
		wr.NumSGE = 0
	}
	return wr
}

// atomicEnd makes the end's window a target of atomics too.
func atomicEnd(t testing.TB, e *end) rdma.MR {
	t.Helper()
	m := need(e.dev.RegMR(0, e.buf, rdma.LocalWrite|rdma.RemoteWrite|rdma.RemoteRead|rdma.RemoteAtomic))(t)
	t.Cleanup(func() { m.Close() })
	return m
}

// TestPlainPeersAreSentNothing: who made no offer gets no message of RFC 7306, and the post says so.
func TestPlainPeersAreSentNothing(t *testing.T) {
	for _, m := range modes[:2] {
		t.Run(m.name, func(t *testing.T) {
			d := newDUT(t, m, dutOptions{bare: true})
			for _, op := range extensionOps {
				n, err := d.q.PostSend([]rdma.SendWR{extended(op, 1, d.sink(), rdma.SGE{})})
				if n != 0 || !errors.Is(err, rdma.ErrNotSupported) || !strings.Contains(err.Error(), "rfc 7306") {
					t.Errorf("post %v: %d, %v", op, n, err)
				}
			}
			d.send(wiretest.Write(0xdead, 0, nil)) // a responder may speak from here on
			must(t, d.peer.Quiet(testTimeout/50))
			need(d.q.PostSend([]rdma.SendWR{{ID: 7, Op: rdma.OpSend, Flags: rdma.Signaled}}))(t)
			f := need(d.peer.Next())(t)
			if f.Op() != rdmap.OpSend || f.UntaggedHeader().MSN != 1 {
				t.Errorf("got %v, want the first send", f)
			}
			if wc := d.completions(1)[0]; wc.ID != 7 || wc.Status != rdma.StatusSuccess {
				t.Errorf("%+v", wc)
			}
		})
	}
}

// TestOffersDecideWhatMayBePosted: both ends of every pair of devices.
func TestOffersDecideWhatMayBePosted(t *testing.T) {
	for a := range numExtensions {
		for b := range numExtensions {
			x, y := pairOf(t, Config{Extensions: a}, Config{Extensions: b}, rdma.QPConfig{})
			for _, s := range []struct {
				e         *end
				own, peer Extensions
			}{{x, a, b}, {y, b, a}} {
				want := s.own == ExtAssumed || s.own == ExtNegotiated && s.peer != ExtNone
				for _, op := range extensionOps {
					q := s.e.qp.(*qp)
					if got := q.ops.Has(op); got != want {
						t.Errorf("%v towards %v: %v may be posted: %t, want %t", s.own, s.peer, op, got, want)
					}
					if caps := s.e.dev.Caps(); caps.Ops.Has(op) != (s.own != ExtNone) {
						t.Errorf("%v declares %v: %t", s.own, op, caps.Ops.Has(op))
					}
				}
			}
		}
	}
}

// TestPartialOffers: a peer that takes one half of RFC 7306 gets that half.
func TestPartialOffers(t *testing.T) {
	for e, want := range map[rdmap.Extensions][]rdma.Opcode{
		rdmap.ExtImmediate: {rdma.OpSendImm, rdma.OpWriteImm},
		rdmap.ExtAtomic:    {rdma.OpFetchAdd, rdma.OpCmpSwap},
	} {
		d := newDUT(t, modes[1],
			dutOptions{bare: true, frame: func(f *mpa.Frame) { f.Private = rdmap.AppendOffer(nil, e) }})
		got := slices.DeleteFunc(slices.Clone(extensionOps), func(op rdma.Opcode) bool { return !d.q.ops.Has(op) })
		if !slices.Equal(got, want) {
			t.Errorf("offer of %b: %v, want %v", e, got, want)
		}
	}
}

// TestOffersAreNotPrivateData: offers are behind the private data, answered by offers, and no application sees any.
func TestOffersAreNotPrivateData(t *testing.T) {
	ask := func(private []byte) *mpa.Frame {
		return &mpa.Frame{Rev: 2, CRC: true, Enhanced: true, Enh: mpa.Enhanced{IRD: 1, ORD: 1}, Private: private}
	}
	// As initiator.
	param := rdma.ConnParam{IRD: 1, ORD: 1, PrivateData: []byte("hello")}
	_, req, got, err := newEnd(t, Config{}, rdma.QPConfig{}).answered(t, param, func(s *wiretest.Startup) {
		s.Private = append(wiretest.EnhancedWords(1, 1), rdmap.AppendOffer([]byte("there"), rdmap.ExtAll)...)
	})
	must(t, err)
	if private, ext, ok := rdmap.CutOffer(req.Private); !ok || ext != rdmap.ExtAll || string(private) != "hello" {
		t.Errorf("request carries %q", req.Private)
	}
	if string(got.PrivateData) != "there" {
		t.Errorf("the initiator's application sees %q", got.PrivateData)
	}
	// As responder.
	for _, c := range []struct {
		cfg           Config
		asked, answer []byte
	}{
		{Config{}, []byte("hello"), []byte("there")},
		{Config{}, rdmap.AppendOffer([]byte("hello"), rdmap.ExtAtomic),
			rdmap.AppendOffer([]byte("there"), rdmap.ExtAll)},
		{Config{Extensions: ExtAssumed}, []byte("hello"), []byte("there")},
		{Config{Extensions: ExtNone}, rdmap.AppendOffer([]byte("hello"), rdmap.ExtAll), []byte("there")},
	} {
		e, l := host(t, c.cfg)
		done := e.accepting(l, rdma.ConnParam{IRD: 1, ORD: 1, PrivateData: []byte("there")})
		rep := need(dial(t, l).Initiate(ask(c.asked)))(t)
		if d := <-done; d.err != nil || string(d.asked.PrivateData) != "hello" || string(d.got.PrivateData) != "hello" {
			t.Errorf("the responder's application sees %q and %q, %v", d.asked.PrivateData, d.got.PrivateData, d.err)
		}
		if !bytes.Equal(rep.Private, c.answer) {
			t.Errorf("asked with %q: answered with %q, want %q", c.asked, rep.Private, c.answer)
		}
	}
}

// TestExtensionsOnTheWire: each operation, octet by octet, in the layout of RFC 7306.
func TestExtensionsOnTheWire(t *testing.T) {
	d := newDUT(t, modes[1],
		dutOptions{bare: true, frame: func(f *mpa.Frame) { f.Private = rdmap.AppendOffer(nil, rdmap.ExtAll) }})
	payload := d.rx.at(d.rx.Addr()+sinkOff, 8)
	body := hex.EncodeToString(payload)
	sink := d.sink()
	sink.Len = 8
	far := rdma.SGE{LKey: 0x11223344, Addr: 0x1000}
	with := func(wr rdma.SendWR, set func(*rdma.SendWR)) rdma.SendWR { set(&wr); return wr }
	need(d.q.PostSend([]rdma.SendWR{
		with(extended(rdma.OpWriteImm, 1, sink, far), func(w *rdma.SendWR) { w.Imm = 0x01020304 }),
		with(extended(rdma.OpSendImm, 2, sink, far), func(w *rdma.SendWR) {
			w.Imm, w.Flags = 0xcafe0001, rdma.Solicited
		}),
		with(extended(rdma.OpFetchAdd, 3, sink, far), func(w *rdma.SendWR) { w.CompareAdd = 7 }),
		with(extended(rdma.OpCmpSwap, 4, sink, far), func(w *rdma.SendWR) { w.CompareAdd, w.Swap = 7, 0xdeadbeef }),
	}))(t)
	ones := "ffffffffffffffff"
	for i, want := range []string{
		"c140 11223344 0000000000001000" + body,
		"4148 00000000 00000000 00000001 00000000 01020304 00000000",
		"4149 00000000 00000000 00000002 00000000 cafe0001 00000001",
		// V18 but for the compare mask, which RFC 7306 §5.2.1 wants all ones.
		"414a 00000000 00000001 00000001 00000000 00000000 00000001 11223344 0000000000001000 0000000000000007 " +
			"0000000000000000 0000000000000000" + ones,
		// V19
		"414a 00000000 00000001 00000002 00000000 00000002 00000002 11223344 0000000000001000 00000000deadbeef" + ones +
			"0000000000000007" + ones,
	} {
		f := need(d.peer.Next())(t)
		if got := hex.EncodeToString(f.ULPDU); got != strings.ReplaceAll(want, " ", "") {
			t.Errorf("fpdu %d: %s, want %s", i, got, want)
		}
	}
	clean(t, d.peer)
}

// TestVectorsOfRFC7306: the device takes V18, V19, V21 and V24, and answers V18 with V20.
func TestVectorsOfRFC7306(t *testing.T) {
	d := newDUT(t, modes[0], dutOptions{bare: true})
	word := d.arena.Bytes()[targetOff : targetOff+8 : targetOff+8]
	clear(word)
	d.placed(targetOff, []byte{0xef, 0xbe, 0xad, 0xde, 0, 0, 0, 0})
	m := &mr{dev: d.dev, buf: word, base: 0x1000, stag: 0x11223344, access: rdma.LocalWrite | rdma.RemoteAtomic}
	m.valid.Store(true)
	d.dev.keys.mu.Lock()
	d.dev.keys.m[m.stag] = m
	d.dev.keys.mu.Unlock()
	defer func() {
		d.dev.keys.mu.Lock()
		delete(d.dev.keys.m, m.stag)
		d.dev.keys.mu.Unlock()
	}()
	vector := map[string][]byte{}
	for _, v := range wiretest.Vectors() {
		vector[v.Name] = v.Bytes
	}
	ulpdu := func(name string) []byte { return vector[name][2 : 2+int(vector[name][0])<<8+int(vector[name][1])] }
	must(t, d.peer.Write(vector["V18"]))
	d.peer.Check.Sent(ulpdu("V18"))
	f := need(d.peer.Next())(t)
	if !bytes.Equal(f.ULPDU, ulpdu("V20")) {
		t.Errorf("V18 is answered by %x, want V20 %x", f.ULPDU, ulpdu("V20"))
	}
	must(t, d.peer.Write(vector["V19"]))
	d.peer.Check.Sent(ulpdu("V19"))
	f = need(d.peer.Next())(t)
	if got := rdmap.GetAtomicResponse(f.Payload()); got != (rdmap.AtomicResponse{ID: 2, Original: 7}) ||
		f.UntaggedHeader().MSN != 2 {
		t.Errorf("V19 is answered by %v %+v", f, got)
	}
	must(t, d.peer.Write(vector["V21"]))
	if wc := d.completions(1)[0]; wc.Status != rdma.StatusSuccess || wc.Flags != rdma.WithImm || wc.Imm != 0x01020304 ||
		wc.Opcode != rdma.WCRecv || wc.ByteLen != 0 {
		t.Errorf("V21: %+v", wc)
	}
	d.recvs = 0
	must(t, d.peer.Write(vector["V24"]))
	end := d.peer.Finish()
	if got := end.Terminates(); len(got) != 1 || got[0] != rdmap.TermMPACRC {
		t.Errorf("V24 is answered by %v", got)
	}
	d.checkArena()
}

// TestWriteImmCompletesOnce: with data, length and immediate, whatever the size.
func TestWriteImmCompletesOnce(t *testing.T) {
	for name, cfg := range configs {
		t.Run(name, func(t *testing.T) {
			a, b := pair(t, cfg, rdma.QPConfig{})
			for i, n := range sizes {
				id := uint64(i)
				a.fill(id, 0, n)
				b.postRecv(id, b.sge(3<<20, 64))
				b.postRecv(id+500, b.sge(3<<20, 64))
				wr := extended(rdma.OpWriteImm, id, a.sge(0, n), rdma.SGE{LKey: b.mr.RKey(), Addr: b.mr.Addr() + 5})
				wr.Imm = 0xfedc0000 + uint32(i)
				if n > 0 && n <= 64 {
					wr.Flags |= rdma.Inline
				}
				a.post(wr)
				// An immediate alone behind it is none of a write.
				a.post(rdma.SendWR{ID: id + 1000, Op: rdma.OpSendImm, Imm: 7})
				wc := b.want(a, rdma.WCRecvWriteImm, id, rdma.StatusSuccess)
				if wc.ByteLen != uint32(n) || wc.Flags != rdma.WithImm || wc.Imm != wr.Imm {
					t.Fatalf("%d bytes: %+v", n, wc)
				}
				equal(t, fmt.Sprintf("write_imm %d", n), b.bytes(5, n), a.bytes(0, n))
				wc = b.want(a, rdma.WCRecv, id+500, rdma.StatusSuccess)
				if wc.ByteLen != 0 || wc.Flags != rdma.WithImm || wc.Imm != 7 {
					t.Fatalf("send_imm: %+v", wc)
				}
				a.want(b, rdma.WCWrite, id, rdma.StatusSuccess)
				a.want(b, rdma.WCSend, id+1000, rdma.StatusSuccess)
			}
			if n, err := a.qp.PostSend([]rdma.SendWR{{Op: rdma.OpSendImm, NumSGE: 1,
				SGE: [4]rdma.SGE{a.sge(0, 1)}}}); n != 0 || !errors.Is(err, rdma.ErrNotSupported) {
				t.Errorf("send_imm of a byte: %d, %v", n, err)
			}
		})
	}
}

// TestAtomicsKeepTheirPlaceAmongReads: a read before an atomic fetches the old value, one behind it the new one.
func TestAtomicsKeepTheirPlaceAmongReads(t *testing.T) {
	a, b := pair(t, Config{}, rdma.QPConfig{})
	m := atomicEnd(t, b)
	target := rdma.SGE{LKey: m.RKey(), Addr: m.Addr() + 64}
	const rounds = 40
	word := func(i int) rdma.SGE { return a.sge(8*i, 8) }
	for i := range rounds {
		read := extended(rdma.OpRead, uint64(i), word(2*i), target)
		add := extended(rdma.OpFetchAdd, uint64(i)+1000, word(2*i+1), target)
		add.CompareAdd = 3
		a.post(read)
		a.post(add)
	}
	for i := range rounds {
		a.want(b, rdma.WCRead, uint64(i), rdma.StatusSuccess)
		if wc := a.want(b, rdma.WCFetchAdd, uint64(i)+1000, rdma.StatusSuccess); wc.ByteLen != 8 {
			t.Errorf("%+v", wc)
		}
		for k := range 2 {
			if got := binary.NativeEndian.Uint64(a.bytes(16*i+8*k, 8)); got != uint64(3*i) {
				t.Fatalf("round %d, request %d fetched %d, want %d", i, k, got, 3*i)
			}
		}
	}
}

// TestAtomicsAndTheApplication: additions by two QPs and by the target's own sync/atomic all count.
func TestAtomicsAndTheApplication(t *testing.T) {
	b := newEnd(t, Config{}, rdma.QPConfig{})
	c := newEndOn(t, b.dev, rdma.QPConfig{})
	t.Cleanup(c.free)
	m := atomicEnd(t, b)
	word := (*uint64)(unsafe.Pointer(&b.bytes(64, 8)[0]))
	const n = 3000
	var own sync.WaitGroup
	own.Go(func() {
		for range n {
			atomic.AddUint64(word, 1)
		}
	})
	for _, target := range []*end{b, c} {
		a := newEnd(t, Config{}, rdma.QPConfig{})
		join(t, a, target)
		for i := range n {
			wr := extended(rdma.OpFetchAdd, uint64(i), a.sge(0, 8), rdma.SGE{LKey: m.RKey(), Addr: m.Addr() + 64})
			wr.CompareAdd = 1
			a.post(wr)
			a.want(target, rdma.WCFetchAdd, uint64(i), rdma.StatusSuccess)
		}
	}
	own.Wait()
	if got := atomic.LoadUint64(word); got != 3*n {
		t.Errorf("sum %d, want %d", got, 3*n)
	}
}

// TestRevokedAtomicTargetIsNotTouched: an atomic whose registration has ended is not carried out.
func TestRevokedAtomicTargetIsNotTouched(t *testing.T) {
	d := newDUT(t, modes[0], dutOptions{bare: true, recvs: -1})
	d.q.mu.Lock() // nothing is answered meanwhile
	d.q.rx.seg = segment{op: rdmap.OpAtomicReq}
	d.q.deliverAtomic(wiretest.AtomicRequest(1, rdmap.FetchAdd(1, d.target.RKey(), d.target.Addr(), 1)).ULPDU())
	waiting := d.q.irq.len()
	d.q.tx.start = mpa.StateFull
	d.target.invalidate()
	d.q.transmit()
	d.q.mu.Unlock()
	if waiting != 1 {
		t.Fatalf("%d requests wait, want 1", waiting)
	}
	end := d.peer.Finish()
	if got := end.Terminates(); len(got) != 1 || got[0] != rdmap.TermProtSTag {
		t.Errorf("terminates %v, want %v", got, rdmap.TermProtSTag)
	}
	d.checkArena()
}
