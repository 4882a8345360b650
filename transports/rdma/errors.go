package rdma

import (
	"errors"
	"net"
	"strings"
)

// Sentinels that callers branch on. Those of the data path are returned bare, so
// that posting and polling allocate nothing.
var (
	// ErrNotSupported: the capability is not declared in Caps.
	ErrNotSupported = errors.New("not supported by this device")
	// ErrQueueFull: the send or receive queue has no room; poll completions and post again (ENOMEM
	// of ibv_post_send(3)).
	ErrQueueFull = errors.New("queue full")
	// ErrInvalid: an argument is outside its documented range (EINVAL).
	ErrInvalid = errors.New("invalid argument")
	// ErrState: the object's state does not allow the call.
	ErrState = errors.New("wrong state")
	// ErrBusy: the object is still in use by another one (EBUSY).
	ErrBusy = errors.New("still in use")
	// ErrClosed: the object was closed. errors.Is(ErrClosed, net.ErrClosed) holds.
	ErrClosed error = closedError{}
	// ErrNoRoom: the arena has no free piece of that size.
	ErrNoRoom = errors.New("no room in the arena")
	// ErrCQOverrun: completions were lost because the CQ was too small (IBV_EVENT_CQ_ERR). The CQ is unusable.
	ErrCQOverrun = errors.New("completion queue overrun")
	// ErrRejected: the peer refused the connection; see RejectError for its private data.
	ErrRejected = errors.New("connection rejected by the peer")
	// ErrUnreachable: no answer from the peer's address within the deadline, or none listens there.
	ErrUnreachable = errors.New("peer unreachable")
	// ErrFabric: the peer was heard, but the two ports have no packet format in common.
	ErrFabric = errors.New("peer on another fabric")
	// ErrNoDevice: the device, its port or the software below it is not here, or not up.
	ErrNoDevice = errors.New("no such RDMA device")
	// ErrProtocol: the peer does not speak the provider's protocol.
	ErrProtocol = errors.New("protocol error")
	// ErrAddrInUse: the listening address is taken.
	ErrAddrInUse = errors.New("address already in use")
)

type closedError struct{}

func (closedError) Error() string        { return "closed" }
func (closedError) Is(target error) bool { return target == net.ErrClosed }

// OpError is a control-path failure: operation, object, cause.
type OpError struct {
	Op     string // "connect", "listen", "register", "create qp" …
	Object string // address, QP number, size: what it was done to
	Err    error
}

// Error reads "op object: cause".
func (e *OpError) Error() string {
	if e.Object == "" {
		return e.Op + ": " + e.Err.Error()
	}
	return e.Op + " " + e.Object + ": " + e.Err.Error()
}

// Unwrap returns the cause.
func (e *OpError) Unwrap() error { return e.Err }

// AdviceError is a cause with what the user can try. The text is the cause's
// alone: how advice is shown is the command's business.
type AdviceError struct {
	Err error
	Try string // one line
}

// Error is the cause.
func (e *AdviceError) Error() string { return e.Err.Error() }

// Unwrap returns the cause.
func (e *AdviceError) Unwrap() error { return e.Err }

// Advice is what an AdviceError in err's chain says to try, or "".
func Advice(err error) string {
	var a *AdviceError
	if errors.As(err, &a) {
		return a.Try
	}
	return ""
}

// RejectError is the peer's refusal with its private data; errors.Is ErrRejected.
type RejectError struct{ PrivateData []byte }

// Error names the refusal.
func (e *RejectError) Error() string { return ErrRejected.Error() }

// Is matches ErrRejected.
func (e *RejectError) Is(target error) bool { return target == ErrRejected }

// MissingError lists what a device lacks; errors.Is ErrNotSupported.
type MissingError struct{ Gaps []string }

// Error lists the gaps.
func (e *MissingError) Error() string { return "device lacks " + strings.Join(e.Gaps, ", ") }

// Is matches ErrNotSupported.
func (e *MissingError) Is(target error) bool { return target == ErrNotSupported }

// StatusError is a failed completion as an error.
type StatusError struct{ WC WC }

// Error reads "remote access error (likely: …)".
func (e *StatusError) Error() string {
	if c := e.WC.Status.Cause(); c != "" {
		return e.WC.Status.String() + " (likely: " + c + ")"
	}
	return e.WC.Status.String()
}
