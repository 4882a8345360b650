package claims

import (
	"context"
	"fmt"
	"strconv"
	"strings"

	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/answer"
	"github.com/rdmaperf/rdmaperf/reports"
)

type (
	notHere struct{ error } // why a run cannot be made on this machine
	broken  struct{ error } // why a run failed
)

// read makes the run of a figure, and takes the figure of each round out of its document.
func (n *runner) read(ctx context.Context, a At) (series, error) {
	o := n.of(ctx, a.Run)
	switch {
	case o.code == reports.ExitNotRun:
		return series{}, notHere{o.err}
	case o.late, o.code == reports.ExitPeer: // too busy a machine
		return series{}, o.err
	case o.err != nil:
		return series{}, broken{o.err}
	case o.doc == nil:
		return series{}, fmt.Errorf("rdmaperf %s writes no result document", a.Run.Args)
	}
	return seriesOf(o.doc, a)
}

// seriesOf is a figure by round.
func seriesOf(doc *reports.Document, a At) (series, error) {
	s := series{Rounds: map[int]answer.Value{}}
	for i := range doc.Results {
		r := &doc.Results[i]
		if !matches(r, a) {
			continue
		}
		f, ok := find(r, a.Figure)
		if !ok {
			continue
		}
		if _, twice := s.Rounds[r.Repeat]; twice {
			return s, fmt.Errorf("%s of %s %s: more than one in a round", a.Figure, a.Stack, a.Where)
		}
		s.Figure, s.Rounds[r.Repeat] = f, answer.ValueOf(r, f)
	}
	if len(s.Rounds) == 0 {
		return s, fmt.Errorf("%s of %s %s: not measured", a.Figure, a.Stack, a.Where)
	}
	return s, nil
}

// matches tells whether a result is of the stack and at the point.
func matches(r *reports.Result, a At) bool {
	if a.Stack != "" && reports.TransportOf(r) != a.Stack {
		return false
	}
	for _, c := range strings.Fields(a.Where) {
		name, want, _ := strings.Cut(c, "=")
		if !has(r, name, want) {
			return false
		}
	}
	return true
}

// has tells whether a result has the value of a dimension.
func has(r *reports.Result, name, want string) bool {
	switch name {
	case "op":
		return r.Op == want
	case "workload":
		return r.Workload == want
	case "size":
		return reports.FormatSize(r.SizeBytes) == want
	case "depth":
		return strconv.Itoa(r.Depth) == want
	case "qps":
		return strconv.Itoa(r.QPs) == want
	case "threads":
		return strconv.Itoa(r.Threads) == want
	case "rate":
		return strconv.FormatFloat(r.Rate, 'f', -1, 64) == want
	}
	for _, d := range r.Dims {
		if short, value := d.Short(); short == name || d.Name == name {
			return value == want || d.Value == want
		}
	}
	return false
}

// find is a figure of a result. "cpu.gb" is the processor time of both sides for 10^9 bytes, of any result.
func find(r *reports.Result, name string) (reports.Figure, bool) {
	if f, ok := r.Find(name); ok || name != "cpu.gb" {
		return f, ok
	}
	if r.CPU == nil || r.Throughput == nil || r.Throughput.BytesPerSecond <= 0 || r.DurationNs <= 0 {
		return reports.Figure{}, false
	}
	gb := r.Throughput.BytesPerSecond * float64(r.DurationNs) / 1e18
	return reports.Figure{Name: name, Value: (r.CPU.ClientSeconds + r.CPU.ServerSeconds) / gb * 1e9}, true
}
