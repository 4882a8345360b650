package ycsb

import (
	"math"
	"strings"
	"sync"
	"testing"
)

func config(t *testing.T, mix string) Config {
	t.Helper()
	m, ok := FindMix(mix)
	if !ok {
		t.Fatalf("no mix %q", mix)
	}
	return Config{Mix: m, Records: 1000, Fields: DefaultFields, FieldBytes: DefaultFieldBytes, MaxScan: DefaultMaxScan,
		Seed: 11}
}

func generator(t *testing.T, cfg Config, keys *Keys, thread int) *Generator {
	t.Helper()
	g, err := NewGenerator(cfg, keys, thread)
	if err != nil {
		t.Fatal(err)
	}
	return g
}

func next(t *testing.T, g *Generator) Operation {
	t.Helper()
	o, err := g.Next()
	if err != nil {
		t.Fatal(err)
	}
	return o
}

// The shares, the requests and their order are those of the published workload files.
func TestMixesHaveTheirShares(t *testing.T) {
	published := map[string]map[Op]float64{
		"a": {Read: 0.5, Update: 0.5}, "b": {Read: 0.95, Update: 0.05}, "c": {Read: 1},
		"d": {Read: 0.95, Insert: 0.05}, "e": {Scan: 0.95, Insert: 0.05}, "f": {Read: 0.5, RMW: 0.5},
	}
	if got := strings.Join(Mixes(), ""); got != "abcdef" {
		t.Fatalf("mixes %s", got)
	}
	for name, shares := range published {
		cfg := config(t, name)
		if want := map[bool]Distribution{true: Latest, false: Scrambled}[name == "d"]; cfg.Mix.Request != want {
			t.Errorf("mix %s asks by %v, want %v", name, cfg.Mix.Request, want)
		}
		keys := NewKeys(cfg.Records)
		g := generator(t, cfg, keys, 0)
		seen, want := make([]int, NumOps), make([]float64, NumOps)
		fields, scans := make([]int, cfg.Fields), make([]int, cfg.MaxScan)
		for op, share := range shares {
			want[op] = share
		}
		for range 100_000 {
			o := next(t, g)
			seen[o.Op]++
			switch o.Op {
			case Insert:
				if o.Record != keys.Count() {
					t.Fatalf("mix %s inserts record %d, want %d", name, o.Record, keys.Count())
				}
				keys.Ack(o.Record)
			case Scan:
				scans[o.Scan-1]++
			case Update, RMW:
				fields[o.Field]++
			}
			if o.Record >= keys.Count() {
				t.Fatalf("mix %s: %+v of %d records", name, o, keys.Count())
			}
		}
		if stat, limit := chiSquare(t, seen, want); stat > limit {
			t.Errorf("mix %s: %v, chi-square %.0f, limit %.0f", name, seen, stat, limit)
		}
		for what, cells := range map[string][]int{"fields": fields, "scan lengths": scans} {
			if what == "fields" && !cfg.Mix.Has(Update) && !cfg.Mix.Has(RMW) || what != "fields" && !cfg.Mix.Has(Scan) {
				continue
			}
			even := make([]float64, len(cells))
			for i := range even {
				even[i] = 1 / float64(len(cells))
			}
			if stat, limit := chiSquare(t, cells, even); stat > limit {
				t.Errorf("mix %s, %s: chi-square %.0f, limit %.0f", name, what, stat, limit)
			}
		}
	}
}

// expected is the analytic share of every record.
func expected(d Distribution, n int) []float64 {
	switch d {
	case Zipfian:
		return analytic(n, Theta)
	case Latest:
		p := analytic(n, Theta)
		for i, j := 0, n-1; i < j; i, j = i+1, j-1 {
			p[i], p[j] = p[j], p[i]
		}
		return p
	case Scrambled:
		// The head of the ranks where each goes, and the tail evenly: no rank of it has
		// a share that shows.
		const head = 500_000
		zeta := Zeta(scrambledItems, Theta)
		p, rest := make([]float64, n), 1-Zeta(head, Theta)/zeta
		for i := range p {
			p[i] = rest / float64(n)
		}
		for r := range uint64(head) {
			p[hash(r)%uint64(n)] += math.Pow(float64(r+1), -Theta) / zeta
		}
		return p
	}
	p := make([]float64, n)
	for i := range p {
		p[i] = 1 / float64(n)
	}
	return p
}

func TestRequestsFollowTheirDistribution(t *testing.T) {
	for d := range numDistributions {
		cfg := config(t, "c")
		cfg.Mix.Request = d
		g, seen := generator(t, cfg, NewKeys(cfg.Records), 0), make([]int, cfg.Records)
		for range 300_000 {
			seen[next(t, g).Record]++
		}
		for other := range numDistributions {
			stat, limit := chiSquare(t, seen, expected(other, cfg.Records))
			if (stat <= limit) != (other == d) {
				t.Errorf("%v against %v: chi-square %.0f, limit %.0f", d, other, stat, limit)
			}
		}
	}
}

// The hottest record of the scrambled distribution has 1/Zeta(1e10, 0.99) of the
// requests, however many records there are.
func TestScrambledHead(t *testing.T) {
	cfg := config(t, "c")
	cfg.Records = 1_000_000
	g, hot, hits := generator(t, cfg, NewKeys(cfg.Records), 3), hash(0)%1_000_000, 0
	const draws = 300_000
	for range draws {
		if next(t, g).Record == hot {
			hits++
		}
	}
	p := 1 / Zeta(scrambledItems, Theta)
	if got, sigma := float64(hits)/draws, math.Sqrt(p*(1-p)/draws); math.Abs(got-p) > 5*sigma {
		t.Errorf("the hottest record has %.5f of the requests, want %.5f ± %.5f", got, p, 5*sigma)
	}
}

// What was inserted last is read most.
func TestLatestFollowsInserts(t *testing.T) {
	cfg := config(t, "d")
	keys := NewKeys(cfg.Records)
	g := generator(t, cfg, keys, 0)
	for range 500 {
		n, err := keys.Take()
		if err != nil {
			t.Fatal(err)
		}
		keys.Ack(n)
	}
	seen := make([]int, 1500)
	for draws := 0; draws < 300_000; {
		if o := next(t, g); o.Op == Read {
			seen[o.Record]++
			draws++
		}
	}
	if stat, limit := chiSquare(t, seen, expected(Latest, 1500)); stat > limit {
		t.Errorf("chi-square %.0f, limit %.0f", stat, limit)
	}
}

func TestSequencesFollowTheSeed(t *testing.T) {
	take := func(seed uint64, thread int) (ops [100]Operation) {
		cfg := config(t, "a")
		cfg.Seed = seed
		g := generator(t, cfg, NewKeys(cfg.Records), thread)
		for i := range ops {
			ops[i] = next(t, g)
		}
		return ops
	}
	if take(1, 0) != take(1, 0) {
		t.Error("two sequences of one seed and thread differ")
	}
	if take(1, 0) == take(2, 0) || take(1, 0) == take(1, 1) {
		t.Error("another seed or thread has the same sequence")
	}
}

func TestNextDoesNotAllocate(t *testing.T) {
	for _, mix := range Mixes() {
		cfg := config(t, mix)
		keys := NewKeys(cfg.Records)
		g := generator(t, cfg, keys, 0)
		if n := testing.AllocsPerRun(2000, func() {
			if o, _ := g.Next(); o.Op == Insert {
				keys.Ack(o.Record)
			}
		}); n > 0 {
			t.Errorf("mix %s: %v allocations an operation", mix, n)
		}
	}
}

func TestConfigsAreChecked(t *testing.T) {
	for want, bend := range map[string]func(*Config){
		"no mix": func(c *Config) { c.Mix = Mix{} }, "records": func(c *Config) { c.Records = 0 },
		"1001 fields": func(c *Config) { c.Fields = 1001 }, "of 15 bytes": func(c *Config) { c.FieldBytes = 15 },
		"scans of 0": func(c *Config) { c.MaxScan = 0 }, "at most 1048576": func(c *Config) { c.FieldBytes = 1 << 18 },
	} {
		cfg := config(t, "a")
		bend(&cfg)
		if _, err := NewGenerator(cfg, NewKeys(1), 0); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v", want, err)
		}
	}
	if _, ok := FindMix("g"); ok {
		t.Error("there is a mix g")
	}
}

// A record counts when it and all before it were acknowledged, in whatever order.
func TestKeysCountWhatIsAcknowledged(t *testing.T) {
	keys := NewKeys(10)
	var taken []uint64
	for range 3 {
		n, err := keys.Take()
		if err != nil {
			t.Fatal(err)
		}
		taken = append(taken, n)
	}
	for i, want := range []uint64{10, 10, 13} {
		keys.Ack(taken[len(taken)-1-i])
		if got := keys.Count(); got != want {
			t.Errorf("after %d acknowledged: %d records, want %d", i+1, got, want)
		}
	}
	var threads sync.WaitGroup
	for range 4 {
		threads.Go(func() {
			for range 1000 {
				n, err := keys.Take()
				if err != nil {
					t.Error(err)
					return
				}
				keys.Ack(n)
			}
		})
	}
	threads.Wait()
	if got := keys.Count(); got != 4013 {
		t.Errorf("%d records, want 4013", got)
	}
	for range inserting {
		if _, err := keys.Take(); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := keys.Take(); err == nil {
		t.Error("inserts without an end are under way")
	}
}
