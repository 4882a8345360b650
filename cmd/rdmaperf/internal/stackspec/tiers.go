package stackspec

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"

	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/cli"
	"github.com/rdmaperf/rdmaperf/regcache"
	"github.com/rdmaperf/rdmaperf/sched"
	"github.com/rdmaperf/rdmaperf/transports"
	"github.com/rdmaperf/rdmaperf/transports/lite"
	"github.com/rdmaperf/rdmaperf/transports/lite/daemonstack"
	"github.com/rdmaperf/rdmaperf/transports/lite/peerrpc"
	"github.com/rdmaperf/rdmaperf/transports/lite/stack"
	"github.com/rdmaperf/rdmaperf/transports/model"
	"github.com/rdmaperf/rdmaperf/transports/rdma"
)

var schedParams = params[sched.Config]{
	policyParam(sched.Strict, "on", "the most urgent class first"),
	policyParam(sched.Aging, "", "as strict, but a waiting request rises one class per every="),
	policyParam(sched.DRR, "", "deficit round robin: classes share the bytes by weights="),
	policyParam(sched.EDF, "", "the earliest deadline first, by deadlines="),
	policyParam(sched.FIFO, "", "post order, which shows what a layer costs"),
	{paramDoc{"scope", wordOf(string(sched.ScopeQP), string(sched.ScopePeer), string(sched.ScopeDevice)),
		string(sched.ScopeQP), "which queue pairs share a window: each has its own, all to one host, or all of the " +
			"device"},
		func(c *sched.Config, v value) { c.Scope = sched.Scope(v.text) }},
	{paramDoc{"slice", orAuto(sizeOf), "auto", "bytes of a slice; auto is a quarter of the window"},
		func(c *sched.Config, v value) { c.Slice = v.n }},
	{paramDoc{"window", orAuto(sizeOf), "auto",
		"bytes outstanding of a class; auto follows the measured bandwidth-delay product"},
		func(c *sched.Config, v value) { c.Window = v.n }},
	{paramDoc{"adaptive", switchOf, "on where both are auto", "widen window and slice while no urgent request is posted"},
		func(c *sched.Config, v value) { c.Adaptive, c.Steady = true, false }},
	{paramDoc{"steady", switchOf, "", "keep window and slice as they are"},
		func(c *sched.Config, v value) { c.Adaptive, c.Steady = false, true }},
	{paramDoc{"sends", wordOf(string(sched.WholeSends), string(sched.RefuseSends), string(sched.CutSends),
		string(sched.CutOrRefuseSends)), string(sched.WholeSends),
		"a send longer than a slice goes whole, is refused, or is cut into slices"},
		func(c *sched.Config, v value) { c.Sends = sched.Sends(v.text) }},
	{paramDoc{"room", sizeOf, "4M", "with sends=slice: buffer for a peer's cut sends, per connection"},
		func(c *sched.Config, v value) { c.Room = v.n }},
	{paramDoc{"imm", wordOf(string(sched.WholeImmediates), string(sched.LastImmediates)), string(sched.WholeImmediates),
		"a write with immediate longer than a slice goes whole, or cut with the immediate in the last slice"},
		func(c *sched.Config, v value) { c.Immediates = sched.Immediates(v.text) }},
	{paramDoc{"every", timeOf, "1ms", "of aging: time for one class"},
		func(c *sched.Config, v value) { c.AgeEvery = v.d }},
	{paramDoc{"weights", listOf(countOf(1, 1<<16), sched.Priorities), "1:2:4:…",
		"of drr, by class from 0; the last holds for the rest"},
		func(c *sched.Config, v value) { eachClass(v, func(i int, v value) { c.Weights[i] = v.n }) }},
	{paramDoc{"deadlines", listOf(timeOf, sched.Priorities), "128ms:64ms:…", "of edf, likewise"},
		func(c *sched.Config, v value) { eachClass(v, func(i int, v value) { c.Deadlines[i] = v.d }) }},
}

func policyParam(p sched.Policy, def, help string) param[sched.Config] {
	return param[sched.Config]{paramDoc{string(p), switchOf, def, help}, func(c *sched.Config, _ value) { c.Policy = p }}
}

// eachClass gives set the values of a list for classes 0 and up. Classes beyond the list take its last value.
func eachClass(v value, set func(i int, v value)) {
	for i := range sched.Priorities {
		set(i, v.list[min(i, len(v.list)-1)])
	}
}

// OpenTapped opens a stack with what tap returns right below its outermost layer, which is sched.
func OpenTapped(spec string, tap func(below rdma.Device) rdma.Device) (rdma.Device, error) {
	layers, err := Resolve(spec)
	if err != nil {
		return nil, err
	}
	if layers[0].Name != "sched" || len(layers) < 2 {
		return nil, cli.Usage(Opening(spec), errors.New("the outermost layer has to be sched, whose order is shown"),
			"--transport 'sched(strict,slice=64K,window=64K)+"+Embedded()+"'")
	}
	var stacks Set
	below, _, err := stacks.build(spec, layers, 1)
	if err != nil {
		return nil, err
	}
	dev, err := Find("sched").wrap(layers[0], tap(below))
	if err != nil {
		return nil, OpenError(spec, layers, layers[0], errors.Join(err, below.Close()))
	}
	return dev, nil
}

var nicCount = countOf(1, 1<<24)

var modelParams = params[model.Config]{
	{paramDoc{"cx3", switchOf, "on", "ConnectX-3, 40 Gb/s; as all presets fitted by shape to what is published"},
		func(c *model.Config, _ value) { c.Preset = "cx3" }},
	{paramDoc{"cx5", switchOf, "", "ConnectX-5, 100 Gb/s"}, func(c *model.Config, _ value) { c.Preset = "cx5" }},
	{paramDoc{"service", timeOf, "170ns or 30ns", "time of a request in the NIC's pipeline, without cache misses"},
		func(c *model.Config, v value) { c.Service = v.d }},
	{paramDoc{"wire", timeOf, "550ns or 450ns", "one-way delay between two NICs, without serialisation"},
		func(c *model.Config, v value) { c.Wire = v.d }},
	{paramDoc{"doorbell", timeOf, "100ns", "from a post until the NIC has the first request"},
		func(c *model.Config, v value) { c.Doorbell = v.d }},
	{paramDoc{"miss", timeOf, "850ns or 500ns", "a read over PCIe"}, func(c *model.Config, v value) { c.Miss = v.d }},
	{paramDoc{"inflight", nicCount, "1 or 11", "cache misses outstanding at once"},
		func(c *model.Config, v value) { c.Inflight = v.n }},
	{paramDoc{"keys", nicCount, "128 or 16384", "keys that the NIC caches"},
		func(c *model.Config, v value) { c.Keys = v.n }},
	{paramDoc{"translations", nicCount, "1024 or 32768", "page translations that the NIC caches"},
		func(c *model.Config, v value) { c.Translations = v.n }},
	{paramDoc{"qps", nicCount, "400 or 4096", "queue pair contexts that the NIC caches"},
		func(c *model.Config, v value) { c.QPs = v.n }},
	{paramDoc{"ways", nicCount, "all", "associativity of each cache"}, func(c *model.Config, v value) { c.Ways = v.n }},
	{paramDoc{"page", sizeOf, "4096", "base pages; huge ones stay 2 MiB"},
		func(c *model.Config, v value) { c.Page = v.n }},
	{paramDoc{"gbps", countOf(1, 10000), "40 or 100", "rate of the link, Gb/s"},
		func(c *model.Config, v value) { c.Gbps = float64(v.n) }},
}

var regcacheParams = params[regcache.TierConfig]{
	{paramDoc{"keep", switchOf, "",
		"keys with remote rights stay valid when a registration is closed, too, as in caches of MPI libraries"},
		func(c *regcache.TierConfig, _ value) { c.Keep = true }},
	{paramDoc{"regions", countOf(1, 1<<20), "16384", "most registrations that are kept"},
		func(c *regcache.TierConfig, v value) { c.MaxRegions = v.n }},
	{paramDoc{"bytes", sizeOf, "what the device takes", "most bytes that are kept registered"},
		func(c *regcache.TierConfig, v value) { c.MaxBytes = uint64(v.n) }},
	{paramDoc{"age", timeOf, "for ever", "how long an unused registration is kept"},
		func(c *regcache.TierConfig, v value) { c.MaxAge = v.d }},
	{paramDoc{"source", wordOf(regcache.Sources()...), regcache.SourceAuto.String(),
		"how unmapped memory is detected; auto takes the strongest way that the system permits"},
		func(c *regcache.TierConfig, v value) { c.Source, _ = regcache.ParseSource(v.text) }}, // it is one of the words
}

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
