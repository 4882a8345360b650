package lite

import (
	"errors"
	"fmt"

	"github.com/rdmaperf/rdmaperf/transports/rdma"
)

// Code is an error of the tier that has a number of its own, on the wire too. The
// first six are LITE's (lite.h); the others are this package's. Codes above 0 are the
// application's.
type Code int32

const (
	// ErrWait: the posted operation is not finished.
	ErrWait Code = -101
	// ErrEmpty: no message is there.
	ErrEmpty Code = -102
	// ErrNoPort: that port is not open at that node.
	ErrNoPort Code = -103
	// ErrPortFull: the ring has no room and got none in time.
	ErrPortFull Code = -104
	// ErrTooBig: the message is longer than the port takes, or the reply than the caller does.
	ErrTooBig Code = -105
	// ErrFail: the other node could not do it.
	ErrFail Code = -106

	// ErrDeadHandle: the region was freed or moved, the handle unmapped or never given.
	ErrDeadHandle Code = -111
	// ErrPermission: the handle, or the region, does not allow it.
	ErrPermission Code = -112
	// ErrPassword: not the region's password.
	ErrPassword Code = -113
	// ErrNoRegion: no region has that name.
	ErrNoRegion Code = -114
	// ErrExists: another region has that name.
	ErrExists Code = -115
	// ErrBounds: outside the region, or not aligned as an atomic needs it.
	ErrBounds Code = -116
	// ErrNoSpace: the arena of a node has no room.
	ErrNoSpace Code = -117
	// ErrPeerDead: the node left or died.
	ErrPeerDead Code = -118
	// ErrTimeout: the deadline of the client passed.
	ErrTimeout Code = -119
	// ErrLockLost: the lock was taken away from an owner that was thought dead, or is not held.
	ErrLockLost Code = -120
	// ErrNoMember: no node has that number.
	ErrNoMember Code = -121
	// ErrMemory: the bytes do not lie in the arena of this node.
	ErrMemory Code = -122
	// ErrClosed: the node, client or port was closed.
	ErrClosed Code = -123
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

// errorOf is a code from the wire as an error; nil for 0.
func errorOf(code int32) error {
	if code == 0 {
		return nil
	}
	if err, ok := known[code]; ok {
		return err
	}
	return ErrFail
}

// codeOf is err as a code for the wire.
func codeOf(err error) int32 {
	if err == nil {
		return 0
	}
	if c, ok := errors.AsType[Code](err); ok {
		return int32(c)
	}
	return int32(ErrFail)
}

func opError(op, object string, err error) error {
	return &rdma.OpError{Op: "lite " + op, Object: object, Err: err}
}
