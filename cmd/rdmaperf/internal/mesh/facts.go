package mesh

import (
	"cmp"
	"fmt"
	"maps"
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

// facts are what should be equal on all hosts of a cluster.
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

// expected is by stack what a healthy path from this host carries, bytes a second, where its device is known.
func expected(specs []string, devs []devices.Device) map[string]float64 {
	all := map[string]float64{}
	for _, spec := range specs {
		layers, err := stackspec.Parse(spec)
		if err != nil {
			continue
		}
		l := layers[len(layers)-1]
		port, given := l.Param("port")
		for i := range devs {
			for k := range devs[i].Ports {
				p := &devs[i].Ports[k]
				if l.Name != stackspec.Verbs || l.Device != "" && l.Device != devs[i].Name || p.State != "ACTIVE" ||
					given && port != strconv.Itoa(p.Number) || all[spec] > 0 {
					continue
				}
				if v := devs[i].Expected(p); v > 0 {
					all[spec] = v
				}
			}
		}
	}
	return all
}

// machine is the same for all processes on one kernel.
func machine() string {
	b, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil {
		name, _ := os.Hostname()
		return name
	}
	return strings.TrimSpace(string(b))
}

// difference is a fact in which hosts differ from most others.
type difference struct {
	Fact, Most string
	Hosts      int                 // that have Most
	Others     map[string][]string // hosts by what they have; "" is nothing
}

// differences compares hosts, each once.
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

// String reads "kernel: 6.1.0 on 7 hosts, 5.10.0 on n3".
func (d difference) String() string {
	s := fmt.Sprintf("%s: %s on %d", d.Fact, cmp.Or(d.Most, "none"), d.Hosts)
	for _, v := range slices.Sorted(maps.Keys(d.Others)) {
		s += fmt.Sprintf("; %s on %s", cmp.Or(v, "none"), hostList(d.Others[v]))
	}
	return s
}
