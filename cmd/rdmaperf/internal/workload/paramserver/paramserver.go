// Package paramserver is the workload of one worker of a data-parallel training and one parameter server. Gradients are
// pushed (written) as the backward pass has them, back to front, and updated tensors pulled (read) behind; the next
// forward pass waits for each tensor, front to back. So what is sent last is needed first: in the arm fifo tensors are
// equal, in priority work requests say which is needed first.
//
// The server only polls: its update is no part of the time. Each iteration's model is cut out of one source
// (drive.Cuts), so every tensor has a number, which the worker compares when the tensor is back.
package paramserver

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/pflag"

	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/drive"
	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/engine"
	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/values"
	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/workload"
	"github.com/rdmaperf/rdmaperf/reports"
	"github.com/rdmaperf/rdmaperf/transports"
)

const Name = "paramserver"

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

// Arms of the parameter server workload, as --ps-arm and ParamServer.Arm spell them.
const (
	ArmFIFO     = "fifo"
	ArmPriority = "priority"
)

func TrainArms() []string { return []string{ArmFIFO, ArmPriority} }

const (
	DefaultModel       = "resnet50"
	DefaultTensorBytes = 4 // fp32
	maxComputeRatio    = 1000
)

// Training is what only points of this workload have. File is what the client reads the model from; TensorBytes, of a
// parameter, make the point's size; ComputeRatio is a multiple of communication alone.
type Training struct {
	Model        string  `json:"model"`
	File         string  `json:"file"`
	Tensors      int     `json:"tensors"`
	TensorBytes  float64 `json:"tensor_bytes"`
	ComputeRatio float64 `json:"compute_ratio"`
}

// NewPoint is a point with a model that LoadModel took from a file.
func NewPoint(m *Model, file, arm string, tensorBytes, ratio float64) (engine.Point, error) {
	size, err := m.Bytes(tensorBytes)
	if err != nil {
		return engine.Point{}, err
	}
	t := Training{m.Name, file, len(m.Tensors), tensorBytes, ratio}
	return engine.Point{Workload: Name, Op: "write", Size: size, Variant: arm, Options: engine.PackOptions(t),
		Words: fmt.Sprintf("%s %s, ratio %v, %s", Name, m.Name, ratio, arm),
		Needs: engine.Needs{Kinds: transports.Kinds(transports.KindRead), Why: "by which tensors are pulled",
			Sessions: 1, Message: int(slices.Max(m.sizes(tensorBytes))), Depth: 2, DepthOf: "a push and its pull"}}, nil
}

func (t *Training) check(p engine.Point) error {
	switch {
	case p.Op != transports.KindWrite.String():
		return errors.New("tensors are written and read back")
	case t.Model == "" || len(t.Model) > maxModelName:
		return errors.New("no model")
	case t.Tensors < 1 || t.Tensors > maxTensors:
		return fmt.Errorf("%d tensors: want 1 to %d", t.Tensors, maxTensors)
	case !slices.Contains(TrainArms(), p.Variant):
		return fmt.Errorf("variant %q: want one of %v", p.Variant, TrainArms())
	case !(t.ComputeRatio >= 0 && t.ComputeRatio <= maxComputeRatio):
		return fmt.Errorf("compute ratio %v: want 0 to %v", t.ComputeRatio, maxComputeRatio)
	case !(t.TensorBytes > 0):
		return fmt.Errorf("%v bytes a parameter", t.TensorBytes)
	case p.QPs != 0:
		return errors.New("it has one QP")
	}
	return nil
}

const noEvents = "a worker computes and communicates at once, so it needs busy polling"

// shape is that of a point. The queue has room for every push and its pull, so that a scheduler sees all that waits.
func shape(s *engine.Setup) (*engine.Shape, *Training, error) {
	t, err := engine.ReadOptions(s.Point, func(t *Training, _ int) error {
		if s.Plan.Polling == engine.PollingEvent {
			return errors.New(noEvents)
		}
		return t.check(s.Point)
	})
	if err != nil {
		return nil, nil, err
	}
	sh, err := s.NewShape()
	if err != nil {
		return nil, nil, err
	}
	sh.QPs, sh.Threads, sh.Inline, sh.Polling, sh.Target = 1, 1, 0, engine.PollingBusy, engine.TargetPolling
	sh.Depth = min(2*t.Tensors, engine.MaxDepth)
	if limit := engine.MaxUserDepth(s.Caps.Both); limit > 0 {
		sh.Depth = min(sh.Depth, limit)
	}
	sh.Arrival, sh.ReadDepth = engine.ArrivalCompletion, min(t.Tensors, engine.MaxDepth)
	if most := s.Caps.Both.MaxReadDepth; most > 0 {
		sh.ReadDepth = min(sh.ReadDepth, most)
	}
	sh.Layout = sh.Behind(drive.SourceSize(sh.Size)) // one source, for all iterations
	return sh, &t, nil
}

const maxLevels = 256

func (t *Training) model(size int) (*Model, error) {
	m, err := LoadModel(t.File)
	if err != nil {
		return nil, err
	}
	n, err := m.Bytes(t.TensorBytes)
	if err == nil && (n != size || len(m.Tensors) != t.Tensors || m.Name != t.Model) {
		err = fmt.Errorf("model %s has changed: %d tensors of %d bytes, want %d of %d", t.Model, len(m.Tensors), n,
			t.Tensors, size)
	}
	return m, err
}

func (*Workload) Client(ctx context.Context, r *engine.Run) error {
	sh, t, err := shape(&r.Setup)
	if err != nil {
		return err
	}
	model, err := t.model(sh.Size)
	if err != nil {
		return engine.Refused(err)
	}
	var d *trainer
	m, err := r.Connect(ctx, sh, func(c *engine.Group) (engine.Side, error) {
		d = newTrainer(c, model, t.TensorBytes, levels(sh, r.Caps.Both))
		return d, nil
	})
	if err != nil {
		return err
	}
	communication, compute := 0.0, int64(0)
	if err = m.Warmed(ctx); err == nil {
		communication, err = d.communication(ctx, m, r, t)
	}
	if err == nil {
		compute = int64(communication * t.ComputeRatio)
		d.compute, d.priority = compute, sh.Variant == ArmPriority
		err = m.Measure(ctx, reports.SamplesLatency)
	}
	var iteration reports.Latency
	if m.Out != nil && m.Out.Rec != nil {
		iteration = m.Out.Rec.Snapshot()
	}
	if err == nil {
		d.compute = 0 // what proves does not compute
		err = m.Prove(ctx)
	}
	err = m.Close(ctx, err)
	res := m.Result()
	sh.Barrier(res.Parameters)
	p := res.Parameters
	p["model"], p["arm"], p["levels"], p["tensor_bytes"], p["compute_ratio"] = t.Model, sh.Variant, d.levels,
		t.TensorBytes, t.ComputeRatio
	p["push"], p["pull"], p["fusion"] = "write", "read behind the write", "none"
	if m.Out != nil {
		ps := &ParamServer{Model: t.Model, Arm: sh.Variant, Levels: d.levels,
			Tensors: len(model.Tensors), Parameters: model.Parameters(), TensorBytes: t.TensorBytes,
			ComputeRatio: t.ComputeRatio, ComputeNs: float64(compute), CommunicationNs: communication,
			Iteration: iteration}
		did, _ := m.Out.Detail.(rounds)
		ps.Complete(did.times)
		if v := res.Verification; v != nil {
			v.Messages = did.posted * int64(ps.Tensors)
		}
		res.Detail = ps
	}
	r.Add(res)
	return err
}

func levels(sh *engine.Shape, caps transports.Caps) int {
	if sh.Variant == ArmPriority {
		return min(max(caps.Priorities, 1), maxLevels)
	}
	return 1
}

// communication is the median of iterations without computation and priorities, ns, taken once for each model.
func (d *trainer) communication(ctx context.Context, m *engine.Measurement, r *engine.Run, t *Training) (float64,
	error) {
	key := fmt.Sprintf("%s %d", t.File, m.Sh.Size)
	if ns, known := r.Kept[key]; known {
		return ns, nil
	}
	d.compute, d.priority = 0, false
	out, _, err := m.Phase(ctx, "communication alone", engine.GenAlone, m.Window())
	if err != nil {
		return 0, err
	}
	r.Kept[key] = out.Rec.Snapshot().P50
	return r.Kept[key], nil
}

func (*Workload) Server(ctx context.Context, s *engine.Serve) error {
	sh, _, err := shape(&s.Setup)
	if err != nil {
		return err
	}
	return s.Sessions(ctx, sh, newParameters)
}
