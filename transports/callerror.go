package transports

import (
	"context"
	"errors"
)

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
func (c CallCode) String() string {
	if c < numCallCodes {
		return callCodeNames[c]
	}
	return "code?"
}

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
