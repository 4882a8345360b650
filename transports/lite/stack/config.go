package stack

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/rdmaperf/rdmaperf/transports"
	"github.com/rdmaperf/rdmaperf/transports/lite"
	"github.com/rdmaperf/rdmaperf/transports/lite/session"
	"github.com/rdmaperf/rdmaperf/transports/lite/wire"
	"github.com/rdmaperf/rdmaperf/transports/rdma"
)

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
