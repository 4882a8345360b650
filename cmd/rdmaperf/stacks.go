package main

import (
	"fmt"
	"strings"
	"sync"

	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/devices"
	"github.com/rdmaperf/rdmaperf/reports"
	"github.com/rdmaperf/rdmaperf/transports"
	"github.com/rdmaperf/rdmaperf/transports/memdev"
	"github.com/rdmaperf/rdmaperf/transports/rdma"
	"github.com/rdmaperf/rdmaperf/transports/stream"
)

// stackEntry is one layer that --transport knows, of one of three kinds: a provider has
// device; a tier over a device has wrap and is a device again; and what workloads see
// has mount. That is always the outermost layer, over a device or over nothing, as
// stands says.
type stackEntry struct {
	name    string
	shown   string   // instead of the name, in lists
	params  declared // of its configuration
	chooses bool     // a device may be named after a colon, as in verbs:rxe0
	summary string
	beside  []string // stacks that --transport all has of it, X standing for the provider
	apart   string   // without any: why

	inProcess bool                                                          // both ends live in one process
	onIWARP   bool                                                          // it speaks iWARP on every machine
	counts    func(h devices.Host, l layer) func() []reports.DeviceCounters // what is counted below it; nil: nothing
	away      func(l layer) layer                                           // as another machine should open it; nil: as it stands
	withCM    func(l layer) layer                                           // connects by rdma_cm; nil: there is no choice

	device func(s *stackSet, l layer) (rdma.Device, error)
	wrap   func(l layer, below rdma.Device) (rdma.Device, error) // owns below from its success on, and closes it

	mount     func(l layer, below rdma.Device) (transports.Stack, error)                                 // likewise; below is nil over nothing
	stands    func(l layer, bottom bool) (over bool, err error)                                          // of mount: whether it stands over a device
	elsewhere func(spec string, layers []layer, inProcess bool) (t transports.Stack, is bool, err error) // of mount: the layers below are another process's; inProcess is the provider's
	like      string                                                                                     // of mount: good stacks, for messages
	calls     func(l layer) bool                                                                         // of mount: it carries calls and has no sessions
}

// stackTable is every layer, in the order in which messages list them. The first
// is the embedded one, which needs nothing but a network. A row declares what the
// layer takes as params (params.go), which is all that the parser and the help know.
var stackTable = []stackEntry{
	{name: "iwarp", params: iwarpParams, summary: "user-space iWARP over TCP", device: openIWARP, onIWARP: true, counts: iwarpCounters, away: streamAway, apart: "the RDMA device is measured instead"},
	{name: "tcp", params: tcpParams, summary: "plain TCP, the baseline", mount: openTCP, counts: softCounters, away: streamAway, stands: overNothing, beside: []string{"tcp"}},
	{name: "mem", params: noParams{}, summary: "in-process reference device, never a network", device: openMem, inProcess: true, apart: "both ends live in one process: no network"},
	{name: verbsName, chooses: true, params: verbsParams, summary: "kernel verbs, for RDMA devices", device: openVerbs, counts: verbsCounters, withCM: withRDMACM, away: verbsAway,
		apart: "no RDMA device has an ACTIVE port: rdmaperf devices says more"},
	{name: modelName, params: modelParams, summary: "time of a NIC with caches and a link, over mem", wrap: wrapModel, apart: "it tells the time of a NIC and not of this machine"},
	{name: "sched", params: schedParams, summary: "priority scheduler over X", wrap: wrapSched, beside: []string{"sched+X"}},
	{name: "regcache", params: regcacheParams, summary: "registrations of X, kept behind their use", wrap: wrapRegcache, apart: "it changes what registrations cost, which --workload register measures"},
	{name: liteName, params: liteParams, summary: "named memory and calls over few shared queue pairs", shown: "lite+X",
		mount: mountLite, stands: overDevice, like: "lite+iwarp", calls: litePeer, beside: []string{"lite+X"}},
	{name: grpcName, params: grpcParams, summary: "gRPC, for workloads of calls", shown: "grpc(tcp), grpc(unix), grpc(bufconn), grpc(dropin)+X, grpc(fused)+X, grpc(service)+X",
		mount: mountGRPC, stands: grpcStands, like: "grpc(tcp), grpc(unix), grpc(bufconn), grpc(dropin)+iwarp, grpc(fused)+iwarp or grpc(service)+iwarp", calls: func(layer) bool { return true }, elsewhere: mountService, beside: []string{"grpc(tcp)", "grpc(dropin)+X", "grpc(fused)+X"}},
}

func overNothing(layer, bool) (bool, error) { return false, nil }
func overDevice(layer, bool) (bool, error)  { return true, nil }

func findStack(name string) *stackEntry {
	for i := range stackTable {
		if stackTable[i].name == name {
			return &stackTable[i]
		}
	}
	return nil
}

// rowOf is the row of a layer; of an unknown one an empty row, as opening it says so.
func rowOf(l layer) *stackEntry {
	if e := findStack(l.name); e != nil {
		return e
	}
	return new(stackEntry)
}

// embeddedStack works on every machine.
func embeddedStack() string { return stackTable[0].name }

// stackNames lists all layers, for help and messages; a tier with what it needs below.
func stackNames() string { return namesOf(func(*stackEntry) bool { return true }) }

// providerNames lists the RDMA providers among them.
func providerNames() string {
	return namesOf(func(e *stackEntry) bool { return e.device != nil })
}

// label is the name, and for a tier what stands below it.
func (e *stackEntry) label() string {
	if e.shown != "" {
		return e.shown
	}
	if e.wrap != nil {
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

	sockets   stream.Stack // instead of the kernel's, below layers that stand on it; nil for that
	onSockets bool         // a layer stands on it

	mu     sync.Mutex
	fabric *memdev.Fabric // of mem, shared by both ends
	opened int
}

func openMem(s *stackSet, l layer) (rdma.Device, error) {
	if err := (noParams{}).read(l); err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.fabric == nil {
		s.fabric = memdev.NewFabric(s.mem)
	}
	s.opened++
	return s.fabric.Open(fmt.Sprintf("end%d", s.opened))
}
