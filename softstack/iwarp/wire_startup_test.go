package iwarp

import (
	"bytes"
	"context"
	"errors"
	"io"
	"syscall"
	"testing"
	"time"

	"github.com/rdmaperf/rdmaperf/softstack/mpa"
	"github.com/rdmaperf/rdmaperf/softstack/rdmap"
	"github.com/rdmaperf/rdmaperf/softstack/wiretest"
	"github.com/rdmaperf/rdmaperf/transports/rdma"
)

// host is a device with a listener, for startup frames that lead nowhere.
func host(t *testing.T, cfg Config) (*end, rdma.Listener) {
	t.Helper()
	e := newEnd(t, cfg, rdma.QPConfig{})
	l := need(e.dev.Listen(t.Context(), "127.0.0.1:0", 8))(t)
	t.Cleanup(func() { l.Close() })
	return e, l
}

// accepted is what a request asked for, and what it got.
type accepted struct {
	asked, got rdma.ConnParam
	err        error
}

// accepting takes one request for e in the background.
func (e *end) accepting(l rdma.Listener, p rdma.ConnParam) chan accepted {
	result := make(chan accepted, 1)
	ctx, cancel := context.WithTimeout(context.Background(), testTimeout)
	go func() {
		defer cancel()
		var a accepted
		var r rdma.ConnRequest
		if r, a.err = l.Accept(ctx); a.err == nil {
			a.asked = r.Param()
			a.got, a.err = r.Accept(ctx, e.qp, p)
		}
		result <- a
	}()
	return result
}

// accept is accepting that says only what went wrong.
func (e *end) accept(l rdma.Listener, p rdma.ConnParam) chan error {
	taken, result := e.accepting(l, p), make(chan error, 1)
	go func() { result <- (<-taken).err }()
	return result
}

// initiated is a peer that sent a Request to e's listener, and was accepted.
func (e *end) initiated(t testing.TB, l rdma.Listener, p rdma.ConnParam, f *mpa.Frame) *wiretest.Peer {
	t.Helper()
	done, peer := e.accept(l, p), dial(t, l)
	need(peer.Initiate(f))(t)
	must(t, <-done)
	return peer
}

// dial connects a scripted peer to a listener, for the life of the test.
func dial(t testing.TB, l rdma.Listener) *wiretest.Peer {
	t.Helper()
	p := need(wiretest.Dial(l.Addr(), testTimeout))(t)
	t.Cleanup(func() { p.Close() })
	return p
}

// request is a right Request to bend.
func request(bend func(*wiretest.Startup)) wiretest.Startup {
	s := wiretest.Startup{Key: wiretest.RequestKey, Flags: wiretest.FlagC | wiretest.FlagS, Rev: 2, PDLen: -1,
		Private: wiretest.EnhancedWords(1, 1)}
	if bend != nil {
		bend(&s)
	}
	return s
}

func closed(err error) bool { return err == io.EOF || errors.Is(err, syscall.ECONNRESET) }

// TestWireBadRequests: beyond W-01 to W-20. The socket is closed without an answer, and the listener goes on.
func TestWireBadRequests(t *testing.T) {
	e, l := host(t, Config{})
	type S = wiretest.Startup
	cases := map[string]func(*S){
		"W-03 rev 0":          func(s *S) { s.Rev = 0 },
		"W-08 reply key":      func(s *S) { s.Key = wiretest.ReplyKey },
		"W-19 s with rev 1":   func(s *S) { s.Rev = 1 },
		"W-01 not mpa at all": func(s *S) { s.Key = "GET / HTTP/1.1\r\n" },
	}
	for name, bend := range cases {
		t.Run(name, func(t *testing.T) {
			p := dial(t, l)
			p.WriteStartup(request(bend)) // the device may close before all of it is written
			p.CloseWrite()
			if f, err := p.ReadStartup(); !closed(err) {
				t.Errorf("answer %+v, %v, want a closed connection", f, err)
			}
		})
	}
	e.initiated(t, l, rdma.ConnParam{}, &mpa.Frame{Rev: 2})
}

// TestWireSilentPeers: W-05, W-10, who stops before the Request is whole is dropped in time.
func TestWireSilentPeers(t *testing.T) {
	t.Parallel()
	_, l := host(t, Config{})
	begin := time.Now()
	var peers []*wiretest.Peer
	for _, b := range [][]byte{nil, []byte("MPA"), request(nil).Bytes()[:20],
		request(func(s *wiretest.Startup) { s.PDLen = 9 }).Bytes()} {
		p := need(wiretest.Dial(l.Addr(), 2*requestTimeout))(t)
		defer p.Close()
		must(t, p.Write(b))
		peers = append(peers, p)
	}
	for i, p := range peers {
		if _, err := p.ReadStartup(); !closed(err) {
			t.Errorf("peer %d: %v, want a closed connection", i, err)
		}
	}
	if d := time.Since(begin); d < requestTimeout/2 {
		t.Errorf("closed after %v, before the request timeout of %v", d, requestTimeout)
	}
}

// TestWireEarlyFPDU: W-06, an FPDU right behind the Request waits for the Reply.
func TestWireEarlyFPDU(t *testing.T) {
	e, l := host(t, Config{})
	e.postRecv(1, e.sge(0, 64))
	p := dial(t, l)
	p.FullOperation(true, false, false)
	must(t, p.Write(append(request(nil).Bytes(), p.Encode(wiretest.Send(1, []byte("early")))...)))
	must(t, <-e.accept(l, rdma.ConnParam{IRD: 1, ORD: 1}))
	need(p.ReadStartup())(t)
	e.want(nil, rdma.WCRecv, 1, rdma.StatusSuccess)
	equal(t, "payload", e.bytes(0, 5), []byte("early"))
}

// TestWireFlags: W-12, W-13, W-16: what the flags of both frames lead to.
func TestWireFlags(t *testing.T) {
	for _, c := range []struct {
		name              string
		cfg               Config
		flags             byte
		crc, markers, say bool // CRC used; we send markers; the peer must
	}{
		{"W-13 neither asks for crc", Config{NoCRC: true}, 0, false, false, false},
		{"W-13 only the peer", Config{NoCRC: true}, wiretest.FlagC, true, false, false},
		{"W-13 only we", Config{}, 0, true, false, false},
		{"W-13 both", Config{}, wiretest.FlagC, true, false, false},
		{"W-12 the peer wants markers", Config{}, wiretest.FlagM, true, true, false},
		{"W-12 we want markers", Config{Markers: true}, 0, true, false, true},
		{"W-16 reserved bits", Config{}, 0x0f, true, false, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			check := func(t *testing.T, e *end, p *wiretest.Peer, got *mpa.Frame, initiator bool) {
				if got.Markers != c.cfg.Markers || initiator && got.CRC == c.cfg.NoCRC ||
					!initiator && got.CRC != c.crc {
					t.Errorf("frame with crc %t and markers %t", got.CRC, got.Markers)
				}
				p.FullOperation(c.crc, c.say, c.markers)
				must(t, p.Send(wiretest.Send(1, []byte("in"))))
				e.want(nil, rdma.WCRecv, 1, rdma.StatusSuccess)
				e.fill(3, 4096, 3000)
				e.post(rdma.SendWR{ID: 2, Op: rdma.OpSend, NumSGE: 1, SGE: [4]rdma.SGE{e.sge(4096, 3000)}})
				e.want(nil, rdma.WCSend, 2, rdma.StatusSuccess)
				var out []byte
				for len(out) < 3000 {
					f := need(p.Next())(t)
					out = append(out, f.Payload()...)
				}
				equal(t, "sent", out, e.bytes(4096, 3000))
				clean(t, p)
			}
			t.Run("responder", func(t *testing.T) {
				e, l := host(t, c.cfg)
				e.postRecv(1, e.sge(0, 64))
				done := e.accept(l, rdma.ConnParam{})
				p := dial(t, l)
				must(t, p.WriteStartup(request(func(s *wiretest.Startup) { s.Flags = wiretest.FlagS | c.flags })))
				f := need(p.ReadStartup())(t)
				must(t, <-done)
				check(t, e, p, f, false)
			})
			t.Run("initiator", func(t *testing.T) {
				e := newEnd(t, c.cfg, rdma.QPConfig{})
				e.postRecv(1, e.sge(0, 64))
				p, f := e.connectTo(t, rdma.ConnParam{IRD: 1, ORD: 1}, func(s *wiretest.Startup) {
					s.Flags = wiretest.FlagS | c.flags
				})
				check(t, e, p, f, true)
			})
		})
	}
}

// reply is a right Reply to bend.
func reply(bend func(*wiretest.Startup)) wiretest.Startup {
	s := request(bend)
	if s.Key == wiretest.RequestKey {
		s.Key = wiretest.ReplyKey
	}
	return s
}

// answered makes e connect to a peer that gives the bent Reply.
func (e *end) answered(t *testing.T, param rdma.ConnParam, bend func(*wiretest.Startup)) (*wiretest.Peer, *mpa.Frame,
	rdma.ConnParam, error) {
	t.Helper()
	s := need(wiretest.Listen(testTimeout))(t)
	defer s.Close()
	type result struct {
		p   rdma.ConnParam
		err error
	}
	done := make(chan result, 1)
	go func() {
		p, err := e.qp.Connect(t.Context(), s.Addr(), param)
		done <- result{p, err}
	}()
	p := need(s.Accept())(t)
	t.Cleanup(func() { p.Close() })
	f := need(p.ReadStartup())(t)
	must(t, p.WriteStartup(reply(bend)))
	r := <-done
	return p, f, r.p, r.err
}

// connectTo is answered for a Reply that must be taken.
func (e *end) connectTo(t *testing.T, param rdma.ConnParam, bend func(*wiretest.Startup)) (*wiretest.Peer, *mpa.Frame) {
	t.Helper()
	p, f, _, err := e.answered(t, param, bend)
	must(t, err)
	return p, f
}

// TestWireBadReplies: the connection fails with the right word, the QP can try again, and the peer sees at most the
// Terminate that belongs to it.
func TestWireBadReplies(t *testing.T) {
	type S = wiretest.Startup
	words := func(ird, ord uint16) func(*S) {
		return func(s *S) { s.Private = wiretest.EnhancedWords(ird, ord) }
	}
	p2p := Config{PeerToPeer: true}
	for _, c := range []struct {
		name string
		cfg  Config
		bend func(*S)
		err  error
		term rdmap.TermCode // 0 for none
	}{
		{"W-02 bad key", Config{}, func(s *S) { s.Key = "MPA ID rep Frame" }, rdma.ErrProtocol, 0},
		{"W-02 not mpa at all", Config{}, func(s *S) { s.Key = "HTTP/1.1 400 Bad" }, rdma.ErrProtocol, 0},
		{"W-03 rev 3", Config{}, func(s *S) { s.Rev = 3 }, rdma.ErrProtocol, 0},
		{"W-03 rev 1 with s", Config{}, func(s *S) { s.Rev = 1 }, rdma.ErrProtocol, 0},
		{"W-03 rev 2 to a request of rev 1", Config{Revision: 1}, func(s *S) { s.Flags = 0 }, rdma.ErrProtocol, 0},
		{"W-04 pd length 513", Config{}, func(s *S) { s.PDLen = 513 }, rdma.ErrProtocol, 0},
		{"W-20 s missing", Config{}, func(s *S) { s.Flags = 0 }, rdma.ErrProtocol, 0},
		{"W-20 s with 0 octets", Config{}, func(s *S) { s.Private = nil }, rdma.ErrProtocol, 0},
		{"W-20 s with 3 octets", Config{}, func(s *S) { s.Private = s.Private[:3] }, rdma.ErrProtocol, 0},
		{"W-15 rejected", Config{}, func(s *S) { s.Flags |= wiretest.FlagR; s.Private = append(s.Private, "busy"...) },
			rdma.ErrRejected, 0},
		{"W-21 ord above our ird", Config{}, words(9, 5), rdma.ErrProtocol, rdmap.TermMPAInsufficientIRD},
		{"CM-20 no common rtr", p2p, words(0xc001, 0x0001), rdma.ErrProtocol, rdmap.TermMPANoRTR},
		{"CM-20 no rtr at all", p2p, words(0x8001, 0x0001), rdma.ErrProtocol, rdmap.TermMPANoRTR},
		{"CM-20 model not echoed", p2p, words(1, 1), rdma.ErrProtocol, rdmap.TermMPANoRTR},
		{"CM-20 model not asked", Config{}, words(0x8001, 0xc001), rdma.ErrProtocol, rdmap.TermMPANoRTR},
	} {
		t.Run(c.name, func(t *testing.T) {
			e := newEnd(t, c.cfg, rdma.QPConfig{})
			p, _, _, err := e.answered(t, rdma.ConnParam{IRD: 4, ORD: 4}, c.bend)
			if !errors.Is(err, c.err) {
				t.Errorf("connect: %v, want %v", err, c.err)
			}
			var reject *rdma.RejectError
			if errors.As(err, &reject) && string(reject.PrivateData) != "busy" {
				t.Errorf("private data %q", reject.PrivateData)
			}
			p.FullOperation(true, false, false)
			end := p.Finish()
			got := end.Terminates()
			if len(end.FPDUs) != len(got) || (c.term == 0) != (len(got) == 0) || len(got) > 0 && got[0] != c.term {
				t.Errorf("the peer saw %v, want %v", end.FPDUs, c.term)
			}
			if end.Kind != wiretest.EndFIN && end.Kind != wiretest.EndReset {
				t.Errorf("the stream ended by %v", end.Kind)
			}
			if s := e.qp.State(); s != rdma.QPInit {
				t.Errorf("qp is %v, want INIT", s)
			}
			e.connectTo(t, rdma.ConnParam{IRD: 4, ORD: 4}, func(s *S) {
				switch {
				case c.cfg.Revision == 1:
					s.Flags, s.Rev, s.Private = 0, 1, nil
				case c.cfg.PeerToPeer:
					s.Private = wiretest.EnhancedWords(0x8001, 0x8001)
				}
			})
		})
	}
}

// TestWireDepths: W-21, W-22 and CM-06: what the enhanced words lead to.
func TestWireDepths(t *testing.T) {
	const none = mpa.NoNegotiation
	for _, c := range []struct {
		name              string
		ird, ord          uint16 // the peer's words
		own               rdma.ConnParam
		wantIRD, wantORD  int // what holds for us
		answerIRD, askIRD uint16
		answerORD, askORD uint16
		responderOnly     bool
	}{
		{"equal", 4, 4, rdma.ConnParam{IRD: 4, ORD: 4}, 4, 4, 4, 4, 4, 4, false},
		{"W-21 the peer has less", 2, 2, rdma.ConnParam{IRD: 4, ORD: 4}, 4, 2, 4, 4, 2, 4, false},
		{"the peer has nothing", 0, 0, rdma.ConnParam{IRD: 4, ORD: 4}, 4, 0, 4, 4, 0, 4, false},
		{"the peer has more", 100, 4, rdma.ConnParam{IRD: 4, ORD: 4}, 4, 4, 4, 4, 4, 4, false},
		{"the peer wants more", 4, 100, rdma.ConnParam{IRD: 4, ORD: 4}, 4, 4, 4, 4, 4, 4, true},
		{"W-22 no negotiation", none, none, rdma.ConnParam{IRD: 3, ORD: 5}, 3, 5, none, 3, none, 5, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			bend := func(s *wiretest.Startup) { s.Private = wiretest.EnhancedWords(c.ird, c.ord) }
			e, l := host(t, Config{})
			done, p := e.accepting(l, c.own), dial(t, l)
			must(t, p.WriteStartup(request(bend)))
			f := need(p.ReadStartup())(t)
			d := <-done
			must(t, d.err)
			got, asked := d.got, d.asked
			if got.IRD != c.wantIRD || got.ORD != c.wantORD || f.Enh.IRD != c.answerIRD || f.Enh.ORD != c.answerORD {
				t.Errorf("as responder: holds %d/%d, answered %d/%d, want %d/%d and %d/%d", got.IRD, got.ORD, f.Enh.IRD,
					f.Enh.ORD, c.wantIRD, c.wantORD, c.answerIRD, c.answerORD)
			}
			if c.ird != none && (asked.IRD != int(c.ord) || asked.ORD != int(c.ird)) {
				t.Errorf("the request asks for %d/%d, want %d/%d", asked.IRD, asked.ORD, c.ord, c.ird)
			}
			if c.responderOnly {
				return
			}
			e2 := newEnd(t, Config{}, rdma.QPConfig{})
			_, req, holds, err := e2.answered(t, c.own, bend)
			must(t, err)
			if holds.IRD != c.wantIRD || holds.ORD != c.wantORD || req.Enh.IRD != c.askIRD || req.Enh.ORD != c.askORD {
				t.Errorf("as initiator: holds %d/%d, asked %d/%d, want %d/%d and %d/%d", holds.IRD, holds.ORD,
					req.Enh.IRD, req.Enh.ORD, c.wantIRD, c.wantORD, c.askIRD, c.askORD)
			}
		})
	}
}

// TestWirePrivateData: CM-02, every length arrives as it was sent.
func TestWirePrivateData(t *testing.T) {
	for _, n := range []int{0, 1, 56, 196, 243, 244, 247, 248, 251, 252, 255, 256, 500, 508} {
		var cfg Config
		if n > 500 {
			cfg.Extensions = ExtNone // there is no room for an offer behind it
		}
		a, b := newEnd(t, cfg, rdma.QPConfig{}), newEnd(t, cfg, rdma.QPConfig{})
		l := need(b.dev.Listen(t.Context(), "127.0.0.1:0", 1))(t)
		out, back := pattern(n), bytes.Repeat([]byte{0x5a}, n)
		done := b.accepting(l, rdma.ConnParam{PrivateData: back})
		got := need(a.qp.Connect(t.Context(), l.Addr(), rdma.ConnParam{PrivateData: out}))(t)
		d := <-done
		must(t, d.err)
		if !bytes.Equal(d.asked.PrivateData, out) || !bytes.Equal(got.PrivateData, back) {
			t.Errorf("%d octets: request carries %x, reply %x", n, d.asked.PrivateData, got.PrivateData)
		}
		must(t, l.Close())
	}
	a := newEnd(t, Config{}, rdma.QPConfig{})
	for _, p := range []rdma.ConnParam{{PrivateData: make([]byte, 501)}, {ORD: maxRDAtom + 1}} {
		if _, err := a.qp.Connect(t.Context(), "127.0.0.1:1", p); !errors.Is(err, rdma.ErrInvalid) {
			t.Errorf("%d octets, ord %d: %v", len(p.PrivateData), p.ORD, err)
		}
	}
}
