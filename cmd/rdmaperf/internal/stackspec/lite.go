package stackspec

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"

	"github.com/rdmaperf/rdmaperf/transports"
	"github.com/rdmaperf/rdmaperf/transports/lite"
	"github.com/rdmaperf/rdmaperf/transports/lite/daemonstack"
	"github.com/rdmaperf/rdmaperf/transports/lite/peerrpc"
	"github.com/rdmaperf/rdmaperf/transports/lite/stack"
	"github.com/rdmaperf/rdmaperf/transports/rdma"
)

const LITE = "lite"

// perThread is the value of k= that gives each client a queue pair of its own.
const perThread = "thread"

// LITEConfig is a layer of LITE, or of one of the peers of its calls.
type LITEConfig struct {
	stack.Config
	Daemon bool // the node lives in a process of its own
	cross  bool // with it: what crosses between the processes is not hidden
	Peer   bool // calls by form, and nothing else
	form   peerrpc.Form
}

var LITEParams = params[LITEConfig]{
	{paramDoc{"k", wordOf("1", "2", "4", "8", perThread), "4",
		"queue pairs to a peer, shared by all sessions and callers; thread is one for each of them, up to " +
			strconv.Itoa(stack.EachLinks)},
		func(c *LITEConfig, v value) {
			if c.Each = v.text == perThread; !c.Each {
				c.Links, _ = strconv.Atoi(v.text) // it is one of the words
			}
		}},
	{paramDoc{"qos", wordOf("none", "hwsep", "swpri", "sched"), "none",
		"low priority has a queue pair set apart, or is paced by the load of high, or is for sched below"},
		func(c *LITEConfig, v value) {
			c.Sched = v.text == "sched"
			c.QoS = map[string]lite.QoS{"hwsep": lite.QoSHWSep, "swpri": lite.QoSSWPri}[v.text]
		}},
	{paramDoc{"poll", wordOf("caller", "node", "adaptive"), "caller",
		"who polls for calls: the caller, unless others want the CPUs; the node's thread, without end; or both for spin=, " +
			"before they sleep"},
		func(c *LITEConfig, v value) { c.Polling, _ = stack.ParsePolling(v.text) }},
	{paramDoc{"spin", timeOf, "10us", "with poll=node and adaptive: how long to poll before sleeping"},
		func(c *LITEConfig, v value) { c.Spin = v.d }},
	{paramDoc{"sends", switchOf, "where there is no immediate data",
		"a send announces each write, instead of immediate data"},
		func(c *LITEConfig, _ value) { c.Sends = true }},
	{paramDoc{"arena", sizeOf, "by what the first session needs", "bytes that a node registers, once, for all its memory"},
		func(c *LITEConfig, v value) { c.Arena = v.n }},
	{paramDoc{"rpc", wordOf("imm", "send", "write"), "imm",
		"how calls are carried: by LITE, or for comparison by sends and receives, or by two writes into polled rings " +
			"(FaRM). The last two carry calls alone and take no other parameter"},
		func(c *LITEConfig, v value) {
			c.Peer, c.form = v.text != "imm", map[string]peerrpc.Form{"send": peerrpc.Send,
				"write": peerrpc.Write}[v.text]
		}},
	{paramDoc{"daemon", switchOf, "the node is inside the process",
		"the node is a process of its own, as of rdmaperf lite daemon; of the other parameters only k= applies"},
		func(c *LITEConfig, _ value) { c.Daemon = true }},
	{paramDoc{"cross", switchOf, "a shared page is polled",
		"with daemon: each request wakes the daemon, and the caller sleeps until it is done, instead of polling a " +
			"shared page"},
		func(c *LITEConfig, _ value) { c.cross = true }},
}

func mountLite(l Layer, below rdma.Device) (transports.Stack, error) {
	var c LITEConfig
	if err := LITEParams.Read(l, &c); err != nil {
		return nil, err
	}
	switch {
	case c.Daemon:
		return mountDaemon(l, below, &c)
	case c.Peer:
		if err := alone(l, "rpc"); err != nil {
			return nil, err
		}
		return stackOf(peerrpc.New(below, c.form))
	case c.cross:
		return nil, Refused(errors.New("cross has no effect without daemon"))
	}
	return stackOf(stack.New(below, c.Config))
}

// alone refuses parameters that have no effect beside the first of those that have.
func alone(l Layer, have ...string) error {
	for _, p := range l.Params {
		if name, _, _ := strings.Cut(p, "="); !slices.Contains(have, name) {
			return Refused(fmt.Errorf("%s has no effect with %s", name, have[0]))
		}
	}
	return nil
}

func mountDaemon(l Layer, below rdma.Device, c *LITEConfig) (transports.Stack, error) {
	if err := alone(l, "daemon", "cross", "k"); err != nil {
		return nil, err
	}
	if c.Each {
		return nil, Refused(errors.New("k=thread has no effect with daemon"))
	}
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	return stackOf(daemonstack.New(below, daemonstack.Config{Command: []string{self, LITE, "daemon", "--transport",
		below.Name()}, Cross: c.cross, Links: c.Links}))
}

func litePeer(l Layer) bool {
	var c LITEConfig
	return LITEParams.Read(l, &c) == nil && c.Peer
}
