package paramserver

import (
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/pflag"

	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/engine"
	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/values"
	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/workload"
)

// Name is the workload's.
const Name = "paramserver"

// Workload implements workload.Workload.
type Workload struct {
	models      []string
	arms        []string
	ratios      []string
	tensorBytes float64
}

func (*Workload) Meta() workload.Meta {
	return workload.Meta{
		Name:     Name,
		Results:  results,
		Summary:  "iteration time with a parameter server, FIFO or by priority",
		Examples: "rdmaperf run --transport iwarp,sched+iwarp --workload paramserver --model resnet50",
		Group:    "Workload paramserver",
		Words:    map[string][]string{"model": Models(), "ps-arm": TrainArms()},
	}
}

func (t *Workload) Flags(f *pflag.FlagSet) {
	f.StringSliceVar(&t.models, "model", []string{DefaultModel}, "paramserver: comma list of "+strings.Join(Models(),
		", ")+", or of files (NAME.csv with the header tensor,parameters,multiply_adds and a line for each tensor in "+
		"forward order)")
	f.StringSliceVar(&t.arms, "ps-arm", TrainArms(),
		"paramserver: comma list of fifo (all tensors are equal), priority (what is needed first is more urgent)")
	f.StringSliceVar(&t.ratios, "compute-ratio", []string{"0", "0.5", "1", "2"},
		"paramserver: comma list of computation as a multiple of what communication alone takes")
	f.Float64Var(&t.tensorBytes, "tensor-bytes", DefaultTensorBytes,
		"paramserver: bytes of a parameter; less makes the model smaller")
}

// Points are all models, ratios and arms.
func (t *Workload) Points(c *workload.Common) (points []engine.Point, err error) {
	if f := c.AnyOf("op", "size", "all", "qp", "qp-sweep", "threads", "tx-depth", "rx-depth", "inline_size",
		"cq-mod"); f != "" && c.Alone() {
		return nil, values.Wrong(f, "the operations of the workload %s are those of its --model, on one QP", Name)
	}
	if err := c.NoEvents(noEvents); err != nil {
		return nil, err
	}
	if c.Changed("interval") {
		return nil, values.Wrong("interval", "the workload %s has iterations, and no windows", Name)
	}
	var models []*Model
	for _, name := range values.Unique(t.models) {
		m, err := LoadModel(name)
		if err != nil {
			return nil, values.Wrong("model", "%w", err)
		}
		if slices.ContainsFunc(models, func(o *Model) bool { return o.Name == m.Name }) {
			return nil, values.Wrong("model", "two models with the name %s", m.Name)
		}
		models = append(models, m)
		if _, err := m.Bytes(t.tensorBytes); err != nil {
			return nil, values.Wrong("tensor-bytes", "%w", err)
		}
		for _, r := range values.Unique(t.ratios) {
			ratio, err := strconv.ParseFloat(r, 64)
			if err != nil || !(ratio >= 0) || math.IsInf(ratio, 1) {
				return nil, values.Wrong("compute-ratio", "%q: want a number from 0", r)
			}
			for _, arm := range values.Unique(t.arms) {
				pt, err := NewPoint(m, name, arm, t.tensorBytes, ratio)
				if err != nil {
					return nil, values.Wrong("tensor-bytes", "%w", err)
				}
				if slices.Contains(points, pt) {
					return nil, values.Wrong("compute-ratio", "%v is given twice", ratio)
				}
				points = append(points, pt)
			}
		}
	}
	return points, nil
}
