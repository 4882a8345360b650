package verbs

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/rdmaperf/rdmaperf/transports/rdma"
)

func must[T any](v T, err error) func(testing.TB) T {
	return func(t testing.TB) T {
		t.Helper()
		noError(t, err)
		return v
	}
}

func noError(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// is wants this very error.
func is(t testing.TB, what string, err, want error) {
	t.Helper()
	if err != want {
		t.Errorf("%s = %v, want %v", what, err, want)
	}
}

func errOf[T any](_ T, err error) error { return err }

func soon(t testing.TB) context.Context {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	t.Cleanup(cancel)
	return ctx
}

// end4 and end6 are RoCE endpoints, endIB one of InfiniBand.
func end4(qpn uint32) endpoint {
	return endpoint{QPN: qpn, PSN: 0xabcdef, MTU: 1024, IRD: 4, ORD: 2, RNRRetry: 7,
		GID: [16]byte{10: 0xff, 11: 0xff, 12: 10, 15: 1}, Private: []byte("hello")}
}

func end6(qpn uint32) endpoint {
	e := end4(qpn)
	e.GID = [16]byte{0: 0xfe, 1: 0x80, 15: 1}
	return e
}

func endIB(qpn uint32) endpoint {
	e := end6(qpn)
	e.LID = 7
	return e
}

func equal(a, b endpoint) bool { return a.same(&b) && bytes.Equal(a.Private, b.Private) }

func listenLoop(t testing.TB, backlog int) *exchangeListener {
	t.Helper()
	l := must(listenExchange(soon(t), "127.0.0.1:0", backlog))(t)
	t.Cleanup(func() { l.close() })
	return l
}

func dialLoop(t testing.TB, addr string) *exchange {
	t.Helper()
	x := must(dialExchange(soon(t), addr))(t)
	t.Cleanup(func() { x.close() })
	if !x.local.IsLoopback() || x.remote != addr {
		t.Fatalf("dialled from %s to %s", x.local, x.remote)
	}
	return x
}

type offered struct {
	peer endpoint
	err  error
}

func asked(t testing.TB, l *exchangeListener, e endpoint) (dialer, responder *exchange, result <-chan offered) {
	t.Helper()
	dialer = dialLoop(t, l.addr)
	ch := make(chan offered, 1)
	ctx := soon(t)
	go func() {
		peer, err := dialer.offer(ctx, e)
		ch <- offered{peer, err}
	}()
	responder = must(l.accept(ctx))(t)
	t.Cleanup(func() { responder.close() })
	return dialer, responder, ch
}

func joined(t testing.TB) (dialer, responder *exchange) {
	t.Helper()
	dialer, responder, result := asked(t, listenLoop(t, 1), end4(17))
	if !equal(responder.peer, end4(17)) {
		t.Fatalf("request = %+v", responder.peer)
	}
	noError(t, responder.answer(soon(t), end4(18)))
	if got := <-result; got.err != nil || !equal(got.peer, end4(18)) {
		t.Fatalf("answer = %+v", got)
	}
	ready := make(chan error, 1)
	go func() { ready <- dialer.ready(soon(t)) }()
	noError(t, errors.Join(responder.ready(soon(t)), <-ready))
	return dialer, responder
}

func TestTwoEndsJoinAndPart(t *testing.T) {
	dialer, responder := joined(t)
	gone := [2]chan bool{make(chan bool, 2), make(chan bool, 2)}
	for i, x := range []*exchange{dialer, responder} {
		noError(t, x.watch(func(orderly bool) { gone[i] <- orderly }))
		is(t, "second watch", x.watch(func(bool) {}), rdma.ErrState)
	}
	noError(t, dialer.bye(soon(t)))
	if !<-gone[1] {
		t.Error("the responder heard no bye")
	}
	if err := responder.bye(soon(t)); err != nil { // crosses
		t.Errorf("bye behind the peer's: %v", err)
	}
	if !<-gone[0] {
		t.Error("the dialler heard no bye")
	}
	is(t, "second bye", dialer.bye(soon(t)), rdma.ErrState)
	dialer.close()
	is(t, "bye after close", dialer.bye(soon(t)), rdma.ErrClosed)
}

func TestAPeerThatDiesIsNotOrderly(t *testing.T) {
	for _, c := range []struct {
		what string
		die  func(x *exchange)
	}{
		{"closed", func(x *exchange) { x.close() }},
		{"reset", func(x *exchange) { x.conn.SetLinger(0); x.close() }},
		{"noise", func(x *exchange) { x.conn.Write(bytes.Repeat([]byte{7}, frameLen)) }},
		{"a frame out of turn", func(x *exchange) { x.send(&frame{kind: frameReady}) }},
		{"half a bye", func(x *exchange) {
			b, _ := appendFrame(nil, &frame{kind: frameBye})
			x.conn.Write(b[:frameLen-1])
			x.close()
		}},
	} {
		dialer, responder := joined(t)
		gone := make(chan bool, 1)
		noError(t, responder.watch(func(orderly bool) { gone <- orderly }))
		c.die(dialer)
		select {
		case orderly := <-gone:
			if orderly {
				t.Errorf("%s: orderly", c.what)
			}
		case <-time.After(20 * time.Second):
			t.Errorf("%s: nobody noticed", c.what)
		}
	}
}

func TestOurOwnCloseIsNoNews(t *testing.T) {
	_, responder := joined(t)
	called := make(chan bool, 1)
	noError(t, responder.watch(func(o bool) { called <- o }))
	responder.close() // joins the watcher
	select {
	case <-called:
		t.Error("watch reported our own close")
	default:
	}
	is(t, "watch after close", responder.watch(func(bool) {}), rdma.ErrClosed)
}

func TestTheBarrierWaitsForBoth(t *testing.T) {
	dialer, responder, result := asked(t, listenLoop(t, 1), end4(17))
	noError(t, responder.answer(soon(t), end4(18)))
	<-result
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Millisecond)
	defer cancel()
	if err := dialer.ready(ctx); !errors.Is(err, rdma.ErrUnreachable) || !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("ready without the peer = %v", err)
	}
	is(t, "ready after a failed one", dialer.ready(soon(t)), rdma.ErrState)
	dialer.close()
	if err := responder.ready(soon(t)); err != nil {
		t.Errorf("the dialler said ready before it went: %v", err)
	}
}

func TestRefusals(t *testing.T) {
	l := listenLoop(t, 1)
	private := bytes.Repeat([]byte{9}, maxExchangePrivate)
	_, responder, result := asked(t, l, end4(17))
	if err := responder.refuse(soon(t), append(private, 9)); !errors.Is(err, rdma.ErrInvalid) {
		t.Errorf("a refusal too long = %v", err)
	}
	if err := responder.answer(soon(t), endpoint{}); err == nil {
		t.Error("an answer without an endpoint was taken")
	}
	if err := responder.refuse(soon(t), private); err != nil { // neither mistake was an answer
		t.Fatal(err)
	}
	var reject *rdma.RejectError
	if got := <-result; !errors.As(got.err, &reject) || !bytes.Equal(reject.PrivateData, private) {
		t.Errorf("offer = %v", got.err)
	}
	is(t, "answer after a refusal", responder.answer(soon(t), end4(18)), rdma.ErrState)
}

func TestTwoFabricsAreNamedOnBothSides(t *testing.T) {
	for _, c := range []struct {
		what          string
		ask, answer   endpoint
		text, answer2 string
	}{
		{"link layers", end4(17), endIB(18), "this port is on InfiniBand, its port on Ethernet",
			"it refused for that reason"},
		{"IP versions", end4(17), end6(18), "our gid is fe80::1, its gid ::ffff:10.0.0.1: one is IPv4, one IPv6",
			"it refused for that reason"},
	} {
		_, responder, result := asked(t, listenLoop(t, 1), c.ask)
		err := responder.answer(soon(t), c.answer)
		if !errors.Is(err, rdma.ErrFabric) || !strings.Contains(err.Error(), c.text) {
			t.Errorf("%s: answer = %v", c.what, err)
		}
		if got := <-result; !errors.Is(got.err, rdma.ErrFabric) || !strings.Contains(got.err.Error(), c.answer2) {
			t.Errorf("%s: offer = %v", c.what, got.err)
		}
	}
	ib, other := endIB(17), endIB(18)
	other.GID = [16]byte{}
	if err := reachable(&ib, &other); err != nil {
		t.Errorf("two InfiniBand ports: %v", err)
	}
}

func TestStepsOutOfTurnAreRefused(t *testing.T) {
	l := listenLoop(t, 1)
	x := dialLoop(t, l.addr)
	if _, err := x.offer(soon(t), endpoint{}); err == nil || errors.Is(err, rdma.ErrUnreachable) {
		t.Errorf("an offer without an endpoint = %v", err)
	}
	for what, err := range map[string]error{
		"answer": x.answer(soon(t), end4(17)), "refuse": x.refuse(soon(t), nil), "ready": x.ready(soon(t)),
		"watch": x.watch(func(bool) {}), "bye": x.bye(soon(t)),
	} {
		if err != rdma.ErrState {
			t.Errorf("%s by a dialler before its offer = %v", what, err)
		}
	}
	_, responder, _ := asked(t, l, end4(17))
	is(t, "offer by a responder", errOf(responder.offer(soon(t), end4(18))), rdma.ErrState)
}

func TestNobodyThere(t *testing.T) {
	l := listenLoop(t, 1)
	addr := l.addr
	is(t, "second listener", errOf(listenExchange(soon(t), addr, 1)), rdma.ErrAddrInUse)
	l.close()
	if _, err := dialExchange(soon(t), addr); !errors.Is(err, rdma.ErrUnreachable) ||
		strings.Count(err.Error(), addr) != 0 {
		t.Errorf("dial to a closed port = %v", err)
	}
	if _, err := dialExchange(soon(t), "no port"); !errors.Is(err, rdma.ErrInvalid) {
		t.Errorf("dial to no address = %v", err)
	}
	is(t, "accept after close", errOf(l.accept(soon(t))), rdma.ErrClosed)
	ended, cancel := context.WithCancel(context.Background())
	cancel()
	is(t, "accept with an ended context", errOf(listenLoop(t, 1).accept(ended)), context.Canceled)
}

// An offer ends with its context, whatever the other side does or does not.
func TestADiallerNamesWhatIsWrongWithTheListener(t *testing.T) {
	frameOf := func(f *frame) []byte { return must(appendFrame(nil, f))(t) }
	newer := frameOf(&frame{kind: frameAnswer, endpoint: end4(18)})
	newer[4] = 9
	for _, c := range []struct {
		what  string
		reply []byte
		want  error
		text  string
	}{
		{"another protocol", []byte("SSH-2.0-x"), rdma.ErrProtocol, "not a frame"},
		{"another version", newer, rdma.ErrProtocol, "peer speaks version 9"},
		{"ready instead of an answer", frameOf(&frame{kind: frameReady}), rdma.ErrProtocol,
			"ready instead of an answer"},
		{"an early end", newer[:20], rdma.ErrUnreachable, "it closed the address exchange"},
		{"silence", nil, rdma.ErrUnreachable, "deadline"},
	} {
		ln := must(net.Listen("tcp", "127.0.0.1:0"))(t)
		served, release := make(chan struct{}), make(chan struct{})
		go func() {
			defer close(served)
			conn, err := ln.Accept()
			if err != nil {
				return
			}
			defer conn.Close()
			io.ReadFull(conn, make([]byte, frameLen))
			conn.Write(c.reply)
			if c.reply == nil {
				<-release
			}
		}()
		ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
		if c.reply == nil {
			ctx, cancel = context.WithTimeout(context.Background(), 50*time.Millisecond)
		}
		x := dialLoop(t, ln.Addr().String())
		_, err := x.offer(ctx, end4(17))
		if !errors.Is(err, c.want) || !strings.Contains(err.Error(), c.text) {
			t.Errorf("%s: offer = %v, want %v with %q", c.what, err, c.want, c.text)
		}
		cancel()
		close(release)
		ln.Close()
		<-served
	}
}

func TestPSNsFillTheirBits(t *testing.T) {
	var or, and uint32 = 0, max24
	for range 200 {
		psn := newPSN()
		or, and = or|psn, and&psn
	}
	if or != max24 || and != 0 {
		t.Errorf("bits seen set %#x and clear %#x, want each of 24 both ways and no others", or, ^and&max24)
	}
}
