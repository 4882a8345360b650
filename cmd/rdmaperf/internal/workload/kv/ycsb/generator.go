// Package ycsb generates the core workloads of the Yahoo! Cloud Serving Benchmark, and what is in their records.
//
// Sources: Cooper et al., SoCC 2010, §4 and table 2, for the mixes a to e; the public tool's core workload files for f
// and the defaults.
//
// A [Generator] belongs to one goroutine; [Keys] is shared. Nothing allocates once it is made. A field is its version,
// and bytes that follow from seed, key, field and version, so that a reader can tell a wrong, a torn and a flipped one.
//
// The tool's zipfian numbers are exact for two items (Gray et al., SIGMOD 1994); these are for all. Scans begin at
// loaded records only, as the tool's range would need the number of operations, which a run by time does not have.
package ycsb

import (
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
)

// Op is what is done to a record.
type Op uint8

const (
	Read   Op = iota // all fields of one record
	Update           // one field of a record
	Insert           // a new record
	Scan             // records in the order of their keys
	RMW              // read a record, then update a field of it
	NumOps
)

// String is the name in results.
func (o Op) String() string { return [NumOps]string{"read", "update", "insert", "scan", "rmw"}[o] }

// Mix is a core workload.
type Mix struct {
	Name  string
	Title string          // the name of the paper
	Share [NumOps]float64 // of all operations; the sum is 1
	// Latest: the i-th newest record is asked for in proportion to (i+1)^-Theta; else hashed ranks are.
	Latest bool
}

var mixes = []Mix{
	{"a", "update heavy", [NumOps]float64{Read: 0.5, Update: 0.5}, false},
	{"b", "read mostly", [NumOps]float64{Read: 0.95, Update: 0.05}, false},
	{"c", "read only", [NumOps]float64{Read: 1}, false},
	{"d", "read latest", [NumOps]float64{Read: 0.95, Insert: 0.05}, true},
	{"e", "short ranges", [NumOps]float64{Scan: 0.95, Insert: 0.05}, false},
	{"f", "read-modify-write", [NumOps]float64{Read: 0.5, RMW: 0.5}, false},
}

func Mixes() (names []string) {
	for _, m := range mixes {
		names = append(names, m.Name)
	}
	return names
}

// FindMix returns the mix of a name.
func FindMix(name string) (Mix, bool) {
	i := slices.Index(Mixes(), strings.ToLower(name))
	if i < 0 {
		return Mix{}, false
	}
	return mixes[i], true
}

func (m Mix) Has(o Op) bool { return m.Share[o] > 0 }

// Requests names the distribution of the records that are asked for, in results.
func (m Mix) Requests() string {
	if m.Latest {
		return "latest"
	}
	return "zipfian"
}

// Defaults of the public tool's core workloads.
const (
	DefaultFields     = 10
	DefaultFieldBytes = 100
	DefaultMaxScan    = 100
)

const (
	MaxRecords     = 100_000_000
	MaxFields      = 1000
	MinFieldBytes  = 16 // the version and as much again that proves it
	MaxRecordBytes = 1 << 20
	MaxScanRecords = 10_000
)

// Config describes a workload. Both sides of a run use the same one.
type Config struct {
	Mix        Mix
	Records    int // loaded before
	Fields     int // of a record
	FieldBytes int
	MaxScan    int // records; lengths are uniform from 1
	Seed       uint64
}

func (c Config) Validate() error {
	switch {
	case c.Mix.Name == "":
		return errors.New("no mix")
	case c.Records < 1 || c.Records > MaxRecords:
		return fmt.Errorf("%d records: want 1 to %d", c.Records, MaxRecords)
	case c.Fields < 1 || c.Fields > MaxFields:
		return fmt.Errorf("%d fields: want 1 to %d", c.Fields, MaxFields)
	case c.FieldBytes < MinFieldBytes || c.FieldBytes > MaxRecordBytes:
		return fmt.Errorf("fields of %d bytes: want %d to %d", c.FieldBytes, MinFieldBytes, MaxRecordBytes)
	case c.RecordBytes() > MaxRecordBytes:
		return fmt.Errorf("records of %d bytes: want at most %d", c.RecordBytes(), MaxRecordBytes)
	case c.MaxScan < 1 || c.MaxScan > MaxScanRecords:
		return fmt.Errorf("scans of %d records: want 1 to %d", c.MaxScan, MaxScanRecords)
	}
	return nil
}

// RecordBytes is the size of a record without its key.
func (c Config) RecordBytes() int { return c.Fields * c.FieldBytes }

type Operation struct {
	Op     Op
	Record uint64 // of an insert: to be acknowledged to Keys when it has succeeded
	Field  int    // update, rmw: the one that is written
	Scan   int    // scan: records
}

// Generator is the sequence of operations of one thread.
type Generator struct {
	cfg   Config
	keys  *Keys
	rng   *rand.Rand
	zipf  zipf
	float func() float64
	upto  [NumOps]float64 // cumulated shares
}

// NewGenerator makes a thread's. The same seed and thread give the same sequence while nothing is inserted.
func NewGenerator(cfg Config, keys *Keys, thread int) (*Generator, error) {
	if err := cfg.Validate(); err != nil {
		return nil, fmt.Errorf("make generator: %w", err)
	}
	g := &Generator{cfg: cfg, keys: keys, rng: rand.New(rand.NewPCG(cfg.Seed, hash(uint64(thread)+1)))}
	g.float = g.rng.Float64
	g.zipf = newZipf(scrambledItems, Theta)
	sum := 0.0
	for op, share := range cfg.Mix.Share {
		sum += share
		g.upto[op] = sum
	}
	return g, nil
}

// Next is the next operation. Its error is that of Keys.Take.
func (g *Generator) Next() (o Operation, err error) {
	switch o.Op = g.op(); o.Op {
	case Insert:
		o.Record, err = g.keys.Take()
		return o, err
	case Scan:
		o.Scan = 1 + g.rng.IntN(g.cfg.MaxScan)
	case Update, RMW:
		o.Field = g.rng.IntN(g.cfg.Fields)
	}
	o.Record = g.record()
	return o, nil
}

func (g *Generator) op() Op {
	u := g.float()
	for op := range NumOps - 1 {
		if u < g.upto[op] {
			return op
		}
	}
	// Rounding of the sum must not make an operation that the mix has not.
	op := NumOps - 1
	for !g.cfg.Mix.Has(op) {
		op--
	}
	return op
}

func (g *Generator) record() uint64 {
	if !g.cfg.Mix.Latest {
		return hash(g.zipf.rank(g.float)-1) % uint64(g.cfg.Records)
	}
	n := g.keys.Count()
	g.zipf.resize(n)
	return n - g.zipf.rank(g.float)
}

// Theta is the exponent of the public tool's zipfian requests.
const Theta = 0.99

// scrambledItems are the public tool's ranks, whatever the number of records: the first has 3.78 % of requests.
const scrambledItems = 10_000_000_000

// zipf draws ranks 1 to n in proportion to rank^-s, exactly, by rejection-inversion (Hörmann and Derflinger, ACM TOMACS
// 6(3), 1996). Its n may change between draws.
type zipf struct {
	n    uint64
	s    float64
	low  float64 // integral up to 1.5, less the first rank's own weight
	high float64 // integral up to n+0.5
	cut  float64 // so near above its rank, a draw needs no test
}

func newZipf(n uint64, s float64) zipf {
	z := zipf{s: s}
	z.low = z.integral(1.5) - 1
	z.cut = 2 - z.inverse(z.integral(2.5)-z.weight(2))
	z.resize(n)
	return z
}

func (z *zipf) resize(n uint64) {
	if n != z.n {
		z.n, z.high = n, z.integral(float64(n)+0.5)
	}
}

func (z *zipf) weight(x float64) float64   { return math.Pow(x, -z.s) }
func (z *zipf) integral(x float64) float64 { return (math.Pow(x, 1-z.s) - 1) / (1 - z.s) }
func (z *zipf) inverse(y float64) float64  { return math.Pow(1+(1-z.s)*y, 1/(1-z.s)) }

// rank draws one; random gives numbers in [0, 1).
func (z *zipf) rank(random func() float64) uint64 {
	for {
		y := z.high + random()*(z.low-z.high)
		x := z.inverse(y)
		k := min(max(math.Floor(x+0.5), 1), float64(z.n))
		// Of the bar over [k-0.5, k+0.5], of area weight(k), what the inverse hits outside is drawn again.
		if k-x <= z.cut || y >= z.integral(k+0.5)-z.weight(k) {
			return uint64(k)
		}
	}
}

// hash spreads record numbers over the keys: FNV-1a over the eight bytes, the lowest first, as the public tool does.
func hash(v uint64) uint64 {
	h := uint64(0xcbf29ce484222325)
	for range 8 {
		h = (h ^ v&0xff) * 0x100000001b3
		v >>= 8
	}
	return h
}
