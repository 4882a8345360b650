package session

import (
	"context"

	"github.com/rdmaperf/rdmaperf/transports/lite"
)

// Node is a node of LITE.
type Node interface {
	// User makes what one session uses the node through, with so many operations and receives outstanding.
	User(ctx context.Context, depth, receives int) (User, error)
	// Questions opens the port at which diallers ask for sessions.
	Questions(ctx context.Context) (Questions, error)
	// Close ends the node.
	Close() error
}

// User belongs to one goroutine. Where a method has the name of one of [lite.Client], it has its contract, too.
type User interface {
	ID() int
	Alloc(n int) ([]byte, error)
	Offset(b []byte) (uint64, error)
	Free(b []byte) error
	Publish(r lite.RegionConfig, b []byte) (lite.Handle, error)
	Map(name string, want lite.Perm, password string) (lite.Handle, error)
	Unmap(h lite.Handle) error
	FreeRegion(h lite.Handle) error

	// Ask calls port 0 of the manager. ctx bounds the wait for its answer.
	Ask(ctx context.Context, question []byte) ([]byte, error)
	// Open opens the session's port for messages of at most most bytes.
	Open(port, most int) error
	// WithPriority is the user for operations of that priority: another one, which only posts and polls and is closed by
	// its own Close, or this one where the node has no priorities.
	WithPriority(priority uint8) (User, error)

	Post(ops []lite.Op) (n int, err error)
	PostMessage(node, port int, tag uint32, local uint64, size, slot uint32, unsignaled, fence bool) error
	Poll(dst []lite.Done) (n int, err error)
	Pending() int
	// PostReceive posts receive i into room bytes at local.
	PostReceive(i int, local uint64, room uint32) error
	// Receive moves the oldest message into receive i at dst, the first without one, and returns its length.
	// lite.ErrEmpty: none is there; lite.ErrTooBig: it is longer than dst and lost; others: there will be none.
	Receive(i int, dst []byte) (int, error)
	// Progress lets the node take what arrives, where that is the poller's work.
	Progress()
	// Idle is called after the polls-th Poll in a row that returned nothing. An error is the end of the session by the
	// peer, a node whose window is far.
	Idle(polls, peer int, far lite.Handle) error
	// Bye ends the session behind everything that was posted, so that the peer notices.
	Bye(peer int)
	Close() error
}

// Questions is the port of a listener. Its methods are safe for concurrent use.
type Questions interface {
	// Addr is where diallers join.
	Addr() string
	// Next waits for a question until ctx ends; rdma.ErrClosed after Close.
	Next(ctx context.Context) (*Question, error)
	// Close closes the port and is idempotent.
	Close() error
}

// Question is one dialler's. Exactly one of Answer and Refuse is called.
type Question struct {
	Bytes  []byte
	From   int // node
	Answer func(b []byte) error
	Refuse func() error // of a question that is malformed
}
