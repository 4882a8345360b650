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
				figure(l.CQE), figure(l.MRs),
				figure(l.SRQs), figure(l.RDAtom), map[bool]string{true: "yes", false: "no"}[l.Atomics],
				d.messageText()})
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
