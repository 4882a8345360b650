package stackspec

import (
	"fmt"
	"slices"
	"strings"

	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/cli"
	"github.com/rdmaperf/rdmaperf/reports"
	"github.com/rdmaperf/rdmaperf/transports/rdma"
	"github.com/rdmaperf/rdmaperf/transports/verbs"
)

// Devices lists the devices that kernel verbs can open here; tests put their own.
var Devices = verbs.List

const iwarpTransport = "iWARP"

// Best is used when no transport is named: kernel verbs where a port is ACTIVE, else what needs only a network.
func Best() string {
	devices, err := Devices()
	if err != nil {
		return Embedded()
	}
	if d := firstActive(devices, 0); d != nil {
		return Layer{Name: Verbs, Device: d.Name}.String()
	}
	return Embedded()
}

// firstActive is the first device with an ACTIVE port, or with this one ACTIVE.
func firstActive(devices []verbs.DeviceInfo, port int) *verbs.DeviceInfo {
	for i := range devices {
		if slices.ContainsFunc(devices[i].Ports, func(p verbs.PortInfo) bool {
			return p.Active && (port == 0 || p.Number == port)
		}) {
			return &devices[i]
		}
	}
	return nil
}

// ChooseDevice settles which device a verbs stack stands on; other stacks stay as they are. With wish, a device that is
// not here is no mistake: it is another machine's.
func ChooseDevice(spec string, wish bool) (string, error) {
	layers, l := bottom(spec)
	if l.Name != Verbs {
		return spec, nil // also what is no stack: opening it says so
	}
	if _, err := verbsConfig(*l); err != nil {
		return "", OpenError(spec, layers, *l, err)
	}
	devices, err := Devices()
	if err != nil || len(devices) == 0 {
		return spec, nil
	}
	if *l, err = chooseVerbs(*l, devices, wish); err != nil {
		return "", OpenError(spec, layers, *l, err)
	}
	return Format(layers), nil
}

func chooseVerbs(l Layer, devices []verbs.DeviceInfo, wish bool) (Layer, error) {
	c, err := verbsConfig(l)
	if err != nil {
		return l, err
	}
	if wish && !c.CM { // the client's device is no iWARP, and the two do not mix
		if devices = slices.DeleteFunc(slices.Clone(devices), isIWARP); len(devices) == 0 {
			return l, mixed("all RDMA devices here are iWARP")
		}
	}
	i := slices.IndexFunc(devices, func(d verbs.DeviceInfo) bool { return d.Name == l.Device })
	switch {
	case i >= 0 && (!wish || firstActive(devices[i:i+1], c.Port) != nil):
	case l.Device == "" || wish:
		d := firstActive(devices, c.Port)
		if d == nil {
			which := "no port is"
			if c.Port != 0 {
				which = fmt.Sprintf("port %d is not", c.Port)
			}
			return l, notRun(fmt.Errorf("%s ACTIVE on any of %s", which, deviceNames(devices)), portHint)
		}
		i = slices.IndexFunc(devices, func(o verbs.DeviceInfo) bool { return o.Name == d.Name })
	default:
		return l, notRun(fmt.Errorf("no device %s: this machine has %s", l.Device, deviceNames(devices)),
			"-d with one of these, or without it")
	}
	d := &devices[i]
	l.Device = d.Name
	if err := portUsable(d, c.Port); err != nil {
		return l, err
	}
	if !isIWARP(*d) {
		return l, nil
	}
	if c.GIDIndex >= 0 || c.MTU != 0 || c.SL != 0 {
		return l, cli.Usage("", fmt.Errorf("%s is iWARP, which has no gid, mtu or sl to choose", d.Name),
			"the same without -x, -m, -S, gid=, mtu= and sl=")
	}
	if !c.CM {
		l = l.With("cm") // the other side must do the same, whatever its device is
	}
	return l, nil
}

func isIWARP(d verbs.DeviceInfo) bool { return d.Transport == iwarpTransport }

func mixed(what string) error {
	return &reports.ExitError{Code: reports.ExitPeer, Err: fmt.Errorf("%w: %s, the client's is not", rdma.ErrFabric,
		what), Hint: "-d with devices of one kind on both sides"}
}

func portUsable(d *verbs.DeviceInfo, port int) error {
	if port == 0 && len(d.Ports) > 0 {
		if firstActive([]verbs.DeviceInfo{*d}, 0) == nil {
			return notRun(fmt.Errorf("%s has no ACTIVE port", d.Name), portHint)
		}
		return nil
	}
	i := slices.IndexFunc(d.Ports, func(p verbs.PortInfo) bool { return p.Number == port })
	switch {
	case i < 0:
		return cli.Usage("", fmt.Errorf("%s has no port %d: it has %d", d.Name, port, len(d.Ports)),
			"-i with one that exists")
	case !d.Ports[i].Active:
		return notRun(fmt.Errorf("port %d of %s is not ACTIVE", port, d.Name), portHint+", or another -i")
	}
	return nil
}

const portHint = "ip link set up for its interface, the cable or the subnet manager"

func deviceNames(devices []verbs.DeviceInfo) string {
	names := make([]string, len(devices))
	for i, d := range devices {
		names[i] = d.Name
	}
	return strings.Join(names, ", ")
}

func notRun(err error, hint string) error {
	return &reports.ExitError{Code: reports.ExitNotRun, Err: err, Hint: hint}
}

// ForPeer is the stack as another machine should open it, without parameters that are this machine's.
func ForPeer(spec string) string {
	layers, l := bottom(spec)
	if l.Name == "" {
		return spec
	}
	if away := EntryOf(*l).away; away != nil {
		*l = away(*l)
	}
	return Format(layers)
}

// WithRDMACM makes kernel verbs connect by rdma_cm, which is how rping(1) does, and settles the device.
func WithRDMACM(spec string) (string, error) {
	layers, l := bottom(spec)
	if by := EntryOf(*l).withCM; by != nil {
		*l = by(*l)
		spec = Format(layers)
	}
	return ChooseDevice(spec, false)
}

// OnVerbs is the device and the port that a stack on verbs uses here; ok is false without. A device or port that is
// named goes before what the stack says.
func OnVerbs(spec, device, port string) (d verbs.DeviceInfo, p verbs.PortInfo, ok bool) {
	_, named := bottom(spec)
	l := *named
	if l.Name != Verbs {
		return d, p, false
	}
	if device != "" {
		l.Device = device
	}
	if port != "" {
		l = l.without("port").With("port=" + port)
	}
	devices, err := Devices()
	if err != nil {
		return d, p, false
	}
	if l, err = chooseVerbs(l, devices, false); err != nil {
		return d, p, false
	}
	c, err := verbsConfig(l)
	i := slices.IndexFunc(devices, func(d verbs.DeviceInfo) bool { return d.Name == l.Device })
	if err != nil || i < 0 {
		return d, p, false
	}
	j := slices.IndexFunc(devices[i].Ports, func(p verbs.PortInfo) bool {
		return p.Number == c.Port || c.Port == 0 && p.Active
	})
	if j < 0 {
		return d, p, false
	}
	return devices[i], devices[i].Ports[j], true
}

// AllStacks is the value of --transport for every stack that this machine can run side by side.
const AllStacks = "all"

// LeftOut is a stack that is not measured with the others, and why.
type LeftOut struct{ Stack, Why string }

// All lists the stacks over the best provider of this machine, in the order of the table, and what is left out.
func All() (stacks []string, out []LeftOut) {
	best := Best()
	for i := range Table {
		e := &Table[i]
		switch {
		case e.device != nil && strings.HasPrefix(best, e.Name):
			stacks = append(stacks, best)
		case len(e.beside) == 0:
			out = append(out, LeftOut{e.Label(), e.apart})
		}
		for _, s := range e.beside {
			stacks = append(stacks, strings.ReplaceAll(s, "X", best))
		}
	}
	// The provider first: it is what the others are read against.
	i := slices.Index(stacks, best)
	return append([]string{best}, slices.Delete(stacks, i, i+1)...), out
}
