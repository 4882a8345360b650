package bench

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/rdmaperf/rdmaperf/reports"
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
func (p Point) validateParamServer() error {
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
func (sh *Shape) trainShape(p *Plan, caps transports.Caps) {
	sh.model = p.Models[sh.Model]
	sh.QPs, sh.Threads, sh.Slots, sh.RecvDepth, sh.Moderation, sh.Inline = 1, 1, 1, 1, 1, 0
	sh.Depth = 2 * len(sh.model.Tensors)
	if limit := maxUserDepth(caps); limit > 0 {
		sh.Depth = min(sh.Depth, limit)
	}
	sh.Arrival, sh.ReadDepth = ArrivalCompletion, min(len(sh.model.Tensors), maxDepth)
	if caps.MaxReadDepth > 0 {
		sh.ReadDepth = min(sh.ReadDepth, caps.MaxReadDepth)
	}
	if sh.Levels = 1; sh.Arm == ArmPriority {
		sh.Levels = min(max(caps.Priorities, 1), maxLevels)
	}
}

// maxLevels is what a work request's priority can tell apart.
const maxLevels = 256

func (sh *Shape) checkTrain() error {
	switch {
	case sh.Polling != PollingBusy || sh.QPs != 1 || sh.Threads != 1 || sh.Slots != 1:
		return fmt.Errorf("%s polling, %d QPs, %d threads, %d slots", sh.Polling, sh.QPs, sh.Threads, sh.Slots)
	case sh.Arrival != ArrivalCompletion || sh.Levels < 1 || sh.Levels > maxLevels || sh.Depth < 2:
		return fmt.Errorf("arrival %s, %d levels, depth %d", sh.Arrival, sh.Levels, sh.Depth)
	}
	return nil
}

// trainLimits holds the longest tensor against the longest message. Only the client
// knows the tensors.
func trainLimits(p *Plan, pt Point, caps transports.Caps) error {
	m := p.Models[pt.Model]
	if m == nil {
		return nil
	}
	for i, n := range m.sizes(pt.TensorBytes) {
		if uint64(n) > caps.MaxMsg {
			return fmt.Errorf("tensor %s of %d bytes is above the limit of %d bytes", m.Tensors[i].Name, n, caps.MaxMsg)
		}
	}
	if limit := maxUserDepth(caps); limit == 1 {
		return errors.New("a queue of one operation: a push and its pull need two")
	}
	return nil
}

// checkModels tells whether the client knows the models of its points, and whether
// their sizes are the points'.
func (p *Plan) checkModels() error {
	for _, pt := range p.Points {
		if pt.Workload != WorkloadParamServer {
			continue
		}
		err := fmt.Errorf("unknown model %q", pt.Model)
		if m := p.Models[pt.Model]; m != nil {
			var n int
			if n, err = m.Bytes(pt.TensorBytes); err == nil && n != pt.Size {
				err = fmt.Errorf("size %d, but the tensors have %d bytes", pt.Size, n)
			}
		}
		if err != nil {
			return &reports.ExitError{Code: reports.ExitUsage, Operation: "check plan", Err: err}
		}
	}
	return nil
}

// communicationKey names what the communication alone of a transport depends on.
type communicationKey struct {
	model string
	size  int
}

// runCommunication measures iterations without computation and without priorities,
// once for each model of a client: all arms and ratios have the same computation then.
func (m *measurement) runCommunication(ctx context.Context) error {
	p, key := &m.c.plan, communicationKey{m.sh.Model, m.sh.Size}
	if _, known := m.c.communication[key]; !known {
		m.crew.train = training{}
		out, _, err := m.phase(ctx, "communication alone", genAlone, limits{p.Iterations, p.Duration})
		if err != nil {
			return err
		}
		if m.c.communication == nil {
			m.c.communication = map[communicationKey]float64{}
		}
		m.c.communication[key] = out.rec.Snapshot().P50
	}
	m.train = training{compute: int64(m.c.communication[key] * m.sh.ComputeRatio), priority: m.sh.Arm == ArmPriority}
	m.crew.train = m.train
	return nil
}

// paramServer completes the result.
func (m *measurement) paramServer(res *reports.Result, out *outcome) {
	sh := m.sh
	ps := &reports.ParamServer{
		Model: sh.Model, Arm: sh.Arm, Levels: sh.Levels, Tensors: len(sh.model.Tensors), Parameters: sh.model.Parameters(), TensorBytes: sh.TensorBytes,
		ComputeRatio: sh.ComputeRatio, ComputeNs: float64(m.train.compute),
		CommunicationNs: m.c.communication[communicationKey{sh.Model, sh.Size}], Iteration: m.rounds,
	}
	ps.Complete(out.times)
	res.ParamServer = ps
}
