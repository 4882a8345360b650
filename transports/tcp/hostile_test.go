package tcp

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/rdmaperf/rdmaperf/transports"
	"github.com/rdmaperf/rdmaperf/transports/rdma"
)

func soon(t testing.TB) context.Context {
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	t.Cleanup(cancel)
	return ctx
}

func must[T any](v T, err error) func(testing.TB) T {
	return func(t testing.TB) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
}

var small = transports.Config{Window: 64 << 10, SendDepth: 8, RecvDepth: 8, ReadDepth: 4, Events: true}

func listen(t testing.TB, cfg transports.Config) transports.Listener {
	t.Helper()
	l := must(New(Config{}).Listen(soon(t), "127.0.0.1:0", cfg))(t)
	t.Cleanup(func() { l.Close() })
	return l
}

func rawDial(t testing.TB, addr string) *net.TCPConn {
	t.Helper()
	c := must(net.Dial("tcp", addr))(t).(*net.TCPConn)
	c.SetDeadline(time.Now().Add(30 * time.Second))
	t.Cleanup(func() { c.Close() })
	return c
}

// rawPeer is a session and a socket on which the test plays the peer by hand.
func rawPeer(t testing.TB) (transports.Session, *net.TCPConn) {
	t.Helper()
	l := listen(t, small)
	c := rawDial(t, l.Addr())
	must(c.Write(ask(nil)))(t)
	s, hello, err := l.Accept(soon(t))
	if err != nil || string(hello) != "hi" {
		t.Fatalf("accept: hello %q, %v", hello, err)
	}
	t.Cleanup(func() { s.Close() })
	var b [greetingLen]byte
	must(io.ReadFull(c, b[:]))(t)
	g := must(parseGreeting(&b))(t)
	if g.verdict != verdictTake || g.window != uint64(small.Window) || g.readDepth != 4 {
		t.Fatalf("answer = %+v", g)
	}
	return s, c
}

func post(t testing.TB, s transports.Session, ops ...transports.Op) {
	t.Helper()
	if n, err := s.Post(ops); n != len(ops) || err != nil {
		t.Fatalf("post of %d = %d, %v", len(ops), n, err)
	}
}

func pollAll(t testing.TB, s transports.Session) ([]transports.Done, error) {
	t.Helper()
	var all []transports.Done
	dst := make([]transports.Done, 4)
	for end := time.Now().Add(30 * time.Second); time.Now().Before(end); {
		n, err := s.Poll(dst)
		all = append(all, dst[:n]...)
		if err != nil {
			return all, err
		}
	}
	t.Fatalf("the session did not end; it said %v", all)
	return nil, nil
}

func TestABreachEndsTheSessionAndEverythingOutstanding(t *testing.T) {
	for _, c := range []struct {
		what   string
		b      []byte
		cause  error
		status rdma.Status
	}{
		{"noise", []byte("GET / HTTP/1.1\r\n\r\n"), errKind, rdma.StatusFatalErr},
		{"a write outside the window", msg(header{kind: wireWrite, off: 1 << 40, len: 8}, 0), errBounds,
			rdma.StatusFatalErr},
		{"a flood of reads", bytes.Repeat(msg(header{kind: wireReadReq, len: 64 << 10}, 0), 100), errReadFull,
			rdma.StatusFatalErr},
		{"an answer nobody asked for", msg(header{kind: wireReadResp, len: 9}, 0), errReadOdd, rdma.StatusFatalErr},
		{"an end inside a header", []byte{1, 2, 3}, io.ErrUnexpectedEOF, rdma.StatusFatalErr},
		{"an end inside a payload", msg(header{kind: wireWrite, len: 9000}, 1)[:5000], io.ErrUnexpectedEOF,
			rdma.StatusFatalErr},
		{"an end between messages", nil, errPeerClosed, rdma.StatusRemAbortErr},
	} {
		t.Run(c.what, func(t *testing.T) {
			s, peer := rawPeer(t)
			post(t, s,
				transports.Op{Kind: transports.KindRecv, Len: 8, Slot: 1},
				transports.Op{Kind: transports.KindWrite, Len: 8, Slot: 2},
				transports.Op{Kind: transports.KindRead, Len: 8, Slot: 3},
				transports.Op{Kind: transports.KindWrite, Len: 8, Slot: 4, Flags: transports.Unsignaled},
			)
			must(peer.Write(c.b))(t)
			peer.CloseWrite()
			dones, err := pollAll(t, s)
			if !errors.Is(err, c.cause) || !strings.Contains(err.Error(), peer.LocalAddr().String()) {
				t.Errorf("end = %v, want the peer's address and %v", err, c.cause)
			}
			want := []transports.Done{
				{Slot: 2, Len: 8, Kind: transports.KindWrite},
				{Slot: 1, Kind: transports.KindRecv, Status: c.status},
				{Slot: 3, Kind: transports.KindRead, Status: c.status},
				{Slot: 4, Kind: transports.KindWrite, Status: c.status}, // behind the read, failures have a completion
			}
			if len(dones) != len(want) {
				t.Fatalf("dones = %v, want %v", dones, want)
			}
			for i := range want {
				if dones[i] != want[i] {
					t.Errorf("done %d = %v, want %v", i, dones[i], want[i])
				}
			}
			if n, again := s.Post([]transports.Op{{Kind: transports.KindSend}}); n != 0 || again != err {
				t.Errorf("post after the end = %d, %v, want 0 and the same error", n, again)
			}
			if err := s.Wait(soon(t)); err != nil {
				t.Errorf("wait after the end: %v, want nil: poll has something to say", err)
			}
		})
	}
}

func TestAMessageLongerThanItsReceiveIsALengthError(t *testing.T) {
	s, peer := rawPeer(t)
	post(t, s, transports.Op{Kind: transports.KindRecv, Len: 8, Slot: 1}, transports.Op{Kind: transports.KindRecv,
		Len: 8, Slot: 2})
	must(peer.Write(msg(header{kind: wireSend, len: 9}, 1)))(t)
	dones, err := pollAll(t, s)
	if !errors.Is(err, errTooLong) || len(dones) != 2 || dones[0].Status != rdma.StatusLocLenErr ||
		dones[1].Status != rdma.StatusFatalErr {
		t.Errorf("dones %v, end %v", dones, err)
	}
	if !bytes.Equal(s.Local()[:16], make([]byte, 16)) {
		t.Error("the receive was written to")
	}
}

// What the peer sent before it went still counts, although sending to it fails.
func TestLastWordsAreHeard(t *testing.T) {
	s, peer := rawPeer(t)
	must(peer.Write(append(msg(header{kind: wireSend, len: 8}, 1), msg(header{kind: wireSend, len: 8}, 2)...)))(t)
	peer.SetLinger(0) // an unkind end: RST instead of FIN
	peer.Close()
	for range 20 {
		if _, err := s.Post([]transports.Op{{Kind: transports.KindWrite, Len: 8,
			Flags: transports.Unsignaled}}); err != nil {
			break // the queue is full of what cannot leave
		}
		time.Sleep(time.Millisecond)
	}
	post(t, s, transports.Op{Kind: transports.KindRecv, Len: 8, Slot: 1}, transports.Op{Kind: transports.KindRecv,
		Local: 8, Len: 8, Slot: 2})
	dones, err := pollAll(t, s)
	if err == nil || len(dones) < 2 || dones[0].Status != 0 || dones[1].Status != 0 {
		t.Fatalf("dones %v, end %v; want both messages first", dones, err)
	}
	if want := append(bytes.Repeat([]byte{1}, 8), bytes.Repeat([]byte{2}, 8)...); !bytes.Equal(s.Local()[:16], want) {
		t.Errorf("messages = %x", s.Local()[:16])
	}
}

func TestAResetEndsASessionThatWaitsForAReceive(t *testing.T) {
	s, peer := rawPeer(t)
	must(peer.Write(msg(header{kind: wireSend, len: 8}, 1)))(t)
	dst := make([]transports.Done, 4)
	for s.(*session).in.phase != wantRecv {
		must(s.Poll(dst))(t)
	}
	peer.SetLinger(0)
	peer.Close()
	if err := s.Wait(soon(t)); err != nil {
		t.Fatalf("wait: %v", err)
	}
	if _, err := pollAll(t, s); err == nil {
		t.Error("no error")
	}
}

func TestASilentClientHoldsUpNobody(t *testing.T) {
	l := listen(t, small)
	rawDial(t, l.Addr())
	half := rawDial(t, l.Addr())
	must(half.Write(ask(nil)[:20]))(t)
	c := rawDial(t, l.Addr())
	must(c.Write(ask(nil)))(t)
	s, _, err := l.Accept(soon(t))
	if err != nil {
		t.Fatal(err)
	}
	s.Close()
	if err := l.Close(); err != nil { // joins the greeters of the silent ones
		t.Error(err)
	}
}

func TestStrangersGetNoSession(t *testing.T) {
	l := listen(t, small)
	old := ask(nil)
	old[4] = 9
	for _, c := range []struct {
		what   string
		b      []byte
		answer bool
	}{
		{"another protocol", []byte(strings.Repeat("GET / HTTP/1.1\r\n", 4)), false},
		{"another version", old, true},
		{"an answer instead of a question", ask(func(g *greeting) { g.verdict = verdictTake }), true},
	} {
		peer := rawDial(t, l.Addr())
		must(peer.Write(c.b))(t)
		var b [greetingLen]byte
		_, err := io.ReadFull(peer, b[:])
		if !c.answer {
			if err == nil {
				t.Errorf("%s got an answer: %x", c.what, b)
			}
			continue
		}
		if g, perr := parseGreeting(&b); err != nil || perr != nil || g.verdict != verdictRefuse {
			t.Errorf("%s: answer %+v, %v, %v, want a refusal", c.what, g, err, perr)
		}
	}
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Millisecond)
	defer cancel()
	if s, _, err := l.Accept(ctx); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("accept = %v, %v", s, err)
	}
}

func TestADiallerNamesWhatIsWrongWithTheListener(t *testing.T) {
	newer := ask(nil)
	newer[4] = 9
	for _, c := range []struct {
		what  string
		reply []byte
		want  error
		text  string
	}{
		{"another protocol", []byte(strings.Repeat("SSH-2.0-OpenSSH ", 3)), rdma.ErrProtocol, "not a greeting"},
		{"another version", newer, rdma.ErrProtocol, "peer speaks version 9, this side 1"},
		{"a refusal", ask(func(g *greeting) { *g = greeting{version: wireVersion, verdict: verdictRefuse} }),
			rdma.ErrRejected, ""},
		{"a question instead of an answer", ask(nil), rdma.ErrProtocol, "malformed"},
		{"an early end", ask(nil)[:10], rdma.ErrRejected, "closed during the greeting"},
		{"silence", nil, rdma.ErrUnreachable, "deadline"},
	} {
		ln := must(net.Listen("tcp", "127.0.0.1:0"))(t)
		served := make(chan struct{})
		release := make(chan struct{})
		go func() {
			defer close(served)
			conn, err := ln.Accept()
			if err != nil {
				return
			}
			io.ReadFull(conn, make([]byte, greetingLen))
			conn.Write(c.reply)
			if c.reply == nil {
				<-release
			}
			conn.Close()
		}()
		ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
		if c.reply == nil {
			ctx, cancel = context.WithTimeout(context.Background(), 30*time.Millisecond)
		}
		s, err := New(Config{}).Dial(ctx, ln.Addr().String(), nil, small)
		cancel()
		close(release)
		ln.Close()
		<-served
		if !errors.Is(err, c.want) || !strings.Contains(err.Error(), c.text) {
			t.Errorf("%s: dial = %v, %v, want %v with %q", c.what, s, err, c.want, c.text)
		}
	}
}
