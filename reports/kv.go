package reports

import (
	"slices"
	"strings"
)

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

	Operations []KVOperation `json:"operations"`
}

// KVOperation is what one kind of operation took. Latency is from the call to its
// answer, and of a read-modify-write both calls; Store is how much of that the server
// spent in the store, waits for other writers included.
type KVOperation struct {
	Op         string  `json:"op"`
	Operations int64   `json:"operations"`
	PerSecond  float64 `json:"operations_per_second"`
	Latency    Latency `json:"latency"`
	Store      Latency `json:"store"`
}

// kvOps are the kinds of operations.
var kvOps = []string{"read", "update", "insert", "scan", "rmw"}

// kvLatency is one of an operation's, nil for a result without it.
func kvLatency(op string, of func(o *KVOperation) *Latency) func(r *Result) *Latency {
	return func(r *Result) *Latency {
		if r.KV == nil {
			return nil
		}
		i := slices.IndexFunc(r.KV.Operations, func(o KVOperation) bool { return o.Op == op })
		if i < 0 {
			return nil
		}
		return of(&r.KV.Operations[i])
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
func (o *KVOperation) storeShare() float64 { return o.Store.Mean / o.Latency.Mean }

// kvLoad is what results of one mix share; it is comparable.
type kvLoad struct {
	mix, title, requests, store string
	records                     int64
	fields, fieldBytes, maxScan int
	fsync                       bool
}

func kvLoadOf(r *Result) kvLoad {
	if r.KV == nil {
		return kvLoad{}
	}
	k := r.KV
	return kvLoad{k.Mix, k.Title, k.Requests, k.Store, k.Records, k.Fields, k.FieldBytes, k.MaxScan, k.Fsync}
}

// recordText is "mix a, update heavy, of 100000 records of 10 fields of 100 bytes".
func (l kvLoad) recordText() string {
	mix := ""
	if l.mix != "" {
		mix = "mix " + l.mix + ", " + l.title + ", of "
	}
	return mix + plural(l.records, "record") + " of " + plural(int64(l.fields), "field") + " of " + plural(int64(l.fieldBytes), "byte")
}

// kvConditions are everything that shapes a figure of a mix, but the stack.
func (l load) kvConditions() string {
	k := l.kv
	parts := []string{k.recordText()}
	if k.requests != "" {
		parts = append(parts, k.requests+" requests")
	}
	if k.maxScan > 0 {
		parts = append(parts, "scans of 1 to "+integer(int64(k.maxScan)))
	}
	flush := "no flush of writes"
	if k.fsync {
		flush = "every write flushed"
	}
	parts = append(parts, "store "+k.store+" with "+flush, plural(int64(l.depth), "call")+" outstanding on each connection")
	if !l.sweep {
		parts = append(parts, plural(int64(l.qps), "connection"))
	}
	if l.arrivals != "" {
		parts = append(parts, "open loop with "+l.arrivals+" arrivals")
	} else {
		parts = append(parts, "closed loop")
	}
	return strings.Join(append(parts, l.roundTrip+" round trip"), ", ")
}

// kvTable shows each kind of operation, and what of it the store took.
func (p *textPrinter) kvTable(g *groupedResults, results []*Result) {
	t := table{columns: g.perRow([]column{{name: "op", left: true}, {name: "#operations"}, {name: "ops/sec"},
		{name: "t_avg", unit: "usec"}, {name: "50%", unit: "usec"}, {name: "99%", unit: "usec"}, {name: "99.9%", unit: "usec"},
		{name: "store avg", unit: "usec"}, {name: "store 99%", unit: "usec"}, {name: "store's part"}})}
	for _, r := range results {
		if r.KV == nil {
			continue
		}
		for i := range r.KV.Operations {
			o := &r.KV.Operations[i]
			l := &o.Latency
			t.add(g.perRowCells(r, []cell{{text: printable(o.Op)}, {text: integer(o.Operations)}, {text: number(o.PerSecond, 0)}, {text: usec(l.Mean)},
				percentileCell(l, "p50"), percentileCell(l, "p99"), percentileCell(l, "p999"),
				{text: usec(o.Store.Mean)}, percentileCell(&o.Store, "p99"), {text: shareText(o.storeShare())}})...)
		}
	}
	if len(t.rows) > 0 {
		p.wrapped("by operation, from the call to its answer, and what of it the server spent in the store:")
		p.table(&t)
	}
}

// shareText is a share in words; a dash for what is no number.
func shareText(share float64) string {
	if s := number(share*100, 1); s != "-" {
		return s + " %"
	}
	return "-"
}

// medianKV has the medians of the repeats, of operations that all of them have.
func medianKV(all []*Result) *KV {
	k := *all[0].KV
	k.Operations = nil
	for _, first := range all[0].KV.Operations {
		var calls, stores []*Latency
		var rates []float64
		for _, r := range all {
			for i := range r.KV.Operations {
				if o := &r.KV.Operations[i]; o.Op == first.Op {
					calls, stores, rates = append(calls, &o.Latency), append(stores, &o.Store), append(rates, o.PerSecond)
				}
			}
		}
		if len(rates) == len(all) {
			first.Latency, first.Store, first.PerSecond = *medianLatency(calls), *medianLatency(stores), median(rates)
			k.Operations = append(k.Operations, first)
		}
	}
	return &k
}

// kvSet is the results of one store and load over its mixes, stack by stack.
type kvSet struct {
	load          // without the mix
	rate          float64
	stacks, mixes []string // by first appearance; the first stack is the base of all ratios
	runs          map[[2]string][]*Result
}

// kvSets sorts the results of all mixes.
func kvSets(results []*Result) []*kvSet {
	type key struct {
		load
		rate float64
	}
	var sets []*kvSet
	index := map[key]*kvSet{}
	for _, r := range results {
		if r.KV == nil || r.Latency == nil || r.Throughput == nil {
			continue
		}
		l := loadOf(r)
		l.kv.mix, l.kv.title, l.kv.requests, l.kv.maxScan = "", "", "", 0
		k := key{l, r.Rate}
		s := index[k]
		if s == nil {
			s = &kvSet{load: l, rate: r.Rate, runs: map[[2]string][]*Result{}}
			index[k] = s
			sets = append(sets, s)
		}
		if !slices.Contains(s.stacks, r.Stack) {
			s.stacks = append(s.stacks, r.Stack)
		}
		if !slices.Contains(s.mixes, r.KV.Mix) {
			s.mixes = append(s.mixes, r.KV.Mix)
		}
		at := [2]string{r.Stack, r.KV.Mix}
		s.runs[at] = append(s.runs[at], r)
	}
	return sets
}

// figure is the median of the repeats at one place; ok is false for none.
func (s *kvSet) figure(stack, mix string, of func(*Result) float64) (v float64, ok bool) {
	runs := s.runs[[2]string{stack, mix}]
	values := make([]float64, len(runs))
	for i, r := range runs {
		values[i] = of(r)
	}
	if len(values) == 0 {
		return 0, false
	}
	return median(values), true
}

func kvRate(r *Result) float64  { return r.Throughput.OperationsPerSecond }
func kvMean(r *Result) float64  { return r.Latency.Mean }
func kvP99(r *Result) float64   { return r.Latency.P99 }
func kvStore(r *Result) float64 { return r.KV.storeMean() }

// changeText is how much more or less than the base, with a sign.
func changeText(v, base float64) string {
	if s := number((v/base-1)*100, 1); s != "-" {
		if v >= base {
			s = "+" + s
		}
		return s + " %"
	}
	return "-"
}

// kvSideBySide is every mix on every stack. Names of carriers are long, so each stands
// above its figures.
func (p *textPrinter) kvSideBySide(results []Result) {
	all := make([]*Result, len(results))
	for i := range results {
		all[i] = &results[i]
	}
	for _, s := range kvSets(all) {
		if len(s.stacks) < 2 {
			continue
		}
		t := table{columns: []column{{name: "ops/sec"}, {name: "gain"}, {name: "t_avg", unit: "usec"}, {name: "change"},
			{name: "99%", unit: "usec"}, {name: "store avg", unit: "usec"}, {name: "store's part"}}}
		repeated := false
		for _, mix := range s.mixes {
			baseRate, based := s.figure(s.stacks[0], mix, kvRate)
			baseMean, _ := s.figure(s.stacks[0], mix, kvMean)
			for _, stack := range s.stacks {
				rate, ok := s.figure(stack, mix, kvRate)
				if !ok {
					continue
				}
				repeated = repeated || len(s.runs[[2]string{stack, mix}]) > 1
				mean, _ := s.figure(stack, mix, kvMean)
				p99, _ := s.figure(stack, mix, kvP99)
				store, _ := s.figure(stack, mix, kvStore)
				gain, less := "-", "-"
				if based {
					gain, less = ratio(rate, baseRate), changeText(mean, baseMean)
				}
				t.rows = append(t.rows, row{span: printable(mix + ": " + stack)})
				t.add(cell{text: number(rate, 0)}, cell{text: gain}, cell{text: usec(mean)}, cell{text: less},
					cell{text: usec(p99)}, cell{text: usec(store)}, cell{text: shareText(store / mean)})
			}
		}
		p.line("")
		p.styled(bold, "side by side: YCSB by mix, gain and change against "+s.stacks[0])
		conditions := s.load.kvConditions()
		if s.rate > 0 {
			conditions += ", " + rateText(s.rate) + " offered a second"
		}
		if repeated {
			conditions += ", median of repeats"
		}
		p.wrapped(conditions)
		p.table(&t)
	}
}
