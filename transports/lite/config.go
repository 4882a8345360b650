package lite

import (
	"cmp"
	"fmt"
	"time"

	"github.com/rdmaperf/rdmaperf/transports/lite/ring"
	"github.com/rdmaperf/rdmaperf/transports/rdma"
)

// Limits. MaxNodes is LITE's (lite.h); the others bound memory.
const (
	MaxNodes   = 32
	MaxLinks   = 64      // queue pairs to one peer
	MaxClients = 4096    // of one node, at once
	MaxHandles = 1 << 17 // of one node, at once
	ChunkSize  = 4 << 20 // of a region (LITE_MEMORY_BLOCK)
)

// QoS is how low priority gives way to high (LITE, SOSP'17, §6.2).
type QoS uint8

const (
	QoSNone  QoS = iota // priorities are the device's business
	QoSHWSep            // low has queue pair 0, high the others
	QoSSWPri            // low is paced by the load and the latency of high at this node
)

// Waiting is how a caller waits for an answer.
type Waiting uint8

const (
	WaitAdaptive Waiting = iota // polls for Config.Spin, then sleeps; for long messages sleeps at once
	WaitPoll                    // polls until the end, or sleeps where other processes want the CPUs
	WaitSleep                   // sleeps at once
)

// Polling is what the node's one polling goroutine does.
type Polling uint8

const (
	PollAdaptive Polling = iota // polls for Config.Spin behind the last arrival, then sleeps
	PollSpin                    // polls for ever
)

// Config is how a node joins. Zero values mean the defaults.
type Config struct {
	Listen  string // where other nodes reach this one, "host:port"; port 0 picks one
	Manager string // address of the node that manages the cluster; "" makes this node it
	Secret  string // of the cluster; the same for all nodes

	Arena int // bytes registered once, for everything; 64 MiB
	Links int // queue pairs to each peer, shared by all clients of the node (K); 4
	Depth int // work requests, and receives, of each; 256
	Ring  int // bytes of the ring of a port and a client node; 1 MiB

	Segments    int // places of the arena for other processes (package daemon), beside Arena
	SegmentSize int // bytes of each, whole pages

	QoS     QoS
	Polling Polling
	Spin    time.Duration // how long adaptive waiting polls; 10 µs
	Sends   bool          // send arrivals' numbers although the device has immediate data

	Timeout   time.Duration // of every blocking call that has no deadline of its own; 5 s
	Beat      time.Duration // between two signs of life; 100 ms
	DeadAfter time.Duration // without one, a node is dead; 3 s
}

// longMessage is the size from which adaptive waiting sleeps at once (lite_api.c).
const longMessage = 40960

func (c Config) normal(caps *rdma.Caps) (Config, error) {
	c.Arena, c.Links = cmp.Or(c.Arena, 64<<20), cmp.Or(c.Links, 4)
	c.Depth, c.Ring = cmp.Or(c.Depth, 256), cmp.Or(c.Ring, 1<<20)
	c.Spin, c.Timeout = cmp.Or(max(c.Spin, 0), 10*time.Microsecond), cmp.Or(max(c.Timeout, 0), 5*time.Second)
	c.Beat, c.DeadAfter = cmp.Or(max(c.Beat, 0), 100*time.Millisecond), cmp.Or(max(c.DeadAfter, 0), 3*time.Second)
	if !caps.Ops.Has(rdma.OpWriteImm) {
		c.Sends = true
	}
	if err := ring.CheckSize(uint64(c.Ring)); err != nil {
		return c, fmt.Errorf("%w: %w", rdma.ErrInvalid, err)
	}
	for _, l := range []struct {
		what     string
		got      int
		from, to int
	}{
		{"queue pairs to a peer", c.Links, 1, MaxLinks},
		{"depth", c.Depth, 16, min(caps.MaxQPWR, 1<<14)},
		// At least what the books take, and a megabyte for use.
		{"arena in bytes", c.Arena, mailEnd + c.Links*c.Depth*(stageLen+8) + 2*controlRing + 1<<20, 1 << 40},
	} {
		if l.got < l.from || l.got > l.to {
			return c, fmt.Errorf("%s %d, want %d to %d: %w", l.what, l.got, l.from, l.to, rdma.ErrInvalid)
		}
	}
	if c.QoS == QoSHWSep && c.Links < 2 {
		return c, fmt.Errorf("queue pairs set apart need at least 2, not %d: %w", c.Links, rdma.ErrInvalid)
	}
	if err := c.checkSegments(); err != nil {
		return c, err
	}
	need := rdma.Need{Ops: rdma.Ops(rdma.OpSend, rdma.OpWrite, rdma.OpRead), SGE: 2}
	return c, caps.Missing(need)
}
