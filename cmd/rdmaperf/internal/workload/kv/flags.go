package kv

import (
	"slices"
	"strings"

	"github.com/spf13/pflag"

	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/engine"
	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/values"
	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/workload"
	kvresults "github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/workload/kv/results"
)

// Name is the workload's.
const Name = "kv"

const allMixes = "all"

// Workload implements workload.Workload.
type Workload struct {
	mixes []string
	load  KVLoad
}

func (*Workload) Meta() workload.Meta {
	return workload.Meta{
		Name:       Name,
		Results:    kvresults.Results,
		Summary:    "YCSB on a key-value store behind gRPC calls",
		Examples:   "rdmaperf run --transport 'grpc(tcp),grpc(fused)+iwarp' --workload kv --ycsb a,c --outstanding 4",
		Group:      "Workloads rpc, kv and tensor",
		Calls:      true,
		OwnThreads: true,
		Takes:      []string{"outstanding", "rate", "rate-sweep"},
		Words:      map[string][]string{"ycsb": {"all", "a", "b", "c", "d", "e", "f"}},
	}
}

func (k *Workload) Flags(f *pflag.FlagSet) {
	d := KVLoad{}.WithDefaults()
	f.StringSliceVar(&k.mixes, "ycsb", []string{allMixes},
		"kv: comma list of mixes of YCSB: a (update heavy), b (read mostly), c (read only), d (read latest), e "+
			"(short ranges), f (read-modify-write), all")
	f.IntVar(&k.load.Records, "records", d.Records,
		"kv: records that the server loads for each point, before its window")
	f.IntVar(&k.load.Fields, "fields", d.Fields, "kv: fields of a record")
	f.IntVar(&k.load.FieldBytes, "field-bytes", d.FieldBytes,
		"kv: bytes of a field; an update writes one field, a read takes all")
	f.IntVar(&k.load.MaxScan, "max-scan", d.MaxScan, "kv: longest scan, in records; the lengths are uniform from 1")
	f.BoolVar(&k.load.Fsync, "kv-fsync", false,
		"kv: each write is on the server's disk before it is answered (default it is not flushed at all)")
}

// Points are all mixes, rates, connections and calls outstanding.
func (k *Workload) Points(c *workload.Common) (points []engine.Point, err error) {
	if err := c.CheckCalls(Name, "ycsb"); err != nil {
		return nil, err
	}
	if c.Alone() && c.AnyOf("size", "all") != "" {
		return nil, values.Wrong("size", "records of the workload %s have --fields of --field-bytes", Name)
	}
	mixes := values.Unique(k.mixes)
	if slices.Contains(mixes, allMixes) {
		mixes = KVMixes()
	}
	for _, mix := range mixes {
		load := k.load
		if load.Mix = strings.ToLower(mix); !slices.Contains(KVMixes(), load.Mix) {
			return nil, values.Wrong("ycsb", "%q: want %s or %s", mix, strings.Join(KVMixes(), ", "), allMixes)
		}
		pt := KVPoint(load)
		if err := load.check(pt); err != nil {
			return nil, pt.Wrong(err)
		}
		points = append(points, c.OfCalls(pt)...)
	}
	return points, nil
}
