package placement

import (
	"fmt"
	"slices"
	"strings"
)

// Choice is the CPUs of both sides, -1 for none, and what to say about them.
type Choice struct {
	Client, Server int
	Why            string
	Warnings       []string // each a sentence that a reader of figures has to know
	Keep           []int    // CPUs of the node that the process is to be kept on, nil for all
}

// Choose takes CPUs of the node that a device is on, or of the whole machine for node -1:
// the last ones, away from CPU 0, which takes most interrupts, and of two cores where there
// are two. With fewer than two allowed CPUs nothing is pinned.
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

// share tells whether two CPUs are hyper-threads of one core.
func (m Machine) share(a, b int) bool { return a != b && slices.Contains(m.Siblings[a], b) }

// Remarks are what is to be known of two CPUs, whoever chose them: a core that both share,
// nodes that differ, and governors that change the frequency. A CPU below zero is nobody's.
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

// Far says where CPUs that the user chose lie on another node than a device; empty where
// they do not, or nobody knows.
func (m Machine) Far(device string, node, client, server int) string {
	if node < 0 || len(m.Nodes) < 2 {
		return ""
	}
	for _, cpu := range []int{client, server} {
		if n := m.nodeOfCPU(cpu); cpu >= 0 && n >= 0 && n != node {
			return fmt.Sprintf("CPU %d is on NUMA node %d and %s on node %d: data crosses between them", cpu, n,
				device, node)
		}
	}
	return ""
}

// String is one line.
func (c Choice) String() string {
	if c.Client < 0 {
		return c.Why
	}
	return fmt.Sprintf("client CPU %d, server CPU %d: %s", c.Client, c.Server, c.Why)
}
