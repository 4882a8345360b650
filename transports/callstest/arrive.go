package callstest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

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

func handlerErrors(t *testing.T, r *rig) {
	codes := []transports.CallCode{transports.CallUnknown, transports.CallInvalidArgument, transports.CallNotFound,
		transports.CallResourceExhausted,
		transports.CallUnimplemented, transports.CallInternal, transports.CallUnavailable, transports.CallDataLoss}
	conn := r.dial(r.serve(func(s *transports.Served) error {
		i, _ := s.Request.First()
		if int(i) < len(codes) {
			return fmt.Errorf("wrapped: %w", &transports.CallError{Code: codes[i], Text: fmt.Sprintf("reason %d", i)})
		}
		switch i {
		case 97:
			return fmt.Errorf("late: %w", context.DeadlineExceeded)
		case 98:
			return context.Canceled
		}
		return errors.New("plain")
	}).Addr())
	k := r.caller(conn, transports.CallerConfig{})
	for i, want := range codes {
		var e *transports.CallError
		if err := k.Call(&transports.Call{Request: []byte{byte(i)}}); !errors.As(err, &e) || e.Code != want ||
			e.Text != fmt.Sprintf("reason %d", i) {
			t.Errorf("%v arrives as %v", want, err)
		}
	}
	for i, want := range map[byte]transports.CallCode{97: transports.CallDeadlineExceeded,
		98: transports.CallCanceled} {
		if e := transports.AsCallError(k.Call(&transports.Call{Request: []byte{i}})); e == nil || e.Code != want {
			t.Errorf("the end of a context arrives as %v, not %v", e, want)
		}
	}
	if e := transports.AsCallError(k.Call(&transports.Call{Request: []byte{99}})); e == nil ||
		e.Code != transports.CallUnknown || e.Text != "plain" {
		t.Errorf("a plain error arrives as %v", e)
	}
}

// stuck answers requests that begin with 0 as mirror does, and others when nobody waits.
func stuck(s *transports.Served) error {
	if b, _ := s.Request.First(); b == 0 {
		return mirror(s)
	}
	<-s.Ctx.Done()
	return s.Ctx.Err()
}

func timeouts(t *testing.T, r *rig) {
	conn := r.dial(r.serve(stuck).Addr())
	for _, mode := range []transports.CallMode{transports.CallUnary, transports.CallStream} {
		if !r.has(mode) {
			continue
		}
		k := r.caller(conn, transports.CallerConfig{Mode: mode, Timeout: 50 * time.Millisecond})
		begun := time.Now()
		e := transports.AsCallError(k.Call(&transports.Call{Request: []byte{1}}))
		if took := time.Since(begun); e == nil || e.Code != transports.CallDeadlineExceeded ||
			took < 50*time.Millisecond || took > 10*time.Second {
			t.Errorf("%v: %v after %v", mode, e, took)
		}
	}
	r.works(conn)
}

func (r *rig) works(conn transports.CallConn) {
	r.t.Helper()
	c := transports.Call{Request: []byte{0, 1}}
	if err := r.caller(conn, transports.CallerConfig{}).Call(&c); err != nil {
		r.t.Errorf("a call behind it: %v", err)
	}
}

func cancels(t *testing.T, r *rig) {
	conn := r.dial(r.serve(stuck).Addr())
	ctx, cancel := context.WithCancel(r.ctx)
	k, err := conn.Caller(ctx, transports.CallerConfig{})
	if err != nil {
		t.Fatal(err)
	}
	defer k.Close()
	time.AfterFunc(30*time.Millisecond, cancel)
	if e := transports.AsCallError(k.Call(&transports.Call{Request: []byte{1}})); e == nil ||
		e.Code != transports.CallCanceled {
		t.Errorf("%v", e)
	}
	r.works(conn)
}

func serverEnds(t *testing.T, r *rig) {
	under := make(chan struct{}, 1)
	s := r.serve(func(s *transports.Served) error {
		under <- struct{}{}
		return stuck(s)
	})
	conn := r.dial(s.Addr())
	k := r.caller(conn, transports.CallerConfig{})
	ended := make(chan error, 1)
	go func() { ended <- k.Call(&transports.Call{Request: []byte{1}}) }()
	<-under
	if err := s.Close(); err != nil {
		t.Errorf("close: %v", err)
	}
	select {
	case err := <-ended:
		if e := transports.AsCallError(err); e == nil || e.Code != transports.CallUnavailable &&
			e.Code != transports.CallCanceled {
			t.Errorf("a call under way ends with %v", e)
		}
	case <-r.ctx.Done():
		t.Fatal("a call under way does not end")
	}
	again, err := conn.Caller(r.ctx, transports.CallerConfig{Timeout: 5 * time.Second})
	if err != nil {
		return // as good
	}
	defer again.Close()
	if err := again.Call(&transports.Call{Request: []byte{0}}); err == nil {
		t.Error("a call behind the end is answered")
	}
}
