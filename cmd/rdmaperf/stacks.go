package main

import (
	"fmt"
	"strings"
	"sync"

	"github.com/rdmaperf/rdmaperf/reports"
	"github.com/rdmaperf/rdmaperf/softstack/iwarp"
	"github.com/rdmaperf/rdmaperf/transports"
	"github.com/rdmaperf/rdmaperf/transports/memdev"
	"github.com/rdmaperf/rdmaperf/transports/rdma"
	"github.com/rdmaperf/rdmaperf/transports/tcp"
)

// stackEntry is one name that --transport knows. A provider has device, a tier
// wrap, another transport open, and what this version does not have has why.
type stackEntry struct {
	name    string
	params  string // as shown in messages
	chooses bool   // a device may be named after a colon, as in verbs:rxe0
	summary string
	over    bool // stands over another layer
	device  func(s *stackSet, l layer) (rdma.Device, error)
	wrap    func(l layer, below rdma.Device) (rdma.Device, error) // owns below from its success on, and closes it
	open    func(l layer) (transports.Transport, error)
	why     func(l layer) error

	// Of a layer that carries calls, which is always the outermost: it stands over a
	// device or over nothing, as its parameters say. It owns below from its success on.
	shown  string // instead of the name, in lists
	stands func(l layer, bottom bool) (over bool, err error)
	carry  func(l layer, below rdma.Device) (transports.Transport, error)
}

// here tells what this version can run.
func (e *stackEntry) here() bool { return e.why == nil }

// stackTable is every stack, in the order in which messages list them. The first
// is the embedded one, which needs nothing but a network.
var stackTable = []stackEntry{
	{name: "iwarp", params: "crc, nocrc, markers, p2p, checked, rev1, rev2, sndbuf=BYTES, rcvbuf=BYTES",
		summary: "user-space iWARP over TCP", device: openIWARP},
	{name: "tcp", params: "sndbuf=BYTES, rcvbuf=BYTES", summary: "plain TCP, the baseline", open: openTCP},
	{name: "mem", summary: "in-process reference device, never a network", device: openMem},
	{name: verbsName, chooses: true, params: "cm, port=N, gid=N, mtu=BYTES, timeout=N, retry=N",
		summary: "kernel verbs, for RDMA devices", device: openVerbs},
	{name: "sched", params: schedParams, summary: "priority scheduler over X", over: true, wrap: wrapSched},
	{name: "lite", summary: "indirection tier", over: true, why: notYet},
	{name: grpcName, params: grpcParams, summary: "gRPC, for workloads of calls", shown: "grpc(tcp), grpc(unix), grpc(bufconn), grpc(dropin)+X, grpc(fused)+X",
		stands: grpcStands, carry: carryGRPC},
}

func findStack(name string) *stackEntry {
	for i := range stackTable {
		if stackTable[i].name == name {
			return &stackTable[i]
		}
	}
	return nil
}

// embeddedStack works on every machine.
func embeddedStack() string { return stackTable[0].name }

// stackNames lists what this version can run, for help and messages; a tier
// with what it needs below.
func stackNames() string { return namesOf((*stackEntry).here) }

// providerNames lists the RDMA providers among them.
func providerNames() string {
	return namesOf(func(e *stackEntry) bool { return e.device != nil })
}

// label is the name, and for a tier what stands below it.
func (e *stackEntry) label() string {
	if e.shown != "" {
		return e.shown
	}
	if e.over {
		return e.name + "+X"
	}
	return e.name
}

func namesOf(match func(*stackEntry) bool) string {
	var names []string
	for i := range stackTable {
		if e := &stackTable[i]; match(e) {
			names = append(names, e.label())
		}
	}
	return strings.Join(names, ", ")
}

// stackSet opens stacks for one process. The zero value is ready. Safe for
// concurrent use: a server opens one per client.
type stackSet struct {
	mem memdev.Config // of mem's fabric

	mu     sync.Mutex
	fabric *memdev.Fabric // of mem, shared by both ends
	opened int
	tiers  []*talliedTier
}

func openIWARP(_ *stackSet, l layer) (rdma.Device, error) {
	c, err := iwarpConfig(l)
	if err != nil {
		return nil, err
	}
	return iwarp.Open(c)
}

// iwarpConfig reads the parameters of an iwarp layer; the later of two that
// contradict each other holds.
func iwarpConfig(l layer) (c iwarp.Config, err error) {
	for _, p := range l.params {
		switch key, _, _ := strings.Cut(p, "="); key {
		case "crc", "nocrc":
			c.NoCRC = key == "nocrc"
		case "markers":
			c.Markers = true
		case "p2p":
			c.PeerToPeer = true
		case "checked":
			c.StoreAndForward = true
		case "rev1", "rev2":
			c.Revision = key[len("rev")] - '0'
		case "sndbuf":
			c.SendBuffer, err = sizeParam(p)
		case "rcvbuf":
			c.RecvBuffer, err = sizeParam(p)
		default:
			err = fmt.Errorf("%w %q", errParam, p)
		}
		if err != nil {
			return c, err
		}
	}
	return c, nil
}

func openTCP(l layer) (transports.Transport, error) {
	var c tcp.Config
	for _, p := range l.params {
		var err error
		switch key, _, _ := strings.Cut(p, "="); key {
		case "sndbuf":
			c.SendBuffer, err = sizeParam(p)
		case "rcvbuf":
			c.RecvBuffer, err = sizeParam(p)
		default:
			err = fmt.Errorf("%w %q", errParam, p)
		}
		if err != nil {
			return nil, err
		}
	}
	return tcp.New(c), nil
}

// sizeParam reads the value of "name=64K".
func sizeParam(p string) (int, error) {
	_, v, _ := strings.Cut(p, "=")
	n, err := reports.ParseSize(v)
	if err == nil && n > 1<<30 {
		err = fmt.Errorf("above the limit of 1 GiB")
	}
	if err != nil {
		return 0, fmt.Errorf("%w %q: %v", errParam, p, err)
	}
	return int(n), nil
}

func openMem(s *stackSet, l layer) (rdma.Device, error) {
	if len(l.params) > 0 {
		return nil, fmt.Errorf("%w %q", errParam, l.params[0])
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.fabric == nil {
		s.fabric = memdev.NewFabric(s.mem)
	}
	s.opened++
	return s.fabric.Open(fmt.Sprintf("end%d", s.opened))
}

func notYet(l layer) error { return fmt.Errorf("%s is not in this version", l.name) }
