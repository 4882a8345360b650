package daemon

import (
	"sync/atomic"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// The front of a client's place. Each word has a cache line of its own.
const (
	wordPosted = 0 * 64 // requests that the client wrote
	wordTaken  = 1 * 64 // of them, taken by the daemon
	wordEnded  = 2 * 64 // ends that the daemon wrote
	wordSeen   = 3 * 64 // of them, seen by the client
	wordAsleep = 4 * 64 // the client sleeps on wordEnded
	wordIdle   = 5 * 64 // the daemon sleeps

	depth      = 512 // of both rings; a power of two
	requestLen = 64
	endLen     = 32
	requestsAt = 4096
	endsAt     = requestsAt + depth*requestLen
	dataAt     = endsAt + depth*endLen // where the client's own bytes begin: whole pages
)

type page []byte

func (p page) word(at int) *atomic.Uint32 { return (*atomic.Uint32)(unsafe.Pointer(&p[at])) }

// kind is what a request asks for, or what an end is of.
type kind uint8

const (
	kindWrite kind = iota // these four in the order of lite.OpKind
	kindRead
	kindFetchAdd
	kindCmpSwap
	kindCall  // of a port of another node; the answer goes to off, of room bytes
	kindSend  // one way
	kindRecv  // a receive for a message to the client's own port
	kindReply // to the message with a token
	numKinds
)

// Flags of a request, and of a message that arrived.
const (
	flagFence  = 1 << iota // behind earlier reads
	flagOneWay             // of an end: no answer is expected
)

// request is one entry of the first ring.
type request struct {
	kind     kind
	flags    uint8
	priority uint8
	port     uint8
	slot     uint32
	handle   uint64 // kindSend: the tag; kindReply: the token
	off      uint64 // in the region; kindCall: in the place
	local    uint64 // in the place
	add      uint64
	swap     uint64
	len      uint32
	room     uint32 // kindCall: of the answer; kindRecv: of the message
	node     int32  // kindReply: the code
}

// Entries lie in the rings as in memory, whose layout they fill without a gap.
func (r *request) put(b []byte) { *(*request)(unsafe.Pointer(&b[:requestLen][0])) = *r }

// get reads an entry once: what is checked is what is used.
func (r *request) get(b []byte) { *r = *(*request)(unsafe.Pointer(&b[:requestLen][0])) }

// end is one entry of the second ring.
type end struct {
	kind   kind
	status uint8 // rdma.Status
	flags  uint8
	from   uint8 // node that sent a message
	slot   uint32
	len    uint32
	code   int32  // of the tier; 0 without one
	token  uint32 // to answer with
	tag    uint32
}

func (d *end) put(b []byte) { *(*end)(unsafe.Pointer(&b[:endLen][0])) = *d }

func (d *end) get(b []byte) { *d = *(*end)(unsafe.Pointer(&b[:endLen][0])) }

// The layouts must not grow.
const _ = uint(requestLen-unsafe.Sizeof(request{})) + uint(endLen-unsafe.Sizeof(end{}))

// Operations of futex(2), between processes.
const (
	futexWait = 0
	futexWake = 1
)

// wakeWord wakes a thread that sleeps on a word of memory that processes share.
func wakeWord(w *atomic.Uint32) {
	_, _, _ = unix.Syscall6(unix.SYS_FUTEX, uintptr(unsafe.Pointer(w)), futexWake, 1, 0, 0, 0)
}

// sleepWord sleeps while a word holds was, for at most d.
func sleepWord(w *atomic.Uint32, was uint32, d time.Duration) {
	t := unix.NsecToTimespec(int64(d))
	_, _, _ = unix.Syscall6(unix.SYS_FUTEX, uintptr(unsafe.Pointer(w)), futexWait, uintptr(was),
		uintptr(unsafe.Pointer(&t)), 0, 0)
}
