package kv

import (
	"slices"
	"strings"

	"github.com/rdmaperf/rdmaperf/reports"
	"github.com/rdmaperf/rdmaperf/reports/kinds/calls"
	"github.com/rdmaperf/rdmaperf/reports/view"
)

// Of is the detail of a mix of YCSB, nil for any other.
func Of(r *reports.Result) *KV {
	if d := reports.DetailOf[Detail](r); d != nil {
		return &d.KV
	}
	return nil
}

// Detail is the detail of a mix: the calls, and what they did.
type Detail struct {
	Calls calls.RPC `json:"rpc"`
	KV    KV        `json:"kv"`
}

// CallDetail implements what calls.Of looks for.
func (d *Detail) CallDetail() *calls.RPC { return &d.Calls }

// KV is a mix of YCSB on a store behind calls. The result's Latency is of all operations
// together; Throughput counts the contents of records that went either way.
type KV struct {
	Mix        string `json:"mix"`   // a to f
	Title      string `json:"title"` // the mix in words
	Requests   string `json:"requests"`
	Records    int64  `json:"records"` // loaded before
	Fields     int    `json:"fields"`
	FieldBytes int    `json:"field_bytes"`
	MaxScan    int    `json:"max_scan,omitempty"`
	Store      string `json:"store"`
	Fsync      bool   `json:"fsync,omitempty"` // every write is on disk before it is answered
	Inserted   int64  `json:"inserted,omitempty"`

	Operations []Operation `json:"operations"`
}

// Operation is what one kind of operation took. Latency is from the call to its
// answer, and of a read-modify-write both calls; Store is how much of that the server
// spent in the store, waits for other writers included.
type Operation struct {
	Op         string          `json:"op"`
	Operations int64           `json:"operations"`
	PerSecond  float64         `json:"operations_per_second"`
	Latency    reports.Latency `json:"latency"`
	Store      reports.Latency `json:"store"`
}

// ops are the kinds of operations.
var ops = []string{"read", "update", "insert", "scan", "rmw"}

// latencyOf is one of an operation's, nil for a result without it.
func latencyOf(op string, of func(o *Operation) *reports.Latency) func(r *reports.Result) *reports.Latency {
	return func(r *reports.Result) *reports.Latency {
		k := Of(r)
		if k == nil {
			return nil
		}
		i := slices.IndexFunc(k.Operations, func(o Operation) bool { return o.Op == op })
		if i < 0 {
			return nil
		}
		return of(&k.Operations[i])
	}
}

// storeMean is the store's part of the mean latency of all operations.
func (k *KV) storeMean() float64 {
	var n, sum float64
	for i := range k.Operations {
		n += float64(k.Operations[i].Operations)
		sum += float64(k.Operations[i].Operations) * k.Operations[i].Store.Mean
	}
	return sum / n
}

// storeShare is the store's part of the mean latency.
func (o *Operation) storeShare() float64 { return o.Store.Mean / o.Latency.Mean }

// share is what results of one mix have in common.
type share struct {
	calls.Share
	mix, title, requests, store string
	records                     int64
	fields, fieldBytes, maxScan int
	fsync                       bool
}

func shareOf(r *reports.Result) any {
	k := Of(r)
	var of calls.Share
	if calls.Of(r) != nil {
		of = calls.ShareOf(r).(calls.Share)
	}
	return share{of, k.Mix, k.Title, k.Requests, k.Store, k.Records, k.Fields, k.FieldBytes, k.MaxScan, k.Fsync}
}

// acrossMixes is what the mixes of one store share.
func acrossMixes(l reports.Load) reports.Load {
	k := l.Share.(share)
	k.mix, k.title, k.requests, k.maxScan = "", "", "", 0
	l.Share = k
	return l
}

// Kind describes these results.
var Kind = &reports.Kind{
	Workload:      "kv",
	Results:       Results,
	Share:         shareOf,
	What:          func(l reports.Load) string { return l.Workload + " YCSB " + l.Share.(share).mix },
	Conditions:    conditions,
	Connection:    "connection",
	Sleeps:        calls.Sleeps,
	Medians:       medians,
	Tables:        tables,
	Usage:         calls.Usage,
	SideBySide:    []*reports.SideBySide{{Rank: 10, Tables: sideBySide}},
	OwnSideBySide: true,
	PageTables:    calls.PageTables,
	Sections:      []*reports.PageSection{{Rank: 40, Of: section}, calls.Section},
	OwnRates:      true,
	OwnSweep:      true,
	LatencyCard:   func(k reports.Condition) string { return view.Capital(k.What()) },
}

// recordText is "mix a, update heavy, of 100000 records of 10 fields of 100 bytes".
func (l share) recordText() string {
	mix := ""
	if l.mix != "" {
		mix = "mix " + l.mix + ", " + l.title + ", of "
	}
	return mix + view.Plural(l.records, "record") + " of " + view.Plural(int64(l.fields), "field") + " of " + view.Plural(int64(l.fieldBytes), "byte")
}

// conditions are everything that shapes a figure of a mix, but the stack.
func conditions(l reports.Load) string {
	k := l.Share.(share)
	parts := []string{k.recordText()}
	if k.requests != "" {
		parts = append(parts, k.requests+" requests")
	}
	if k.maxScan > 0 {
		parts = append(parts, "scans of 1 to "+view.Integer(int64(k.maxScan)))
	}
	flush := "no flush of writes"
	if k.fsync {
		flush = "every write flushed"
	}
	parts = append(parts, "store "+k.store+" with "+flush, view.Plural(int64(l.Depth), "call")+" outstanding on each connection")
	if !l.Sweep {
		parts = append(parts, view.Plural(int64(l.QPs), "connection"))
	}
	return strings.Join(append(parts, l.Loop(), l.RoundTrip+" round trip"), ", ")
}

// tables show each kind of operation, and what of it the store took.
func tables(g *reports.Grouped, results []*reports.Result, _ view.Units) []reports.Block {
	t := &view.Table{Columns: g.PerRow([]view.Column{{Name: "op", Left: true}, {Name: "#operations"}, {Name: "op/s"},
		{Name: "mean", Unit: "us"}, {Name: "p50", Unit: "us"}, {Name: "p99", Unit: "us"}, {Name: "p99.9", Unit: "us"},
		{Name: "store mean", Unit: "us"}, {Name: "store p99", Unit: "us"}, {Name: "store's part"}})}
	for _, r := range results {
		k := Of(r)
		for i := range k.Operations {
			o := &k.Operations[i]
			l := &o.Latency
			t.Add(g.PerRowCells(r, []view.Cell{{Text: view.Printable(o.Op)}, {Text: view.Integer(o.Operations)}, {Text: view.Number(o.PerSecond, 0)}, {Text: view.Usec(l.Mean)},
				reports.PercentileCell(l, "p50"), reports.PercentileCell(l, "p99"), reports.PercentileCell(l, "p999"),
				{Text: view.Usec(o.Store.Mean)}, reports.PercentileCell(&o.Store, "p99"), {Text: view.ShareText(o.storeShare())}})...)
		}
	}
	return []reports.Block{{Lead: "by operation, from the call to its answer, and what of it the server spent in the store:", Table: t}}
}

// medians has the medians of the repeats, of operations that all of them have.
func medians(all []*reports.Result) any {
	d := *reports.DetailOf[Detail](all[0])
	k := &d.KV
	k.Operations = nil
	for _, first := range Of(all[0]).Operations {
		var calls, stores []*reports.Latency
		var rates []float64
		for _, r := range all {
			for i := range Of(r).Operations {
				if o := &Of(r).Operations[i]; o.Op == first.Op {
					calls, stores, rates = append(calls, &o.Latency), append(stores, &o.Store), append(rates, o.PerSecond)
				}
			}
		}
		if len(rates) == len(all) {
			first.Latency, first.Store, first.PerSecond = *reports.MedianLatency(calls), *reports.MedianLatency(stores), reports.Median(rates)
			k.Operations = append(k.Operations, first)
		}
	}
	return &d
}

// set is the results of one store and load over its mixes, stack by stack.
type set struct {
	reports.Load  // without the mix
	rate          float64
	stacks, mixes []string // by first appearance; the first stack is the base of all ratios
	runs          map[[2]string][]*reports.Result
}

// sets sorts the results of all mixes.
func sets(results []*reports.Result) []*set {
	type key struct {
		reports.Load
		Rate float64
	}
	var sets []*set
	index := map[key]*set{}
	for _, r := range results {
		if Of(r) == nil || r.Latency == nil || r.Throughput == nil {
			continue
		}
		l := acrossMixes(reports.LoadOf(r))
		k := key{Load: l, Rate: r.Rate}
		s := index[k]
		if s == nil {
			s = &set{Load: l, rate: r.Rate, runs: map[[2]string][]*reports.Result{}}
			index[k] = s
			sets = append(sets, s)
		}
		if !slices.Contains(s.stacks, r.Stack) {
			s.stacks = append(s.stacks, r.Stack)
		}
		if !slices.Contains(s.mixes, Of(r).Mix) {
			s.mixes = append(s.mixes, Of(r).Mix)
		}
		at := [2]string{r.Stack, Of(r).Mix}
		s.runs[at] = append(s.runs[at], r)
	}
	return sets
}

// figure is the median of the repeats at one place; ok is false for none.
func (s *set) figure(stack, mix string, of func(*reports.Result) float64) (v float64, ok bool) {
	runs := s.runs[[2]string{stack, mix}]
	values := make([]float64, len(runs))
	for i, r := range runs {
		values[i] = of(r)
	}
	if len(values) == 0 {
		return 0, false
	}
	return reports.Median(values), true
}

func rate(r *reports.Result) float64 { return r.Throughput.OperationsPerSecond }

func mean(r *reports.Result) float64 { return r.Latency.Mean }

func p99(r *reports.Result) float64 { return r.Latency.P99 }

func store(r *reports.Result) float64 { return Of(r).storeMean() }

// sideBySide is every mix on every stack. Names of carriers are long, so each stands
// above its figures.
func sideBySide(results []reports.Result, _ view.Units) (out []reports.SideBlock) {
	all := make([]*reports.Result, len(results))
	for i := range results {
		all[i] = &results[i]
	}
	for _, s := range sets(all) {
		if len(s.stacks) < 2 {
			continue
		}
		t := &view.Table{Columns: []view.Column{{Name: "op/s"}, {Name: "gain"}, {Name: "mean", Unit: "us"}, {Name: "change"},
			{Name: "p99", Unit: "us"}, {Name: "store mean", Unit: "us"}, {Name: "store's part"}}}
		repeated := false
		for _, mix := range s.mixes {
			baseRate, based := s.figure(s.stacks[0], mix, rate)
			baseMean, _ := s.figure(s.stacks[0], mix, mean)
			for _, stack := range s.stacks {
				rate, ok := s.figure(stack, mix, rate)
				if !ok {
					continue
				}
				repeated = repeated || len(s.runs[[2]string{stack, mix}]) > 1
				mean, _ := s.figure(stack, mix, mean)
				p99, _ := s.figure(stack, mix, p99)
				store, _ := s.figure(stack, mix, store)
				gain, less := "-", "-"
				if based {
					gain, less = view.Ratio(rate, baseRate), view.ChangeText(mean, baseMean)
				}
				t.Rows = append(t.Rows, view.Row{Span: view.Printable(mix + ": " + stack)})
				t.Add(view.Cell{Text: view.Number(rate, 0)}, view.Cell{Text: gain}, view.Cell{Text: view.Usec(mean)}, view.Cell{Text: less},
					view.Cell{Text: view.Usec(p99)}, view.Cell{Text: view.Usec(store)}, view.Cell{Text: view.ShareText(store / mean)})
			}
		}
		out = append(out, reports.SideBlock{Title: "side by side: YCSB by mix, gain and change against " + s.stacks[0],
			Conditions: reports.BesideConditions(s.Load, s.rate, repeated), Table: t})
	}
	return out
}
