package devices

import (
	"bufio"
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"strings"
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
	for i := range r.Devices {
		r.Devices[i].writeText(b)
	}
	for _, n := range r.Notes {
		fmt.Fprintf(b, "note: %s\n", n)
	}
	if len(r.Soft) > 0 {
		fmt.Fprintln(b, "transports that need no device:")
	}
	for _, s := range r.Soft {
		fmt.Fprintf(b, "  %-8s %s\n", s.Transport, s.Description)
	}
	return b.Flush()
}

func (d *Device) writeText(b *bufio.Writer) {
	kind := cmp.Or(d.NodeType, "device")
	if d.Software {
		kind += ", software"
	}
	fmt.Fprintf(b, "%s: %s", d.Name, kind)
	for _, f := range []struct{ name, value string }{
		{"driver", d.Driver}, {"firmware", d.Firmware}, {"node GUID", d.NodeGUID},
		{"netdev", strings.Join(d.NetDevs, " ")},
	} {
		if f.value != "" {
			fmt.Fprintf(b, ", %s %s", f.name, f.value)
		}
	}
	fmt.Fprintln(b)
	for i := range d.Ports {
		p := &d.Ports[i]
		fmt.Fprintf(b, "  port %d: %s", p.Number, cmp.Or(p.State, "state unknown"))
		for _, v := range []string{p.PhysState, p.LinkLayer, p.Rate} {
			if v != "" {
				fmt.Fprintf(b, ", %s", v)
			}
		}
		fmt.Fprintln(b)
		for _, g := range p.GIDs {
			line := fmt.Sprintf("    gid %-3d %-39s %-8s %s", g.Index, g.GID, g.Type, g.NetDev)
			fmt.Fprintln(b, strings.TrimRight(line, " "))
		}
	}
}

// WriteJSON writes the report for programs.
func (r *Report) WriteJSON(w io.Writer) error {
	enc := json.NewEncoder(w)
	enc.SetIndent("", "  ")
	enc.SetEscapeHTML(false)
	return enc.Encode(r)
}
