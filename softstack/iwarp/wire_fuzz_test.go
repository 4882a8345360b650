package iwarp

import (
	"bytes"
	"context"
	"flag"
	"math/rand/v2"
	"net"
	"testing"
	"time"

	"github.com/rdmaperf/rdmaperf/softstack/mpa"
	"github.com/rdmaperf/rdmaperf/softstack/rdmap"
	"github.com/rdmaperf/rdmaperf/softstack/wiretest"
	"github.com/rdmaperf/rdmaperf/transports/rdma"
	"github.com/rdmaperf/rdmaperf/transports/stream"
)

var (
	wireStreams = flag.Int("wire.streams", 2000, "mutated streams of W-70")
	wireSeed    = flag.Uint64("wire.seed", 0, "seed of W-70; 0 takes a new one")
)

// rig feeds octets to fresh QPs of one device, over loopback TCP but without MPA startup, and judges what comes of it.
type rig struct {
	t      testing.TB
	dev    *Device
	cq     rdma.CQ
	wcs    []rdma.WC
	l      *net.TCPListener
	arena  rdma.Buffer
	shadow []byte
	mrs    []*mr
}

// The keys and offsets that the vectors name, with canaries around.
const (
	rigSTag = 0x11223344 // vectors write to and read from it, at rigTO
	rigTO   = 0x1000
	rigSink = 0xaabbccdd // vectors answer reads into it, at rigSinkTO
	sinkTO  = 0x2000
	rigInv  = 0x11223300
	rigLen  = 32 << 10
	addID   = readID + 20

	rigTarget = guard
	rigSinkAt = rigTarget + rigLen + guard
	rigInvAt  = rigSinkAt + rigLen + guard
	rigRecvAt = rigInvAt + rigLen + guard
	rigRecv   = 600
	rigRecvs  = 4
	rigArena  = rigRecvAt + rigRecvs*rigRecv + guard
)

func newRig(t testing.TB, cfg Config) *rig {
	t.Helper()
	g := &rig{t: t, wcs: make([]rdma.WC, 32)}
	g.dev = need(Open(cfg))(t)
	g.cq = need(g.dev.NewCQ(64))(t)
	l := need(net.Listen("tcp", "127.0.0.1:0"))(t)
	g.l = l.(*net.TCPListener)
	g.arena = need(rdma.Alloc(rigArena))(t)
	g.shadow = bytes.Clone(canaries[:rigArena])
	for _, r := range []struct {
		stag uint32
		base uint64
		off  int
		n    int
		a    rdma.Access
	}{
		{rigSTag, rigTO, rigTarget, rigLen, rdma.LocalWrite | rdma.RemoteWrite | rdma.RemoteRead | rdma.RemoteAtomic},
		{rigSink, sinkTO, rigSinkAt, rigLen, rdma.LocalWrite},
		{rigInv, 0, rigInvAt, rigLen, rdma.LocalWrite | rdma.RemoteWrite | rdma.RemoteInvalidate},
		{1, 0, rigRecvAt, rigRecvs * rigRecv, rdma.LocalWrite},
	} {
		m := &mr{dev: g.dev, buf: g.arena.Bytes()[r.off : r.off+r.n : r.off+r.n], base: r.base, stag: r.stag,
			access: r.a}
		g.dev.keys.m[r.stag] = m
		g.mrs = append(g.mrs, m)
	}
	t.Cleanup(func() {
		clear(g.dev.keys.m)
		g.l.Close()
		must(t, g.cq.Close())
		must(t, g.dev.Close())
		g.arena.Free()
	})
	return g
}

// run feeds one stream, cut into pieces, with FIN behind it, until the QP has seen all of it.
func (g *rig) run(octets []byte, pieces int, n mpa.Negotiated) {
	t := g.t
	copy(g.arena.Bytes(), g.shadow)
	for _, m := range g.mrs {
		m.valid.Store(true)
	}
	rq := need(g.dev.NewQP(rdma.QPConfig{SendCQ: g.cq, RecvCQ: g.cq, SendDepth: 4, RecvDepth: rigRecvs}))(t)
	q := rq.(*qp)
	defer q.Close()
	for i := range rigRecvs {
		need(q.PostRecv([]rdma.RecvWR{{ID: uint64(i), NumSGE: 2, SGE: [4]rdma.SGE{
			{Addr: uint64(i * rigRecv), Len: 100, LKey: 1}, {Addr: uint64(i*rigRecv + 100), Len: rigRecv - 100,
				LKey: 1}}}}))(t)
	}
	peer := need(net.Dial("tcp", g.l.Addr().String()))(t)
	defer peer.Close()
	g.l.SetDeadline(time.Now().Add(testTimeout))
	must(t, q.attach(stream.Adopt(need(g.l.AcceptTCP())(t)), n, peerOffer{ext: rdmap.ExtAll}, false))
	// A read that V12 answers, an atomic, and a send fenced behind both.
	need(q.PostSend([]rdma.SendWR{
		{ID: readID, Op: rdma.OpRead, Flags: rdma.Signaled, NumSGE: 1,
			SGE: [4]rdma.SGE{{Addr: sinkTO, Len: 16, LKey: rigSink}}, RKey: rigSTag, RemoteAddr: rigTO},
		{ID: addID, Op: rdma.OpFetchAdd, Flags: rdma.Signaled, NumSGE: 1,
			SGE: [4]rdma.SGE{{Addr: sinkTO + 16, Len: 8, LKey: rigSink}}, RKey: rigSTag, RemoteAddr: rigTO},
		{ID: sendID, Op: rdma.OpSend, Flags: rdma.Signaled | rdma.Fence},
	}))(t)

	peer.SetDeadline(time.Now().Add(testTimeout))
	for i := range pieces {
		from, to := len(octets)*i/pieces, len(octets)*(i+1)/pieces
		if _, err := peer.Write(octets[from:to]); err != nil {
			break // the QP ended the connection already
		}
		if pieces > 1 {
			q.poll()
		}
	}
	peer.(*net.TCPConn).CloseWrite()
	seen := map[uint64]int{}
	for stop := time.Now().Add(testTimeout); len(seen) < rigRecvs+3; {
		k := need(g.cq.Poll(g.wcs))(t)
		for _, wc := range g.wcs[:k] {
			if seen[wc.ID]++; seen[wc.ID] > 1 {
				t.Fatalf("request %d completed twice", wc.ID)
			}
		}
		if k == 0 && time.Now().After(stop) {
			t.Fatalf("the QP is %v and hangs, completed %v", q.State(), seen)
		}
	}
	g.judgeAnswer(peer, n)
	if k, _ := g.cq.Poll(g.wcs); k != 0 {
		t.Fatalf("%d completions too many", k)
	}
	g.judgeArena(q)
}

// judgeAnswer judges what the QP sent, without what depends on the peer's side, which is garbage.
func (g *rig) judgeAnswer(peer net.Conn, n mpa.Negotiated) {
	r := wiretest.Reader{CRC: n.CRC, Markers: n.TxMarkers}
	check := wiretest.Checker{ORD: 2} // what was posted; with fewer, answers make room for the second
	var b [4096]byte
	for {
		k, err := peer.Read(b[:])
		r.Feed(b[:k])
		for f, ok := r.Next(); ok; f, ok = r.Next() {
			if f.Op() != rdmap.OpReadResp && f.Op() != rdmap.OpAtomicResp {
				check.Got(f)
			} else if len(f.Faults) > 0 {
				g.t.Fatalf("response: %q", f.Faults)
			}
		}
		if err != nil {
			break
		}
	}
	if f := check.Faults(); len(f) > 0 {
		g.t.Fatalf("on the wire: %q", f)
	}
}

// judgeArena wants octets outside of registrations untouched, and 24 of the sinks at most.
func (g *rig) judgeArena(q *qp) {
	q.mu.Lock()
	defer q.mu.Unlock()
	got := g.arena.Bytes()
	end := 0
	for _, r := range [][2]int{{rigTarget, rigLen}, {rigSinkAt, 24}, {rigInvAt, rigLen},
		{rigRecvAt, rigRecvs * rigRecv}, {rigArena, 0}} {
		if !bytes.Equal(got[end:r[0]], g.shadow[end:r[0]]) {
			g.t.Fatalf("canaries between %#x and %#x are touched", end, r[0])
		}
		end = r[0] + r[1]
	}
}

// rigModes are the streams' agreements. Without CRC every mutation reaches DDP.
var rigModes = []mpa.Negotiated{
	{CRC: false, IRD: 2, ORD: 2},
	{CRC: true, IRD: 2, ORD: 2},
	{CRC: true, RxMarkers: true, TxMarkers: true, IRD: 2, ORD: 2},
	{CRC: false, RxMarkers: true, IRD: 1, ORD: 1},
}

// mutant makes a stream of vectors in any order and damages it.
func mutant(r *rand.Rand, base []wiretest.Vector, n mpa.Negotiated) []byte {
	var ulpdus [][]byte
	for range 1 + r.IntN(5) {
		v := base[r.IntN(len(base))]
		rd := wiretest.Reader{Markers: v.Markers}
		rd.Feed(v.Bytes)
		for f, ok := rd.Next(); ok; f, ok = rd.Next() {
			ulpdus = append(ulpdus, f.ULPDU)
		}
	}
	e := wiretest.Encoder{CRC: n.CRC, Markers: n.RxMarkers}
	var out []byte
	msn := byte(1)
	for _, u := range ulpdus {
		if u[0]&0x80 == 0 && len(u) >= 18 && r.IntN(3) > 0 {
			u[13] = msn // in sequence, so that more than the first one counts
			msn++
		}
		for range r.IntN(3) {
			if len(u) == 0 {
				break
			}
			switch i := r.IntN(len(u)); r.IntN(5) {
			case 0:
				u[i] ^= 1 << r.IntN(8)
			case 1:
				u[i] = []byte{0, 1, 0x7f, 0x80, 0xff}[r.IntN(5)]
			case 2:
				u = u[:i]
			case 3:
				u = append(u, make([]byte, r.IntN(600))...)
			case 4:
				u[r.IntN(min(len(u), 18))] = byte(r.Uint32())
			}
		}
		out = e.Append(out, wiretest.Raw(u...))
	}
	// Behind the framing, where CRC, markers and lengths are hit.
	for range r.IntN(3) - 1 {
		if i := r.IntN(len(out)); r.IntN(2) == 0 {
			out[i] ^= 1 << r.IntN(8)
		} else {
			out = append(out[:i:i], out[min(len(out), i+1+r.IntN(8)):]...)
		}
		if len(out) == 0 {
			break
		}
	}
	return out
}

// TestWireMutations: W-70, no mutant crashes or hangs the stack, is placed elsewhere or completes twice.
func TestWireMutations(t *testing.T) {
	seed := *wireSeed
	if seed == 0 {
		seed = uint64(time.Now().UnixNano())
	}
	t.Logf("seed %d", seed)
	r := rand.New(rand.NewPCG(seed, 70))
	var base []wiretest.Vector
	for _, v := range wiretest.Vectors() {
		if !v.Startup {
			base = append(base, v)
		}
	}
	// The vectors are short; these reach direct placement and long answers.
	for _, s := range []*wiretest.Segment{
		wiretest.Write(rigSTag, rigTO, pattern(30000)),
		wiretest.Write(rigSTag, rigTO+100, pattern(9000)).More(),
		wiretest.Send(1, pattern(rigRecv)),
		wiretest.Send(1, pattern(9000)),
		wiretest.ReadRequest(1, rdmap.ReadRequest{SinkSTag: 1, Size: 30000, SrcSTag: rigSTag, SrcTO: rigTO}),
		wiretest.ReadResponse(rigSink, sinkTO, pattern(16)),
		wiretest.AtomicResponse(1, 2, 0x0102030405060708), // with the read response before it, a right one
	} {
		var e wiretest.Encoder
		base = append(base, wiretest.Vector{Bytes: e.Append(nil, s)})
	}
	rigs := []*rig{newRig(t, Config{}), newRig(t, Config{StoreAndForward: true})}
	for i := range *wireStreams {
		n := rigModes[r.IntN(len(rigModes))]
		s := mutant(r, base, n)
		rigs[i%2].run(s, 1+r.IntN(3), n)
		if t.Failed() {
			t.Fatalf("stream %d: %x", i, s)
		}
	}
}

// FuzzStream feeds arbitrary octets to a QP in full operation. The first octet chooses agreement and pieces.
func FuzzStream(f *testing.F) {
	for i, v := range wiretest.Vectors() {
		if !v.Startup {
			f.Add(byte(i), v.Bytes)
		}
	}
	var all []byte
	e := wiretest.Encoder{}
	for _, s := range []*wiretest.Segment{
		wiretest.Write(rigSTag, rigTO, pattern(rigLen)),
		wiretest.Send(1, pattern(100)).More(), wiretest.Send(1, pattern(400)).MO(100),
		wiretest.ReadRequest(1, rdmap.ReadRequest{Size: rigLen, SrcSTag: rigSTag, SrcTO: rigTO}),
		wiretest.ReadResponse(rigSink, sinkTO, pattern(16)),
		wiretest.AtomicResponse(1, 2, 0x0102030405060708),
		wiretest.AtomicRequest(2, rdmap.CmpSwap(9, rigSTag, rigTO+8, 0, 1)),
		wiretest.Immediate(2, 0x0102030400000000),
		wiretest.Send(3, nil).Op(rdmap.OpSendInv).Inv(rigInv),
		wiretest.TerminateCode(rdmap.TermMPACRC),
	} {
		all = e.Append(all, s)
	}
	f.Add(byte(0), all)
	f.Add(byte(8), all)
	g := newRig(f, Config{})
	f.Fuzz(func(t *testing.T, how byte, stream []byte) {
		g.t = t
		g.run(stream, 1+int(how>>2)%4, rigModes[how%4])
	})
}

// FuzzListener feeds octets to a listener, which takes the Request or closes the connection.
func FuzzListener(f *testing.F) {
	for _, v := range wiretest.Vectors() {
		if v.Startup {
			f.Add(v.Bytes)
		}
	}
	f.Add([]byte("GET / HTTP/1.1\r\nHost: x\r\n\r\n"))
	f.Add(request(func(s *wiretest.Startup) { s.PDLen = 600 }).Bytes())
	dev := need(Open(Config{}))(f)
	cq := need(dev.NewCQ(16))(f)
	l := need(dev.Listen(context.Background(), "127.0.0.1:0", 16))(f)
	f.Cleanup(func() {
		l.Close()
		must(f, cq.Close())
		must(f, dev.Close())
	})
	f.Fuzz(func(t *testing.T, b []byte) {
		c := need(net.Dial("tcp", l.Addr()))(t)
		defer c.Close()
		c.SetDeadline(time.Now().Add(testTimeout))
		c.Write(b)
		c.(*net.TCPConn).CloseWrite()
		ctx, cancel := context.WithTimeout(context.Background(), testTimeout)
		defer cancel()
		took := make(chan error, 1)
		go func() {
			r, err := l.Accept(ctx)
			if err == nil {
				var q rdma.QP
				q, err = dev.NewQP(rdma.QPConfig{SendCQ: cq, RecvCQ: cq})
				if err == nil {
					_, err = r.Accept(ctx, q, rdma.ConnParam{IRD: 1, ORD: 1})
					q.Close()
				}
			}
			took <- err
		}()
		var in [1024]byte
		n := 0
		for ended := false; !ended; {
			k, err := c.Read(in[n:])
			n, ended = n+k, err != nil
		}
		cancel()
		accepted := <-took == nil
		if n > 0 != accepted {
			t.Errorf("accepted %t, answered %x", accepted, in[:n])
		}
		if n == 0 {
			return
		}
		if n < mpa.FrameHeaderLen {
			t.Fatalf("answered %x", in[:n])
		}
		_, pd, err := mpa.ParseFrameHeader(in[:n])
		must(t, err)
		rep := need(mpa.ParseFrame(in[:mpa.FrameHeaderLen+pd]))(t)
		if !rep.Reply || rep.Reject {
			t.Errorf("answered %+v", rep)
		}
	})
}
