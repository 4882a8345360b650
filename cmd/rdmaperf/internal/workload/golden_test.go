package workload_test

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"hash/fnv"
	"io"
	"math"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	diff "github.com/google/go-cmp/cmp"
	"github.com/spf13/pflag"

	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/catalogue"
	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/engine"
	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/engine/enginetest"
	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/engine/enginetest/scripted"
	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/workload"
	"github.com/rdmaperf/rdmaperf/grpcrdma/carrier"
	"github.com/rdmaperf/rdmaperf/reports"
	"github.com/rdmaperf/rdmaperf/reports/page"
	"github.com/rdmaperf/rdmaperf/reports/render"
	"github.com/rdmaperf/rdmaperf/reports/render/bench"
	"github.com/rdmaperf/rdmaperf/reports/render/csv"
	metrics "github.com/rdmaperf/rdmaperf/reports/render/prometheus"
	"github.com/rdmaperf/rdmaperf/reports/render/text"
	"github.com/rdmaperf/rdmaperf/reports/reporttest"
	"github.com/rdmaperf/rdmaperf/softstack/iwarp"
	"github.com/rdmaperf/rdmaperf/transports"
	"github.com/rdmaperf/rdmaperf/transports/direct"
	"github.com/rdmaperf/rdmaperf/transports/lite/stack"
	"github.com/rdmaperf/rdmaperf/transports/memdev"
	"github.com/rdmaperf/rdmaperf/transports/rdma"
)

var update = flag.Bool("update", false, "rewrite the golden files")

// frozen is a run whose every output is a golden file.
type frozen struct {
	name        string      // the workload, and behind a dash what is measured of it
	args        string      // flags of the workload
	ops         string      // --op
	sizes       []int       // --size
	rates       []float64   // --rate-sweep
	qps         []int       // --qp-sweep
	outstanding []int       // --outstanding
	plan        engine.Plan // what else the command line says
	changed     string      // shared flags that count as given
	repeats     int         // of a scripted run; 0: one
	two         bool        // scripted stacks side by side, one of them slower
	idle        int         // ns of a poll in vain; 0: 100
	real        string      // the stack where it is measured; "": scripted

	published []reports.Published // as planned
}

// Workloads that open devices themselves cannot run on the script; each figure then follows from its name.
var frozenRuns = []frozen{
	{name: "latency", ops: "send", sizes: []int{8, 1024}, repeats: 4, two: true},
	{name: "latency-ops", ops: "send,write_imm,read,fetch_add", sizes: []int{8}},
	{name: "latency-open", ops: "write", sizes: []int{8}, rates: []float64{5e4, 1e5, 2e5}},
	{name: "latency-qps", ops: "send", sizes: []int{64}, qps: []int{1, 2, 4}, two: true},
	{name: "latency-series", ops: "send", sizes: []int{64}, plan: engine.Plan{Duration: 3e6, Interval: 1e6}},
	{name: "throughput", ops: "write,send", sizes: []int{64, 4096}, repeats: 3, two: true},
	{name: "throughput-both", args: "--bidirectional", ops: "send", sizes: []int{1000}, two: true},
	{name: "hol", args: "--bulk-size 20000 --hol-arm same-qp,two-qp --probe-gap 0", ops: "write", two: true,
		idle: 2000},
	{name: "hol-calls", args: "--bulk-size 20000 --hol-arm same-qp,two-qp", ops: "call"},
	{name: "incast", args: "--clients 2,4", ops: "send", sizes: []int{1000}},
	{name: "connect", ops: "read", sizes: []int{8}},
	{name: "paramserver", args: "--compute-ratio 0,1 --tensor-bytes 0.00001"},
	{name: "starvation", args: "--high-load 0,50", sizes: []int{1000}},
	{name: "rpc", args: "--rpc unary,stream", sizes: []int{8}, outstanding: []int{1, 4}, two: true},
	{name: "kv", args: "--ycsb c --records 20 --fields 2 --field-bytes 16 --max-scan 3", two: true},
	{name: "tensor", args: "--tensor push,exchange", sizes: []int{1024, 4096}},
	{name: "softrdma", sizes: []int{64, 1000}},
	{name: "mixed", args: "--rwmix 0,70,100 --span 64K", sizes: []int{4096}},
	{name: "register", args: "--pattern repeated,new,set,threads --working-set 2,4 --register-threads 1,2 --capacity 3 " +
		"--pages base --arms none,cache --offload none",
		sizes: []int{4096, 8192}, plan: engine.Plan{Duration: 1e6}, changed: "duration transport", real: "iwarp"},
	{name: "allreduce", args: "--ranks 2 --algorithm ring,doubling --arms none,cache --offload none",
		sizes: []int{1024, 4096}, plan: engine.Plan{Iterations: 3}, changed: "iters", real: "iwarp"},
	{name: "regions", args: "--regions 1,4 --total 1,2 --make 4K,8K", sizes: []int{64}, real: "lite+mem"},
	{name: "sharing", sizes: []int{64}, real: "lite+mem"},
	{name: "locks", args: "--contenders 1,2", real: "lite+mem"},
	{name: "qos", plan: engine.Plan{Duration: 30e6}, changed: "duration", real: "lite+mem"},
	{name: "think", args: "--think-time 0,5us", sizes: []int{64}, real: "grpc(tcp)"},
	{name: "clients", args: "--machines 1,2", sizes: []int{4096}, real: "mem"},
}

func TestEveryWorkloadIsFrozen(t *testing.T) {
	for _, name := range workload.Names(catalogue.All()) {
		if !slices.ContainsFunc(frozenRuns, func(f frozen) bool { return f.name == name }) {
			t.Errorf("%s has no golden files", name)
		}
	}
}

func (f *frozen) planned(t *testing.T) engine.Plan {
	t.Helper()
	set := pflag.NewFlagSet(f.name, pflag.ContinueOnError)
	name, _, _ := strings.Cut(f.name, "-")
	w, p := workload.Find(catalogue.All(), name), f.plan
	w.Flags(set)
	must(t, set.Parse(strings.Fields(f.args)))
	c := workload.Common{Plan: &p, Workloads: []string{name}, Named: true, Sizes: f.sizes, Rates: f.rates, QPs: f.qps,
		Outstanding: f.outstanding, AppWork: make([]time.Duration, 1),
		Changed: func(n string) bool { return set.Changed(n) || slices.Contains(strings.Fields(f.changed), n) }}
	if f.ops != "" {
		c.Ops = strings.Split(f.ops, ",")
	}
	for _, axis := range []*[]int{&c.QPs, &c.Outstanding} {
		if *axis == nil {
			*axis = []int{0}
		}
	}
	if c.Rates == nil {
		c.Rates = []float64{0}
	}
	var err error
	p.Points, err = w.Points(&c)
	must(t, err)
	f.published = c.Published
	p.Workloads, p.Verify = catalogue.Table(), true
	if p.Iterations == 0 && p.Duration == 0 {
		p.Iterations = 20
	}
	return p
}

// run measures every point on every stack in turn, and that again for each repeat.
func (f *frozen) run(t *testing.T) (results []reports.Result) {
	plan := f.planned(t)
	if f.real != "" {
		return measureReal(t, f.real, plan)
	}
	points, slower := plan.Points, []time.Duration{0}
	if f.two {
		slower = append(slower, 300)
	}
	for repeat := range max(f.repeats, 1) {
		for _, pt := range points {
			plan.Points = []engine.Point{pt}
			for i, more := range slower {
				times := script()
				times.Out += more + 20*time.Duration(repeat)
				times.Idle = time.Duration(cmp.Or(f.idle, 100)) // one who posts a message a turn fills the link
				if pt.Rate > 0 {
					times.Idle = time.Duration(1e9/pt.Rate) - roundTrip // it ends when the next one is due
				}
				for _, r := range measure(t, &scripted.Fabric{Times: times}, plan) {
					if f.repeats > 1 {
						r.Repeat = repeat + 1
					}
					if i > 0 {
						r.Stack, r.Transport = "scripted(slower)", "slower"
					}
					results = append(results, r)
				}
			}
		}
	}
	return results
}

func measureReal(t *testing.T, name string, plan engine.Plan) (results []reports.Result) {
	prime(t)
	fabric, ends := memdev.NewFabric(memdev.Config{}), 0
	device := func(string) (rdma.Device, error) {
		if strings.HasSuffix(name, "iwarp") {
			return iwarp.Open(iwarp.Config{})
		}
		ends++
		return fabric.Open(fmt.Sprint("end", ends))
	}
	open := func(string) (transports.Stack, error) {
		if name == "grpc(tcp)" {
			return carrier.New(carrier.Config{Form: carrier.TCP}, nil)
		}
		dev, err := device("")
		if err != nil {
			return nil, err
		}
		if strings.HasPrefix(name, "lite+") {
			return stack.New(dev, stack.Config{})
		}
		return direct.New(dev), nil
	}
	s, err := open(name)
	must(t, err)
	defer s.Close()
	plan.Transport, plan.Seed, plan.ClientCPU, plan.ServerCPU, plan.Timeout = name, 1, -1, -1, 20*time.Second
	c, err := engine.Alone(s, plan)
	if !plan.Local() {
		addr := enginetest.ServeOn(t, &engine.Server{Workloads: plan.Workloads, Open: open, Device: device})
		c, err = engine.Connect(t.Context(), addr, s, plan)
		c.More = func(context.Context) (string, func() error, error) { return addr, nil, nil }
	}
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	c.Open = engine.Opener{Stack: open, Device: device}
	for i, pt := range plan.Points {
		of, err := c.Run(t.Context(), i)
		if err != nil {
			t.Fatalf("%s: %v", pt, err)
		}
		results = append(results, of...)
	}
	return results
}

// document is the run read again from its file, the same on every machine.
func (f *frozen) document(t *testing.T, results []reports.Result) *reports.Document {
	t.Helper()
	d := &reports.Document{Started: time.Date(2026, 3, 4, 5, 6, 7, 0, time.UTC),
		Command: []string{"rdmaperf", "run", f.name},
		Results: results, Published: f.published, Environment: reports.Environment{Version: "v1.0.0",
			Go: "go1.26", Hostname: "host", Kernel: "6.12", CPU: "CPU", CPUs: 2, Hypervisor: true,
			Wakeup: &reports.Wakeup{P50: 24_000, P99: 80_000, Samples: 100}}}
	var all object
	must(t, json.Unmarshal(encoded(t, d), &all))
	list := all["results"].([]any)
	if f.name == "qos" { // one part of each third, whose figures are those of its classes
		list = []any{list[5], list[15], list[25]}
		for i, r := range list {
			v := object{"high_rate": 1., "low_bytes": 1.}
			if i > 0 {
				v["high_p50_ns"], v["high_p99_ns"] = 1., 1.
			}
			delete(r.(object), "cpu")
			r.(object)["qos"].(object)["values"] = v
		}
		all["results"] = list
	}
	for i, r := range list {
		f.settle(t, i, r.(object))
	}
	b, err := json.Marshal(all)
	must(t, err)
	d, err = reports.ReadDocument(bytes.NewReader(b), catalogue.Results())
	must(t, err)
	d.Repeats = reports.SummariseRepeats(d.Results)
	return d
}

type object = map[string]any

func (f *frozen) settle(t *testing.T, n int, r object) {
	t.Helper()
	noise := &reports.Noise{Threads: 1, InvoluntarySwitches: 2, MinorFaults: 4}
	r["disturbance"] = &reports.Disturbance{Verdict: reports.VerdictQuiet, Client: noise}
	if n%3 == 2 {
		r["disturbance"] = &reports.Disturbance{Verdict: reports.VerdictDisturbed, Client: noise, Taken: 0.25,
			Reasons: []string{"client's threads waited for a CPU for 25.0 % of the window (limit 5 %)"}}
	}
	if cpu, ok := r["cpu"].(object); ok {
		cpu["server_seconds"], cpu["machine_seconds"] = cpu["client_seconds"], cpu["client_seconds"]
	}
	delete(r, "started")
	if r["gc"] != nil {
		r["gc"] = &reports.GC{ClientCollections: int64(n % 2), ClientAllocations: 5, ServerAllocations: 6}
	}
	parameters := r["parameters"].(object)
	for _, side := range []string{"client", "server"} {
		if o, ok := parameters[side].(object); ok {
			o["gomaxprocs"] = 2
		}
	}
	if parameters["loop_overhead_ns"] != nil {
		parameters["loop_overhead_ns"] = 40
	}
	if calls, ok := r["rpc"].(object); ok {
		calls["form"] = "tcp"
		replace(fmt.Sprint(n, "resident"), calls["resident"])
	}
	for name, v := range r {
		if f.real != "" && name != "parameters" {
			r[name] = replace(fmt.Sprint(n, name), v)
		}
	}
}

var chosen = regexp.MustCompile(
	`(size_bytes|depth|qps|threads|errors|\.x|ranks|eager_bytes|segment_bytes|buffers|capacity)$`)

// replace has every figure follow from its name, and a latency have thirty samples.
func replace(name string, v any) any {
	h := fnv.New32()
	h.Write([]byte(name))
	value := 100 + float64(h.Sum32()%900)
	switch v := v.(type) {
	case float64:
		switch {
		case chosen.MatchString(name):
			return v
		case strings.HasSuffix(name, "ratio"), strings.HasSuffix(name, "share"), strings.HasSuffix(name, "busy"):
			return value / 1000
		}
		return value
	case []any:
		for i := range v {
			v[i] = replace(fmt.Sprint(name, i), v[i])
		}
	case object:
		if v["p50"] != nil && v["count"] != nil {
			rec := reports.NewRecorder()
			for i := range int64(30) {
				rec.Record(int64(value) * (i + 10))
			}
			return rec.Snapshot()
		}
		for k := range v {
			v[k] = replace(name+"."+k, v[k])
		}
	}
	return v
}

func encoded(t *testing.T, d *reports.Document) []byte {
	t.Helper()
	var b bytes.Buffer
	must(t, d.WriteJSON(&b))
	return b.Bytes()
}

var shared = regexp.MustCompile(
	`(?s)<style>.*?</style>|<script[ >].*?</script>|"hdr": "[^"]*",?|(?m)^[^\n]*_bucket{[^\n]*\n`)

// golden compares an output with its file, without what all pages share and what histograms hold.
func golden(t *testing.T, name string, got []byte) {
	t.Helper()
	got = shared.ReplaceAll(got, nil)
	path := filepath.Join("testdata", "golden", name)
	if *update {
		must(t, os.WriteFile(path, got, 0o644))
	}
	want, err := os.ReadFile(path)
	must(t, err)
	if !bytes.Equal(want, got) {
		t.Errorf("%s (-want +got), see -update:\n%s", name, diff.Diff(string(want), string(got)))
	}
}

func TestOutputsAreFrozen(t *testing.T) {
	for _, f := range frozenRuns {
		t.Run(f.name, func(t *testing.T) {
			d := f.document(t, f.run(t))
			reporttest.Validate(t, encoded(t, d))
			if f.real == "" {
				follows(t, d)
			}
			for _, format := range render.All() {
				var b bytes.Buffer
				var err error
				switch {
				case format.Name == "hlog":
					continue // histograms, compressed
				case format.Pages != nil:
					err = format.Pages(&b, []*reports.Document{d}, page.Options{Names: []string{f.name},
						Own: catalogue.Charts()})
				case format.Files != nil:
					dir := t.TempDir()
					if err = format.Files(dir, d); err == nil {
						var all []byte
						all, err = os.ReadFile(filepath.Join(dir, filepath.Base(format.File)))
						b.Write(all)
					}
				default:
					err = format.Write(&b, d, text.Options{Width: 100, Own: catalogue.Tables()})
				}
				if err != nil {
					t.Fatalf("%s: %v", format.Name, err)
				}
				golden(t, f.name+"."+format.Name, b.Bytes())
			}
		})
	}
}

func TestComparisonsAreFrozen(t *testing.T) {
	old := frozenRuns[0].document(t, frozenRuns[0].run(t))
	faster := *old
	faster.Results = slices.DeleteFunc(slices.Clone(old.Results), func(r reports.Result) bool {
		return r.Stack != "scripted"
	})
	old.Results = slices.DeleteFunc(old.Results, func(r reports.Result) bool { return r.Stack == "scripted" })
	for i := range old.Results {
		old.Results[i].Stack = "scripted"
	}
	var thresholds []reports.Threshold
	var lines bytes.Buffer
	for _, s := range []string{"p50>600ns", "p99<+10%", "p99.9>1s", "rate>+10%", "jain<1"} {
		limit, err := reports.ParseThreshold(s, catalogue.Results())
		must(t, err)
		thresholds = append(thresholds, limit)
		if limit.Relative() {
			continue
		}
		missed, err := reports.CheckThresholds(old, []reports.Threshold{limit})
		must(t, err)
		fmt.Fprintln(&lines, s, missed)
	}
	golden(t, "compare.thresholds", lines.Bytes())
	c, err := reports.Compare(old, &faster, thresholds)
	must(t, err)
	for _, format := range render.All() {
		if format.Compare == nil {
			continue
		}
		var b bytes.Buffer
		must(t, format.Compare(&b, c))
		golden(t, "compare."+format.Name, b.Bytes())
	}
}

// follows requires that figures follow from samples and counters, and that every point has its own labels.
func follows(t *testing.T, d *reports.Document) {
	t.Helper()
	points := map[string]bool{}
	for i := range d.Results {
		r := &d.Results[i]
		points[fmt.Sprint(r.Stack, r.Workload, r.Op, r.SizeBytes, r.Depth, r.QPs, r.Rate, r.PointDims())] = true
		if w := catalogue.Results().Of(r.Workload); r.Latency != nil && !w.Timed || r.Throughput != nil && !w.Rated {
			t.Errorf("%s does not declare its latency or throughput", r.Workload)
		}
		for _, f := range r.AllFigures() {
			w := catalogue.Results().Of(r.Workload)
			declared := slices.ContainsFunc(w.Defs(), func(d reports.FigureDef) bool { return d.Name == f.Name })
			if declared && !w.Measures(f.Name, false) { // a threshold of it would be refused
				t.Errorf("%s does not declare %s", r.Workload, f.Name)
			}
		}
		for _, l := range r.Distributions() {
			ofSamples(t, r.Workload+" "+l.Name, l.Latency)
		}
		ofCounters(t, r)
	}
	inPrometheus(t, d, len(points))
	for format, f := range map[string]struct {
		write  func(io.Writer, *reports.Document) error
		labels string
	}{"the benchmark format": {bench.Write, `(?m)^(Benchmark\S+)`},
		"CSV": {csv.Write, `(?m)^(\d.*?),\d*,(?:true|false),`}} {
		var out bytes.Buffer
		must(t, f.write(&out, d))
		labels := map[string]bool{}
		for _, m := range regexp.MustCompile(f.labels).FindAllStringSubmatch(out.String(), -1) {
			labels[m[1]] = true
		}
		if len(labels) != len(points) {
			t.Errorf("%d points have labels of their own in %s, of %d", len(labels), format, len(points))
		}
	}
}

func rounded(a, b float64) bool { return math.Abs(a-b) <= 1e-6*max(math.Abs(a), math.Abs(b), 1) }

// ofSamples counts percentiles and mean again in the bars of a histogram.
func ofSamples(t *testing.T, name string, l *reports.Latency) {
	t.Helper()
	if l == nil || l.Count == 0 || l.HDR == "" {
		return
	}
	h, err := l.Histogram()
	must(t, err)
	var low, high float64
	var n int64
	percentiles := l.Percentiles()
	for _, bar := range h.Distribution() {
		n += bar.Count
		low, high = low+float64(bar.From*bar.Count), high+float64(bar.To*bar.Count)
		for len(percentiles) > 0 && n >= int64(math.Ceil(percentiles[0].Percent/100*float64(l.Count)-1e-9)) {
			if p := percentiles[0]; p.Ns < float64(bar.From) || p.Ns > float64(bar.To) {
				t.Errorf("%s: %s is %v, the sample of its rank is in %d to %d", name, p.Name, p.Ns, bar.From, bar.To)
			}
			percentiles = percentiles[1:]
		}
	}
	if sum := l.Mean * float64(n); n != l.Count || sum < low || sum > high {
		t.Errorf("%s: %d samples with a mean of %v, the histogram has %d", name, l.Count, l.Mean, n)
	}
}

func ofCounters(t *testing.T, r *reports.Result) {
	t.Helper()
	name := fmt.Sprint(r.Workload, " ", r.Op, " ", r.SizeBytes)
	if r.Throughput == nil || r.Operations == 0 {
		return
	}
	own := map[string]float64{}
	for _, f := range r.Figures {
		own[f.Name] = f.Value
	}
	if _, both := own["from_client.bw"]; both { // each direction has a window of its own
		if bw := own["from_client.bw"] + own["from_server.bw"]; !rounded(bw, r.Throughput.BytesPerSecond) {
			t.Errorf("%s: both directions %v, the sum is %v", name, bw, r.Throughput.BytesPerSecond)
		}
	} else if rate := float64(r.Operations) * 1e9 / float64(r.DurationNs); !rounded(rate,
		r.Throughput.OperationsPerSecond) {
		t.Errorf("%s: %v operations a second, want %v", name, r.Throughput.OperationsPerSecond, rate)
	}
	want := float64(r.Operations * r.SizeBytes)
	dim := func(name string) (n float64) {
		d, _ := r.Dim(name)
		n, _ = strconv.ParseFloat(d.Value, 64)
		return n
	}
	switch r.Workload {
	case "rpc", "tensor":
		want += float64(r.Operations) * dim("response_bytes")
	case "connect":
		want = 0
	case "mixed", "kv":
		want = 0
		if v := r.Verification; r.Workload == "kv" { // of reads and scans alone
			want = float64(v.Bytes)
		}
		b, _ := json.Marshal(r.Detail)
		var d struct {
			Reads, Writes struct {
				Blocks []struct{ Size_bytes, Operations int64 }
			}
		}
		must(t, json.Unmarshal(b, &d))
		for _, b := range append(d.Reads.Blocks, d.Writes.Blocks...) {
			want += float64(b.Size_bytes * b.Operations)
		}
	}
	if got, ok := r.PayloadBytes(); !ok || got != want {
		t.Errorf("%s: %v bytes of payload, want %v", name, got, want)
	}
}

func inPrometheus(t *testing.T, d *reports.Document, points int) {
	t.Helper()
	g, err := metrics.Gather(d)
	must(t, err)
	families, err := g.Gather()
	must(t, err)
	var operations, bytes float64
	for i := range d.Results {
		r := &d.Results[i]
		operations += float64(r.Operations)
		if b, ok := r.PayloadBytes(); ok {
			bytes += b
		}
	}
	for _, f := range families {
		sum := 0.
		for _, m := range f.Metric {
			sum += m.GetCounter().GetValue()
		}
		switch want := map[string]float64{"rdmaperf_ops_total": operations, "rdmaperf_bytes_total": bytes}; f.GetName() {
		case "rdmaperf_ops_total":
			if len(f.Metric) != points {
				t.Errorf("%d points have labels of their own in Prometheus, of %d", len(f.Metric), points)
			}
			fallthrough
		case "rdmaperf_bytes_total":
			if !rounded(sum, want[f.GetName()]) {
				t.Errorf("%s is %v, want %v", f.GetName(), sum, want[f.GetName()])
			}
		}
	}
}

// Operations of different sizes count their own bytes.
func TestBytesOfMixedSizesAreCounted(t *testing.T) {
	for _, f := range []frozen{
		{name: "mixed-sizes", args: "--rwmix 70 --bssplit 512/50:16K/50 --span 64K"},
		{name: "kv-scan", args: "--ycsb e --records 20 --fields 2 --field-bytes 16 --max-scan 3"},
	} {
		follows(t, f.document(t, f.run(t)))
	}
}
