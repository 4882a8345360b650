package carrier

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"strconv"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/rdmaperf/rdmaperf/transports"
	"github.com/rdmaperf/rdmaperf/transports/rdma"
)

// Neutral calls are calls of this service: a method of each kind for each number.
const serviceName = "rdmaperf.Calls"

var methods = func() (m [3][transports.CallMethods]string) {
	for i, mode := range []string{"Unary", "Stream", "OneWay"} {
		for n := range m[i] {
			m[i][n] = "/" + serviceName + "/" + mode + strconv.Itoa(n)
		}
	}
	return m
}()

var streamDesc = [...]grpc.StreamDesc{transports.CallStream: {ServerStreams: true, ClientStreams: true},
	transports.CallOneWay: {ClientStreams: true}}

// DialCalls is Connect for neutral calls. Messages may have up to Caps.MaxMsg bytes, whatever cfg says.
func (c *Carrier) DialCalls(ctx context.Context, addr string, cfg transports.CallConfig) (transports.CallConn, error) {
	conn, err := c.connect(ctx, addr, cfg.Secret)
	if err != nil {
		return nil, err
	}
	return &callConn{conn}, nil
}

// CallCost is the form, how connections are waited for, and the memory of one on this side.
func (c *Carrier) CallCost() transports.CallCost {
	cost := transports.CallCost{Form: c.cfg.Form.String()}
	switch {
	case c.svc != nil:
		cost.Registered = c.svc.About().Memory
	case c.net != nil:
		cost.Registered = c.net.ConnMemory()
	}
	if p, err := c.cfg.Net.Polling.Normal(); c.cfg.Form.OverRDMA() && err == nil {
		cost.Mode, cost.BusyTime, cost.Pollers, cost.Ring = p.Mode.String(), max(p.BusyTime, 0), p.Pollers,
			c.cfg.Net.Ring
	}
	return cost
}

type callConn struct{ Conn }

var callOptions = []grpc.CallOption{grpc.CallContentSubtype(codecName)}

func (c *callConn) Caller(ctx context.Context, cfg transports.CallerConfig) (transports.Caller, error) {
	if cfg.Method >= transports.CallMethods {
		return nil, fmt.Errorf("method %d of calls, want less than %d: %w", cfg.Method, transports.CallMethods,
			rdma.ErrInvalid)
	}
	k := caller{conn: c, timeout: cfg.Timeout}
	k.ctx, k.cancel = context.WithCancel(ctx)
	if cfg.Mode == transports.CallUnary {
		return &k, nil
	}
	if int(cfg.Mode) >= len(streamDesc) {
		k.cancel()
		return nil, fmt.Errorf("calls of mode %v: %w", cfg.Mode, rdma.ErrNotSupported)
	}
	s, err := c.NewStream(k.ctx, &streamDesc[cfg.Mode], methods[cfg.Mode][cfg.Method], callOptions...)
	if err != nil {
		k.cancel()
		return nil, callError(err)
	}
	return &streamCaller{caller: k, s: s, oneWay: cfg.Mode == transports.CallOneWay}, nil
}

type caller struct {
	conn    *callConn
	ctx     context.Context
	cancel  context.CancelFunc
	timeout time.Duration
	out, in message
	calls   int64
}

func (k *caller) Call(c *transports.Call) error {
	k.Free()
	if c.Method >= transports.CallMethods {
		return &transports.CallError{Code: transports.CallUnimplemented,
			Text: fmt.Sprintf("method %d, want less than %d", c.Method, transports.CallMethods)}
	}
	ctx := k.ctx
	if k.timeout > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, k.timeout)
		defer cancel()
	}
	k.out.bytes = c.Request
	if err := k.conn.Invoke(ctx, methods[transports.CallUnary][c.Method], &k.out, &k.in, callOptions...); err != nil {
		return callError(err)
	}
	k.calls++
	c.Response = k.in.received()
	return nil
}

func (k *caller) Send(*transports.Call) error { return errMode(transports.CallUnary, "has answers") }

func (k *caller) End() (int64, error) { return k.calls, nil }
func (k *caller) Free()               { k.in.free() }

func (k *caller) Close() error {
	k.Free()
	k.cancel()
	return nil
}

func errMode(m transports.CallMode, why string) error {
	return &transports.CallError{Code: transports.CallInvalidArgument,
		Text: fmt.Sprintf("a caller of the mode %v %s", m, why)}
}

type streamCaller struct {
	caller
	s      grpc.ClientStream
	oneWay bool
	sent   int64
	ended  bool
}

func (k *streamCaller) Call(c *transports.Call) error {
	if k.oneWay {
		return errMode(transports.CallOneWay, "gets no answers")
	}
	k.Free()
	begun := time.Now() // before the timer: who is late by it is late by this
	if k.timeout > 0 {
		late := time.AfterFunc(k.timeout, k.cancel)
		defer late.Stop()
	}
	if err := k.send(c); err != nil {
		return k.timed(begun, err)
	}
	if err := k.s.RecvMsg(&k.in); err != nil {
		return k.timed(begun, k.reason(err))
	}
	c.Response = k.in.received()
	return nil
}

func (k *streamCaller) Send(c *transports.Call) error {
	if !k.oneWay {
		return errMode(transports.CallStream, "has answers")
	}
	return k.send(c)
}

func (k *streamCaller) send(c *transports.Call) error {
	k.out.bytes = c.Request
	if err := k.s.SendMsg(&k.out); err != nil {
		return k.reason(err)
	}
	k.sent++
	return nil
}

// timed is err, or that the exchange took too long, which ended its stream.
func (k *streamCaller) timed(begun time.Time, err error) error {
	if k.timeout > 0 && time.Since(begun) >= k.timeout && transports.AsCallError(err).Code == transports.CallCanceled {
		return &transports.CallError{Code: transports.CallDeadlineExceeded,
			Text: fmt.Sprintf("no answer within %v", k.timeout)}
	}
	return err
}

// reason is why a stream ended, where SendMsg returns io.EOF alone (grpc.ClientStream).
func (k *streamCaller) reason(err error) error {
	if err == io.EOF {
		if err = k.s.RecvMsg(&k.in); err == nil || err == io.EOF {
			err = errors.New("the server ended the stream")
		}
	}
	return callError(err)
}

func (k *streamCaller) End() (int64, error) {
	k.Free()
	if k.ended {
		return k.sent, nil
	}
	k.ended = true
	if err := k.s.CloseSend(); err != nil {
		return 0, callError(err)
	}
	err := k.s.RecvMsg(&k.in)
	defer k.Free()
	switch {
	case k.oneWay && err == nil:
		count := k.in.received().AppendTo(nil)
		if len(count) != countBytes {
			return 0, &transports.CallError{Code: transports.CallInternal, Text: fmt.Sprintf("a count of %d bytes", len(count))}
		}
		return int64(binary.LittleEndian.Uint64(count)), nil
	case err == io.EOF && !k.oneWay:
		return k.sent, nil
	case err == nil:
		return 0, &transports.CallError{Code: transports.CallInternal, Text: "an answer that nothing asked for"}
	}
	return 0, k.reason(err)
}

// countBytes is the answer to one-way messages: their number, little endian.
const countBytes = 8

// codesOf maps gRPC's codes; others are CallUnknown.
var codesOf = map[codes.Code]transports.CallCode{
	codes.Canceled: transports.CallCanceled, codes.DeadlineExceeded: transports.CallDeadlineExceeded,
	codes.InvalidArgument: transports.CallInvalidArgument,
	codes.NotFound:        transports.CallNotFound, codes.ResourceExhausted: transports.CallResourceExhausted,
	codes.Unimplemented: transports.CallUnimplemented,
	codes.Internal:      transports.CallInternal, codes.Unavailable: transports.CallUnavailable,
	codes.DataLoss: transports.CallDataLoss,
}

func callError(err error) error {
	var known *transports.CallError
	if errors.As(err, &known) {
		return err
	}
	s, _ := status.FromError(err)
	e := &transports.CallError{Code: codesOf[s.Code()], Text: s.Message()}
	if e.Code == transports.CallUnknown && s.Code() != codes.Unknown {
		e.Text = s.Code().String() + ": " + e.Text
	}
	return e
}
