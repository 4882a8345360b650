package mesh

import (
	"cmp"
	"fmt"
	"maps"
	"net/netip"
	"os"
	"slices"
	"strconv"
	"strings"
	"syscall"

	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/devices"
	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/stackspec"
	"github.com/rdmaperf/rdmaperf/reports"
)

var errRefused = syscall.ECONNREFUSED

func facts(e *reports.Environment, devs []devices.Device) map[string]string {
	f := map[string]string{"rdmaperf": e.Version, "kernel": e.Kernel, "CPU": e.CPU, "CPUs": strconv.Itoa(e.CPUs),
		"CPU governor": strings.Join(e.Governors, ", ")}
	if e.MemlockBytes != nil {
		f["memlock"] = "unlimited"
		if *e.MemlockBytes >= 0 {
			f["memlock"] = reports.FormatSize(*e.MemlockBytes)
		}
	}
	f["RDMA devices"] = strconv.Itoa(len(devs))
	for _, d := range devs {
		f[d.Name+" firmware"], f[d.Name+" driver"] = d.Firmware, d.Driver
		f[d.Name+" PCIe"] = d.PCIe()
		for _, n := range d.NetDevs {
			f[d.Name+" MTU of its interface"] = strconv.Itoa(d.NetDevMTU[n])
		}
		for _, p := range d.Ports {
			name := fmt.Sprintf("%s port %d ", d.Name, p.Number)
			f[name+"state"], f[name+"rate"], f[name+"MTU"] = p.State, p.Rate, strconv.Itoa(p.MTU)
			var types []string
			for _, g := range p.GIDs {
				types = append(types, g.Type)
			}
			slices.Sort(types)
			f[name+"GID types"] = strings.Join(slices.Compact(types), ", ")
		}
	}
	maps.DeleteFunc(f, func(_, v string) bool { return v == "" })
	return f
}

func portsOf(specs []string, devs []devices.Device, take func(spec string, d *devices.Device, p *devices.Port) bool) {
	for _, spec := range specs {
		layers, err := stackspec.Parse(spec)
		if err != nil {
			continue
		}
		l := layers[len(layers)-1]
		port, given := l.Param("port")
		taken := false
		for i := range devs {
			for k := range devs[i].Ports {
				p := &devs[i].Ports[k]
				if l.Name != stackspec.Verbs || l.Device != "" && l.Device != devs[i].Name || p.State != "ACTIVE" ||
					given && port != strconv.Itoa(p.Number) || taken {
					continue
				}
				taken = take(spec, &devs[i], p)
			}
		}
	}
}

// expected is by stack what a healthy path from this host carries, bytes a second.
func expected(specs []string, devs []devices.Device) map[string]float64 {
	all := map[string]float64{}
	portsOf(specs, devs, func(spec string, d *devices.Device, p *devices.Port) bool {
		v := d.Expected(p)
		if v > 0 {
			all[spec] = v
		}
		return v > 0
	})
	return all
}

// families are by stack those of the GIDs of its port; InfiniBand and iWARP have none.
func families(specs []string, devs []devices.Device) map[string][]string {
	all := map[string][]string{}
	portsOf(specs, devs, func(spec string, _ *devices.Device, p *devices.Port) bool {
		for _, g := range p.GIDs {
			a, err := netip.ParseAddr(g.GID)
			family := "IPv6"
			if a.Unmap().Is4() {
				family = "IPv4"
			}
			if err == nil && strings.HasPrefix(g.Type, "RoCE") && !slices.Contains(all[spec], family) {
				all[spec] = append(all[spec], family)
			}
		}
		return true
	})
	return all
}

// apart says why two ranks have no path over a stack; "" where they may have one.
func apart(spec string, a, b *member) string {
	x, y := a.Families[spec], b.Families[spec]
	if len(x) == 0 || len(y) == 0 || slices.ContainsFunc(x, func(f string) bool { return slices.Contains(y, f) }) {
		return ""
	}
	return fmt.Sprintf("%s (GIDs of %s) and %s (%s) over %s", a.Host, strings.Join(x, " and "), b.Host,
		strings.Join(y, " and "), spec)
}

func machine() string {
	b, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil {
		name, _ := os.Hostname()
		return name
	}
	return strings.TrimSpace(string(b))
}

type difference struct {
	Fact, Most string
	Hosts      int                 // that have Most
	Others     map[string][]string // hosts by what they have; "" is nothing
}

func differences(members []*member) (all []difference) {
	hosts := map[string]map[string]string{}
	names := map[string]bool{}
	for _, m := range members {
		if m != nil {
			hosts[m.Host] = m.Facts
			for f := range m.Facts {
				names[f] = true
			}
		}
	}
	for _, f := range slices.Sorted(maps.Keys(names)) {
		have := map[string][]string{}
		for _, h := range slices.Sorted(maps.Keys(hosts)) {
			have[hosts[h][f]] = append(have[hosts[h][f]], h)
		}
		if len(have) < 2 {
			continue
		}
		most := slices.MaxFunc(slices.Sorted(maps.Keys(have)), func(a, b string) int {
			return cmp.Or(cmp.Compare(len(have[a]), len(have[b])), cmp.Compare(b, a))
		})
		d := difference{Fact: f, Most: most, Hosts: len(have[most]), Others: have}
		delete(have, most)
		all = append(all, d)
	}
	return all
}

func (d difference) String() string {
	s := fmt.Sprintf("%s: %s on %d", d.Fact, cmp.Or(d.Most, "none"), d.Hosts)
	for _, v := range slices.Sorted(maps.Keys(d.Others)) {
		s += fmt.Sprintf("; %s on %s", cmp.Or(v, "none"), hostList(d.Others[v]))
	}
	return s
}
