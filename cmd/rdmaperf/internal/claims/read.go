package claims

import (
	"errors"
	"fmt"
	"maps"
	"strconv"
	"strings"

	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/answer"
	"github.com/rdmaperf/rdmaperf/reports"
)

type (
	notHere struct{ error } // why a run cannot be made on this machine
	broken  struct{ error } // why a run failed
)

// read takes a figure of each round out of the document of its run, whatever became of the rest of the run.
func (n *runner) read(a At, rounds int) (series, error) {
	o := n.ran[over(a.Run.Args, n.Transport)]
	if o == nil {
		return series{}, errLate
	}
	a.Stack = over(a.Stack, n.Transport)
	if o.code == reports.ExitCorruption || o.code == reports.ExitUsage {
		return series{}, broken{o.err}
	}
	s, err := seriesOf(o.doc, a)
	if err == nil {
		maps.DeleteFunc(s.Rounds, func(round int, _ answer.Value) bool { return round > rounds })
		return s, nil
	}
	switch why := o.absent[a.Stack]; {
	case why != nil:
		return series{}, why
	case o.code == reports.ExitNotRun:
		return series{}, notHere{o.err}
	case o.err != nil:
		return series{}, o.err
	}
	return series{}, err
}

// span is between the ends of a condition that takes in several points: at_s=2..4. The figure is their mean.
const span = ".."

func seriesOf(doc *reports.Document, a At) (series, error) {
	s, many := series{Rounds: map[int]answer.Value{}}, map[int]int{}
	for i := range doc.Results {
		r := &doc.Results[i]
		if r.Interrupted || !matches(r, a) {
			continue
		}
		f, ok := find(r, a.Figure)
		if !ok {
			continue
		}
		n := float64(many[r.Repeat])
		if n > 0 && !strings.Contains(a.Where, span) {
			return s, fmt.Errorf("%s of %s %s: more than one in a round", a.Figure, a.Stack, a.Where)
		}
		v, was := answer.ValueOf(r, f), s.Rounds[r.Repeat]
		s.Figure, many[r.Repeat] = f, many[r.Repeat]+1
		s.Rounds[r.Repeat] = answer.Value{Value: (was.Value*n + v.Value) / (n + 1), Low: (was.Low*n + v.Low) / (n + 1),
			High: (was.High*n + v.High) / (n + 1)}
	}
	if len(s.Rounds) == 0 {
		if why := lacking(doc, a); why != "" {
			return s, notHere{errors.New(why)}
		}
		return s, fmt.Errorf("%s of %s %s: not measured", a.Figure, a.Stack, a.Where)
	}
	return s, nil
}

// lacking says why the point was left out where its run was made; empty where no result says so.
func lacking(doc *reports.Document, a At) string {
	for i := range doc.Results {
		d, ok := doc.Results[i].Detail.(interface{ Lacks(way string) string })
		if !ok {
			continue
		}
		for _, c := range strings.Fields(a.Where) {
			_, want, _ := strings.Cut(c, "=")
			if why := d.Lacks(want); why != "" {
				return want + ": " + why
			}
		}
	}
	return ""
}

func matches(r *reports.Result, a At) bool {
	if a.Stack != "" && reports.TransportOf(r) != a.Stack {
		return false
	}
	for _, c := range strings.Fields(a.Where) {
		name, want, _ := strings.Cut(c, "=")
		name, not := strings.CutSuffix(name, "!")
		if has(r, name, want) == not {
			return false
		}
	}
	return true
}

func has(r *reports.Result, name, want string) bool {
	for _, d := range r.Dims {
		if short, value := d.Short(); short == name || d.Name == name {
			if from, to, ok := strings.Cut(want, span); ok {
				return number(d.Value) >= number(from) && number(d.Value) < number(to)
			}
			return value == want || d.Value == want
		}
	}
	value, known := map[string]string{"op": r.Op, "workload": r.Workload, "size": reports.FormatSize(r.SizeBytes),
		"depth": strconv.Itoa(r.Depth), "qps": strconv.Itoa(r.QPs), "threads": strconv.Itoa(r.Threads),
		"rate": strconv.FormatFloat(r.Rate, 'f', -1, 64), "neighbours": strconv.Itoa(r.Neighbours)}[name]
	return known && value == want
}

// number is what a text says, 0 for none.
func number(text string) float64 {
	v, _ := strconv.ParseFloat(text, 64) // a test reads the conditions
	return v
}

// find is a figure of a result. Of any result there are "cpu.gb", the processor time of both sides for 10^9 bytes, and
// "client:send_calls+recv_calls/op", counters of a side for each operation.
func find(r *reports.Result, name string) (reports.Figure, bool) {
	if f, ok := r.Find(name); ok {
		return f, true
	}
	if side, counters, ok := strings.Cut(strings.TrimSuffix(name, "/op"), ":"); ok {
		return counted(r, name, side, strings.Split(counters, "+"))
	}
	if name != "cpu.gb" || r.CPU == nil || r.Throughput == nil || r.Throughput.BytesPerSecond <= 0 || r.DurationNs <= 0 {
		return reports.Figure{}, false
	}
	gb := r.Throughput.BytesPerSecond * float64(r.DurationNs) / 1e18
	return reports.Figure{Name: name, Value: (r.CPU.ClientSeconds + r.CPU.ServerSeconds) / gb * 1e9}, true
}

// counted has no figure of one round: counters of several rounds are of all together.
func counted(r *reports.Result, name, side string, counters []string) (reports.Figure, bool) {
	if r.Counters == nil || r.Operations <= 0 || r.Repeat > 0 {
		return reports.Figure{}, false
	}
	devices := r.Counters.Client
	if side == "server" {
		devices = r.Counters.Server
	}
	sum, found := int64(0), 0
	for _, d := range devices {
		for _, c := range counters {
			if v, ok := d.Counters[c]; ok {
				sum, found = sum+v, found+1
			}
		}
	}
	return reports.Figure{Name: name, Quantity: reports.QuantityRatio, Value: float64(sum) / float64(r.Operations)},
		found >= len(counters)
}
