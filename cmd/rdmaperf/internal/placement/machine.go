package placement

import (
	"io/fs"
	"path"
	"slices"
	"strconv"
	"strings"
)

// Machine is what sysfs says of CPUs (Documentation/admin-guide/cputopology.rst,
// Documentation/ABI/stable/sysfs-devices-node). What it does not say is empty.
type Machine struct {
	Allowed   []int          // CPUs that this process may use, rising
	Nodes     map[int][]int  // CPUs of each NUMA node that has any, rising
	Siblings  map[int][]int  // hyper-threads that share a core with a CPU, itself included
	Governors map[int]string // cpufreq governor of a CPU
}

// Read never fails.
func Read(root fs.FS, allowed []int) Machine {
	m := Machine{Allowed: allowed, Nodes: map[int][]int{}, Siblings: map[int][]int{}, Governors: map[int]string{}}
	const nodes = "sys/devices/system/node"
	entries, _ := fs.ReadDir(root, nodes) // none: one node
	for _, e := range entries {
		number, isNode := strings.CutPrefix(e.Name(), "node")
		n, err := strconv.Atoi(number)
		if !isNode || err != nil {
			continue
		}
		if cpus := parseList(read(root, path.Join(nodes, e.Name(), "cpulist"))); len(cpus) > 0 {
			m.Nodes[n] = cpus
		}
	}
	for _, cpu := range allowed {
		dir := "sys/devices/system/cpu/cpu" + strconv.Itoa(cpu)
		if s := parseList(read(root, dir+"/topology/thread_siblings_list")); len(s) > 0 {
			m.Siblings[cpu] = s
		}
		if g := read(root, dir+"/cpufreq/scaling_governor"); g != "" {
			m.Governors[cpu] = g
		}
	}
	return m
}

// NodeOf is the NUMA node of an RDMA device, -1 where sysfs knows none: a device in
// software, or a machine of one node.
func NodeOf(root fs.FS, device string) int {
	n, err := strconv.Atoi(read(root, path.Join("sys/class/infiniband", device, "device/numa_node")))
	if err != nil {
		return -1
	}
	return n
}

// nodeOfCPU is the node that a CPU belongs to, -1 for none.
func (m Machine) nodeOfCPU(cpu int) int {
	for n, cpus := range m.Nodes {
		if slices.Contains(cpus, cpu) {
			return n
		}
	}
	return -1
}

func read(root fs.FS, name string) string {
	if !fs.ValidPath(name) {
		return ""
	}
	b, err := fs.ReadFile(root, name)
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(b))
}

// mostCPUs bounds what a list may name: that of the kernel's largest configuration.
const mostCPUs = 8192

// parseList reads "0-3,8" as cpuset(7) has it, rising and each once; nil for what is no
// such list.
func parseList(s string) []int {
	var out []int
	for part := range strings.SplitSeq(s, ",") {
		from, to, isRange := strings.Cut(part, "-")
		a, err := strconv.Atoi(from)
		b := a
		if isRange && err == nil {
			b, err = strconv.Atoi(to)
		}
		if err != nil || a < 0 || b < a || b >= mostCPUs {
			return nil
		}
		for n := a; n <= b; n++ {
			out = append(out, n)
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}
