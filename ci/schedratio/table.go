package main

import (
	"encoding/json"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/rdmaperf/rdmaperf/ci/targets"
	"github.com/rdmaperf/rdmaperf/reports"
)

// measures are the values of each series in the order of the repeats.
type measures targets.Measures

func (m measures) add(series string, x float64) { m[series] = append(m[series], x) }

// document takes the figures of one run.
func (m measures) document(name string) error {
	doc, err := targets.ReadDocument(name)
	if err != nil {
		return err
	}
	for i := range doc.Results {
		r := &doc.Results[i]
		var hol struct {
			Arm         string          `json:"arm"`
			Bulk        int64           `json:"bulk_size_bytes"`
			ProbeLoaded reports.Latency `json:"probe_loaded"`
		}
		switch member := r.Others.Get("hol"); {
		case member != nil:
			if err := json.Unmarshal(member, &hol); err != nil {
				return err
			}
			m.add(p99(r.Transport, hol.Arm, r.Op, hol.Bulk), hol.ProbeLoaded.P99)
		case r.Throughput != nil && r.CPU != nil && r.Throughput.BytesPerSecond > 0:
			rate := r.Throughput.BytesPerSecond
			bytes := rate * float64(r.DurationNs) / 1e9
			m.add(fmt.Sprintf("%s/rate/%d", r.Transport, r.SizeBytes), rate)
			m.add(fmt.Sprintf("%s/cpu/%d", r.Transport, r.SizeBytes),
				(r.CPU.ClientSeconds+r.CPU.ServerSeconds)/bytes*1e9)
			if r.CPU.MachineSeconds > 0 {
				m.add(fmt.Sprintf("%s/machine/%d", r.Transport, r.SizeBytes), r.CPU.MachineSeconds/bytes*1e9)
			}
		}
	}
	return nil
}

func p99(stack, arm, op string, size int64) string {
	return fmt.Sprintf("%s/%s/%s/p99/%d", stack, arm, op, size)
}

var benchLine = regexp.MustCompile(`^BenchmarkPerRequest/(bare|fifo|strict)/single\S*\s.*?([0-9.]+) cpu-ns/request`)

// Streams of writes alone, as the benchmark in package sched prints a round of them.
var (
	aloneLine   = regexp.MustCompile(`^BenchmarkAlone/(nocrc/|verbs/)?([0-9]+)([KM]?)(-\d+)?\s`)
	aloneFigure = regexp.MustCompile(`(\S+) (bare|sched)-(B/s|cpu-s/GB|machine-s/GB)`)
)

// bench takes the cost of a request that is posted alone, and streams over iWARP or, as
// verbs, over the stack given. They stand for those of documents, whose windows lie
// farther apart.
func (m measures) bench(text, stack string) {
	alone := measures{}
	defer func() { maps.Copy(m, alone) }()
	for l := range strings.Lines(text) {
		if f := aloneLine.FindStringSubmatch(l); f != nil {
			below := map[string]string{"": "iwarp", "nocrc/": withoutCRC, "verbs/": stack}[f[1]]
			size, _ := strconv.Atoi(f[2])
			size <<= map[string]int{"K": 10, "M": 20}[f[3]]
			for _, v := range aloneFigure.FindAllStringSubmatch(l, -1) {
				arm, what := map[string]string{"bare": below, "sched": "sched+" + below}[v[2]],
					map[string]string{"B/s": "rate", "cpu-s/GB": "cpu", "machine-s/GB": "machine"}[v[3]]
				x, _ := strconv.ParseFloat(v[1], 64)
				alone.add(fmt.Sprintf("%s/%s/%d", arm, what, size), x)
			}
		}
		if f := benchLine.FindStringSubmatch(l); f != nil {
			x, _ := strconv.ParseFloat(f[2], 64)
			m.add(f[1]+"/request", x)
		}
	}
}

type row = targets.Row

const mib = 1 << 20

// withoutCRC is the stack of the set nocrc. A path that sums nothing is faster, so that
// what waits costs more of it: with 1 MiB the tier once had 0.94x of it.
const withoutCRC = "iwarp(nocrc)"

// Sets of lines, as --only names them.
const (
	setHOL     = "hol"
	setBulk    = "bulk"
	setCPU     = "cpu"
	setMachine = "machine"
	setNoCRC   = "nocrc"
	setSends   = "sends"
	setRequest = "request"
)

func sets() []string {
	return []string{setHOL, setBulk, setCPU, setMachine, setNoCRC, setSends, setRequest}
}

// rows are the lines of the sets for the stack given, with a tier and without one, and of
// nocrc for its own. large is the longest message.
func rows(stack string, large int64, only []string) []row {
	long := reports.FormatSize(large)
	sched, cutting := "sched+"+stack, "sched(sends=slice)+"+stack
	probe := func(stack, arm string, size int64) string { return p99(stack, arm, "write", size) }
	list := []row{
		{Set: setHOL, Name: "probe p99 beside 1M bulk, raw over sched", Series: probe(stack, "same-qp", mib),
			Beside: probe(sched, "same-qp", mib), Target: targets.Target{Bound: 10}},
		{Set: setHOL, Name: "sched p99, beside " + long + " bulk over beside 1M",
			Series: probe(sched, "same-qp", large), Beside: probe(sched, "same-qp", mib),
			Target: targets.Target{Bound: 1.5, Less: true}},
		{Set: setHOL, Name: "raw p99, beside " + long + " bulk over beside 1M", Series: probe(stack, "same-qp", large),
			Beside: probe(stack, "same-qp", mib)},
		{Set: setHOL, Name: "p99 beside 1M bulk, sched over two queue pairs", Series: probe(sched, "same-qp", mib),
			Beside: probe(stack, "two-qp", mib), Target: targets.Target{Bound: 1, Less: true}},
		{Set: setHOL, Name: "us of the probe's p99 beside 1M bulk, raw", Series: probe(stack, "same-qp", mib),
			Unit: 1000},
		{Set: setHOL, Name: "us of the probe's p99 beside 1M bulk, two QPs", Series: probe(stack, "two-qp", mib),
			Unit: 1000},
		{Set: setHOL, Name: "us of the probe's p99 beside 1M bulk, sched", Series: probe(sched, "same-qp", mib),
			Unit: 1000},
	}
	for _, size := range []int64{64, 64 << 10, mib, large} {
		bound := 0.98
		if size == 64 {
			bound = 0.97
		}
		list = append(list, row{Set: setBulk, Name: "bulk of " + reports.FormatSize(size) + ", sched over raw",
			Series: fmt.Sprintf("%s/rate/%d", sched, size), Beside: fmt.Sprintf("%s/rate/%d", stack, size),
			Target: targets.Target{Bound: bound}})
	}
	for _, size := range []int64{64 << 10, mib, large} {
		list = append(list, row{Set: setCPU, Name: "CPU per GB of " + reports.FormatSize(size) + ", sched over raw",
			Series: fmt.Sprintf("%s/cpu/%d", sched, size), Beside: fmt.Sprintf("%s/cpu/%d", stack, size),
			Target: targets.Target{Bound: 1.03, Less: true}},
			row{Set: setMachine, Name: "machine's CPU per GB of " + reports.FormatSize(size) + ", sched over raw",
				Series: fmt.Sprintf("%s/machine/%d", sched, size), Beside: fmt.Sprintf("%s/machine/%d", stack, size),
				Target: targets.Target{Bound: 1.03, Less: true}})
	}
	for _, size := range []int64{64 << 10, mib} {
		name := " of " + reports.FormatSize(size) + " without CRC, sched over raw"
		list = append(list,
			row{Set: setNoCRC, Name: "bulk" + name, Series: fmt.Sprintf("sched+%s/rate/%d", withoutCRC, size),
				Beside: fmt.Sprintf("%s/rate/%d", withoutCRC, size), Target: targets.Target{Bound: 0.98}},
			row{Set: setNoCRC, Name: "CPU per GB" + name, Series: fmt.Sprintf("sched+%s/cpu/%d", withoutCRC, size),
				Beside: fmt.Sprintf("%s/cpu/%d", withoutCRC, size), Target: targets.Target{Bound: 1.03, Less: true}})
	}
	list = append(list,
		row{Set: setSends, Name: "probe p99 beside 1M sends, raw over sched",
			Series: p99(stack, "same-qp", "send", mib), Beside: p99(cutting, "same-qp", "send", mib),
			Target: targets.Target{Bound: 10}},
		row{Set: setSends, Name: "the same with sends left whole", Series: p99(stack, "same-qp", "send", mib),
			Beside: p99(sched, "same-qp", "send", mib)},
		row{Set: setRequest, Name: "ns a request posted alone, sched(fifo) above bare", Series: "fifo/request",
			Beside: "bare/request", Minus: true, Target: targets.Target{Bound: 30, Less: true}},
		row{Set: setRequest, Name: "ns a request posted alone, sched(strict) above bare", Series: "strict/request",
			Beside: "bare/request", Minus: true})
	return slices.DeleteFunc(list, func(w row) bool { return !slices.Contains(only, w.Set) })
}

func (m measures) lines(list []row) []targets.Line { return targets.Measures(m).Lines(list) }
