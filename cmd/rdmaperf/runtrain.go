package main

import (
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/pflag"

	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/bench"
)

// trainFlags are those of the parameter server workload, as given.
type trainFlags struct {
	models      []string
	arms        []string
	ratios      []string
	tensorBytes float64
}

// trainFlagNames are the flags that mean this workload.
var trainFlagNames = []string{"model", "ps-arm", "compute-ratio", "tensor-bytes"}

func (t *trainFlags) register(f *pflag.FlagSet) {
	f.StringSliceVar(&t.models, "model", []string{bench.DefaultModel}, "paramserver: comma list of "+strings.Join(bench.Models(), ", ")+", or of files (NAME.csv with the header tensor,parameters,multiply_adds and a line for each tensor in forward order)")
	f.StringSliceVar(&t.arms, "ps-arm", bench.TrainArms(), "paramserver: comma list of fifo (all tensors are equal), priority (what is needed first is more urgent)")
	f.StringSliceVar(&t.ratios, "compute-ratio", []string{"0", "0.5", "1", "2"}, "paramserver: comma list of computation as a multiple of what communication alone takes")
	f.Float64Var(&t.tensorBytes, "tensor-bytes", bench.DefaultTensorBytes, "paramserver: bytes of a parameter; less makes the model smaller")
}

// points are all models, ratios and arms; models has what they name.
func (t *trainFlags) points() (points []bench.Point, models map[string]*bench.Model, err error) {
	models = map[string]*bench.Model{}
	for _, name := range unique(t.models) {
		m, err := bench.LoadModel(name)
		if err != nil {
			return nil, nil, wrong("model", "%w", err)
		}
		if models[m.Name] != nil {
			return nil, nil, wrong("model", "two models with the name %s", m.Name)
		}
		models[m.Name] = m
		size, err := m.Bytes(t.tensorBytes)
		if err != nil {
			return nil, nil, wrong("tensor-bytes", "%w", err)
		}
		for _, r := range unique(t.ratios) {
			ratio, err := strconv.ParseFloat(r, 64)
			if err != nil || !(ratio >= 0) {
				return nil, nil, wrong("compute-ratio", "%q: want a number from 0", r)
			}
			for _, arm := range unique(t.arms) {
				pt := bench.Point{Workload: bench.WorkloadParamServer, Op: "write", Size: size, Arm: arm, Model: m.Name, TensorBytes: t.tensorBytes, ComputeRatio: ratio}
				if slices.Contains(points, pt) {
					return nil, nil, wrong("compute-ratio", "%v stands there twice", ratio)
				}
				points = append(points, pt)
			}
		}
	}
	return points, models, nil
}

// checkTrain refuses what describes another workload.
func checkTrain(list []string, changed func(string) bool) error {
	for _, f := range []string{"op", "size", "all", "qp", "qp-sweep", "threads", "tx-depth", "rx-depth", "inline_size", "cq-mod"} {
		if changed(f) && len(list) == 1 {
			return wrong(f, "the operations of the workload %s are those of its --model, on one QP", bench.WorkloadParamServer)
		}
	}
	return nil
}
