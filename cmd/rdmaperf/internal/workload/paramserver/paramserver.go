package paramserver

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/engine"
	"github.com/rdmaperf/rdmaperf/reports"
	paramserverkind "github.com/rdmaperf/rdmaperf/reports/kinds/paramserver"
	"github.com/rdmaperf/rdmaperf/transports"
)

// The parameter server workload: one worker of a data-parallel training and one
// parameter server. An iteration computes forward and backward. The gradient of a
// tensor is pushed (written) as soon as the backward pass has it, back to front; the
// updated tensor is pulled (read) behind it; and the next forward pass comes to a
// layer only when its tensor is back, front to back. So what is sent last is needed
// first: in the arm fifo all tensors are equal, in priority the work requests say
// which is needed first.
//
// The server's thread only polls: the server's update is no part of the time.

// Arms of the parameter server workload, as --ps-arm and ParamServer.Arm spell them.
const (
	ArmFIFO     = "fifo"
	ArmPriority = "priority"
)

// TrainArms lists them.
func TrainArms() []string { return []string{ArmFIFO, ArmPriority} }

const (
	DefaultModel       = "resnet50"
	DefaultTensorBytes = 4 // fp32

	maxComputeRatio = 1000
)

// validateParamServer checks what only this workload has.
func validateParamServer(p engine.Point) error {
	switch {
	case p.Op != transports.KindWrite.String():
		return errors.New("tensors are written and read back")
	case p.Model == "" || len(p.Model) > maxModelName:
		return errors.New("no model")
	case !slices.Contains(TrainArms(), p.Arm):
		return fmt.Errorf("arm %q: want one of %v", p.Arm, TrainArms())
	case !(p.ComputeRatio >= 0 && p.ComputeRatio <= maxComputeRatio):
		return fmt.Errorf("compute ratio %v: want 0 to %v", p.ComputeRatio, maxComputeRatio)
	case !(p.TensorBytes > 0):
		return fmt.Errorf("%v bytes a parameter", p.TensorBytes)
	case p.QPs != 0:
		return errors.New("it has one QP")
	}
	return nil
}

// trainShape fills in what the workload needs. The queue has room for every push and
// its pull, so that a scheduler sees all that waits.
func trainShape(sh *engine.Shape, p *engine.Plan, ab engine.Abilities) {
	caps := ab.Both
	m := modelOf(p, sh.Model)
	sh.Private = m
	sh.QPs, sh.Threads, sh.Slots, sh.RecvDepth, sh.Moderation, sh.Inline = 1, 1, 1, 1, 1, 0
	sh.Depth = 2 * len(m.Tensors)
	if limit := engine.MaxUserDepth(caps); limit > 0 {
		sh.Depth = min(sh.Depth, limit)
	}
	sh.Arrival, sh.ReadDepth = engine.ArrivalCompletion, min(len(m.Tensors), engine.MaxDepth)
	if caps.MaxReadDepth > 0 {
		sh.ReadDepth = min(sh.ReadDepth, caps.MaxReadDepth)
	}
	if sh.Levels = 1; sh.Arm == ArmPriority {
		sh.Levels = min(max(caps.Priorities, 1), maxLevels)
	}
}

// maxLevels is what a work request's priority can tell apart.
const maxLevels = 256

func checkTrain(sh *engine.Shape) error {
	switch {
	case sh.Polling != engine.PollingBusy || sh.QPs != 1 || sh.Threads != 1 || sh.Slots != 1:
		return fmt.Errorf("%s polling, %d QPs, %d threads, %d slots", sh.Polling, sh.QPs, sh.Threads, sh.Slots)
	case sh.Arrival != engine.ArrivalCompletion || sh.Levels < 1 || sh.Levels > maxLevels || sh.Depth < 2:
		return fmt.Errorf("arrival %s, %d levels, depth %d", sh.Arrival, sh.Levels, sh.Depth)
	}
	return nil
}

// trainLimits holds the longest tensor against the longest message. Only the client
// knows the tensors.
func trainLimits(p *engine.Plan, pt engine.Point, caps transports.Caps) error {
	m := modelOf(p, pt.Model)
	if m == nil {
		return nil
	}
	for i, n := range m.sizes(pt.TensorBytes) {
		if uint64(n) > caps.MaxMsg {
			return fmt.Errorf("tensor %s of %d bytes is above the limit of %d bytes", m.Tensors[i].Name, n, caps.MaxMsg)
		}
	}
	if limit := engine.MaxUserDepth(caps); limit == 1 {
		return errors.New("a queue of one operation: a push and its pull need two")
	}
	return nil
}

// modelKey is that of a model in Plan.Private.
type modelKey string

// SetModels gives the client of a plan the models that its points name.
func SetModels(p *engine.Plan, models []*Model) {
	p.Private = maps.Clone(p.Private)
	if p.Private == nil {
		p.Private = map[any]any{}
	}
	for _, m := range models {
		p.Private[modelKey(m.Name)] = m
	}
}

// modelOf is a model by its name, nil where this side does not know it.
func modelOf(p *engine.Plan, name string) *Model {
	m, _ := p.Private[modelKey(name)].(*Model)
	return m
}

// knownModel tells whether the client knows the model of a point, and whether its size
// is the point's.
func knownModel(p *engine.Plan, pt engine.Point) error {
	m := modelOf(p, pt.Model)
	if m == nil {
		return fmt.Errorf("unknown model %q", pt.Model)
	}
	n, err := m.Bytes(pt.TensorBytes)
	if err == nil && n != pt.Size {
		err = fmt.Errorf("size %d, but the tensors have %d bytes", pt.Size, n)
	}
	return err
}

// communicationKey names what the communication alone of a transport depends on.
type communicationKey struct {
	model string
	size  int
}

// runCommunication measures iterations without computation and without priorities,
// once for each model of a client: all arms and ratios have the same computation then.
func runCommunication(m *engine.Measurement, ctx context.Context) error {
	d := m.Group.Side.(*trainer)
	p, key := &m.C.Plan, communicationKey{m.Sh.Model, m.Sh.Size}
	if _, known := m.C.Remembered[key]; !known {
		d.training = training{}
		out, _, err := m.Phase(ctx, "communication alone", engine.GenAlone, engine.Limits{Ops: p.Iterations, Dur: p.Duration})
		if err != nil {
			return err
		}
		m.C.Remembered[key] = out.Rec.Snapshot().P50
	}
	d.measured = training{compute: int64(m.C.Remembered[key].(float64) * m.Sh.ComputeRatio), priority: m.Sh.Arm == ArmPriority}
	d.training = d.measured
	return nil
}

// keepRounds takes the iterations of the measured phase out of the recorder, which
// the next phase uses again.
func keepRounds(m *engine.Measurement) { m.Group.Side.(*trainer).rounds = m.Out.Rec.Snapshot() }

func trainParameters(m *engine.Measurement, p map[string]any) {
	sh := m.Sh
	sh.Barrier(p)
	p["model"], p["arm"], p["levels"], p["tensor_bytes"], p["compute_ratio"] = sh.Model, sh.Arm, sh.Levels, sh.TensorBytes, sh.ComputeRatio
	p["push"], p["pull"], p["fusion"] = "write", "read behind the write", "none"
}

// trainResult completes the result.
func trainResult(m *engine.Measurement, res *reports.Result, out *engine.Outcome) {
	sh, d := m.Sh, m.Group.Side.(*trainer)
	model := sh.Private.(*Model)
	communication, _ := m.C.Remembered[communicationKey{sh.Model, sh.Size}].(float64)
	ps := &paramserverkind.ParamServer{
		Model: sh.Model, Arm: sh.Arm, Levels: sh.Levels, Tensors: len(model.Tensors), Parameters: model.Parameters(), TensorBytes: sh.TensorBytes,
		ComputeRatio: sh.ComputeRatio, ComputeNs: float64(d.measured.compute),
		CommunicationNs: communication, Iteration: d.rounds,
	}
	times, _ := out.Detail.([]float64)
	ps.Complete(times)
	res.Detail = ps
}

// trainProve is what the phase behind the measured one does: it does not compute.
func trainProve(m *engine.Measurement) { m.Group.Side.(*trainer).compute = 0 }
