package main

import (
	"strconv"

	"github.com/rdmaperf/rdmaperf/transports"
	"github.com/rdmaperf/rdmaperf/transports/lite"
	"github.com/rdmaperf/rdmaperf/transports/lite/stack"
	"github.com/rdmaperf/rdmaperf/transports/rdma"
)

const liteName = "lite"

// perThread is the value of k= that gives each client a queue pair of its own.
const perThread = "thread"

var liteParams = params[stack.Config]{
	{paramDoc{"k", wordOf("1", "2", "4", "8", perThread), "4", "queue pairs to a peer, shared by all sessions and callers; thread is one for each of them, up to " + strconv.Itoa(stack.EachLinks)},
		func(c *stack.Config, v value) (err error) {
			if c.Each = v.text == perThread; !c.Each {
				c.Links, err = strconv.Atoi(v.text)
			}
			return err
		}},
	{paramDoc{"qos", wordOf("none", "hwsep", "swpri", "sched"), "none", "low priority has a queue pair set apart, or is paced by the load of high, or is for sched below"},
		func(c *stack.Config, v value) error {
			c.Sched = v.text == "sched"
			c.QoS = map[string]lite.QoS{"hwsep": lite.QoSHWSep, "swpri": lite.QoSSWPri}[v.text]
			return nil
		}},
	{paramDoc{"poll", wordOf("caller", "node", "adaptive"), "caller", "who polls for calls: who waits; the node's one thread, for ever; or both for spin= and then they sleep"},
		func(c *stack.Config, v value) error { c.Polling, _ = stack.ParsePolling(v.text); return nil }},
	{paramDoc{"spin", timeOf, "10us", "with poll=node and adaptive: how long is polled before a sleep"},
		func(c *stack.Config, v value) error { c.Spin = v.d; return nil }},
	{paramDoc{"sends", switchOf, "where there is no immediate data", "a send tells of each write, instead of immediate data"},
		func(c *stack.Config, v value) error { c.Sends = true; return nil }},
	{paramDoc{"arena", sizeOf, "by what the first session needs", "memory that a node registers, once, for everything"},
		func(c *stack.Config, v value) error { c.Arena = v.n; return nil }},
}

func mountLite(l layer, below rdma.Device) (transports.Stack, error) {
	var c stack.Config
	if err := liteParams.read(l, &c); err != nil {
		return nil, err
	}
	s, err := stack.New(below, c)
	if err != nil {
		return nil, err
	}
	return s, nil
}
