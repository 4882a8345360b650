package stream

import "golang.org/x/sys/unix"

// Referrer is a Conn that can send by reference. Those of a stack that [References] are.
type Referrer interface {
	Conn
	// SendvRef is Sendv that copies only the pieces that begin in own. Any other is read
	// where it is, as often as it is sent: it must be there, and the same, until Unacked
	// has passed it, Detach has returned, or the connection is closed or lost.
	SendvRef(v []unix.Iovec, own []byte) (int, error)
	// Detach has the stack copy all that it references, so that no caller's memory is read
	// any more. Without memory for that the connection is lost.
	Detach()
}

// References reports whether the connections of s are Referrers.
func References(s Stack) bool {
	r, ok := s.(interface{ References() bool })
	return ok && r.References()
}
