package paramserver

import (
	"fmt"

	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/engine"
	paramserverkind "github.com/rdmaperf/rdmaperf/reports/kinds/paramserver"
	"github.com/rdmaperf/rdmaperf/transports"
)

// work is the row of a parameter server.
var work = &engine.Workload{
	Kind: paramserverkind.Kind, Name: Name, Again: true, Divided: true, OnlyPolled: true, Has: engine.Members{Arms: true, Options: true}, Hint: "a smaller --tensor-bytes",
	NoEvents: "a worker computes and communicates at once, so it needs busy polling",
	NoSeries: "the workload paramserver has iterations, and no windows",
	Point:    validateParamServer, Known: knownModel, Describe: func(p engine.Point) string {
		t, _ := trainingOf(p) // Point says what is wrong
		return fmt.Sprintf("%s %s, ratio %v, %s", p.Workload, t.Model, t.ComputeRatio, p.Arm)
	},
	Needs: []engine.Need{{Kind: transports.KindRead, Why: "by which tensors are pulled"}}, Limits: trainLimits,
	Shape: trainShape, Check: checkTrain, Layout: trainLayout,
	Stall:  func(sh *engine.Shape) int64 { return 2 * int64(sh.Size) }, // out and back, however many tensors
	Before: runCommunication, Keep: keepRounds,
	Prove: trainProve, Client: newTrainer, Server: newParameters,
	Result: trainResult, Parameters: trainParameters,
}
