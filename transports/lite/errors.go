package lite

import (
	"errors"
	"fmt"

	"github.com/rdmaperf/rdmaperf/transports/rdma"
)

// Code is an error with a number of its own, also on the wire. The first six are LITE's (lite.h).
type Code int32

// Errors of this package. Codes above 0 are the application's.
const (
	ErrWait     Code = -101 // the posted operation is not finished
	ErrEmpty    Code = -102 // no message is there
	ErrNoPort   Code = -103 // that port is not open at that node
	ErrPortFull Code = -104 // the ring has no room and got none in time
	ErrTooBig   Code = -105 // the message is longer than the port takes, or the reply than the caller does
	ErrFail     Code = -106 // the other node could not do it

	ErrDeadHandle Code = -111 // the region was freed or moved, the handle unmapped or never given
	ErrPermission Code = -112 // the handle, or the region, does not allow it
	ErrPassword   Code = -113 // not the region's password
	ErrNoRegion   Code = -114 // no region has that name
	ErrExists     Code = -115 // another region has that name
	ErrBounds     Code = -116 // outside the region, or not aligned as an atomic needs it
	ErrNoSpace    Code = -117 // the arena of a node has no room
	ErrPeerDead   Code = -118 // the node left or died
	ErrTimeout    Code = -119 // the deadline of the client passed
	ErrLockLost   Code = -120 // the lock was taken away from an owner that was thought dead, or is not held
	ErrNoMember   Code = -121 // no node has that number
	ErrMemory     Code = -122 // the bytes do not lie in the arena of this node
	ErrClosed     Code = -123 // the node, client or port was closed
)

var codeText = map[Code]string{
	ErrWait: "not finished", ErrEmpty: "no message", ErrNoPort: "port not opened", ErrPortFull: "port is full",
	ErrTooBig: "message too big", ErrFail: "the other node failed", ErrDeadHandle: "dead handle",
	ErrPermission: "not permitted", ErrPassword: "wrong password", ErrNoRegion: "no such region",
	ErrExists: "region exists", ErrBounds: "outside the region", ErrNoSpace: "no room in the arena",
	ErrPeerDead: "node is dead", ErrTimeout: "deadline exceeded", ErrLockLost: "lock is not held",
	ErrNoMember: "no such node", ErrMemory: "memory outside the arena", ErrClosed: "closed",
}

// Error is the code in words, with its number.
func (c Code) Error() string {
	if s, ok := codeText[c]; ok {
		return fmt.Sprintf("%s (%d)", s, int32(c))
	}
	return fmt.Sprintf("error %d", int32(c))
}

// Is matches the waist's errors of the same meaning.
func (c Code) Is(target error) bool {
	switch c {
	case ErrClosed:
		return target == rdma.ErrClosed
	case ErrBounds, ErrMemory:
		return target == rdma.ErrInvalid
	}
	return false
}

// known are the codes as errors, so that one from the wire allocates nothing.
var known = func() map[int32]error {
	m := map[int32]error{}
	for c := range codeText {
		m[int32(c)] = c
	}
	return m
}()

// errorOf is a code below 0, as it comes from the wire, as an error.
func errorOf(code int32) error {
	if err, ok := known[code]; ok {
		return err
	}
	return ErrFail
}

func codeOf(err error) Code {
	if c, ok := errors.AsType[Code](err); ok {
		return c
	}
	return ErrFail
}

func opError(op, object string, err error) error {
	return &rdma.OpError{Op: "lite " + op, Object: object, Err: err}
}
