// Package devices finds the machine's RDMA devices, or says why there are none and what can be done about it.
// It joins RDMA netlink, rdmamap, sysfs and kernel verbs, which [Collect] reads through a [Host], so that tests need no
// device. rdmamap names the first device of an interface, and so is asked only for interfaces that no device's sysfs
// entry names.
// The kernel reads hw_counters at most once in their lifespan, 10 ms by default. Counters are of the device, whoever
// uses it.
package devices

import (
	"bufio"
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/rdmaperf/rdmaperf/reports"
)

// Report is the answer of `rdmaperf devices`. Devices is never nil, so that JSON shows an empty array.
type Report struct {
	Devices []Device `json:"devices"`
	// Reason says why Devices is empty; Hints say what to try, one step each.
	Reason string   `json:"reason,omitempty"`
	Hints  []string `json:"hints,omitempty"`
	// Notes are contradictions between the sources.
	Notes []string `json:"notes,omitempty"`
	// Default is what rdmaperf run measures without --transport.
	Default string `json:"default_transport,omitempty"`
	// Soft are the transports that need no device.
	Soft []Soft `json:"soft_transports"`
}

type Soft struct {
	Transport   string `json:"transport"`
	Description string `json:"description"`
}

// Device is one RDMA device. Empty fields are unknown.
type Device struct {
	Name         string   `json:"name"`
	NodeType     string   `json:"node_type,omitempty"` // CA, RNIC, usNIC, …
	Driver       string   `json:"driver,omitempty"`
	Software     bool     `json:"software"` // no hardware behind it: rxe, siw
	Firmware     string   `json:"firmware,omitempty"`
	NodeGUID     string   `json:"node_guid,omitempty"`
	SysImageGUID string   `json:"sys_image_guid,omitempty"`
	CharDevices  []string `json:"char_devices,omitempty"`
	NetDevs      []string `json:"netdevs,omitempty"`
	// NetDevMTU are the MTUs of NetDevs, bytes.
	NetDevMTU map[string]int `json:"netdev_mtu,omitempty"`
	// PCIeSpeed and PCIeWidth are those of the slot now, as sysfs words them: "16.0 GT/s PCIe", 16 lanes.
	PCIeSpeed string `json:"pcie_speed,omitempty"`
	PCIeWidth int    `json:"pcie_width,omitempty"`
	// Limits are nil where kernel verbs cannot open the device.
	Limits *Limits `json:"limits,omitempty"`
	Ports  []Port  `json:"ports"`
}

// Limits are what a device can do at most; what is left depends on its users.
type Limits struct {
	QPs        int    `json:"max_qp"`
	QPWR       int    `json:"max_qp_wr"`
	SGE        int    `json:"max_sge"`
	CQs        int    `json:"max_cq"`
	CQE        int    `json:"max_cqe"`
	MRs        int    `json:"max_mr"`
	MRSize     uint64 `json:"max_mr_size"` // bytes
	SRQs       int    `json:"max_srq"`
	SRQWR      int    `json:"max_srq_wr"`
	RDAtom     int    `json:"max_qp_rd_atom"`      // reads and atomics a QP takes at once
	InitRDAtom int    `json:"max_qp_init_rd_atom"` // and has on the way at once
	Atomics    bool   `json:"atomics"`
}

// Port is one port of a device. Rate is as sysfs words it: "100 Gb/sec (4X EDR)".
type Port struct {
	Number    int    `json:"number"`
	State     string `json:"state,omitempty"`      // DOWN, INIT, ARMED, ACTIVE, ACTIVE_DEFER
	PhysState string `json:"phys_state,omitempty"` // LinkUp, Polling, Disabled, …
	Rate      string `json:"rate,omitempty"`
	LinkLayer string `json:"link_layer,omitempty"` // InfiniBand, Ethernet
	LID       string `json:"lid,omitempty"`        // InfiniBand only
	MTU       int    `json:"active_mtu,omitempty"` // of the path, bytes; needs kernel verbs, as does MaxMsg
	MaxMsg    uint64 `json:"max_msg_sz,omitempty"` // bytes
	GIDs      []GID  `json:"gids"`
}

// GID is one entry of a port's GID table; Index is what -x takes. Empty entries are left out.
type GID struct {
	Index  int    `json:"index"`
	GID    string `json:"gid"`
	Type   string `json:"type,omitempty"` // IB, RoCE v1, RoCE v2, iWARP
	NetDev string `json:"netdev,omitempty"`
}

// WriteText writes the report for people.
func (r *Report) WriteText(w io.Writer) error {
	b := bufio.NewWriter(w)
	if len(r.Devices) == 0 {
		fmt.Fprintf(b, "no RDMA devices here: %s\n", r.Reason)
		for i, h := range r.Hints {
			if i == 0 {
				fmt.Fprintln(b, "to get one:")
			}
			fmt.Fprintf(b, "  %s\n", h)
		}
	}
	if len(r.Devices) > 0 {
		r.writeTables(b)
	}
	for _, n := range r.Notes {
		fmt.Fprintf(b, "note: %s\n", n)
	}
	if r.Default != "" {
		fmt.Fprintf(b, "rdmaperf run without --transport measures %s\n", r.Default)
	}
	if len(r.Soft) > 0 {
		fmt.Fprintln(b, "transports that need no device:")
	}
	for _, s := range r.Soft {
		fmt.Fprintf(b, "  %-8s %s\n", s.Transport, s.Description)
	}
	return b.Flush()
}

func (r *Report) writeTables(b *bufio.Writer) {
	ports := [][]string{{"device", "port", "state", "link", "rate", "mtu", "netdev", "kind", "driver", "firmware"}}
	gids := [][]string{{"device", "port", "-x", "gid", "type", "netdev"}}
	limits := [][]string{{"device", "qps", "wrs/qp", "sges/wr", "cqs", "cqes/cq", "mrs", "srqs", "reads/qp", "atomics",
		"message"}}
	for i := range r.Devices {
		d := &r.Devices[i]
		kind := d.NodeType
		if d.Software {
			kind = strings.TrimPrefix(kind+", software", ", ")
		}
		about := []string{d.netDevText(), kind, d.Driver, d.Firmware}
		for k := range d.Ports {
			p := &d.Ports[k]
			number := strconv.Itoa(p.Number)
			ports = append(ports, append([]string{d.Name, number, p.stateText(), p.LinkLayer, p.Rate, figure(p.MTU)}, about...))
			for _, g := range p.GIDs {
				gids = append(gids, []string{d.Name, number, strconv.Itoa(g.Index), g.GID, g.Type, g.NetDev})
			}
		}
		if len(d.Ports) == 0 {
			ports = append(ports, append([]string{d.Name, "", "", "", "", ""}, about...))
		}
		if l := d.Limits; l != nil {
			limits = append(limits, []string{d.Name, figure(l.QPs), figure(l.QPWR), figure(l.SGE), figure(l.CQs),
				figure(l.CQE), figure(l.MRs), figure(l.SRQs), figure(l.RDAtom),
				map[bool]string{true: "yes", false: "no"}[l.Atomics], d.messageText()})
		}
	}
	for _, t := range [][][]string{ports, gids, limits} {
		if len(t) > 1 {
			writeTable(b, t)
			fmt.Fprintln(b)
		}
	}
}

func (d *Device) netDevText() string {
	parts := make([]string, len(d.NetDevs))
	for i, n := range d.NetDevs {
		if parts[i] = n; d.NetDevMTU[n] > 0 {
			parts[i] = fmt.Sprintf("%s (mtu %d)", n, d.NetDevMTU[n])
		}
	}
	return strings.Join(parts, " ")
}

func (d *Device) messageText() string {
	for i := range d.Ports {
		if n := d.Ports[i].MaxMsg; n > 0 {
			return reports.FormatSize(int64(n))
		}
	}
	return ""
}

func (p *Port) stateText() string {
	if p.State == "ACTIVE" || p.PhysState == "" {
		return p.State
	}
	return p.State + ", " + p.PhysState
}

func figure(n int) string {
	if n == 0 {
		return ""
	}
	return strconv.Itoa(n)
}

// writeTable aligns columns, and leaves out those without a single entry.
func writeTable(b *bufio.Writer, rows [][]string) {
	widths := make([]int, len(rows[0]))
	for _, r := range rows[1:] {
		for i, cell := range r {
			if cell != "" {
				widths[i] = max(widths[i], len(cell), len(rows[0][i]))
			}
		}
	}
	for _, r := range rows {
		var line strings.Builder
		for i, cell := range r {
			if widths[i] > 0 {
				fmt.Fprintf(&line, "%-*s  ", widths[i], cmp.Or(cell, "-"))
			}
		}
		fmt.Fprintln(b, strings.TrimRight(line.String(), " "))
	}
}

// WriteJSON writes the report for programs.
func (r *Report) WriteJSON(w io.Writer) error {
	enc := json.NewEncoder(w)
	enc.SetIndent("", "  ")
	enc.SetEscapeHTML(false)
	return enc.Encode(r)
}
