package callstest

import (
	"bytes"
	"context"
	"sync/atomic"
	"testing"
	"time"

	"github.com/rdmaperf/rdmaperf/transports"
)

// strangersLimit is how long one who has not the secret may wait to learn that.
const strangersLimit = 10 * time.Second

// strangers: who shows another secret than the server's, or none, reaches no handler, and
// costs nobody else anything.
func strangers(t *testing.T, r *rig) {
	cfg := config
	cfg.Secret, cfg.Conns = []byte("8 octets"), 16
	var reached atomic.Int64
	s, err := r.server.ListenCalls(r.ctx, "127.0.0.1:0", cfg, handler(func(s *transports.Served) error {
		if bytes.Equal(s.Request.AppendTo(nil), []byte("stranger")) {
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
		ctx, cancel := context.WithTimeout(r.ctx, strangersLimit)
		defer cancel()
		cfg := cfg
		cfg.Secret = []byte(secret)
		conn, err := r.client.DialCalls(ctx, s.Addr(), cfg)
		if err != nil {
			return err
		}
		defer conn.Close()
		k, err := conn.Caller(ctx, transports.CallerConfig{Timeout: strangersLimit / 2})
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
		if err := call(wrong, "stranger"); err == nil {
			t.Errorf("with the secret %q calls are answered", wrong)
		}
		if took := time.Since(begun); took > strangersLimit {
			t.Errorf("with the secret %q it took %v", wrong, took)
		}
	}
	good("behind strangers")
	if n := reached.Load(); n != 0 {
		t.Errorf("strangers reached the handler %d times", n)
	}
}
