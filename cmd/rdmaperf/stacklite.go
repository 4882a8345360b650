package main

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

const liteName = "lite"

// perThread is the value of k= that gives each client a queue pair of its own.
const perThread = "thread"

// liteConfig is a layer of LITE, or of one of the peers of its calls.
type liteConfig struct {
	stack.Config
	daemon bool // the node lives in a process of its own
	cross  bool // with it: what crosses between the processes is not hidden
	peer   bool // calls by form, and nothing else
	form   peerrpc.Form
}

var liteParams = params[liteConfig]{
	{paramDoc{"k", wordOf("1", "2", "4", "8", perThread), "4", "queue pairs to a peer, shared by all sessions and callers; thread is one for each of them, up to " + strconv.Itoa(stack.EachLinks)},
		func(c *liteConfig, v value) (err error) {
			if c.Each = v.text == perThread; !c.Each {
				c.Links, err = strconv.Atoi(v.text)
			}
			return err
		}},
	{paramDoc{"qos", wordOf("none", "hwsep", "swpri", "sched"), "none", "low priority has a queue pair set apart, or is paced by the load of high, or is for sched below"},
		func(c *liteConfig, v value) error {
			c.Sched = v.text == "sched"
			c.QoS = map[string]lite.QoS{"hwsep": lite.QoSHWSep, "swpri": lite.QoSSWPri}[v.text]
			return nil
		}},
	{paramDoc{"poll", wordOf("caller", "node", "adaptive"), "caller", "who polls for calls: who waits; the node's one thread, for ever; or both for spin= and then they sleep"},
		func(c *liteConfig, v value) error { c.Polling, _ = stack.ParsePolling(v.text); return nil }},
	{paramDoc{"spin", timeOf, "10us", "with poll=node and adaptive: how long is polled before a sleep"},
		func(c *liteConfig, v value) error { c.Spin = v.d; return nil }},
	{paramDoc{"sends", switchOf, "where there is no immediate data", "a send tells of each write, instead of immediate data"},
		func(c *liteConfig, v value) error { c.Sends = true; return nil }},
	{paramDoc{"arena", sizeOf, "by what the first session needs", "memory that a node registers, once, for everything"},
		func(c *liteConfig, v value) error { c.Arena = v.n; return nil }},
	{paramDoc{"rpc", wordOf("imm", "send", "write"), "imm", "what calls are: LITE's own, or a peer of them: by sends and receives, or by two writes into rings polled in memory (FaRM). A peer has calls alone and no other parameter"},
		func(c *liteConfig, v value) error {
			c.peer, c.form = v.text != "imm", map[string]peerrpc.Form{"send": peerrpc.Send, "write": peerrpc.Write}[v.text]
			return nil
		}},
	{paramDoc{"daemon", switchOf, "the node lives inside the process", "the node lives in a process of its own, as rdmaperf lite daemon serves it; beside it k= alone"},
		func(c *liteConfig, v value) error { c.daemon = true; return nil }},
	{paramDoc{"cross", switchOf, "a shared page is polled", "with daemon: each request rings and its end is slept for, so that the crossing between the processes is not hidden"},
		func(c *liteConfig, v value) error { c.cross = true; return nil }},
}

func mountLite(l layer, below rdma.Device) (transports.Stack, error) {
	var c liteConfig
	if err := liteParams.read(l, &c); err != nil {
		return nil, err
	}
	switch {
	case c.daemon:
		return mountDaemon(l, below, &c)
	case c.peer:
		return mountPeer(l, below, c.form)
	case c.cross:
		return nil, refused(errors.New("cross has no effect without daemon"))
	}
	s, err := stack.New(below, c.Config)
	if err != nil {
		return nil, err
	}
	return s, nil
}

// mountPeer mounts what LITE's calls are held against.
func mountPeer(l layer, below rdma.Device, form peerrpc.Form) (transports.Stack, error) {
	if err := alone(l, "rpc"); err != nil {
		return nil, err
	}
	s, err := peerrpc.New(below, form)
	if err != nil {
		return nil, err
	}
	return s, nil
}

// alone refuses parameters that have no effect beside the first of those that have.
func alone(l layer, have ...string) error {
	for _, p := range l.params {
		if name, _, _ := strings.Cut(p, "="); !slices.Contains(have, name) {
			return refused(fmt.Errorf("%s has no effect beside %s", name, have[0]))
		}
	}
	return nil
}

// mountDaemon mounts LITE whose nodes are started as processes of this program.
func mountDaemon(l layer, below rdma.Device, c *liteConfig) (transports.Stack, error) {
	if err := alone(l, "daemon", "cross", "k"); err != nil {
		return nil, err
	}
	if c.Each {
		return nil, refused(errors.New("k=thread has no effect beside daemon"))
	}
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	s, err := daemonstack.New(below, daemonstack.Config{Command: []string{self, liteName, "daemon", "--transport", below.Name()}, Cross: c.cross, Links: c.Links})
	if err != nil {
		return nil, err
	}
	return s, nil
}

// litePeer tells what has calls alone from LITE inside the process.
func litePeer(l layer) bool {
	var c liteConfig
	return liteParams.read(l, &c) == nil && c.peer
}
