package rping

import (
	"errors"
	"fmt"
	"time"

	"github.com/rdmaperf/rdmaperf/transports/rdma"
)

// ErrPeerGone: the connection ended in the middle of a ping.
var ErrPeerGone = errors.New("the peer ended the connection in the middle of a ping")

var errEnded = errors.New("connection ended")

// endedError: posted work was flushed because the connection ended. The vendor error is there on an orderly end, too.
type endedError struct{ vendorErr uint32 }

func (e *endedError) Error() string {
	if e.vendorErr == 0 {
		return errEnded.Error()
	}
	return fmt.Sprintf("%v (vendor error %#x)", errEnded, e.vendorErr)
}

func (e *endedError) Is(target error) bool { return target == errEnded }

// MalformedError is a peer that breaks rping's protocol.
type MalformedError struct{ What string }

func (e *MalformedError) Error() string { return "malformed: " + e.What }

func (e *MalformedError) Is(target error) bool { return target == rdma.ErrProtocol }

// MismatchError is data that came back changed.
type MismatchError struct {
	Ping      int
	Offset    int // of the first wrong byte
	Got, Want byte
	Wrong     int // number of wrong bytes
	Size      int
}

func (e *MismatchError) Error() string {
	return fmt.Sprintf("data mismatch: ping %d, offset %d of %d: got %#02x, want %#02x (%d wrong bytes)",
		e.Ping, e.Offset, e.Size, e.Got, e.Want, e.Wrong)
}

// TimeoutError is a peer that did not do its next step in time; errors.Is rdma.ErrUnreachable.
type TimeoutError struct {
	Step  string
	After time.Duration
}

func (e *TimeoutError) Error() string {
	return fmt.Sprintf("wait for %s: nothing within %v", e.Step, e.After)
}

func (e *TimeoutError) Is(target error) bool { return target == rdma.ErrUnreachable }
