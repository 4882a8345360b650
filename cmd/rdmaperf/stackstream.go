package main

import (
	"errors"
	"strings"

	"github.com/rdmaperf/rdmaperf/reports"
	"github.com/rdmaperf/rdmaperf/softstack/lwip"
	"github.com/rdmaperf/rdmaperf/transports/stream"
)

// streamArgs choose the TCP/IP stack below iwarp and tcp.
type streamArgs struct {
	stack string
	lwip  lwip.Config
	own   string // the last parameter that is lwip's
}

// streamParams declares them for a layer that keeps them where at says.
func streamParams[C any](at func(*C) *streamArgs) params[C] {
	ps := params[C]{{paramDoc{"stack", wordOf("kernel", "raw", "sequential"), "kernel", "the TCP/IP stack below; raw is lwIP in user space, run by who polls, and sequential lwIP in a thread of its own"},
		func(c *C, v value) error { at(c).stack = v.text; return nil }}}
	for _, d := range []paramDoc{
		{"link", textOf("shm|xdp:IFACE"), "shm", "of a stack in user space: frames go through rings in shared memory, or through AF_XDP on an interface (root; between hosts, or network namespaces)"},
		{"copies", wordOf("one", "two"), "one", "of a stack in user space: copies of a packet on its way in"},
		{"threads", wordOf(lwip.C1, lwip.C2, lwip.C3), lwip.C2, "of stack=raw: c1 has a thread for packets, c2 does all in the one that polls, c3 has a thread that receives and places (iwarp)"},
		{"ring", textOf("FRAMES"), "1024", "of a stack in user space: frames of a ring, each way"},
		{"loss", textOf("P"), "0", "of a stack in user space: probability that a frame is lost"},
		{"dup", textOf("P"), "0", "of a stack in user space: likewise doubled"},
		{"reorder", textOf("P"), "0", "of a stack in user space: likewise overtaken"},
		{"seed", textOf("N"), "0", "of a stack in user space: of loss, dup and reorder"},
	} {
		ps = append(ps, param[C]{d, func(c *C, v value) error {
			a := at(c)
			a.own = d.name + "=" + v.text
			_, err := a.lwip.Set(d.name, v.text)
			return err
		}})
	}
	return ps
}

// receiveThread tells that the layer above has a thread that receives (c3).
func (a *streamArgs) receiveThread() bool { return a.lwip.Threads == lwip.C3 }

// open is the stack; nil is the kernel's.
func (a *streamArgs) open(l layer) (stream.Stack, error) {
	if a.stack == "" || a.stack == "kernel" {
		if a.own != "" {
			return nil, refuseParam(a.own, paramDoc{name: "stack", kind: wordOf("raw"), help: "beside it"}, "it belongs to stack=raw and the others in user space")
		}
		return nil, nil
	}
	for _, p := range l.params {
		if key, _, _ := strings.Cut(p, "="); key == "sndbuf" || key == "rcvbuf" {
			return nil, refuseParam(p, paramDoc{name: "stack", kind: wordOf("kernel"), help: "where they can be chosen"}, "the buffers of lwIP have one size")
		}
	}
	if a.lwip.Sequential = a.stack == "sequential"; a.lwip.Sequential && a.lwip.Threads != "" {
		return nil, refuseParam("threads="+a.lwip.Threads, paramDoc{name: "stack", kind: wordOf("raw"), help: "whose threads can be chosen"}, "stack=sequential has threads of its own")
	}
	if a.receiveThread() && l.name != "iwarp" {
		return nil, refuseParam("threads=c3", paramDoc{name: "threads", kind: wordOf(lwip.C1, lwip.C2), help: "for " + l.name}, "only iwarp has placement to give a thread to")
	}
	s, err := lwip.Open(a.lwip)
	if errors.Is(err, lwip.ErrAbsent) {
		return nil, &reports.ExitError{Code: reports.ExitNotRun, Err: err, Hint: "stack=kernel, which is everywhere"}
	}
	if errors.Is(err, lwip.ErrRights) {
		return nil, &reports.ExitError{Code: reports.ExitNotRun, Err: err, Hint: "link=shm, between processes of one machine"}
	}
	if err != nil {
		return nil, err
	}
	return s, nil
}
