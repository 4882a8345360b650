package engine

import (
	"context"
	"fmt"
	"net"
	"os"
	"syscall"
	"testing"
	"time"

	"github.com/rdmaperf/rdmaperf/reports"
)

// A port that refuses until the time is over has refused, whatever the last try met, as clocks differ.
func TestWhoRefusedIsNotSilent(t *testing.T) {
	const refused, silent = "connect h:1: connection refused", "connect h:1: no answer"
	no := &net.OpError{Op: "dial", Err: os.NewSyscallError("connect", syscall.ECONNREFUSED)}
	late := &net.OpError{Op: "dial", Err: fmt.Errorf("i/o timeout: %w", os.ErrDeadlineExceeded)}
	over := &net.OpError{Op: "dial", Err: context.DeadlineExceeded}
	for name, c := range map[string]struct {
		says []error // the last one for ever
		want string
	}{
		"always":       {[]error{no}, refused},
		"then late":    {[]error{no, late}, refused},
		"then over":    {[]error{no, no, over}, refused},
		"late at once": {[]error{late}, silent},
		"over at once": {[]error{over}, silent},
		"then what else it meets": {[]error{no,
			&net.OpError{Op: "dial", Err: os.NewSyscallError("connect", syscall.EHOSTUNREACH)}},
			"connect h:1: no route to host"},
	} {
		t.Run(name, func(t *testing.T) {
			tries := 0
			dial := func(context.Context, string, string) (net.Conn, error) {
				err := c.says[min(tries, len(c.says)-1)]
				tries++
				return nil, err
			}
			_, err := dialUntil(t.Context(), 4*retryEvery, "h:1", dial)
			text := fmt.Sprint(err)
			if reports.Code(err) != reports.ExitPeer || len(text) < len(c.want) || text[:len(c.want)] != c.want {
				t.Fatalf("%q with code %d, want %q and %d", text, reports.Code(err), c.want, reports.ExitPeer)
			}
			if tries < len(c.says) {
				t.Fatalf("%d tries", tries)
			}
		})
	}
}

// A port that listens only later is found.
func TestDialAgain(t *testing.T) {
	a, b := net.Pipe()
	defer b.Close()
	tries := 0
	conn, err := dialUntil(t.Context(), time.Minute, "h:1", func(context.Context, string, string) (net.Conn, error) {
		if tries++; tries < 3 {
			return nil, syscall.ECONNREFUSED
		}
		return a, nil
	})
	if err != nil || conn != a || tries != 3 {
		t.Fatal(conn, err, tries)
	}
	a.Close()
}

func TestElsewhereIsAnotherAddressOnly(t *testing.T) {
	for _, c := range []struct {
		host, addr string
		want       bool
	}{
		{"10.0.0.1", "10.0.0.1:7", false},
		{"10.0.0.1", "[::ffff:10.0.0.1]:7", false},
		{"fe80::1%eth0", "[fe80::1%eth0]:7", false},
		{"10.0.0.1", "0.0.0.0:7", false},
		{"10.0.0.1", "[::]:7", false},
		{"127.0.0.1", "end1:49152", false},
		{"127.0.0.1", "no port", false},
		{"127.0.0.1", "10.78.0.1:7", true},
		{"10.0.0.1", "[2001:db8::1]:7", true},
	} {
		if got := Elsewhere(c.host, c.addr); got != c.want {
			t.Errorf("elsewhere(%s, %s) = %v", c.host, c.addr, got)
		}
	}
}
