package think

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/curves"
	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/engine"
	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/values"
	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/workload"
	"github.com/rdmaperf/rdmaperf/reports"
	"github.com/rdmaperf/rdmaperf/transports"
)

// Name is the workload's.
const Name = "think"

const (
	op = "time"
	// longest is how long a server may think. Arbitrary: an unknown peer asks for it.
	longest = 100 * time.Millisecond
	// largest is the longest request and answer, bytes. Arbitrary, likewise.
	largest = 256 << 10
)

var set = curves.Results(reports.Workload{
	Name: Name, Title: "Thinking",
	Intro: "The server computes for a while before it answers each call. Who polls for the answer uses a processor " +
		"all the time, who sleeps pays with a wake-up, and who waits adaptively polls while answers come soon and " +
		"sleeps behind that. The server computes before it answers; over it is the latency beyond that time; CPU is " +
		"of a call, busy the part of a CPU that the client uses.",
	Dims: []reports.DimDef{{Name: "think_ns", Unit: "ns", Help: "for which the server computes before it answers"}},
	Figures: []reports.FigureDef{
		{Name: "call_p50_ns", Quantity: reports.QuantityTime, Help: "p50"},
		{Name: "call_p99_ns", Quantity: reports.QuantityTime, Help: "p99"},
		{Name: "waiting_p50_ns", Quantity: reports.QuantityTime, Help: "Latency beyond the time to think, median"},
		{Name: "client_cpu_ns", Quantity: reports.QuantityTime, Help: "CPU of the client for a call"},
		{Name: "client_busy", Quantity: reports.QuantityRatio, Help: "Part of a CPU that the client uses"},
		{Name: "server_cpu_ns", Quantity: reports.QuantityTime, Help: "server"},
	},
}, "one caller, one call at a time", map[string]reports.DimDef{op: {Name: "think_ns", Unit: "ns"}})

type options struct{ Think time.Duration }

func (o *options) check(size int) error {
	switch {
	case o.Think < 0 || o.Think > longest:
		return fmt.Errorf("%v to think: want 0 to %v", o.Think, longest)
	case size < least || size > largest:
		return fmt.Errorf("calls of %d bytes: want %d to %d", size, least, largest)
	}
	return nil
}

func (o *options) words(size int) string { return fmt.Sprintf("think: %d B, %v", size, o.Think) }

// Workload implements workload.Workload.
type Workload struct {
	times string
}

func (*Workload) Meta() workload.Meta {
	return workload.Meta{
		Name:       Name,
		Results:    set,
		Summary:    "latency and client CPU of calls whose server computes first",
		Examples:   "rdmaperf run --transport 'lite+iwarp,lite(poll=adaptive)+iwarp,grpc(tcp)' --workload think",
		Group:      "Workload think",
		OwnThreads: true,
		Over:       over,
		Sizes:      []int{64},
	}
}

// over takes stacks of calls whose sides are two processes.
func over(s transports.Stack, _ engine.Point) error {
	if _, err := engine.CallsOf(s); err != nil {
		return err
	}
	if s.Caps().InProcess {
		return &reports.ExitError{Code: reports.ExitNotRun, Hint: "--transport lite+iwarp",
			Err: errors.New("both sides are one process, whose CPU is not the client's")}
	}
	return nil
}

func (f *Workload) Flags(s *pflag.FlagSet) {
	values.ListVar(s, &f.times, "think-time", "0,2us,5us,10us,20us,50us,100us,200us",
		"think: how long the server computes before it answers, a comma list")
}

// Points are all sizes and times.
func (f *Workload) Points(c *workload.Common) (points []engine.Point, err error) {
	if s := c.AnyOf("op", "qp", "qp-sweep", "threads", "polling", "depth"); s != "" && c.Alone() {
		return nil, values.Wrong(s, "the workload think has one caller with one call at a time; see --think-time")
	}
	for _, size := range c.SizesOf("", f.Meta().Sizes) {
		for word := range strings.SplitSeq(f.times, ",") {
			d, err := time.ParseDuration(strings.TrimSpace(word))
			if err != nil {
				return nil, values.Wrong("think-time", "%q: want times, such as 0,10us", word)
			}
			o := options{d}
			if err := o.check(size); err != nil {
				return nil, values.Wrong("think-time", "%v", err)
			}
			points = append(points, engine.Point{Workload: Name, Op: op, Size: size, Words: o.words(size),
				Options: engine.PackOptions(o)})
		}
	}
	return points, nil
}
