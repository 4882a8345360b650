package main

import (
	"fmt"
	"io"
	"slices"
	"time"
)

// bounds are how much more a server may hold at the end than at the beginning. All are
// arbitrary: of descriptors and goroutines a few may be on their way out, threads of Go
// never go back, so that a crowd that waits late is seen to the end (16 at most sleep in
// the kernel, package transports/stream), a heap's arenas are mapped one by one and rarely
// unmapped.
var bounds = []struct {
	name string
	of   func(holding) float64
	may  float64
}{
	{"descriptors", func(h holding) float64 { return h.descriptors }, 2},
	{"goroutines", func(h holding) float64 { return h.goroutines }, 4},
	{"threads", func(h holding) float64 { return h.threads }, 16 + 8},
	{"mappings", func(h holding) float64 { return h.mappings }, 48},
	{"resident MiB", func(h holding) float64 { return h.residentMB }, 16},
}

// fewestRounds are needed to tell growth.
const fewestRounds = 3

// growth is what a server holds more in the last fifth of the rounds than in the second:
// by medians, so that one late connection is no leak. The first fifth is warm-up.
func growth(held []holding, of func(holding) float64) (from, to float64) {
	fifth := max(len(held)/5, 1)
	middle := func(part []holding) float64 {
		all := make([]float64, len(part))
		for i, h := range part {
			all[i] = of(h)
		}
		slices.Sort(all)
		return all[len(all)/2]
	}
	return middle(held[fifth : 2*fifth]), middle(held[len(held)-fifth:])
}

// table prints what every server held over time, and tells whether one grew.
func table(w io.Writer, servers []*server) (grew bool) {
	for _, p := range servers {
		fmt.Fprintf(w, "\n%-22s", p.name)
		for _, b := range bounds {
			fmt.Fprintf(w, " %13s", b.name)
		}
		fmt.Fprintln(w)
		every := max((len(p.held)+rowsInTable-1)/rowsInTable, 1)
		for i, h := range p.held {
			if i%every != 0 && i != len(p.held)-1 {
				continue
			}
			fmt.Fprintf(w, "after %-16s", h.after.Round(time.Second))
			for _, b := range bounds {
				fmt.Fprintf(w, " %13.4g", b.of(h))
			}
			fmt.Fprintln(w)
		}
		fmt.Fprintf(w, "%-22s", "growth (bound)")
		wrong := ""
		for _, b := range bounds {
			from, to := growth(p.held, b.of)
			fmt.Fprintf(w, " %13s", fmt.Sprintf("%+.3g (%g)", to-from, b.may))
			if to-from > b.may {
				wrong += fmt.Sprintf("%s: %s grew from %.4g to %.4g, beyond %g\n", p.name, b.name, from, to, b.may)
				grew = true
			}
		}
		fmt.Fprintln(w)
		fmt.Fprint(w, wrong)
	}
	return grew
}
