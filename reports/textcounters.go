package reports

import "strings"

// counters show what moved on the devices, or with the option everything. On one
// machine both sides may have read the same device, which is then shown once.
func (p *textPrinter) counters(g *groupedResults) {
	for _, r := range g.results {
		name := g.rowName(r)
		if r.HOL != nil && r.HOL.Arm != "" {
			name += " " + printable(r.HOL.Arm)
		}
		if r.Repeat > 0 {
			name += ", repeat " + integer(int64(r.Repeat))
		}
		for _, s := range r.Counters.sides() {
			for _, d := range s.devices {
				who := s.side + " "
				if p.one && r.Counters.shared(&d) {
					if who = ""; s.side == "server" {
						continue
					}
				}
				var parts []string
				for _, c := range d.moved(p.Counters) {
					part := c + " " + integer(d.Counters[c])
					if d.Counters[c] < 0 {
						part += " (reset)"
					}
					parts = append(parts, part)
				}
				if len(parts) > 0 {
					p.wrapped(name + ", " + who + d.name() + " counted: " + strings.Join(parts, ", "))
				}
			}
		}
	}
}

// counterTable shows on the page what moved.
func counterTable(of condition, samples []*sample) htmlTable {
	t := htmlTable{Caption: of.title() + ": device counters that moved", Note: of.describe(), Head: headCells("stack", "size", "side", "device", "counter", "change")}
	for _, s := range samples {
		for _, side := range s.Counters.sides() {
			for _, d := range side.devices {
				for _, c := range d.moved(false) {
					change := numberCell(integer(d.Counters[c]))
					if d.Counters[c] < 0 {
						change = htmlCell{Text: "! reset, " + change.Text, Class: "n warn"}
					}
					t.Rows = append(t.Rows, []htmlCell{nameCell(s.name()), numberCell(sizeLabel(s.SizeBytes)), textCell(side.side), textCell(d.name()), textCell(c), change})
				}
			}
		}
	}
	return t
}
