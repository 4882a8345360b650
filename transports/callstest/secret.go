package callstest

import (
	"bytes"
	"context"
	"sync/atomic"
	"testing"
	"time"

	"github.com/rdmaperf/rdmaperf/transports"
)

// refusalLimit bounds the refusal of a client with another secret.
const refusalLimit = 10 * time.Second

// secrets: a client with another secret than the server's, or none, reaches no handler, and
// does not disturb other clients.
func secrets(t *testing.T, r *rig) {
	cfg := config
	cfg.Secret, cfg.Conns = []byte("8 octets"), 16
	var reached atomic.Int64
	s, err := r.server.ListenCalls(r.ctx, "127.0.0.1:0", cfg, handler(func(s *transports.Served) error {
		if bytes.Equal(s.Request.AppendTo(nil), []byte("wrong secret")) {
			reached.Add(1)
		}
		return mirror(s)
	}))
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := s.Close(); err != nil {
			t.Errorf("close server: %v", err)
		}
	}()
	call := func(secret, request string) error {
		ctx, cancel := context.WithTimeout(r.ctx, refusalLimit)
		defer cancel()
		cfg := cfg
		cfg.Secret = []byte(secret)
		conn, err := r.client.DialCalls(ctx, s.Addr(), cfg)
		if err != nil {
			return err
		}
		defer conn.Close()
		k, err := conn.Caller(ctx, transports.CallerConfig{Timeout: refusalLimit / 2})
		if err != nil {
			return err
		}
		defer k.Close()
		c := &transports.Call{Request: []byte(request)}
		if err := k.Call(c); err != nil {
			return err
		}
		if got := c.Response.AppendTo(nil); !bytes.Equal(got, mirrored([]byte(request), 0)) {
			t.Errorf("with the secret %q the answer is %q", secret, got)
		}
		return nil
	}
	good := func(when string) {
		if err := call("8 octets", "a client"); err != nil {
			t.Errorf("who has the secret, %s: %v", when, err)
		}
	}
	good("first")
	for _, wrong := range []string{"", "8 Octets", "8 octet", "8 octets and more"} {
		begun := time.Now()
		if err := call(wrong, "wrong secret"); err == nil {
			t.Errorf("with the secret %q calls are answered", wrong)
		}
		if took := time.Since(begun); took > refusalLimit {
			t.Errorf("with the secret %q it took %v", wrong, took)
		}
	}
	good("after the others")
	if n := reached.Load(); n != 0 {
		t.Errorf("clients with a wrong secret reached the handler %d times", n)
	}
}
