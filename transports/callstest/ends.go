package callstest

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/rdmaperf/rdmaperf/transports"
)

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
