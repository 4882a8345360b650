package verbs

import (
	"context"
	"errors"
	"io"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/rdmaperf/rdmaperf/transports/rdma"
)

func rawDial(t testing.TB, addr string) *net.TCPConn {
	t.Helper()
	c := must(net.Dial("tcp", addr))(t)
	c.SetDeadline(time.Now().Add(10 * time.Second))
	t.Cleanup(func() { c.Close() })
	return c.(*net.TCPConn)
}

func TestSilentClientsHoldUpNobody(t *testing.T) {
	l := listenLoop(t, 1)
	_, slots := l.Reading()
	for range slots + 3 { // one of them more than there are slots gives way
		rawDial(t, l.addr)
	}
	half := rawDial(t, l.addr)
	half.Write(frameMagic[:])
	_, responder, result := asked(t, l, end4(17))
	noError(t, responder.answer(soon(t), end4(18)))
	if got := <-result; got.err != nil {
		t.Error(got.err)
	}
	if err := l.close(); err != nil { // joins the readers of the silent ones
		t.Error(err)
	}
	if _, err := half.Read(make([]byte, 1)); err == nil {
		t.Error("the listener's end left a connection open")
	}
}

func TestStrangersGetNoExchange(t *testing.T) {
	l := listenLoop(t, 1)
	request := must(appendFrame(nil, &frame{kind: frameRequest, endpoint: end4(17)}))(t)
	newer := append([]byte(nil), request...)
	newer[4] = 9
	bye, _ := appendFrame(nil, &frame{kind: frameBye})
	for _, c := range []struct {
		what  string
		b     []byte
		reply bool
	}{
		{"another protocol", []byte("GET / HTTP/1.1\r\n\r\n"), false},
		{"another version", newer, true},
		{"bye before a request", bye, true},
	} {
		peer := rawDial(t, l.addr)
		peer.Write(c.b)
		var b [frameLen]byte
		_, err := io.ReadFull(peer, b[:])
		if !c.reply {
			if err == nil {
				t.Errorf("%s got a reply", c.what)
			}
			continue
		}
		if f, derr := decodeFrame(&b); err != nil || derr != nil || f.kind != frameRefuse {
			t.Errorf("%s: reply %+v, %v, %v, want a refusal", c.what, f, err, derr)
		}
	}
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Millisecond)
	defer cancel()
	if x, err := l.accept(ctx); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("accept = %v, %v", x, err)
	}
}

func TestBeyondTheBacklogIsRefusedAtOnce(t *testing.T) {
	l := listenLoop(t, 1)
	results := make(chan offered, 2)
	for range 2 {
		x := dialLoop(t, l.addr)
		go func() {
			peer, err := x.offer(soon(t), end4(17))
			results <- offered{peer, err}
		}()
	}
	if got := <-results; !errors.Is(got.err, rdma.ErrRejected) {
		t.Errorf("beyond the backlog: %+v", got)
	}
	x := must(l.accept(soon(t)))(t)
	defer x.close()
	if err := x.answer(soon(t), end4(18)); err != nil {
		t.Error(err)
	}
	if got := <-results; got.err != nil {
		t.Error(got.err)
	}
}

func TestWhoGaveUpIsNotHandedOut(t *testing.T) {
	l := listenLoop(t, 4)
	gone := dialLoop(t, l.addr)
	noError(t, gone.send(&frame{kind: frameRequest, endpoint: end4(17)}))
	waiting := must(l.Next(soon(t)))(t)
	if !waiting.waits() {
		t.Fatal("a request that waits counts as gone")
	}
	gone.close()
	for waiting.waits() {
		time.Sleep(time.Millisecond)
	}
	noError(t, l.Offer(waiting))
	_, responder, _ := asked(t, l, end4(99))
	if responder.peer.QPN != 99 {
		t.Errorf("accept gave out qp %d, whose owner left", responder.peer.QPN)
	}
}

func TestARequestLeftAloneIsRefused(t *testing.T) {
	l := listenLoop(t, 1)
	_, responder, result := asked(t, l, end4(17))
	responder.expire.Reset(time.Millisecond) // the timer fires as it would after answerTimeout
	if got := <-result; !errors.Is(got.err, rdma.ErrRejected) {
		t.Errorf("offer = %v", got.err)
	}
	if err := responder.answer(soon(t), end4(18)); err == nil || errors.Is(err, rdma.ErrInvalid) {
		t.Errorf("answer after the refusal = %v", err)
	}
}

func TestAnAnswerAndItsExpiryExcludeEachOther(t *testing.T) {
	l := listenLoop(t, 1)
	for range 50 {
		dialer, responder, result := asked(t, l, end4(17))
		responder.expire.Reset(0)
		err := responder.answer(soon(t), end4(18))
		got := <-result
		if (err == nil) != (got.err == nil) {
			t.Fatalf("answer = %v, offer = %v", err, got.err)
		}
		if err != nil && err != rdma.ErrState && err != rdma.ErrClosed {
			t.Fatalf("answer = %v", err)
		}
		responder.close()
		dialer.close()
	}
}

func TestCloseRefusesWhoWaits(t *testing.T) {
	l := listenLoop(t, 2)
	x := dialLoop(t, l.addr)
	result := make(chan error, 1)
	go func() {
		_, err := x.offer(soon(t), end4(17))
		result <- err
	}()
	for l.Waiting() == 0 {
		time.Sleep(time.Millisecond)
	}
	if err := l.close(); err != nil {
		t.Error(err)
	}
	if err := <-result; !errors.Is(err, rdma.ErrRejected) {
		t.Errorf("offer = %v", err)
	}
	if err := l.close(); err != nil {
		t.Errorf("second close = %v", err)
	}
	if _, err := listenExchange(soon(t), "256.0.0.1:0", 1); err == nil || strings.Contains(err.Error(), "listen tcp") {
		t.Errorf("listen at no address = %v", err)
	}
}
