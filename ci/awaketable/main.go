// Command awaketable shows stacks that sleep between messages beside one that polls, both on
// the machine as it is and with its CPUs kept awake. It reads result documents of the workload
// rpc or latency in the order of the rounds that ci/awake measured; one that was kept awake
// says so itself. Ratios are taken inside a round, and then their median over the rounds.
//
// Exit codes: 0, or 1 where something was not measured, 2 usage.
package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/rdmaperf/rdmaperf/ci/targets"
	"github.com/rdmaperf/rdmaperf/reports"
	"github.com/rdmaperf/rdmaperf/reports/view"
)

func main() {
	targets.Exit("awake", func(args []string) error { return run(args, os.Stdout) })
}

// document is what is read of a result document.
type document struct {
	Environment struct {
		Wakeup    *struct{ P50, P99 float64 }
		IdleState string `json:"idle_state"`
		Awake     string
	}
	Results []struct {
		Stack   string
		Latency *struct{ P50 float64 }
	}
}

// way is one of the two ways in which the machine was.
type way struct {
	p50, p99 []float64            // of its wake-up, ns, by round
	rounds   []map[string]float64 // p50 by stack, ns
}

func run(args []string, w io.Writer) error {
	if len(args) == 0 {
		return &reports.ExitError{Code: reports.ExitUsage, Err: errors.New("usage: awaketable FILE…")}
	}
	var asIs, awake way
	var stacks []string
	idle := "not known to the kernel"
	for _, name := range args {
		b, err := os.ReadFile(name)
		if err != nil {
			return err
		}
		var d document
		if err := json.Unmarshal(b, &d); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		to := &asIs
		if d.Environment.Awake != "" {
			to = &awake
		}
		if d.Environment.IdleState != "" {
			idle = d.Environment.IdleState
		}
		if u := d.Environment.Wakeup; u != nil {
			to.p50, to.p99 = append(to.p50, u.P50), append(to.p99, u.P99)
		}
		round := map[string]float64{}
		for _, r := range d.Results {
			if r.Latency == nil {
				return fmt.Errorf("%s: %s was not measured", name, r.Stack)
			}
			if round[r.Stack] = r.Latency.P50; len(to.rounds) == 0 && to == &asIs {
				stacks = append(stacks, r.Stack)
			}
		}
		to.rounds = append(to.rounds, round)
	}
	if len(stacks) < 2 || len(awake.rounds) == 0 {
		return errors.New("not measured: want two stacks, both on the machine as it is and kept awake")
	}
	last := stacks[len(stacks)-1]
	fmt.Fprintf(w, "| p50 | as the machine is | beside `%s` | kept awake | beside `%s` |\n|---|---|---|---|---|\n",
		last, last)
	for _, s := range stacks {
		fmt.Fprintf(w, "| `%s` | %s | %s | %s | %s |\n", s, usec(asIs.of(s)), asIs.beside(s, last), usec(awake.of(s)),
			awake.beside(s, last))
	}
	fmt.Fprintf(w, "| wake-up of a thread, p50; p99 | %s; %s | | %s; %s | |\n", usec(asIs.p50), usec(asIs.p99),
		usec(awake.p50), usec(awake.p99))
	fmt.Fprintf(w, "\nDeepest idle state of the kernel: %s. Medians of %s.\n", idle,
		view.Plural(int64(len(asIs.rounds)), "round"))
	return nil
}

// of is the p50 of a stack in each round.
func (y *way) of(stack string) (xs []float64) {
	for _, r := range y.rounds {
		if v, ok := r[stack]; ok {
			xs = append(xs, v)
		}
	}
	return xs
}

// beside is the ratio to another stack with its interval.
func (y *way) beside(stack, other string) string {
	if stack == other {
		return ""
	}
	var xs []float64
	for _, r := range y.rounds {
		if a, b := r[stack], r[other]; a > 0 && b > 0 {
			xs = append(xs, a/b)
		}
	}
	lo, hi := targets.Interval(xs)
	return fmt.Sprintf("%.2fx (%.2f to %.2f)", targets.Median(xs), lo, hi)
}

// usec is the median in microseconds, with three digits.
func usec(ns []float64) string {
	if len(ns) == 0 {
		return "–"
	}
	return view.Usec(targets.Median(ns)) + " us"
}
