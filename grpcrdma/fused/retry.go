package fused

import (
	"bytes"
	"context"
	"io"
	"math"
	"math/rand/v2"
	"strconv"
	"sync"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/mem"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
)

// openConfigured opens a call: r where the service config has a retry policy, otherwise cs.
func (c *Channel) openConfigured(ctx context.Context, desc *grpc.StreamDesc, method string,
	opts []grpc.CallOption) (cs *clientStream, r *retryCall, th *throttle, err error) {
	var mc *methodConfig
	if c.lb != nil {
		if mc, th, err = c.lb.methodConfig(ctx, method); err != nil {
			if info, bad := c.cfg.callInfo(opts); bad == nil {
				for _, f := range info.finish {
					f(err)
				}
			}
			return nil, nil, nil, err
		}
	}
	if mc != nil && mc.retry != nil && !c.cfg.NoRetry {
		r, err = c.openRetry(ctx, method, desc, mc, th, opts)
	} else {
		cs, err = c.open(ctx, method, desc, mc, opts)
	}
	return cs, r, th, err
}

// retryCall is a call with a retry policy (gRFC A6). What was sent is kept until the call is committed to an attempt:
// when a header or a message came, when that is too much, or when no attempt is left.
type retryCall struct {
	ctx  context.Context
	stop func() // frees the timeout
	desc *grpc.StreamDesc
	info callInfo // with the options that are answered at the end
	way  *retryPolicy
	th   *throttle
	open func(ctx context.Context) (*clientStream, error)

	mu        sync.Mutex
	cur       *clientStream // nil while none was made
	ops       []func(*clientStream) error
	kept      int // bytes
	committed bool
	retries   int // but for transparent ones
	tries     int // connections that were lost before an attempt left
	backoffs  int // since the server's last pushback
	half      bool

	over    sync.Once
	outcome error
}

// mostKept is grpc-go's default of the bytes that are kept for another attempt.
const mostKept = 256 << 10

func (c *Channel) openRetry(ctx context.Context, method string, desc *grpc.StreamDesc, mc *methodConfig, th *throttle,
	opts []grpc.CallOption) (*retryCall, error) {
	info, err := c.cfg.callInfo(opts)
	info.apply(mc, opts)
	r := &retryCall{desc: desc, info: info, way: mc.retry, th: th}
	if mc.timeout != nil && *mc.timeout >= 0 {
		r.ctx, r.stop = context.WithTimeout(ctx, *mc.timeout)
	} else {
		r.ctx, r.stop = context.WithCancel(ctx)
	}
	if err != nil {
		return nil, r.finish(err)
	}
	bare := info
	bare.header, bare.trailer, bare.peers, bare.finish = nil, nil, nil, nil
	r.open = func(ctx context.Context) (*clientStream, error) {
		return (&clientStream{ch: c, method: method, desc: desc, info: bare, attempt: r, tries: r.tries}).start(ctx, nil)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	for {
		err := r.attempt()
		if err == nil {
			return r, nil
		}
		if err = r.again(nil, err); err != nil {
			return nil, r.finish(err)
		}
	}
}

// attempt makes an attempt and repeats what was done. The next use returns its errors. The caller holds mu.
func (r *retryCall) attempt() error {
	cs, err := r.open(r.ctx)
	if err != nil {
		if cs != nil && cs.dropped {
			r.committed = true
		}
		return err
	}
	r.cur = cs
	if r.desc.ClientStreams || r.desc.ServerStreams {
		if err := cs.begin(); err != nil {
			return nil // the next use returns it
		}
	}
	for _, op := range r.ops {
		if op(cs) != nil {
			break
		}
	}
	return nil
}

// do has the current attempt do op, and others if that fails. keep is how many bytes op keeps for a repetition; with
// less than 0 success commits the call.
func (r *retryCall) do(op func(*clientStream) error, keep int) error {
	r.mu.Lock()
	for {
		a := r.cur
		if r.committed {
			r.mu.Unlock()
			return op(a)
		}
		r.mu.Unlock()
		err := op(a)
		r.mu.Lock()
		if a != r.cur { // the other side of the call has made another attempt meanwhile
			continue
		}
		if r.committed {
			r.mu.Unlock()
			return err
		}
		sending := keep >= 0
		failed := err
		if sending && err == io.EOF { // the attempt has ended; its status has the outcome
			failed = a.result()
		} else if err == io.EOF {
			failed = nil
		}
		if failed == nil {
			switch {
			case !sending:
				r.commit()
			case r.kept+keep > mostKept:
				r.commit()
			default:
				r.kept += keep
				r.ops = append(r.ops, op)
			}
			r.mu.Unlock()
			return err
		}
		for {
			if stop := r.again(a, failed); stop != nil {
				r.commit()
				r.mu.Unlock()
				if sending {
					return io.EOF // RecvMsg has the reason
				}
				return stop
			}
			if failed = r.attempt(); failed == nil {
				break
			}
			a = nil
		}
	}
}

func (r *retryCall) commit() { r.committed, r.ops, r.kept = true, nil, 0 }

// again waits until the next attempt is due after a, nil without a connection, failed with err. It returns err if there
// is to be none. The caller holds mu.
func (r *retryCall) again(a *clientStream, err error) error {
	if r.committed {
		return err
	}
	if a != nil && a.st != nil && a.st.unknownToPeer() && !a.s.takesCalls() && a.tries < maxAgain && r.retries == 0 {
		r.tries = a.tries + 1
		return r.ctx.Err() // transparent: the first attempt did not reach the server
	}
	var wait time.Duration
	asked := false
	if a != nil && a.st != nil {
		a.st.mu.Lock()
		header, said := a.st.hasHeader, a.st.trailer["grpc-retry-pushback-ms"]
		a.st.mu.Unlock()
		if header {
			return err
		}
		if len(said) > 0 {
			ms, bad := strconv.Atoi(said[0])
			if len(said) > 1 || bad != nil || ms < 0 {
				r.th.failed()
				return err
			}
			wait, asked = time.Duration(ms)*time.Millisecond, true
		}
	}
	if !r.way.codes[status.Code(err)] || r.th.failed() || r.retries+1 >= r.way.attempts {
		return err
	}
	if asked {
		r.backoffs = 0
	} else {
		d := min(float64(r.way.first)*math.Pow(r.way.factor, float64(r.backoffs)), float64(r.way.longest))
		wait = time.Duration(d * (0.8 + 0.4*rand.Float64())) // the spread of grpc-go
		r.backoffs++
	}
	if err := sleep(r.ctx, wait); err != nil {
		return status.FromContextError(err).Err()
	}
	r.retries++
	return nil
}

// result waits for the end of an attempt and returns its status.
func (cs *clientStream) result() error {
	for {
		m, err := cs.st.receive(cs.ctx)
		switch {
		case err == io.EOF:
			return cs.finish(cs.outcome())
		case err != nil:
			return cs.finish(err)
		}
		mem.NewBuffer(m.buf, m.memory()).Free()
	}
}

func (r *retryCall) SendMsg(m any) error {
	if r.half {
		return status.Error(codes.Internal, "fused: SendMsg called after CloseSend")
	}
	last := !r.desc.ClientStreams
	r.half = last
	r.mu.Lock()
	pack := r.cur.pack
	r.mu.Unlock()
	p, err := pack.marshal(m)
	if err != nil {
		return r.finish(err)
	}
	kept := bytes.Clone(p.bytes)
	p.free()
	p.bytes = kept
	err = r.do(func(a *clientStream) error {
		a.sendMu.Lock()
		defer a.sendMu.Unlock()
		err := a.sendParcel(m, &p, last)
		a.half = a.half || last
		if err != nil && err != io.EOF {
			a.finish(err)
			err = io.EOF
		}
		return err
	}, len(kept))
	if err == io.EOF && last {
		return nil
	}
	return err
}

func (r *retryCall) CloseSend() error {
	if r.half {
		return nil
	}
	r.half = true
	r.do(func(a *clientStream) error { a.CloseSend(); return nil }, 0)
	return nil
}

func (r *retryCall) RecvMsg(m any) error {
	err := r.do(func(a *clientStream) error { return a.RecvMsg(m) }, -1)
	switch {
	case err == io.EOF:
		r.finish(nil)
		return io.EOF
	case err != nil:
		return r.finish(err)
	case !r.desc.ServerStreams:
		return r.finish(nil)
	}
	return nil
}

func (r *retryCall) Header() (md metadata.MD, err error) {
	err = r.do(func(a *clientStream) (err error) {
		if md, err = a.Header(); err == nil && md == nil { // the server has ended the call without one
			return a.result()
		}
		return err
	}, -1)
	if err != nil {
		r.finish(err)
	}
	return md, err
}

func (r *retryCall) Trailer() metadata.MD {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.cur == nil { // no attempt was made
		return nil
	}
	return r.cur.Trailer()
}

// Context is that of the current attempt, to which it commits the call.
func (r *retryCall) Context() context.Context {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.commit()
	return r.cur.Context()
}

func (r *retryCall) finish(err error) error {
	r.over.Do(func() {
		r.outcome = callError(err)
		if r.outcome == nil {
			r.th.succeeded()
		}
		r.stop()
		if a := r.cur; a != nil { // there will be no other attempt
			a.finish(r.outcome)
			a.answer(&r.info)
		}
		for _, f := range r.info.finish {
			f(r.outcome)
		}
	})
	return r.outcome
}
