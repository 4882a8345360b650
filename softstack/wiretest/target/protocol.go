package target

import (
	"time"

	"github.com/rdmaperf/rdmaperf/transports/rdma"
)

// Version of the protocol. Other ones are refused.
const Version = 1
const magic = "rdmaperf victim"

// Bounds of what one side takes from the other, octets a line.
const (
	maxRequest = 16 << 10
	maxReply   = 512 << 10
)

// Hello is the first line, from the target.
type Hello struct {
	Magic     string   `json:"magic"`
	Version   int      `json:"version"`
	Transport string   `json:"transport"` // the stack under test
	Variants  []string `json:"variants"`  // parameters with which it can be opened besides
}

// Region is memory of the target, as a peer names it.
type Region struct {
	STag uint32 `json:"stag"`
	TO   uint64 `json:"to"`  // of its first octet
	Off  int    `json:"off"` // of its first octet in the arena
	Len  int    `json:"len"`
}

// Names of regions.
const (
	AllRights = "target"    // every right that the device grants
	NoRights  = "quiet"     // no remote right
	Readable  = "readable"  // remote read only
	OtherPD   = "far"       // every right, in another protection domain
	Revocable = "revocable" // the peer may invalidate it; missing where the device has no such thing
	Freed     = "freed"     // closed: only its STag is left
	Work      = "work"      // sink of reads and atomics, source of sends
	Receives  = "receives"
)

// Stage is what to prepare: one QP and how it gets its connection.
type Stage struct {
	Variant string `json:"variant,omitempty"` // parameter that the device is opened with
	Recvs   int    `json:"recvs"`             // receives to post, up to maxRecvs
	RecvLen int    `json:"recv_len"`          // octets each
	IRD     int    `json:"ird"`
	ORD     int    `json:"ord"`
	Connect string `json:"connect,omitempty"` // address to connect to; "" listens and accepts once
	Private []byte `json:"private,omitempty"`
	Post    []Post `json:"post,omitempty"` // as soon as it is connected
	WaitMS  int    `json:"wait_ms"`        // deadline of the connect or accept
}

// Ready answers a Stage.
type Ready struct {
	Listen  string            `json:"listen,omitempty"` // where it accepts
	Regions map[string]Region `json:"regions"`
	Arena   int               `json:"arena"` // octets
	Stride  int               `json:"stride"`
	Ops     rdma.OpSet        `json:"ops"`
	Revokes bool              `json:"revokes"`
}

// Post is one send request. Payload, and what a read or an atomic fetches, lies at the beginning of Work.
type Post struct {
	Op    rdma.Opcode `json:"op"`
	Len   int         `json:"len"`
	STag  uint32      `json:"stag,omitempty"`
	TO    uint64      `json:"to,omitempty"`
	Value uint64      `json:"value,omitempty"` // fetch_add: addend; cmp_swap: expected; immediate
	Swap  uint64      `json:"swap,omitempty"`
	Fence bool        `json:"fence,omitempty"`
}

// FirstPost numbers send requests in completions, from here on; receives are 1, 2, ….
const FirstPost = 1000

// Joined is how a stage's connect or accept ended.
type Joined struct {
	Pending  bool   `json:"pending,omitempty"` // not yet
	Error    string `json:"error,omitempty"`
	Rejected bool   `json:"rejected,omitempty"`
	Private  []byte `json:"private,omitempty"` // of the peer
}

// Completion is one work completion.
type Completion struct {
	ID       uint64 `json:"id"`
	Status   string `json:"status"` // "success" or rdma's words
	Len      uint32 `json:"len"`
	Imm      uint32 `json:"imm,omitempty"`
	HasImm   bool   `json:"has_imm,omitempty"`
	Inv      uint32 `json:"inv,omitempty"`
	HasInv   bool   `json:"has_inv,omitempty"`
	WriteImm bool   `json:"write_imm,omitempty"`
}

// Good reports success.
func (c *Completion) Good() bool { return c.Status == rdma.StatusSuccess.String() }

type request struct {
	Do     string `json:"do"`
	Stage  *Stage `json:"stage,omitempty"`
	Post   []Post `json:"post,omitempty"`
	N      int    `json:"n,omitempty"`
	WaitMS int    `json:"wait_ms,omitempty"`
	Sum    uint32 `json:"sum,omitempty"`
}

// What a request asks for.
const (
	doStage       = "stage"
	doJoined      = "joined"
	doPost        = "post"
	doCompletions = "completions"
	doMemory      = "memory"
	doState       = "state"
)

type reply struct {
	Error       string       `json:"error,omitempty"`
	Unsupported bool         `json:"unsupported,omitempty"` // the device cannot do it
	Ready       *Ready       `json:"ready,omitempty"`
	Joined      *Joined      `json:"joined,omitempty"`
	Completions []Completion `json:"completions,omitempty"`
	Memory      []byte       `json:"memory,omitempty"`
	Same        bool         `json:"same,omitempty"` // the memory has the sum that was asked for
	State       string       `json:"state,omitempty"`
}

// Limits of what a peer may ask for.
const (
	maxRecvs  = 64
	recvRoom  = 1024 // octets between two receives
	postDepth = 32
	cqDepth   = 256
	maxDepth  = 64 // IRD and ORD
	longest   = time.Minute
)

// The arena: canaries everywhere, regions between them.
const (
	guard     = 4096
	targetOff = guard
	targetLen = 68 << 10 // one FPDU of the longest ULPDU fits
	smallLen  = 4096
	quietOff  = targetOff + targetLen + guard
	readOff   = quietOff + smallLen + guard
	farOff    = readOff + smallLen + guard
	revokeOff = farOff + smallLen + guard
	workOff   = revokeOff + smallLen + guard
	recvOff   = workOff + smallLen + guard
	recvLen   = maxRecvs * recvRoom
	arenaLen  = recvOff + recvLen + guard
)

// Canaries is what the arena holds when a stage begins.
func Canaries() []byte {
	b := make([]byte, arenaLen)
	fillCanaries(b)
	return b
}

func fillCanaries(b []byte) {
	for i := range b {
		b[i] = byte(i*7 + i>>8)
	}
}
