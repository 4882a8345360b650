package main

import (
	"slices"
	"strings"

	"github.com/spf13/pflag"

	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/bench"
	"github.com/rdmaperf/rdmaperf/transports"
)

// kvFlags are those of the key-value workload, as given, and tensorFlags those of the
// exchange of tensors: both are calls, on the connections and with the calls outstanding
// that the workload rpc has.
type kvFlags struct {
	mixes []string
	load  bench.KVLoad
}

type tensorFlags struct{ calls []string }

// kvFlagNames and tensorFlagNames are the flags that mean these workloads.
var (
	kvFlagNames     = []string{"ycsb", "records", "fields", "field-bytes", "max-scan", "kv-fsync"}
	tensorFlagNames = []string{"tensor"}
)

// tensorSizes are those of tensors where none are given: 1 KiB to 64 MiB.
var tensorSizes = []int{1 << 10, 4 << 10, 16 << 10, 64 << 10, 256 << 10, 1 << 20, 4 << 20, 16 << 20, 64 << 20}

const allMixes = "all"

func (k *kvFlags) register(f *pflag.FlagSet) {
	d := bench.KVLoad{}.WithDefaults()
	f.StringSliceVar(&k.mixes, "ycsb", []string{allMixes}, "kv: comma list of mixes of YCSB: a (update heavy), b (read mostly), c (read only), d (read latest), e (short ranges), f (read-modify-write), all")
	f.IntVar(&k.load.Records, "records", d.Records, "kv: records that the server loads for each point, before its window")
	f.IntVar(&k.load.Fields, "fields", d.Fields, "kv: fields of a record")
	f.IntVar(&k.load.FieldBytes, "field-bytes", d.FieldBytes, "kv: bytes of a field; an update writes one field, a read takes all")
	f.IntVar(&k.load.MaxScan, "max-scan", d.MaxScan, "kv: longest scan, in records; the lengths are uniform from 1")
	f.BoolVar(&k.load.Fsync, "kv-fsync", false, "kv: each write is on the server's disk before it is answered (default it is not flushed at all)")
}

func (t *tensorFlags) register(f *pflag.FlagSet) {
	f.StringSliceVar(&t.calls, "tensor", bench.TensorCalls(), "tensor: comma list of push (a tensor to the server), pull (a tensor to the client), exchange (one each way), of --size bytes (default 1K to 64M)")
}

// callAxes are what points of all workloads of calls are multiplied by.
type callAxes struct {
	rates              []float64
	conns, outstanding []int
}

func (a callAxes) multiply(pt bench.Point) (points []bench.Point) {
	for _, rate := range a.rates {
		for _, q := range a.conns {
			for _, t := range a.outstanding {
				pt.Rate, pt.QPs, pt.Outstanding = rate, q, t
				points = append(points, pt)
			}
		}
	}
	return points
}

// callOps refuses operations that a workload of calls does not have.
func callOps(ops []string, workload, instead string) error {
	op := transports.KindCall.String()
	if slices.ContainsFunc(ops, func(s string) bool { return s != op }) {
		return wrong("op", "%s: the operation of the workload %s is %s, and --%s says which", strings.Join(ops, ","), workload, op, instead)
	}
	return nil
}

// points are all mixes.
func (k *kvFlags) points(ops []string, axes callAxes) (points []bench.Point, err error) {
	if err := callOps(ops, bench.WorkloadKV, "ycsb"); err != nil {
		return nil, err
	}
	mixes := unique(k.mixes)
	if slices.Contains(mixes, allMixes) {
		mixes = bench.KVMixes()
	}
	for _, mix := range mixes {
		load := k.load
		if load.Mix = strings.ToLower(mix); !slices.Contains(bench.KVMixes(), load.Mix) {
			return nil, wrong("ycsb", "%q: want %s or %s", mix, strings.Join(bench.KVMixes(), ", "), allMixes)
		}
		points = append(points, axes.multiply(bench.KVPoint(load))...)
	}
	return points, nil
}

// points are all directions and sizes.
func (t *tensorFlags) points(ops []string, sizes []int, axes callAxes) (points []bench.Point, err error) {
	if err := callOps(ops, bench.WorkloadTensor, "tensor"); err != nil {
		return nil, err
	}
	if len(sizes) == 0 {
		sizes = tensorSizes
	}
	for _, call := range unique(t.calls) {
		if !slices.Contains(bench.TensorCalls(), call) {
			return nil, wrong("tensor", "%q: want %s", call, strings.Join(bench.TensorCalls(), ", "))
		}
		for _, n := range sizes {
			points = append(points, axes.multiply(bench.TensorPoint(call, n))...)
		}
	}
	return points, nil
}
