package service

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"os"
	"syscall"
	"testing"
	"time"

	"github.com/rdmaperf/rdmaperf/grpcrdma"
	"github.com/rdmaperf/rdmaperf/grpcrdma/internal/rpctest"
	"github.com/rdmaperf/rdmaperf/internal/leaktest"
	"github.com/rdmaperf/rdmaperf/softstack/iwarp"
	"github.com/rdmaperf/rdmaperf/transports/rdma"
)

const asService = "RDMAPERF_TEST_SERVICE"

func TestMain(m *testing.M) {
	switch os.Getenv(asService) {
	case "run":
		os.Exit(serveOverIWARP())
	case "fail":
		Fail(errors.New("no such device"), 77)
		os.Exit(1)
	case "mute":
		os.Exit(0)
	}
	leaktest.Main(m)
}

func serveOverIWARP() int {
	dev, err := iwarp.Open(iwarp.Config{})
	if err != nil {
		return 1
	}
	n, err := grpcrdma.New(dev, grpcrdma.Config{})
	if err != nil {
		return 1
	}
	err = Run(context.Background(), n, About{Device: dev.Name(), MaxConns: 7}, 0)
	if errors.Join(err, n.Close(), dev.Close()) != nil {
		return 1
	}
	return 0
}

var (
	must = rpctest.Must
	soon = rpctest.Soon
)

func start(t *testing.T, how string) (*Client, error) {
	t.Helper()
	t.Setenv(asService, how)
	self, err := os.Executable()
	must(t, err)
	c, err := Start(soon(t), []string{self}, os.Stderr, 0)
	os.Unsetenv(asService)
	return c, err
}

func running(t *testing.T) (a, b *Client, near, far net.Conn) {
	t.Helper()
	a, err := start(t, "run")
	must(t, err)
	b, err = start(t, "run")
	must(t, err)
	l, err := b.Listen(soon(t), "127.0.0.1:0")
	must(t, err)
	t.Cleanup(func() { l.Close() })
	near, err = a.DialContext(soon(t), l.Addr().String())
	must(t, err)
	far, err = l.Accept()
	must(t, err)
	return a, b, near, far
}

// Bytes arrive whole, both ways at once, and the end behind them; then nothing of the processes is left.
func TestBytesGoThroughTheServices(t *testing.T) {
	a, b, near, far := running(t)
	if got := a.About(); got.MaxConns != 7 || got.Device == "" {
		t.Errorf("about %+v", got)
	}
	sent := make([]byte, 3<<20)
	for i := range sent {
		sent[i] = byte(i * i >> 7)
	}
	back := make(chan error, 1)
	go func() { // echo
		_, err := io.CopyN(far, far, int64(len(sent)))
		far.Close()
		back <- err
	}()
	go near.Write(sent)
	got, err := io.ReadAll(near)
	if err != nil || !bytes.Equal(got, sent) {
		t.Errorf("%d of %d bytes, %v", len(got), len(sent), err)
	}
	must(t, <-back)
	near.Close()
	_, err = a.DialContext(soon(t), "127.0.0.1:1")
	if !errors.Is(err, rdma.ErrUnreachable) {
		t.Errorf("nobody there: %v", err)
	}
	must(t, a.Close())
	must(t, b.Close())
	if err := syscall.Kill(a.cmd.Process.Pid, 0); !errors.Is(err, syscall.ESRCH) {
		t.Errorf("the process behind Close: %v", err)
	}
}

// A service that is killed takes its connections with it, at both ends, and says so.
func TestTheDeathOfAServiceIsSeen(t *testing.T) {
	a, b, near, far := running(t)
	defer b.Close()
	near.SetDeadline(time.Now().Add(30 * time.Second))
	far.SetDeadline(time.Now().Add(30 * time.Second))
	must(t, a.cmd.Process.Kill())
	for which, c := range map[string]net.Conn{"near": near, "far": far} {
		if _, err := c.Read(make([]byte, 1)); err == nil || errors.Is(err, os.ErrDeadlineExceeded) {
			t.Errorf("%s: read %v", which, err)
		}
		c.Close()
	}
	<-a.over
	if _, err := a.DialContext(soon(t), "127.0.0.1:1"); !errors.Is(err, ErrGone) {
		t.Errorf("dial: %v", err)
	}
	if err := a.Close(); !errors.Is(err, ErrGone) {
		t.Errorf("close: %v", err)
	}
}

func TestAServiceThatDoesNotStandSaysWhy(t *testing.T) {
	_, err := start(t, "fail")
	var failed *FailedError
	if !errors.As(err, &failed) || failed.About.Code != 77 || failed.Error() != "no such device" {
		t.Errorf("%v", err)
	}
	if _, err := start(t, "mute"); err == nil {
		t.Error("a process that says nothing is no service")
	}
}
