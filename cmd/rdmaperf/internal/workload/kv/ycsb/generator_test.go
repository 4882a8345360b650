package ycsb

import (
	"bytes"
	"hash/fnv"
	"math"
	"math/rand/v2"
	"slices"
	"strconv"
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
	published := map[string][NumOps]float64{
		"a": {Read: 0.5, Update: 0.5}, "b": {Read: 0.95, Update: 0.05}, "c": {Read: 1},
		"d": {Read: 0.95, Insert: 0.05}, "e": {Scan: 0.95, Insert: 0.05}, "f": {Read: 0.5, RMW: 0.5},
	}
	if got := strings.Join(Mixes(), ""); got != "abcdef" {
		t.Fatalf("mixes %s", got)
	}
	for name, shares := range published {
		cfg := config(t, name)
		if cfg.Mix.Latest != (name == "d") {
			t.Errorf("mix %s asks by %s", name, cfg.Mix.Requests())
		}
		keys := NewKeys(cfg.Records)
		g := generator(t, cfg, keys, 0)
		seen, fields, scans := make([]int, NumOps), make([]int, cfg.Fields), make([]int, cfg.MaxScan)
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
		if stat, limit := chiSquare(t, seen, shares[:]); stat > limit {
			t.Errorf("mix %s: %v, chi-square %.0f, limit %.0f", name, seen, stat, limit)
		}
		for what, cells := range map[string][]int{"fields": fields, "scan lengths": scans} {
			if what == "fields" && !cfg.Mix.Has(Update) && !cfg.Mix.Has(RMW) || what != "fields" && !cfg.Mix.Has(Scan) {
				continue
			}
			even := slices.Repeat([]float64{1 / float64(len(cells))}, len(cells))
			if stat, limit := chiSquare(t, cells, even); stat > limit {
				t.Errorf("mix %s, %s: chi-square %.0f, limit %.0f", name, what, stat, limit)
			}
		}
	}
}

// expected is the analytic share of every record.
func expected(latest bool, n int) []float64 {
	if latest {
		p := analytic(n, Theta)
		slices.Reverse(p)
		return p
	}
	// The head of the ranks where each goes, and the tail evenly: no rank of it has a share that shows.
	const head = 500_000
	norm := zeta(scrambledItems, Theta)
	p := slices.Repeat([]float64{(1 - zeta(head, Theta)/norm) / float64(n)}, n)
	for r := range uint64(head) {
		p[hash(r)%uint64(n)] += math.Pow(float64(r+1), -Theta) / norm
	}
	return p
}

func TestRequestsFollowTheirDistribution(t *testing.T) {
	for _, latest := range []bool{false, true} {
		cfg := config(t, "c")
		cfg.Mix.Latest = latest
		g, seen := generator(t, cfg, NewKeys(cfg.Records), 0), make([]int, cfg.Records)
		for range 300_000 {
			seen[next(t, g).Record]++
		}
		for _, other := range []bool{false, true} {
			stat, limit := chiSquare(t, seen, expected(other, cfg.Records))
			if (stat <= limit) != (other == latest) {
				t.Errorf("latest %v against %v: chi-square %.0f, limit %.0f", latest, other, stat, limit)
			}
		}
	}
}

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
	if stat, limit := chiSquare(t, seen, expected(true, 1500)); stat > limit {
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

// chiSquare is Pearson's statistic, and a limit: the mean plus six standard deviations of its distribution.
func chiSquare(t *testing.T, seen []int, want []float64) (stat, limit float64) {
	t.Helper()
	n, sum := 0, 0.0
	for i := range seen {
		n += seen[i]
		sum += want[i]
	}
	if math.Abs(sum-1) > 1e-9 {
		t.Fatalf("expected shares sum to %v", sum)
	}
	for i, s := range seen {
		e := want[i] * float64(n)
		if e == 0 {
			if s > 0 {
				return math.Inf(1), 0
			}
			continue
		}
		if e < 5 {
			t.Fatalf("cell %d: %v expected, too few for the statistic", i, e)
		}
		stat += (float64(s) - e) * (float64(s) - e) / e
	}
	df := float64(len(seen) - 1)
	return stat, df + 6*math.Sqrt(2*df)
}

func analytic(n int, s float64) []float64 {
	p, norm := make([]float64, n), zeta(uint64(n), s)
	for i := range p {
		p[i] = math.Pow(float64(i+1), -s) / norm
	}
	return p
}

// zeta is the sum of i^-s for i = 1 to n, which normalises zipfian weights; s is not 1.
func zeta(n uint64, s float64) float64 {
	const direct = 1000
	sum := 0.0
	for i := uint64(1); i <= min(n, direct); i++ {
		sum += math.Pow(float64(i), -s)
	}
	if n <= direct {
		return sum
	}
	// The rest by Euler and Maclaurin: integral, ends and first derivative. What is left out is below 1e-13.
	a, b := float64(direct), float64(n)
	f := func(x float64) float64 { return math.Pow(x, -s) }
	d := func(x float64) float64 { return -s * math.Pow(x, -s-1) }
	return sum + (math.Pow(b, 1-s)-math.Pow(a, 1-s))/(1-s) + (f(b)-f(a))/2 + (d(b)-d(a))/12
}

// The published constant is that of the public tool's ScrambledZipfianGenerator.
func TestZetaIsTheSum(t *testing.T) {
	if got, want := zeta(scrambledItems, Theta), 26.46902820178302; math.Abs(got-want) > 1e-9 {
		t.Errorf("zeta(1e10, 0.99) = %.12f, want %.12f", got, want)
	}
}

func TestZipfIsExact(t *testing.T) {
	for _, c := range []struct {
		n int
		s float64
	}{{2, Theta}, {10, Theta}, {1000, Theta}, {1000, 0.5}, {300, 1.5}} {
		rng := rand.New(rand.NewPCG(1, uint64(c.n)))
		z, seen := newZipf(uint64(c.n), c.s), make([]int, c.n)
		for range 500_000 {
			seen[z.rank(rng.Float64)-1]++
		}
		if stat, limit := chiSquare(t, seen, analytic(c.n, c.s)); stat > limit {
			t.Errorf("n %d, s %v: chi-square %.0f, limit %.0f", c.n, c.s, stat, limit)
		}
		if c.n == 1000 {
			if stat, limit := chiSquare(t, seen, analytic(c.n, c.s+0.02)); stat < limit {
				t.Errorf("n %d: exponent %v passes for %v", c.n, c.s, c.s+0.02)
			}
		}
	}
}

// Ranks stay in their range at its ends, and one rank is one rank.
func TestZipfStaysInRange(t *testing.T) {
	for _, n := range []uint64{1, 2, 3, scrambledItems} {
		z := newZipf(n, Theta)
		for _, u := range []float64{0, math.SmallestNonzeroFloat64, 0.5, math.Nextafter(1, 0)} {
			first := true
			k := z.rank(func() float64 {
				if first {
					first = false
					return u
				}
				return 0.25
			})
			if k < 1 || k > n {
				t.Errorf("n %d, random %v: rank %d", n, u, k)
			}
		}
	}
	z := newZipf(5, Theta)
	z.resize(50)
	if other := newZipf(50, Theta); z != other {
		t.Errorf("resized %+v, made %+v", z, other)
	}
}

func TestHashIsFNV1a(t *testing.T) {
	for _, v := range []uint64{0, 1, 255, 256, 1<<63 + 12345, math.MaxUint64} {
		h := fnv.New64a()
		for i := range 8 {
			h.Write([]byte{byte(v >> (8 * i))})
		}
		if got := hash(v); got != h.Sum64() {
			t.Errorf("hash(%d) = %x, want %x", v, got, h.Sum64())
		}
	}
}

func TestRecordsProveThemselves(t *testing.T) {
	for _, size := range []int{MinFieldBytes, 17, 23, DefaultFieldBytes} {
		cfg := config(t, "a")
		cfg.Fields, cfg.FieldBytes = 3, size
		b := make([]byte, cfg.RecordBytes())
		cfg.FillRecord(b, 42)
		cfg.Fill(b[size:2*size], 42, 1, 7<<48|5)
		if at, _ := cfg.CheckRecord(b, 42); at >= 0 {
			t.Fatalf("fields of %d bytes: wrong at %d", size, at)
		}
		// A wrong version shows at the first byte behind it.
		for i := range b {
			b[i] ^= 0x40
			at, want := cfg.CheckRecord(b, 42)
			if i%size >= versionBytes && (at != i || want != b[i]^0x40) {
				t.Errorf("fields of %d bytes: byte %d wrong, found %d, want %#x", size, i, at, want)
			}
			if i%size < versionBytes && at < 0 {
				t.Errorf("fields of %d bytes: byte %d of the version goes unnoticed", size, i)
			}
			b[i] ^= 0x40
		}
		if at, _ := cfg.CheckRecord(b, 43); at < 0 {
			t.Error("another record passes")
		}
		if at, _ := cfg.CheckRecord(b[:len(b)-1], 42); at != len(b)-1 {
			t.Errorf("a short record: wrong at %d", at)
		}
		if at, _ := cfg.CheckRecord(append(bytes.Clone(b), 0), 42); at != len(b) {
			t.Errorf("a long record: wrong at %d", at)
		}
		swapped := append(bytes.Clone(b[size:2*size]), b[:size]...)
		if at, _ := cfg.CheckRecord(append(swapped, b[2*size:]...), 42); at < 0 {
			t.Error("fields that changed places pass")
		}
		cfg.Seed++
		if at, _ := cfg.CheckRecord(b, 42); at < 0 {
			t.Error("another seed passes")
		}
	}
}

func TestKeysDiffer(t *testing.T) {
	seen := map[string]bool{}
	for n := range uint64(100_000) {
		k := string(AppendKey(nil, n))
		if seen[k] || len(k) > MaxKey || k[:4] != "user" {
			t.Fatalf("record %d has the key %q", n, k)
		}
		if id, ok := ParseKey([]byte(k)); !ok || id != ID(n) {
			t.Fatalf("key %q has the ID %d, want %d", k, id, ID(n))
		}
		seen[k] = true
	}
}

func FuzzParseKey(f *testing.F) {
	for _, k := range []string{"user0", "user18446744073709551615", "user18446744073709551616", "user", "user01",
		"user1x", "resu1"} {
		f.Add([]byte(k))
	}
	f.Fuzz(func(t *testing.T, key []byte) {
		id, ok := ParseKey(key)
		if want := strconv.AppendUint([]byte(keyPrefix), id, 10); ok != bytes.Equal(key, want) &&
			(ok || bytes.Equal(key, want) && id != 0) {
			t.Errorf("%q: %d, %v", key, id, ok)
		}
	})
}
