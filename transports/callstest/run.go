// Package callstest is what every carrier of calls must do, as tests, and [Mem], the smallest one that does it. [Run]
// holds a pair of transports.CallTransport against the contract; messages are 1 byte and more. It closes nothing that
// its ends function made.
package callstest

import (
	"bytes"
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/rdmaperf/rdmaperf/transports"
	"github.com/rdmaperf/rdmaperf/transports/rdma"
)

// Ends makes both sides of what is tested, which t's end closes.
type Ends func(t *testing.T) (client, server transports.CallTransport)

// Run holds what ends makes against the contract, claim by claim.
func Run(t *testing.T, ends Ends) {
	for _, c := range []struct {
		name string
		run  func(t *testing.T, r *rig)
	}{
		{"ItDeclaresCallsAndHasNoSessions", declares},
		{"BytesArriveAsTheyWere", bytesArrive},
		{"EveryMethodIsReached", methodsReached},
		{"OneWayCountsWhatArrived", oneWay},
		{"CallersOfAConnectionDoNotWaitForEachOther", atOnce},
		{"ErrorsOfHandlersReachTheCaller", handlerErrors},
		{"ACallEndsWithItsTimeout", timeouts},
		{"ACallEndsWithItsContext", cancels},
		{"CallsEndWithTheServer", serverEnds},
		{"OwnersAreReleasedOnce", owners},
		{"MistakesOfCallersAreErrors", mistakes},
		{"AClosedAddressIsUnreachable", closedAddress},
		{"OtherSecretsAreRefused", secrets},
	} {
		t.Run(c.name, func(t *testing.T) {
			client, server := ends(t)
			ctx, cancel := context.WithTimeout(t.Context(), soon)
			t.Cleanup(cancel)
			c.run(t, &rig{t: t, client: client, server: server, ctx: ctx})
		})
	}
}

type rig struct {
	t              *testing.T
	client, server transports.CallTransport
	ctx            context.Context
}

type handler func(s *transports.Served) error

func (h handler) ServeCall(s *transports.Served) error { return h(s) }

var config = transports.CallConfig{MaxRequest: 1 << 20, MaxResponse: 1 << 20, Callers: 8, Conns: 2}

func (r *rig) serve(h handler) transports.CallServer {
	r.t.Helper()
	s, err := r.server.ListenCalls(r.ctx, "127.0.0.1:0", config, h)
	if err != nil {
		r.t.Fatal(err)
	}
	r.t.Cleanup(func() {
		if err := s.Close(); err != nil {
			r.t.Errorf("close server: %v", err)
		}
	})
	return s
}

func (r *rig) dial(addr string) transports.CallConn {
	r.t.Helper()
	c, err := r.client.DialCalls(r.ctx, addr, config)
	if err != nil {
		r.t.Fatal(err)
	}
	r.t.Cleanup(func() { c.Close() })
	return c
}

func (r *rig) caller(c transports.CallConn, cfg transports.CallerConfig) transports.Caller {
	r.t.Helper()
	k, err := c.Caller(r.ctx, cfg)
	if err != nil {
		r.t.Fatal(err)
	}
	r.t.Cleanup(func() { k.Close() })
	return k
}

func (r *rig) has(m transports.CallMode) bool { return r.client.Caps().CallModes.Has(m) }

type owner struct {
	b        []byte
	released atomic.Int32
}

func (o *owner) Release() {
	o.released.Add(1)
	for i := range o.b {
		o.b[i] = 0xee
	}
}

func owners(t *testing.T, r *rig) {
	var mu sync.Mutex
	var all []*owner
	s := r.serve(func(s *transports.Served) error {
		o := &owner{b: s.Request.AppendTo(nil)}
		mu.Lock()
		all = append(all, o)
		mu.Unlock()
		s.Response, s.Owner = o.b, o
		return nil
	})
	conn := r.dial(s.Addr())
	k := r.caller(conn, transports.CallerConfig{})
	for i, n := range []int{1, 900, 5000, 300_000} {
		c := transports.Call{Request: pattern(n, i)}
		if err := k.Call(&c); err != nil {
			t.Fatal(err)
		}
		if at, b := c.Response.Differs(c.Request); at >= 0 {
			t.Errorf("%d bytes: byte %d is %#x", n, at, b)
		}
		k.Free()
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
	mu.Lock()
	defer mu.Unlock()
	for _, o := range all {
		if n := o.released.Load(); n > 1 {
			t.Errorf("the owner of %d bytes is released %d times", len(o.b), n)
		}
	}
}

func mistakes(t *testing.T, r *rig) {
	conn := r.dial(r.serve(mirror).Addr())
	for m := transports.CallUnary; m <= transports.CallOneWay+1; m++ {
		k, err := conn.Caller(r.ctx, transports.CallerConfig{Mode: m})
		if !r.has(m) {
			if !errors.Is(err, rdma.ErrNotSupported) {
				t.Errorf("mode %v is not declared and gives %v", m, err)
			}
			continue
		}
		if err != nil {
			t.Errorf("mode %v is declared and gives %v", m, err)
			continue
		}
		wrong := k.Send
		if m == transports.CallOneWay {
			wrong = k.Call
		}
		if e := transports.AsCallError(wrong(&transports.Call{Request: []byte{1}})); e == nil ||
			e.Code != transports.CallInvalidArgument {
			t.Errorf("mode %v: %v", m, e)
		}
		k.Close()
	}
	if _, err := conn.Caller(r.ctx, transports.CallerConfig{Method: transports.CallMethods}); err == nil {
		t.Errorf("method %d is taken", transports.CallMethods)
	}
	k := r.caller(conn, transports.CallerConfig{})
	if e := transports.AsCallError(k.Call(&transports.Call{Method: transports.CallMethods,
		Request: []byte{1}})); e == nil || e.Code != transports.CallUnimplemented {
		t.Errorf("method %d: %v", transports.CallMethods, e)
	}
}

func closedAddress(t *testing.T, r *rig) {
	s := r.serve(mirror)
	addr := s.Addr()
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	begun := time.Now()
	c, err := r.client.DialCalls(r.ctx, addr, config)
	if err == nil {
		c.Close()
		t.Error("a connection to a closed address")
	}
	if took := time.Since(begun); took > soon/2 {
		t.Errorf("it took %v", took)
	}
}

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
