package callstest

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/rdmaperf/rdmaperf/transports"
	"github.com/rdmaperf/rdmaperf/transports/rdma"
)

// mirror answers with the request, turned round, and the method behind it.
func mirror(s *transports.Served) error {
	b := s.Request.AppendTo(nil)
	slices.Reverse(b)
	s.Response = append(b, s.Method)
	return nil
}

// pattern is n bytes that no other n and seed give.
func pattern(n, seed int) []byte {
	b := make([]byte, n)
	for i := range b {
		b[i] = byte(i*7 + i>>8 + n + seed*31)
	}
	return b
}

func mirrored(request []byte, method uint8) []byte {
	s := &transports.Served{Request: transports.Parts{request}, Method: method}
	mirror(s)
	return s.Response
}

func declares(t *testing.T, r *rig) {
	for _, s := range []transports.CallTransport{r.client, r.server} {
		c := s.Caps()
		if !c.Kinds.Has(transports.KindCall) || !c.CallModes.Has(transports.CallUnary) || c.MaxMsg == 0 {
			t.Errorf("%s: %+v", s.Name(), c)
		}
		if _, err := transports.Calls(s); err != nil {
			t.Error(err)
		}
		if _, err := transports.Sessions(s); c.Kinds == transports.Kinds(transports.KindCall) &&
			!errors.Is(err, rdma.ErrNotSupported) {
			t.Errorf("sessions of %s: %v", s.Name(), err)
		}
		if s.CallCost().Form == "" {
			t.Errorf("%s does not say what carries its calls", s.Name())
		}
	}
}

func bytesArrive(t *testing.T, r *rig) {
	conn := r.dial(r.serve(mirror).Addr())
	for _, mode := range []transports.CallMode{transports.CallUnary, transports.CallStream} {
		if !r.has(mode) {
			t.Logf("%v: not declared", mode)
			continue
		}
		k := r.caller(conn, transports.CallerConfig{Mode: mode})
		var c transports.Call
		sizes := []int{1, 2, 64, 4095, 100_000, 1<<20 - 1, 3}
		for i, n := range sizes {
			c.Request = pattern(n, i)
			if err := k.Call(&c); err != nil {
				t.Fatalf("%v of %d bytes: %v", mode, n, err)
			}
			want := mirrored(pattern(n, i), 0)
			if at, b := c.Response.Differs(want); at >= 0 || c.Response.Len() != len(want) {
				t.Errorf("%v of %d bytes: byte %d of %d is %#x", mode, n, at, c.Response.Len(), b)
			}
			if !bytes.Equal(c.Request, pattern(n, i)) {
				t.Errorf("%v of %d bytes: the request changed", mode, n)
			}
			k.Free()
			k.Free() // idempotent
		}
		if n, err := k.End(); err != nil || n != int64(len(sizes)) {
			t.Errorf("%v ended with %d messages, %v; want %d", mode, n, err, len(sizes))
		}
	}
}

func methodsReached(t *testing.T, r *rig) {
	conn := r.dial(r.serve(mirror).Addr())
	k := r.caller(conn, transports.CallerConfig{})
	for m := range uint8(transports.CallMethods) {
		c := transports.Call{Method: m, Request: []byte("abc")}
		if err := k.Call(&c); err != nil {
			t.Fatalf("method %d: %v", m, err)
		}
		if got := c.Response.AppendTo(nil); !bytes.Equal(got, []byte{'c', 'b', 'a', m}) {
			t.Errorf("method %d answers %q", m, got)
		}
	}
}

func oneWay(t *testing.T, r *rig) {
	if !r.has(transports.CallOneWay) {
		t.Skip("messages one way are not declared")
	}
	var seen, disorder atomic.Int64
	conn := r.dial(r.serve(func(s *transports.Served) error {
		n := seen.Add(1)
		if at, _ := s.Request.Differs(pattern(int(n)*9, int(n))); at >= 0 || s.Method != 5 ||
			s.Mode != transports.CallOneWay {
			disorder.Add(1)
		}
		return nil
	}).Addr())
	const messages = 300
	for range 2 { // a caller counts none of those before it
		seen.Store(0)
		k := r.caller(conn, transports.CallerConfig{Mode: transports.CallOneWay, Method: 5})
		for n := 1; n <= messages; n++ {
			if err := k.Send(&transports.Call{Request: pattern(n*9, n)}); err != nil {
				t.Fatal(err)
			}
		}
		if n, err := k.End(); err != nil || n != messages || seen.Load() != messages || disorder.Load() != 0 {
			t.Errorf("%d messages, %v, seen %d, %d changed or out of order; want %d", n, err, seen.Load(), disorder.Load(),
				messages)
		}
		if err := k.Close(); err != nil {
			t.Error(err)
		}
	}
}

func atOnce(t *testing.T, r *rig) {
	var all sync.WaitGroup
	all.Add(config.Callers)
	conn := r.dial(r.serve(func(s *transports.Served) error {
		all.Done()
		all.Wait() // every other call is under way
		return mirror(s)
	}).Addr())
	errs := make(chan error, config.Callers)
	for i := range config.Callers {
		k := r.caller(conn, transports.CallerConfig{})
		go func() {
			c := transports.Call{Request: pattern(100, i)}
			err := k.Call(&c)
			if at, _ := c.Response.Differs(mirrored(pattern(100, i), 0)); err == nil && at >= 0 {
				err = fmt.Errorf("caller %d got the answer of another", i)
			}
			errs <- err
		}()
	}
	for range config.Callers {
		if err := <-errs; err != nil {
			t.Error(err)
		}
	}
}
