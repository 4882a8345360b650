package ycsb

import (
	"errors"
	"fmt"
	"math/rand/v2"
)

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
	o.Op = g.op()
	switch o.Op {
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
