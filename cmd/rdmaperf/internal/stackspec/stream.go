package stackspec

import (
	"errors"
	"slices"
	"strconv"
	"strings"

	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/cli"
	"github.com/rdmaperf/rdmaperf/softstack/iwarp"
	"github.com/rdmaperf/rdmaperf/softstack/lwip"
	"github.com/rdmaperf/rdmaperf/transports"
	"github.com/rdmaperf/rdmaperf/transports/rdma"
	"github.com/rdmaperf/rdmaperf/transports/stream"
	"github.com/rdmaperf/rdmaperf/transports/tcp"
)

type streamArgs struct {
	stack string
	tos   int
	own   []streamArg // parameters of a stack in user space
}

type streamArg struct{ name, value string }

// streamParams declares them for a layer that keeps them where at says.
func streamParams[C any](at func(*C) *streamArgs) params[C] {
	ps := params[C]{{paramDoc{"stack", wordOf("kernel", "raw", "sequential"), "kernel",
		"the TCP/IP stack below; raw is lwIP in user space, run by the thread that polls, sequential lwIP in a " +
			"thread of its own"},
		func(c *C, v value) { at(c).stack = v.text }},
		{paramDoc{"tos", tosOf, "0",
			"of the kernel's stack: type of service of every packet, IP_TOS or IPV6_TCLASS; the DSCP is its upper " +
				"six bits"},
			func(c *C, v value) { at(c).tos = v.n }}}
	for _, d := range []paramDoc{
		{"link", textOf("shm|xdp:IFACE"), "shm",
			"of a stack in user space: frames go through rings in shared memory, or of lwIP through AF_XDP on an " +
				"interface (root; between hosts, or network namespaces)"},
		{"copies", wordOf("one", "two", "zero"), "one",
			"of a stack in user space: copies of a packet on its way in, or zero of a payload on its way out (iwarp " +
				"with done=acked, and an lwIP built for it)"},
		{"threads", wordOf(lwip.C1, lwip.C2, lwip.C3), lwip.C2,
			"of stack=raw: c1 has a thread for packets, c2 does everything in the polling thread, c3 has a thread " +
				"that receives and places (iwarp)"},
		{"ring", textOf("FRAMES"), "1024", "of a stack in user space: frames of a ring, each way"},
		{"loss", textOf("P"), "0", "of a stack in user space: probability that a frame is lost"},
		{"dup", textOf("P"), "0", "of a stack in user space: probability that a frame is sent twice"},
		{"reorder", textOf("P"), "0", "of a stack in user space: probability that the next frame overtakes one"},
		{"delay", textOf("TIME"), "0", "of a stack in user space: delay of each frame at the receiver, such as 50us"},
		{"jitter", textOf("TIME"), "0",
			"of a stack in user space: random addition to delay=, uniform from 0; frames stay in order"},
		{"seed", textOf("N"), "0", "of a stack in user space: seed of loss, dup, reorder and jitter"},
	} {
		ps = append(ps, param[C]{d, func(c *C, v value) {
			a := at(c)
			a.own = append(a.own, streamArg{d.name, v.text})
		}})
	}
	return ps
}

func (a *streamArgs) value(name string) (v string) {
	for _, p := range a.own {
		if p.name == name {
			v = p.value
		}
	}
	return v
}

func (a *streamArgs) receiveThread() bool { return a.value("threads") == lwip.C3 }

// open is the stack; nil is the kernel's. places: the layer has placement to give a thread to.
func (a *streamArgs) open(l Layer, places bool) (stream.Stack, error) {
	if a.stack == "" || a.stack == "kernel" {
		if len(a.own) > 0 {
			p := a.own[len(a.own)-1]
			return nil, refuseParam(p.name+"="+p.value, "stack", wordOf("raw"), "beside it",
				"it belongs to stack=raw and the others in user space")
		}
		if a.tos != 0 {
			return stream.KernelTOS(a.tos), nil
		}
		return nil, nil
	}
	if a.tos != 0 {
		return nil, refuseParam("tos="+strconv.Itoa(a.tos), "stack", wordOf("kernel"), "whose packets can be marked",
			"stack=%s marks no packets", a.stack)
	}
	if a.receiveThread() && !places {
		return nil, refuseParam("threads=c3", "threads", wordOf(lwip.C1, lwip.C2), "for "+l.Name,
			"only iwarp has placement to give a thread to")
	}
	if a.value("copies") == "zero" && !places {
		return nil, refuseParam("copies=zero", "copies", wordOf("one", "two"), "for "+l.Name,
			"%s is done with its memory when the stack has taken it, not when the peer has it; iwarp waits",
			l.Name)
	}
	for _, p := range l.Params {
		switch key, _, _ := strings.Cut(p, "="); {
		case key == "local":
			return nil, refuseParam(p, "stack", wordOf("kernel"), "whose sockets it is of",
				"stack=%s has buffers of its own", a.stack)
		case key == "sndbuf" || key == "rcvbuf":
			return nil, refuseParam(p, "stack", wordOf("kernel"), "where they can be chosen",
				"the buffers of lwIP have one size")
		}
	}
	s, err := a.openLwIP(a.stack == "sequential")
	switch {
	case errors.Is(err, lwip.ErrAbsent):
		return nil, notRun(err, "stack=kernel, which is everywhere")
	case errors.Is(err, lwip.ErrUnlike):
		return nil, notRun(err, "LD_LIBRARY_PATH: the directory of the library that it was built with (ci/build-lwip DIR)")
	case errors.Is(err, lwip.ErrParam):
		return nil, cli.Usage("", err, "")
	case errors.Is(err, lwip.ErrCopies):
		return nil, notRun(err, "copies=one, which any lwIP has")
	case errors.Is(err, lwip.ErrRights):
		return nil, notRun(err, "link=shm, between processes of one machine")
	}
	return s, err
}

func (a *streamArgs) openLwIP(sequential bool) (stream.Stack, error) {
	c := lwip.Config{Sequential: sequential}
	if threads := a.value("threads"); sequential && threads != "" {
		return nil, refuseParam("threads="+threads, "stack", wordOf("raw"), "whose threads can be chosen",
			"stack=sequential has threads of its own")
	}
	for _, p := range a.own {
		if err := c.Set(p.name, p.value); err != nil {
			return nil, err
		}
	}
	s, err := lwip.Open(c)
	if err != nil {
		return nil, err
	}
	return s, nil
}

// streamAway leaves the interface of AF_XDP to the peer: that with the address it is called by.
func streamAway(l Layer) Layer {
	l.Params = slices.Clone(l.Params)
	for i, p := range l.Params {
		if strings.HasPrefix(p, "link=xdp:") {
			l.Params[i] = "link=xdp"
		}
	}
	return l
}

type iwarpArgs struct {
	iwarp.Config
	done  string // where it is said
	below streamArgs
}

var iwarpParams = append(params[iwarpArgs]{
	{paramDoc{"crc", switchOf, "on", "a CRC32c behind every FPDU, where the peer agrees"},
		func(c *iwarpArgs, _ value) { c.NoCRC = false }},
	{paramDoc{"nocrc", switchOf, "", "do not ask for a CRC"}, func(c *iwarpArgs, _ value) { c.NoCRC = true }},
	{paramDoc{"markers", switchOf, "", "a marker every 512 octets of what this side receives (RFC 5044 §4.1)"},
		func(c *iwarpArgs, _ value) { c.Markers = true }},
	{paramDoc{"p2p", switchOf, "", "peer-to-peer mode: the initiator opens with a message of its own (RFC 6581)"},
		func(c *iwarpArgs, _ value) { c.PeerToPeer = true }},
	{paramDoc{"checked", switchOf, "", "place nothing before its CRC is checked"},
		func(c *iwarpArgs, _ value) { c.StoreAndForward = true }},
	{paramDoc{"done", wordOf("taken", "acked"), "taken",
		"when a send or write is complete: our TCP has taken it, or the peer's TCP has acknowledged it"},
		func(c *iwarpArgs, v value) { c.done, c.OnAck = v.text, v.text == "acked" }},
	{paramDoc{"rev1", switchOf, "", "MPA revision 1 (RFC 5044)"}, func(c *iwarpArgs, v value) { c.Revision = 1 }},
	{paramDoc{"rev2", switchOf, "on", "MPA revision 2, enhanced connection set-up (RFC 6581)"},
		func(c *iwarpArgs, v value) { c.Revision = 2 }},
	{paramDoc{"rfc5040", switchOf, "", "neither atomics nor immediate data"},
		func(c *iwarpArgs, _ value) { c.Extensions = iwarp.ExtNone }},
	{paramDoc{"rfc7306", switchOf, "", "atomics and immediate data without asking the peer"},
		func(c *iwarpArgs, _ value) { c.Extensions = iwarp.ExtAssumed }},
	sndbuf(func(c *iwarpArgs) *int { return &c.SendBuffer }),
	rcvbuf(func(c *iwarpArgs) *int { return &c.RecvBuffer }),
	localbuf("1M", "both buffers over the loopback device, unless net.core.wmem_max or rmem_max is less; 0: the "+
		"kernel's",
		func(c *iwarpArgs) *int { return &c.LocalBuffer }),
}, streamParams(func(c *iwarpArgs) *streamArgs { return &c.below })...)

func openIWARP(s *Set, l Layer) (rdma.Device, error) {
	var c iwarpArgs
	if err := iwarpParams.Read(l, &c); err != nil {
		return nil, err
	}
	var err error
	if c.Stack, err = c.below.open(l, true); err != nil {
		return nil, err
	}
	switch {
	case c.Stack == nil:
		c.Stack, s.onSockets = s.Sockets, true
	case c.below.tos != 0:
		s.onSockets = true
		if s.Sockets != nil { // the path of a case, whose packets have no marks
			c.Stack = s.Sockets
		}
	}
	c.ReceiveThread = c.below.receiveThread()
	if c.done == "taken" && stream.References(c.Stack) {
		return nil, refuseParam("done=taken", "done", wordOf("acked"), "or nothing",
			"what copies=zero sends is the stack's until the peer has it")
	}
	return iwarp.Open(c.Config)
}

type tcpArgs struct {
	tcp.Config
	below streamArgs
}

var tcpParams = append(params[tcpArgs]{
	sndbuf(func(c *tcpArgs) *int { return &c.SendBuffer }),
	rcvbuf(func(c *tcpArgs) *int { return &c.RecvBuffer }),
	localbuf("512K", "send buffer over the loopback device, unless net.core.wmem_max is less; 0: the kernel's",
		func(c *tcpArgs) *int { return &c.LocalBuffer }),
}, streamParams(func(c *tcpArgs) *streamArgs { return &c.below })...)

func openTCP(l Layer, _ rdma.Device) (transports.Stack, error) {
	var c tcpArgs
	if err := tcpParams.Read(l, &c); err != nil {
		return nil, err
	}
	var err error
	if c.Stack, err = c.below.open(l, false); err != nil {
		return nil, err
	}
	return tcp.New(c.Config), nil
}

func sndbuf[C any](at func(*C) *int) param[C] {
	return param[C]{paramDoc{"sndbuf", sizeOf, "the kernel's", "send buffer of a socket"},
		func(c *C, v value) { *at(c) = v.n }}
}

// localbuf is a size of which 0 is the kernel's and -1 in the configuration, whose 0 is the default.
func localbuf[C any](preset, help string, at func(*C) *int) param[C] {
	return param[C]{paramDoc{"local", sizeOf, preset, help}, func(c *C, v value) {
		if *at(c) = v.n; v.n == 0 {
			*at(c) = -1
		}
	}}
}

func rcvbuf[C any](at func(*C) *int) param[C] {
	return param[C]{paramDoc{"rcvbuf", sizeOf, "the kernel's", "receive buffer of a socket"},
		func(c *C, v value) { *at(c) = v.n }}
}
