package daemon

import (
	"encoding/binary"
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

func (r *request) put(b []byte) {
	_ = b[requestLen-1]
	e := binary.NativeEndian
	b[0], b[1], b[2], b[3] = uint8(r.kind), r.flags, r.priority, r.port
	e.PutUint32(b[4:], r.slot)
	e.PutUint64(b[8:], r.handle)
	e.PutUint64(b[16:], r.off)
	e.PutUint64(b[24:], r.local)
	e.PutUint64(b[32:], r.add)
	e.PutUint64(b[40:], r.swap)
	e.PutUint32(b[48:], r.len)
	e.PutUint32(b[52:], r.room)
	e.PutUint32(b[56:], uint32(r.node))
}

// get reads an entry once: what is checked is what is used.
func (r *request) get(b []byte) {
	var c [requestLen]byte
	copy(c[:], b)
	e := binary.NativeEndian
	*r = request{kind: kind(c[0]), flags: c[1], priority: c[2], port: c[3], slot: e.Uint32(c[4:]),
		handle: e.Uint64(c[8:]), off: e.Uint64(c[16:]),
		local: e.Uint64(c[24:]), add: e.Uint64(c[32:]), swap: e.Uint64(c[40:]), len: e.Uint32(c[48:]),
		room: e.Uint32(c[52:]), node: int32(e.Uint32(c[56:]))}
}

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

func (d *end) put(b []byte) {
	_ = b[endLen-1]
	e := binary.NativeEndian
	b[0], b[1], b[2], b[3] = uint8(d.kind), d.status, d.flags, d.from
	e.PutUint32(b[4:], d.slot)
	e.PutUint32(b[8:], d.len)
	e.PutUint32(b[12:], uint32(d.code))
	e.PutUint32(b[16:], d.token)
	e.PutUint32(b[20:], d.tag)
}

func (d *end) get(b []byte) {
	_ = b[endLen-1]
	e := binary.NativeEndian
	*d = end{kind: kind(b[0]), status: b[1], flags: b[2], from: b[3], slot: e.Uint32(b[4:]), len: e.Uint32(b[8:]),
		code:  int32(e.Uint32(b[12:])),
		token: e.Uint32(b[16:]),
		tag:   e.Uint32(b[20:]),
	}
}

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
