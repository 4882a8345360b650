package stackspec

import (
	"fmt"
	"strings"
	"sync"

	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/devices"
	"github.com/rdmaperf/rdmaperf/regcache"
	"github.com/rdmaperf/rdmaperf/reports"
	"github.com/rdmaperf/rdmaperf/sched"
	"github.com/rdmaperf/rdmaperf/transports"
	"github.com/rdmaperf/rdmaperf/transports/memdev"
	"github.com/rdmaperf/rdmaperf/transports/model"
	"github.com/rdmaperf/rdmaperf/transports/rdma"
	"github.com/rdmaperf/rdmaperf/transports/stream"
)

// Entry is one layer that --transport knows: a provider has device; a tier has wrap and is a device again; what
// workloads see has mount, and is the outermost layer, over a device or over nothing.
type Entry struct {
	Name    string
	shown   string   // instead of the name, in lists
	params  declared // of its configuration
	Chooses bool     // a device may be named after a colon, as in verbs:rxe0
	Summary string
	beside  []string // stacks that --transport all has of it, X standing for the provider
	apart   string   // without any: why

	inProcess bool                                                          // in-process only
	onIWARP   bool                                                          // it speaks iWARP on every machine
	counts    func(h devices.Host, l Layer) func() []reports.DeviceCounters // what is counted below it; nil: nothing
	// as another machine should open it; nil: as it stands
	away func(l Layer) Layer
	// connects by rdma_cm; nil: there is no choice
	withCM func(l Layer) Layer
	device func(s *Set, l Layer) (rdma.Device, error)
	wrap   func(l Layer, below rdma.Device) (rdma.Device, error) // owns below from its success on, and closes it
	// likewise; below is nil over nothing
	mount func(l Layer, below rdma.Device) (transports.Stack, error)
	// of mount: whether it stands over a device
	stands func(l Layer, bottom bool) (over bool, err error)
	// of mount: the layers below are another process's; inProcess is the provider's
	elsewhere func(spec string, layers []Layer, inProcess bool) (t transports.Stack, is bool, err error)
	// of mount: good stacks, for messages
	like string
	// of mount: it carries calls and has no sessions
	calls func(l Layer) bool
}

// Table is every layer, in the order in which messages list them. The first needs nothing but a network.
var Table = []Entry{
	{Name: "iwarp", params: iwarpParams, Summary: "user-space iWARP over TCP", device: openIWARP, onIWARP: true,
		counts: iwarpCounters, away: streamAway, apart: "the RDMA device is measured instead"},
	{Name: "tcp", params: tcpParams, Summary: "plain TCP, the baseline", mount: openTCP, counts: softCounters,
		away: streamAway, stands: overNothing, beside: []string{"tcp"}},
	{Name: "mem", params: noParams{}, Summary: "in-process reference device, never a network", device: openMem,
		inProcess: true, apart: "in-process only: no network"},
	{Name: Verbs, Chooses: true, params: verbsParams, Summary: "kernel verbs, for RDMA devices", device: openVerbs,
		counts: verbsCounters, withCM: func(l Layer) Layer { return l.without("cm").With("cm") },
		away:  func(l Layer) Layer { return l.without("port", "gid") }, // which are this machine's
		apart: "no RDMA device has an ACTIVE port: rdmaperf devices says more"},
	{Name: "model", params: modelParams, Summary: "time of a NIC with caches and a link, over mem",
		wrap: tier(modelParams, model.Wrap), apart: "a simulated NIC, not this machine"},
	{Name: "sched", params: schedParams, Summary: "priority scheduler over X", wrap: tier(schedParams, sched.Wrap),
		beside: []string{"sched+X"}},
	{Name: "regcache", params: regcacheParams, Summary: "registrations of X, kept behind their use",
		wrap: tier(regcacheParams, regcache.Wrap), apart: "measured by --workload register"},
	{Name: LITE, params: LITEParams, Summary: "named memory and calls over few shared queue pairs", shown: "lite+X",
		mount: mountLite, stands: overDevice, like: "lite+iwarp", calls: litePeer, beside: []string{"lite+X"}},
	{Name: GRPC, params: grpcParams, Summary: "gRPC, for workloads of calls",
		shown: "grpc(tcp), grpc(unix), grpc(bufconn), grpc(dropin)+X, grpc(fused)+X, grpc(service)+X",
		mount: mountGRPC, stands: grpcOver,
		like:  "grpc(tcp), grpc(unix), grpc(bufconn), grpc(dropin)+iwarp, grpc(fused)+iwarp or grpc(service)+iwarp",
		calls: func(Layer) bool { return true }, elsewhere: mountService,
		beside: []string{"grpc(tcp)", "grpc(dropin)+X", "grpc(fused)+X"}},
}

func tier[C any](ps params[C], wrap func(rdma.Device, C) (rdma.Device, error)) func(Layer,
	rdma.Device) (rdma.Device, error) {
	return func(l Layer, below rdma.Device) (rdma.Device, error) {
		var c C
		if err := ps.Read(l, &c); err != nil {
			return nil, err
		}
		return wrap(below, c)
	}
}

func stackOf[S transports.Stack](s S, err error) (transports.Stack, error) {
	if err != nil {
		return nil, err
	}
	return s, nil
}

func overNothing(Layer, bool) (bool, error) { return false, nil }
func overDevice(Layer, bool) (bool, error)  { return true, nil }

func Find(name string) *Entry {
	for i := range Table {
		if Table[i].Name == name {
			return &Table[i]
		}
	}
	return nil
}

// EntryOf is the row of a layer; of an unknown one an empty row, as opening it says so.
func EntryOf(l Layer) *Entry {
	if e := Find(l.Name); e != nil {
		return e
	}
	return new(Entry)
}

// Embedded works on every machine.
func Embedded() string { return Table[0].Name }

// Names lists all layers, for help and messages; a tier with what it needs below.
func Names() string { return namesOf(func(*Entry) bool { return true }) }

// Providers lists the RDMA providers among them.
func Providers() string {
	return namesOf(func(e *Entry) bool { return e.device != nil })
}

// Docs are the parameters that the layer takes.
func (e *Entry) Docs() []paramDoc { return e.params.docs() }

// Label is the name, and for a tier what stands below it.
func (e *Entry) Label() string {
	if e.shown != "" {
		return e.shown
	}
	if e.wrap != nil {
		return e.Name + "+X"
	}
	return e.Name
}

func namesOf(match func(*Entry) bool) string {
	var names []string
	for i := range Table {
		if e := &Table[i]; match(e) {
			names = append(names, e.Label())
		}
	}
	return strings.Join(names, ", ")
}

// Set opens stacks for one process. The zero value is ready. Safe for concurrent use: a server opens one per client.
type Set struct {
	Mem       memdev.Config // of mem's fabric
	Sockets   stream.Stack  // instead of the kernel's, below layers that stand on it; nil for that
	onSockets bool          // a layer stands on it

	mu     sync.Mutex
	fabric *memdev.Fabric // of mem, shared by both ends
	opened int
}

func openMem(s *Set, l Layer) (rdma.Device, error) {
	if err := (params[noParams]{}).Read(l, nil); err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.fabric == nil {
		s.fabric = memdev.NewFabric(s.Mem)
	}
	s.opened++
	return s.fabric.Open(fmt.Sprintf("end%d", s.opened))
}

// SpeaksIWARP tells stacks whose provider is an iWARP on every machine.
func SpeaksIWARP(stack string) bool {
	_, l := bottom(stack)
	return EntryOf(*l).onIWARP
}

// SoftTransports are what --transport takes on every machine.
func SoftTransports() []devices.Soft {
	var soft []devices.Soft
	for _, e := range Table {
		if !e.Chooses {
			soft = append(soft, devices.Soft{Transport: e.Label(), Description: e.Summary})
		}
	}
	return soft
}
