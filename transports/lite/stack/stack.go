// Package stack is LITE as workloads see it: a [transports.Transport] of sessions through handles of named regions
// (package session), and a [transports.CallTransport] whose calls are LITE's own.
//
// A listener, and a server of calls, manages a cluster of its own; who dials joins it, once for each address. A [Stack]
// owns its device, and a node is closed with its last session, listener, connection or server. A server of calls has a
// port for each mode and method, and one goroutine that polls the node and answers in turn.
//
// There is no event mode, no inline data and no write with immediate. Operations of unlike priority of one session are
// not ordered: each priority has a client of its own.
package stack

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/rdmaperf/rdmaperf/transports"
	"github.com/rdmaperf/rdmaperf/transports/lite"
	"github.com/rdmaperf/rdmaperf/transports/lite/session"
	"github.com/rdmaperf/rdmaperf/transports/lite/wire"
	"github.com/rdmaperf/rdmaperf/transports/rdma"
)

// Stack is LITE over one device. Its methods are safe for concurrent use.
type Stack struct {
	*session.Sessions
	dev  rdma.Device
	caps rdma.Caps
	cfg  Config

	mu    sync.Mutex
	nodes []*lite.Node // that were opened, also those that ended
}

var (
	_ transports.Transport     = (*Stack)(nil)
	_ transports.CallTransport = (*Stack)(nil)
)

// New makes the stack of dev, and owns dev from its success on; rdma.ErrNotSupported if dev cannot carry it.
func New(dev rdma.Device, cfg Config) (*Stack, error) {
	caps := dev.Caps()
	if err := caps.Missing(rdma.Need{Ops: rdma.Ops(rdma.OpSend, rdma.OpWrite, rdma.OpRead), SGE: 2}); err != nil {
		return nil, err
	}
	if !caps.Ops.Has(rdma.OpWriteImm) {
		cfg.Sends = true
	}
	switch {
	case cfg.Sched && caps.Priorities < 2:
		return nil, fmt.Errorf("%s has no priorities to schedule by: %w", dev.Name(), rdma.ErrNotSupported)
	case cfg.QoS == lite.QoSHWSep && cfg.Links == 1:
		return nil, fmt.Errorf("queue pairs set apart need at least two: %w", rdma.ErrInvalid)
	case cfg.Arena < 0 || cfg.Links < 0 || cfg.Links > lite.MaxLinks:
		return nil, fmt.Errorf("%d queue pairs, arena of %d bytes: %w", cfg.Links, cfg.Arena, rdma.ErrInvalid)
	}
	s := &Stack{dev: dev, caps: caps, cfg: cfg}
	s.Sessions = session.New(dev, s.Caps(),
		func(ctx context.Context, listen, manager string, cfg transports.Config) (session.Node, error) {
			return s.open(ctx, listen, manager, sessionNeed(cfg), cfg.Secret)
		})
	return s, nil
}

// Name is the tier over its device, with parameters.
func (s *Stack) Name() string { return s.cfg.name(s.dev) }

// Counts are those of its nodes and of the device.
func (s *Stack) Counts() []rdma.Counts {
	s.mu.Lock()
	defer s.mu.Unlock()
	all := map[string]int64{"messages": 0, "heads": 0, "credits": 0, "pieces": 0, "queue_pairs": 0}
	for _, n := range s.nodes {
		c := n.Counts()
		all["messages"] += int64(c.Messages)
		all["heads"] += int64(c.Heads)
		all["credits"] += int64(c.Credits)
		all["pieces"] += int64(c.Pieces)
		all["queue_pairs"] += int64(c.Links)
	}
	return append([]rdma.Counts{{Layer: "lite", Values: all, Detail: true}}, rdma.CountsOf(s.dev)...)
}

// maxDepth bounds the operations of a session, whose ring is allocated at once.
const maxDepth = 1 << 12

var callModes = transports.CallModes(transports.CallUnary, transports.CallStream, transports.CallOneWay)

// Caps are those of sessions, and of calls.
func (s *Stack) Caps() transports.Caps {
	d := &s.caps
	c := session.Caps(d)
	c.InProcess, c.Clock, c.Unaided = d.Label == rdma.LabelMem || d.Clock != nil, d.Clock, d.Unaided
	c.MaxSessions, c.MaxConns, c.MaxDepth, c.Priorities = MaxSessions, MaxConns, maxDepth, d.Priorities
	c.CallModes = callModes
	if s.cfg.QoS != lite.QoSNone {
		c.Priorities = max(c.Priorities, 2)
	}
	return c
}

// CallCost is how calls are carried and waited for.
func (s *Stack) CallCost() transports.CallCost {
	form := "write with immediate"
	if s.cfg.Sends {
		form = "write and send"
	}
	c := transports.CallCost{Form: form, Mode: "poll by " + s.cfg.Polling.String(), BusyTime: s.cfg.Spin}
	s.Joined(func(n session.Node) { c.Registered = max(c.Registered, n.(node).Arena()) })
	return c
}

// Polling is which goroutine polls for arrivals.
type Polling uint8

const (
	PollCaller   Polling = iota // callers that wait poll; the node's goroutine takes the rest
	PollNode                    // the node's one goroutine polls for ever, callers poll for a while and then sleep
	PollAdaptive                // both poll for a while and then sleep
	numPollings
)

var pollingNames = [numPollings]string{"caller", "node", "adaptive"}

// String is the name as in a stack's name.
func (p Polling) String() string { return pollingNames[p] }

// ParsePolling is the inverse of String.
func ParsePolling(s string) (Polling, bool) {
	i := slices.Index(pollingNames[:], s)
	return Polling(max(i, 0)), i >= 0
}

// Config chooses how nodes are made. The zero value is the default.
type Config struct {
	Links   int  // queue pairs to each peer (K); 0: 4
	Each    bool // a queue pair for each client, of up to EachLinks, instead
	QoS     lite.QoS
	Sched   bool // priorities are those of a scheduler below, which must be there
	Sends   bool // send arrivals' numbers although the device has immediate data
	Polling Polling
	Spin    time.Duration // how long PollNode and PollAdaptive poll before they sleep; 0: 10 µs
	Arena   int           // bytes; 0: by what the first session or connection needs
}

const (
	EachLinks   = lite.MaxLinks / 2    // clients that have a queue pair of their own: half of what a node can have
	MaxSessions = wire.ControlPort - 1 // of a listener: one port each, and one for set-up
	MaxConns    = lite.MaxClients / 4  // of a node: a client each, and one for each caller and priority

	baseArena = 64 << 20
	mostArena = 8 << 30
	deadAfter = 15 * time.Second // long: both ends spin, and the machine may have two CPUs
)

// node is the configuration of a node whose sessions or connections need so many bytes.
func (c *Config) node(need int) lite.Config {
	n := lite.Config{Links: cmp.Or(c.Links, 4), QoS: c.QoS, Sends: c.Sends, Spin: c.Spin, Arena: c.Arena,
		DeadAfter: deadAfter}
	if c.Each {
		n.Links = EachLinks
	}
	if c.Polling == PollNode {
		n.Polling = lite.PollSpin
	}
	if n.Arena == 0 {
		// The pages of what is not used are never touched on a device in software.
		n.Arena = baseArena + min(16*need, mostArena)
	}
	return n
}

// NodeConfig is how nodes of the stack are made, but for where they listen and whom they join.
func (s *Stack) NodeConfig() lite.Config { return s.cfg.node(0) }

// Node is the configuration of a node, without addresses.
func (c *Config) Node() lite.Config { return c.node(0) }

func (c *Config) wait() lite.Waiting {
	if c.Polling == PollCaller {
		return lite.WaitPoll
	}
	return lite.WaitAdaptive
}

// name is the layer with everything that distinguishes results.
func (c *Config) name(dev rdma.Device) string {
	k := fmt.Sprintf("k=%d", cmp.Or(c.Links, 4))
	if c.Each {
		k = "k=thread"
	}
	p := []string{k}
	if c.Sends {
		p = append(p, "sends")
	}
	switch {
	case c.Sched:
		p = append(p, "qos=sched")
	case c.QoS == lite.QoSHWSep:
		p = append(p, "qos=hwsep")
	case c.QoS == lite.QoSSWPri:
		p = append(p, "qos=swpri")
	}
	if c.Polling != PollCaller {
		p = append(p, "poll="+c.Polling.String())
	}
	if c.Spin > 0 {
		p = append(p, "spin="+strings.ReplaceAll(c.Spin.String(), "µ", "u"))
	}
	if c.Arena != 0 {
		p = append(p, fmt.Sprintf("arena=%d", c.Arena))
	}
	return "lite(" + strings.Join(p, ",") + ")+" + dev.Name()
}

// sessionNeed is what one session takes of the arena, bytes.
func sessionNeed(cfg transports.Config) int {
	_, size := session.RingFor(cfg.Window)
	return cfg.Window + size
}

// callNeed is what the calls of one connection take at most, at either end.
func callNeed(cfg transports.CallConfig) int {
	_, size := session.RingFor(cfg.MaxRequest)
	return size + max(cfg.Callers, 1)*(cfg.MaxRequest+cfg.MaxResponse+textRoom)
}
