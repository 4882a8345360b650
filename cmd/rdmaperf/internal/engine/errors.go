package engine

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"syscall"

	"github.com/rdmaperf/rdmaperf/reports"
	"github.com/rdmaperf/rdmaperf/transports"
	"github.com/rdmaperf/rdmaperf/transports/rdma"
)

// CorruptionError says which byte arrived changed, and where.
type CorruptionError struct {
	Point  string // what was measured
	Side   string // who noticed: client or server
	QP     int
	What   string // the place: "echo 17", "window slot 3"
	Offset int    // of the byte
	Want   byte
	Got    byte
}

// Error reads "latency send 64 B: qp 0: echo 17: byte 5 is 0x00, want 0xa7 (seen by the client)".
func (e *CorruptionError) Error() string {
	return fmt.Sprintf("%s: qp %d: %s: byte %d is %#02x, want %#02x (seen by the %s)", e.Point, e.QP, e.What, e.Offset,
		e.Got, e.Want, e.Side)
}

var ErrInterrupted = errors.New("interrupted")

func Corrupted(err error) error {
	return &reports.ExitError{Code: reports.ExitCorruption, Operation: "verify data", Err: err,
		Hint: "the same run again, and another --transport to tell the path from the memory"}
}

func Interrupted() error {
	return &reports.ExitError{Code: reports.ExitInterrupted, Operation: "run", Err: ErrInterrupted}
}

func PeerError(operation string, err error, hint string) error {
	return &reports.ExitError{Code: reports.ExitPeer, Operation: operation, Err: err, Hint: hint}
}

func Failed(operation string, err error) error {
	return &reports.ExitError{Code: reports.ExitFailed, Operation: operation, Err: err}
}

// Refused is the error of a point that its workload does not take.
func Refused(err error) error {
	return &reports.ExitError{Code: reports.ExitUsage, Operation: "check point", Err: err}
}

func StatusError(l *Lane, d transports.Done) error {
	code := reports.ExitFailed
	switch d.Status {
	case rdma.StatusWRFlushErr, rdma.StatusRetryExcErr, rdma.StatusRemAbortErr, rdma.StatusFatalErr:
		code = reports.ExitPeer // the connection is gone, and not by this side's doing
	}
	return &reports.ExitError{Code: code, Operation: l.Sh.String(), Err: fmt.Errorf("qp %d: %s completed with: %w",
		l.Index, d.Kind, &rdma.StatusError{WC: rdma.WC{Status: d.Status}})}
}

// TransportError classifies a control-path error of a transport.
func TransportError(operation string, err error) error {
	code, hint := reports.ExitFailed, ""
	switch {
	case errors.Is(err, syscall.EMFILE), errors.Is(err, syscall.ENFILE):
		hint = "ulimit -n with a larger number, or fewer connections"
	case errors.Is(err, rdma.ErrUnreachable), errors.Is(err, context.DeadlineExceeded):
		code, hint = reports.ExitPeer, "the data path: a firewall may pass the control port only"
	case errors.Is(err, rdma.ErrRejected), errors.Is(err, rdma.ErrProtocol), errors.Is(err, rdma.ErrFabric),
		errors.Is(err, syscall.ECONNRESET), errors.Is(err, syscall.ECONNREFUSED), errors.Is(err, syscall.EPIPE):
		code = reports.ExitPeer
	case errors.Is(err, rdma.ErrNotSupported), errors.Is(err, rdma.ErrNoDevice):
		code = reports.ExitNotRun
	}
	hint = cmp.Or(rdma.Advice(err), hint) // who knows the cause knows best
	return &reports.ExitError{Code: code, Operation: operation, Err: err, Hint: hint}
}

var ErrStalled = errors.New("no progress")
