package transports

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/rdmaperf/rdmaperf/transports/rdma"
)

// CallMode is what becomes of the messages of a Caller.
type CallMode uint8

const (
	CallUnary  CallMode = iota // each request is a call of its own and has a response
	CallStream                 // requests and their responses in turn, on one call that lasts until End
	CallOneWay                 // requests that nobody answers, on one call whose End says how many arrived
	numCallModes
)

var callModeNames = [numCallModes]string{"unary", "stream", "oneway"}

// String is the name used on the command line and in results.
func (m CallMode) String() string { return nameIn(callModeNames[:], m, "mode?") }

// ParseCallMode is the inverse of String.
func ParseCallMode(s string) (CallMode, bool) {
	for m, name := range callModeNames {
		if name == s {
			return CallMode(m), true
		}
	}
	return 0, false
}

// CallModeSet is a set of modes.
type CallModeSet uint8

// CallModes builds a set.
func CallModes(ms ...CallMode) CallModeSet {
	var s CallModeSet
	for _, m := range ms {
		s |= 1 << m
	}
	return s
}

// Has tells membership.
func (s CallModeSet) Has(m CallMode) bool { return s&(1<<m) != 0 }

// CallMethods is how many methods a server tells apart: 0 and up.
const CallMethods = 16

// CallConfig is what both ends of the calls expect. Both use the same values, so that a
// transport which keeps messages in rings can make them long enough.
type CallConfig struct {
	MaxRequest, MaxResponse int // bytes
	Callers                 int // of a connection: calls outstanding on it
	Conns                   int // of a server, at once

	// Secret is what a connection has to show before its first call, at most 32 bytes: a
	// server ends who shows another one, or none, and tells him nothing. Empty: nothing.
	Secret []byte
}

// CallCost is what a connection costs this side, and how it is waited for. Fields that
// mean nothing to a transport are zero.
type CallCost struct {
	Form       string        // what carries the calls: "tcp", "fused"
	Mode       string        // of polling; "": left to the runtime and the kernel
	BusyTime   time.Duration // polled before it sleeps
	Pollers    int           // threads that poll for all connections
	Ring       int           // bytes of the receive ring of a connection
	Registered int           // bytes of registered memory of a connection
}

// CallTransport carries calls. It is a Stack whose Caps.Kinds has KindCall; a stack may
// be a Transport as well. Its methods are safe for concurrent use.
//
// Caps.CallModes, Caps.MaxMsg (of a request and of a response), Caps.MaxConns and
// Caps.Priorities (of Call.Priority) hold for its calls.
type CallTransport interface {
	Stack
	// DialCalls makes a connection of its own to a server of ListenCalls, and returns when
	// it stands. ctx bounds that and does not govern the connection.
	DialCalls(ctx context.Context, addr string, cfg CallConfig) (CallConn, error)
	// ListenCalls serves calls at "host:port" with h until the server is closed; port 0
	// picks one. ctx bounds the set-up.
	ListenCalls(ctx context.Context, addr string, cfg CallConfig, h CallHandler) (CallServer, error)
	CallCost() CallCost
}

// CallConn is a client's connection. It is safe for concurrent use: every goroutine that
// calls has a Caller of its own, and a connection has as many calls outstanding as Callers.
type CallConn interface {
	// Caller makes one. ctx governs its calls: when it ends, they fail with CallCanceled or CallDeadlineExceeded. A
	// mode that Caps.CallModes lacks is rdma.ErrNotSupported.
	Caller(ctx context.Context, cfg CallerConfig) (Caller, error)
	// Close ends all calls and the connection.
	Close() error
}

// CallerConfig is how a Caller calls.
type CallerConfig struct {
	Mode   CallMode
	Method uint8 // of a stream and of messages one way, below CallMethods; of unary calls Call.Method says it
	// of each call; a call that takes longer fails with CallDeadlineExceeded. 0: ctx alone decides
	Timeout time.Duration
}

// Check is rdma.ErrInvalid for a method that there is not, and rdma.ErrNotSupported for a mode that modes lack.
func (c *CallerConfig) Check(modes CallModeSet) error {
	switch {
	case c.Method >= CallMethods:
		return fmt.Errorf("method %d: %w", c.Method, rdma.ErrInvalid)
	case !modes.Has(c.Mode):
		return fmt.Errorf("calls of mode %v: %w", c.Mode, rdma.ErrNotSupported)
	}
	return nil
}

// MethodOf is the method of a call, or a *CallError: the caller has another mode, or there is no such method.
func (c *CallerConfig) MethodOf(q *Call) (uint8, error) {
	switch {
	case c.Mode == CallOneWay:
		return 0, WrongMode(c.Mode)
	case c.Mode != CallUnary:
		return c.Method, nil
	case q.Method >= CallMethods:
		return 0, &CallError{CallUnimplemented, fmt.Sprintf("method %d", q.Method)}
	}
	return q.Method, nil
}

// WrongMode is the error of a Call or Send with a caller of another mode.
func WrongMode(m CallMode) error {
	return &CallError{CallInvalidArgument, "not with a caller of the mode " + m.String()}
}

// Caller makes one call at a time. It belongs to one goroutine.
type Caller interface {
	// Call sends c.Request and waits for the response, which is in c.Response then: of
	// unary calls and streams. A failed one says so with a *CallError.
	Call(c *Call) error
	// Send sends a message one way. It may return before the message has left.
	Send(c *Call) error
	// End ends a stream, or messages one way: it returns when the server has taken all of them, and says how many.
	End() (messages int64, err error)
	// Free gives the last response back. Idempotent.
	Free()
	// Close frees the Caller. What it has under way ends; the connection stays.
	Close() error
}

// Call is a request and its response.
//
// The request belongs to the caller, who leaves it unchanged until the call has ended (and of messages one way until
// End): a transport may send it from where it lies. After an error it stays unchanged until the connection is closed.
// The response belongs to the transport, which lends it until Free, the Caller's next call or its Close.
type Call struct {
	Method   uint8 // of the server, below CallMethods; unary calls only
	Priority uint8 // higher is more urgent; ignored beyond Caps.Priorities
	Request  []byte
	Response Parts
}

// CallServer is a server at work.
type CallServer interface {
	Addr() string
	// Close ends all connections and calls. It returns when the last handler has.
	Close() error
}

// CallHandler answers requests. It is called by many goroutines at once, or by one that
// polls for all connections: it must not wait for other calls.
type CallHandler interface {
	// ServeCall takes s.Request and sets s.Response, which is ignored one way. An error
	// ends the call; the caller gets its code, if it is a *CallError, and its text.
	ServeCall(s *Served) error
}

// Served is one request at the server, which is the handler's until it returns. The
// request's bytes are the transport's. The response's bytes are the handler's, who leaves
// them unchanged until Owner is told; without an Owner, until the server is closed.
type Served struct {
	Ctx      context.Context // ends when nobody waits for the answer any more
	Mode     CallMode
	Method   uint8
	Request  Parts
	Response []byte
	Owner    Releaser // set by the handler; nil: nobody waits for the response's memory
}

// Releaser owns bytes that were lent.
type Releaser interface {
	// Release says that the bytes are not read any more. It is called once, or never where
	// keeping account would cost more than the memory.
	Release()
}

// CallCode says what ended a call. The codes mean what gRPC's of the same name mean (grpc.io/docs/guides/status-codes),
// of which these are the ones that who carries bytes can tell apart.
type CallCode uint8

const (
	CallUnknown           CallCode = iota // none of the others
	CallCanceled                          // by this side
	CallDeadlineExceeded                  // no answer in time
	CallInvalidArgument                   // what no server would take
	CallNotFound                          // the handler has not what was asked for
	CallResourceExhausted                 // a limit: longer than the peer takes, or too many calls
	CallUnimplemented                     // no such method
	CallInternal                          // the transport or the peer broke its own rules
	CallUnavailable                       // the connection or the peer is gone
	CallDataLoss                          // bytes arrived changed
	numCallCodes
)

var callCodeNames = [numCallCodes]string{"Unknown", "Canceled", "DeadlineExceeded", "InvalidArgument", "NotFound",
	"ResourceExhausted", "Unimplemented", "Internal", "Unavailable", "DataLoss"}

// String is the code as messages name it.
func (c CallCode) String() string { return nameIn(callCodeNames[:], c, "code?") }

// CallError is how a call failed.
type CallError struct {
	Code CallCode
	Text string // of the transport or of the handler
}

// Error reads "Unavailable: the peer ended the connection".
func (e *CallError) Error() string { return e.Code.String() + ": " + e.Text }

// AsCallError is err as a *CallError. The end of a context has its own code, as a handler
// returns that of its call; any other error is CallUnknown with its text. Nil stays nil.
func AsCallError(err error) *CallError {
	var e *CallError
	switch {
	case err == nil:
		return nil
	case errors.As(err, &e):
		return e
	case errors.Is(err, context.DeadlineExceeded):
		return &CallError{CallDeadlineExceeded, err.Error()}
	case errors.Is(err, context.Canceled):
		return &CallError{CallCanceled, err.Error()}
	}
	return &CallError{CallUnknown, err.Error()}
}
