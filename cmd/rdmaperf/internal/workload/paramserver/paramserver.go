package paramserver

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/drive"
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
//
// The model of each iteration is cut out of one source (drive.SourceAt), so that every tensor
// has its iteration's number, which the worker looks at when the tensor is back.

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

// Training is what only points of this workload have: the model's name and the bytes of a
// parameter, which make the point's size, and the computation of an iteration as a multiple
// of its communication alone.
type Training struct {
	Model        string  `json:"model"`
	TensorBytes  float64 `json:"tensor_bytes"`
	ComputeRatio float64 `json:"compute_ratio"`
}

func trainingOf(p engine.Point) (t Training, err error) { return t, p.Options.Unpack(&t) }

// clientShape is what the client keeps with a shape: it alone knows the model.
type clientShape struct {
	Training
	model  *Model
	levels int // of priority in use
}

// validateParamServer checks what only this workload has.
func validateParamServer(p engine.Point) error {
	t, err := trainingOf(p)
	switch {
	case err != nil:
		return err
	case p.Op != transports.KindWrite.String():
		return errors.New("tensors are written and read back")
	case t.Model == "" || len(t.Model) > maxModelName:
		return errors.New("no model")
	case !slices.Contains(TrainArms(), p.Arm):
		return fmt.Errorf("arm %q: want one of %v", p.Arm, TrainArms())
	case !(t.ComputeRatio >= 0 && t.ComputeRatio <= maxComputeRatio):
		return fmt.Errorf("compute ratio %v: want 0 to %v", t.ComputeRatio, maxComputeRatio)
	case !(t.TensorBytes > 0):
		return fmt.Errorf("%v bytes a parameter", t.TensorBytes)
	case p.QPs != 0:
		return errors.New("it has one QP")
	}
	return nil
}

// trainShape fills in what the workload needs. The queue has room for every push and
// its pull, so that a scheduler sees all that waits.
func trainShape(sh *engine.Shape, p *engine.Plan, ab engine.Abilities) {
	caps := ab.Both
	t, _ := trainingOf(sh.Point) // it was validated
	m := modelOf(p, t.Model)
	own := &clientShape{t, m, 1}
	sh.Private = own
	sh.QPs, sh.Threads, sh.Slots, sh.RecvDepth, sh.Moderation, sh.Inline = 1, 1, 1, 1, 1, 0
	sh.Depth = 2 * len(m.Tensors)
	if limit := engine.MaxUserDepth(caps); limit > 0 {
		sh.Depth = min(sh.Depth, limit)
	}
	sh.Arrival, sh.ReadDepth = engine.ArrivalCompletion, min(len(m.Tensors), engine.MaxDepth)
	if caps.MaxReadDepth > 0 {
		sh.ReadDepth = min(sh.ReadDepth, caps.MaxReadDepth)
	}
	if sh.Arm == ArmPriority {
		own.levels = min(max(caps.Priorities, 1), maxLevels)
	}
}

// trainLayout has one source, for all iterations.
func trainLayout(sh *engine.Shape) engine.Layout { return sh.Behind(drive.SourceSize(sh.Size)) }

// maxLevels is what a work request's priority can tell apart.
const maxLevels = 256

func checkTrain(sh *engine.Shape) error {
	switch {
	case sh.Polling != engine.PollingBusy || sh.QPs != 1 || sh.Threads != 1 || sh.Slots != 1:
		return fmt.Errorf("%s polling, %d QPs, %d threads, %d slots", sh.Polling, sh.QPs, sh.Threads, sh.Slots)
	case sh.Arrival != engine.ArrivalCompletion || sh.Depth < 2:
		return fmt.Errorf("arrival %s, depth %d", sh.Arrival, sh.Depth)
	}
	return nil
}

// trainLimits holds the longest tensor against the longest message. Only the client
// knows the tensors.
func trainLimits(p *engine.Plan, pt engine.Point, caps transports.Caps) error {
	t, err := trainingOf(pt)
	if err != nil {
		return err
	}
	m := modelOf(p, t.Model)
	if m == nil {
		return nil
	}
	for i, n := range m.sizes(t.TensorBytes) {
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
	t, err := trainingOf(pt)
	if err != nil {
		return err
	}
	m := modelOf(p, t.Model)
	if m == nil {
		return fmt.Errorf("unknown model %q", t.Model)
	}
	n, err := m.Bytes(t.TensorBytes)
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
	own := m.Sh.Private.(*clientShape)
	p, key := &m.C.Plan, communicationKey{own.Model, m.Sh.Size}
	if _, known := m.C.Remembered[key]; !known {
		d.training = training{}
		out, _, err := m.Phase(ctx, "communication alone", engine.GenAlone, engine.Limits{Ops: p.Iterations, Dur: p.Duration})
		if err != nil {
			return err
		}
		m.C.Remembered[key] = out.Rec.Snapshot().P50
	}
	d.measured = training{compute: int64(m.C.Remembered[key].(float64) * own.ComputeRatio), priority: m.Sh.Arm == ArmPriority}
	d.training = d.measured
	return nil
}

// keepRounds takes the iterations of the measured phase out of the recorder, which
// the next phase uses again.
func keepRounds(m *engine.Measurement) { m.Group.Side.(*trainer).rounds = m.Out.Rec.Snapshot() }

func trainParameters(m *engine.Measurement, p map[string]any) {
	sh := m.Sh
	sh.Barrier(p)
	own := sh.Private.(*clientShape)
	p["model"], p["arm"], p["levels"], p["tensor_bytes"], p["compute_ratio"] = own.Model, sh.Arm, own.levels, own.TensorBytes, own.ComputeRatio
	p["push"], p["pull"], p["fusion"] = "write", "read behind the write", "none"
}

// trainResult completes the result.
func trainResult(m *engine.Measurement, res *reports.Result, out *engine.Outcome) {
	sh, d := m.Sh, m.Group.Side.(*trainer)
	own := sh.Private.(*clientShape)
	communication, _ := m.C.Remembered[communicationKey{own.Model, sh.Size}].(float64)
	ps := &paramserverkind.ParamServer{
		Model: own.Model, Arm: sh.Arm, Levels: own.levels, Tensors: len(own.model.Tensors), Parameters: own.model.Parameters(), TensorBytes: own.TensorBytes,
		ComputeRatio: own.ComputeRatio, ComputeNs: float64(d.measured.compute),
		CommunicationNs: communication, Iteration: d.rounds,
	}
	did, _ := out.Detail.(rounds)
	ps.Complete(did.times)
	if v := res.Verification; v != nil {
		v.Messages = did.posted * int64(ps.Tensors)
	}
	res.Detail = ps
}

// trainProve is what the phase behind the measured one does: it does not compute.
func trainProve(m *engine.Measurement) { m.Group.Side.(*trainer).compute = 0 }
