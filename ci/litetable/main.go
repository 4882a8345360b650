// Command litetable turns what ci/lite-ratio measured into one table: how LITE stands
// beside the bare device and beside gRPC, against the project's targets.
//
// It reads result documents named in the order of the repeats, and the output of the
// benchmarks of transports/lite. Ratios are taken inside a repeat, where the arms ran
// point by point in turn, and then their median over the repeats, with both bounds of
// its interval.
//
// Exit codes are rdmaperf's: 0 when all targets are met, 3 when one is missed, 1 when
// something was not measured or is undecided.
package main

import (
	"flag"
	"fmt"
	"os"
	"regexp"
	"strconv"
	"strings"

	"github.com/rdmaperf/rdmaperf/ci/targets"
	"github.com/rdmaperf/rdmaperf/reports"
)

func main() { targets.Exit("lite-ratio", run) }

func run(args []string) error {
	flags := flag.NewFlagSet("litetable", flag.ContinueOnError)
	bench := flags.String("bench", "", "benchmark output of transports/lite")
	jsonFile := flags.String("json", "", "write the table as JSON to this file")
	if err := targets.Parse(flags, args, "[-bench FILE] [-json FILE] DOCUMENT…",
		func() bool { return *bench != "" || flags.NArg() > 0 }); err != nil {
		return err
	}
	m := measures{}
	for _, name := range flags.Args() {
		if err := m.document(name); err != nil {
			return err
		}
	}
	if *bench != "" {
		text, err := os.ReadFile(*bench)
		if err != nil {
			return err
		}
		m.bench(string(text))
	}
	return targets.Report("rdmaperf-lite-ratio/v1", *jsonFile, m.lines())
}

// measures are the values of each series in the order of the repeats: round trips and
// costs in ns, rates in bytes a second, CPU in ns a call.
type measures targets.Measures

func (m measures) add(series string, x float64) { m[series] = append(m[series], x) }

// document takes the figures of one run.
func (m measures) document(name string) error {
	doc, err := targets.ReadDocument(name)
	if err != nil {
		return err
	}
	if doc.Error != nil {
		return fmt.Errorf("%s: %s", name, doc.Error.Message)
	}
	for i := range doc.Results {
		r := &doc.Results[i]
		at := fmt.Sprintf("%s/%s/%d/", r.Transport, r.Op, r.SizeBytes)
		switch {
		case r.Latency != nil:
			whole := r.Latency.P50
			if r.RoundTrip == reports.RoundTripHalf {
				whole *= 2
			}
			m.add(at+"trip", whole)
			if r.CPU != nil && r.Operations > 0 {
				m.add(at+"cpu", (r.CPU.ClientSeconds+r.CPU.ServerSeconds)*1e9/float64(r.Operations))
			}
		case r.Throughput != nil:
			m.add(at+"rate", r.Throughput.BytesPerSecond)
		}
	}
	return nil
}

var (
	benchLine = regexp.MustCompile(`^Benchmark(\S+?)(-\d+)?\s+\d+\s`)
	benchTime = regexp.MustCompile(`\s([0-9.]+) ns/(\S+)`)
)

// bench takes times of an operation, one for each count of a benchmark, and those of its arms
// where it has some that take turns.
func (m measures) bench(text string) {
	for l := range strings.Lines(text) {
		f := benchLine.FindStringSubmatch(l)
		if f == nil {
			continue
		}
		for _, t := range benchTime.FindAllStringSubmatch(l, -1) {
			x, err := strconv.ParseFloat(t[1], 64)
			if err != nil {
				continue
			}
			if at := f[1]; t[2] == "op" {
				m.add(at, x)
			} else {
				m.add(at+"/"+t[2], x)
			}
		}
	}
}

// row is a line as a literal of rows: unit is of a series alone, and bound 0 none.
type row struct {
	name           string
	series, beside string
	unit           float64
	bound          float64
	less           bool
}

var rows = []row{
	{"64 B write through a handle, p50 over bare iwarp", "lite+iwarp/write/64/trip", "iwarp/write/64/trip", 0, 1.10,
		true},
	{"1 MiB writes through a handle, rate over bare iwarp", "lite+iwarp/write/1048576/rate", "iwarp/write/1048576/rate",
		0, 0.98, false},
	{"64 B writes through a handle, rate over bare iwarp", "lite+iwarp/write/64/rate", "iwarp/write/64/rate", 0, 0,
		false},
	{"64 B call, callers polling, over a bare send's round trip", "lite+iwarp/call/64/trip", "iwarp/send/64/trip", 0,
		1.5, true},
	{"grpc(tcp) over a 64 B call, callers polling", "grpc(tcp)/call/64/trip", "lite+iwarp/call/64/trip", 0, 5, false},
	{"grpc(fused)+iwarp over the same", "grpc(fused)+iwarp/call/64/trip", "lite+iwarp/call/64/trip", 0, 0, false},
	{"us of a 64 B call, callers polling", "lite+iwarp/call/64/trip", "", 1000, 0, false},
	{"us of a 64 B call, one polling thread a node", "lite(poll=node)+iwarp/call/64/trip", "", 1000, 0, false},
	{"us of a 64 B call, waiting", "lite(poll=adaptive)+iwarp/call/64/trip", "", 1000, 0, false},
	{"us of a 64 B call by send and receive", "lite(rpc=send)+iwarp/call/64/trip", "", 1000, 0, false},
	{"us of a 64 B call by two writes into polled rings", "lite(rpc=write)+iwarp/call/64/trip", "", 1000, 0, false},
	{"us of a 64 B call by daemons, crossing hidden", "lite(daemon)+iwarp/call/64/trip", "", 1000, 0, false},
	{"us of a 64 B call by daemons, crossing not hidden", "lite(daemon,cross)+iwarp/call/64/trip", "", 1000, 0, false},
	{"us of CPU of both sides a call, callers polling", "lite+iwarp/call/64/cpu", "", 1000, 0, false},
	{"us of CPU of both sides a call, one polling thread a node", "lite(poll=node)+iwarp/call/64/cpu", "", 1000, 0,
		false},
	{"us of CPU of both sides a call, waiting", "lite(poll=adaptive)+iwarp/call/64/cpu", "", 1000, 0, false},
	{"us of CPU of both sides a call, grpc(tcp)", "grpc(tcp)/call/64/cpu", "", 1000, 0, false},
	{"64 B read over iwarp, 10,000 regions over one", "Read/iwarp/many", "Read/iwarp/one", 0, 1.10, true},
	{"64 B read over mem, 10,000 regions over one", "Read/mem/many", "Read/mem/one", 0, 0, true},
	{"ns of look-up and permission, one region", "Lookup/regions=1", "", 1, 100, true},
	{"ns of look-up and permission, 10,000 regions", "Lookup/regions=10000", "", 1, 100, true},
}

func (m measures) lines() []targets.Line {
	all := make([]targets.Row, len(rows))
	for i, w := range rows {
		all[i] = targets.Row{Name: w.name, Series: w.series, Beside: w.beside, Unit: w.unit,
			Target: targets.Target{Bound: w.bound, Less: w.less}}
	}
	return targets.Measures(m).Lines(all)
}
