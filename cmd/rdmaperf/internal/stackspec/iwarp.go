package stackspec

import (
	"github.com/rdmaperf/rdmaperf/softstack/iwarp"
	"github.com/rdmaperf/rdmaperf/transports"
	"github.com/rdmaperf/rdmaperf/transports/rdma"
	"github.com/rdmaperf/rdmaperf/transports/stream"
	"github.com/rdmaperf/rdmaperf/transports/tcp"
)

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
		return nil, refuseParam("done=taken", paramDoc{name: "done", kind: wordOf("acked"), Help: "or nothing"},
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
