// Package placement chooses the CPUs that worker threads are pinned to, and says why. Memory is not bound: it comes
// from the node of the thread that touches it first (set_mempolicy(2)).
package placement

import (
	"fmt"
	"io/fs"
	"os"
	"path"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// Choice is the CPUs of both sides, -1 for none, and what to say about them.
type Choice struct {
	Client, Server int
	Why            string
	Warnings       []string // each a sentence that a reader of figures has to know
	Keep           []int    // CPUs of the node that the process is to be kept on, nil for all
}

// Choose takes the last two CPUs of a device's node, or of the machine for node -1: CPU 0 takes most interrupts. It
// takes two cores where there are two, and none of fewer than two allowed CPUs.
func (m Machine) Choose(device string, node int) Choice {
	c := Choice{Client: -1, Server: -1}
	cpus, where := m.Allowed, "allowed"
	if len(m.Nodes) > 1 && node >= 0 {
		near := slices.DeleteFunc(slices.Clone(m.Nodes[node]),
			func(n int) bool { return !slices.Contains(m.Allowed, n) })
		if len(near) > 1 {
			cpus, where, c.Keep = near, fmt.Sprintf("of node %d, where %s is", node, device), near
		} else {
			c.Warnings = append(c.Warnings,
				fmt.Sprintf("%s is on NUMA node %d, and %s of its CPUs may be used here: data crosses between nodes",
					device, node, map[bool]string{true: "only one", false: "none"}[len(near) == 1]))
		}
	} else if len(m.Nodes) > 1 && device != "" {
		c.Warnings = append(c.Warnings,
			fmt.Sprintf("this machine has %d NUMA nodes, and nothing says which one %s is on", len(m.Nodes), device))
	}
	if len(cpus) < 2 {
		c.Why = fmt.Sprintf("nothing is pinned: of %d CPU there is none for each side", len(cpus))
		return c
	}
	c.Client = cpus[len(cpus)-1]
	c.Why = "the last two " + where
	// On one node, even where the device's is not known: between nodes everything is slower.
	home := m.nodeOfCPU(c.Client)
	for i := len(cpus) - 2; i >= 0 && c.Server < 0; i-- {
		if !m.share(cpus[i], c.Client) && m.nodeOfCPU(cpus[i]) == home {
			c.Server = cpus[i]
			if i < len(cpus)-2 {
				c.Why = "the last two cores " + where
			}
		}
	}
	if c.Server < 0 {
		c.Server = cpus[len(cpus)-2]
	}
	c.Warnings = append(c.Warnings, m.Remarks(c.Client, c.Server)...)
	return c
}

func (m Machine) share(a, b int) bool { return a != b && slices.Contains(m.Siblings[a], b) }

// Remarks are of a core that two CPUs share, of nodes that differ, and of governors. A CPU below zero is nobody's.
func (m Machine) Remarks(client, server int) []string {
	var out []string
	if client >= 0 && server >= 0 {
		if m.share(client, server) {
			out = append(out, fmt.Sprintf("CPUs %d and %d are hyper-threads of one core: each slows the other (SMT)",
				client, server))
		}
		if a, b := m.nodeOfCPU(client), m.nodeOfCPU(server); a != b && a >= 0 && b >= 0 {
			out = append(out, fmt.Sprintf("CPU %d is on NUMA node %d and CPU %d on node %d: data crosses between them",
				client, a, server, b))
		}
	}
	var slow []string
	for _, cpu := range []int{client, server} {
		if g := m.Governors[cpu]; g != "" && g != "performance" && !slices.Contains(slow, g) {
			slow = append(slow, g)
		}
	}
	if len(slow) > 0 {
		out = append(out, fmt.Sprintf(
			"CPU frequency governor %s: the clock changes under load; try cpupower frequency-set -g performance",
			strings.Join(slow, " and ")))
	}
	return out
}

// Far says where CPUs lie on another node than a device, or "".
func (m Machine) Far(device string, node, client, server int) string {
	if node < 0 || len(m.Nodes) < 2 {
		return ""
	}
	for _, cpu := range []int{client, server} {
		if n := m.nodeOfCPU(cpu); cpu >= 0 && n >= 0 && n != node {
			return fmt.Sprintf("CPU %d is on NUMA node %d and %s on node %d: data crosses between them", cpu, n, device, node)
		}
	}
	return ""
}

func (c Choice) String() string {
	if c.Client < 0 {
		return c.Why
	}
	return fmt.Sprintf("client CPU %d, server CPU %d: %s", c.Client, c.Server, c.Why)
}

// Machine is what sysfs says of CPUs (Documentation/admin-guide/cputopology.rst, sysfs-devices-node).
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

// NodeOf is the NUMA node of an RDMA device, -1 where sysfs knows none.
func NodeOf(root fs.FS, device string) int {
	n, err := strconv.Atoi(read(root, path.Join("sys/class/infiniband", device, "device/numa_node")))
	if err != nil {
		return -1
	}
	return n
}

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

// parseList reads "0-3,8" as cpuset(7) has it, rising and each once; nil for what is no such list.
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

// Keep lets all threads of this process, and what they start, run on these CPUs alone (sched_setaffinity(2)). The list
// of threads is read until nothing is new.
func Keep(cpus []int) error {
	var set unix.CPUSet
	for _, n := range cpus {
		set.Set(n)
	}
	done := map[int]bool{}
	for fresh := true; fresh; {
		fresh = false
		threads, err := os.ReadDir("/proc/self/task")
		if err != nil {
			return fmt.Errorf("keep the process on CPUs of a node: %w", err)
		}
		for _, t := range threads {
			id, err := strconv.Atoi(t.Name())
			if err != nil || done[id] {
				continue
			}
			done[id], fresh = true, true
			if err := unix.SchedSetaffinity(id, &set); err != nil && err != unix.ESRCH {
				return fmt.Errorf("keep the process on CPUs of a node: thread %d: %w", id, err)
			}
		}
	}
	return nil
}
