// Command verifytable shows what comparing data costs. It reads result documents of the
// workloads latency and throughput in the order of the rounds that ci/verify-cost measured,
// each with how its data was compared before it: none=FILE, sample=FILE or all=FILE. Ratios
// to none are taken inside a round, and then their median over the rounds.
//
// Exit codes: 0, or 1 where something was not measured, 2 usage.
package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/rdmaperf/rdmaperf/ci/targets"
	"github.com/rdmaperf/rdmaperf/reports"
	"github.com/rdmaperf/rdmaperf/reports/view"
)

func main() {
	targets.Exit("verify-cost", func(args []string) error { return run(args, os.Stdout) })
}

// ways are how data is compared; the first is what the others are held against.
var ways = []string{"none", "sample", "all"}

// document is what is read of a result document.
type document struct {
	Results []struct {
		Workload, Op, Stack string
		SizeBytes           int64 `json:"size_bytes"`
		Latency             *struct{ P50 float64 }
		Throughput          *struct {
			Bytes float64 `json:"bytes_per_second"`
		}
		Verification *struct{ Mode string }
	}
}

// point is a row of the table.
type point struct {
	workload, op, stack string
	size                int64
}

func run(args []string, w io.Writer) error {
	figures := map[string][]map[point]float64{} // by way and round: ns, or bytes a second
	var points []point
	for _, arg := range args {
		way, name, ok := strings.Cut(arg, "=")
		if !ok {
			return &reports.ExitError{Code: reports.ExitUsage,
				Err: errors.New("usage: verifytable none=FILE sample=FILE all=FILE …")}
		}
		b, err := os.ReadFile(name)
		if err != nil {
			return err
		}
		var d document
		if err := json.Unmarshal(b, &d); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		round := map[point]float64{}
		for _, r := range d.Results {
			p := point{r.Workload, r.Op, r.Stack, r.SizeBytes}
			switch {
			case r.Verification != nil && r.Verification.Mode != way:
				return fmt.Errorf("%s: data was compared as %q, want %q", name, r.Verification.Mode, way)
			case r.Workload == "latency" && r.Latency != nil:
				round[p] = r.Latency.P50
			case r.Workload == "throughput" && r.Throughput != nil:
				round[p] = r.Throughput.Bytes
			default:
				return fmt.Errorf("%s: %s %s was not measured", name, r.Workload, r.Stack)
			}
			if way == ways[0] && len(figures[way]) == 0 {
				points = append(points, p)
			}
		}
		figures[way] = append(figures[way], round)
	}
	rounds := len(figures[ways[0]])
	for _, way := range ways {
		if n := len(figures[way]); n == 0 || n != rounds {
			return fmt.Errorf("not measured: %d rounds of %q, want %d of each", n, way, max(rounds, 1))
		}
	}
	fmt.Fprint(w, "| | nothing compared | `sample` (default) | `all` |\n|---|---|---|---|\n")
	for _, p := range points {
		label := view.NsLabel
		if p.workload == "throughput" {
			label = view.BandwidthLabel
		}
		fmt.Fprintf(w, "| %s %s %s, `%s` |", p.workload, p.op, reports.SizeLabel(p.size), p.stack)
		var base []float64
		for _, round := range figures[ways[0]] {
			base = append(base, round[p])
		}
		fmt.Fprintf(w, " %s |", label(targets.Median(base)))
		for _, way := range ways[1:] {
			var ratios []float64
			for i, round := range figures[way] {
				if base[i] > 0 && round[p] > 0 {
					ratios = append(ratios, round[p]/base[i])
				}
			}
			if len(ratios) < rounds {
				return fmt.Errorf("not measured: %s %s %s with %s", p.workload, p.op, p.stack, way)
			}
			lo, hi := targets.Interval(ratios)
			fmt.Fprintf(w, " %.2fx (%.2f to %.2f) |", targets.Median(ratios), lo, hi)
		}
		fmt.Fprintln(w)
	}
	fmt.Fprintf(w, "\nLatency is the p50, throughput the bandwidth; ratios to nothing compared, their medians over "+
		"%s and the interval.\n", view.Plural(int64(rounds), "round"))
	return nil
}
