package workload_test

import (
	"context"
	"errors"
	"runtime"
	"strings"
	"testing"

	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/drive"
	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/engine"
	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/engine/enginetest"
	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/workload/rpc"
	"github.com/rdmaperf/rdmaperf/transports"
)

// broken is a service that answers, and fails nevertheless.
type broken struct {
	engine.CallService
	ended error // of its end
	call  func()
}

func (b *broken) Close() error { return errors.Join(b.CallService.Close(), b.ended) }
func (b *broken) ServeCall(c *transports.Served) error {
	if b.call != nil {
		b.call()
	}
	return b.CallService.ServeCall(c)
}

// serving is the workload rpc with services that are made so.
type serving func(s engine.CallService, fail func(error)) engine.CallService

func (f serving) Client(ctx context.Context, r *engine.Run) error {
	return new(rpc.Workload).Client(ctx, r)
}

func (f serving) Server(ctx context.Context, s *engine.Serve) error {
	sh, err := rpc.Shape(&s.Setup, 1)
	if err != nil {
		return err
	}
	if err := s.HoldShape(sh, 0); err != nil {
		return err
	}
	fails := drive.NewFailure()
	return drive.ServeCalls(ctx, s, sh, drive.CallConfig(sh, 1), f(rpc.NewService(sh, fails.Fail), fails.Fail), fails)
}

func (f serving) table() engine.Table { return engine.Table{rpc.Name: {Runner: f}} }

// A service that cannot be ended fails its point, whose calls were all well.
func TestAServiceThatDoesNotEndFailsItsPoint(t *testing.T) {
	for _, ended := range []error{nil, errors.New("store is damaged")} {
		plan := engine.Plan{Points: []engine.Point{smallCalls()}, Iterations: 10, Verify: true}
		plan.Workloads = serving(func(s engine.CallService, _ func(error)) engine.CallService {
			return &broken{CallService: s, ended: ended}
		}).table()
		withClient(t, plan, nil, func(ctx context.Context, c *engine.Client) {
			if _, err := enginetest.First(c.Run(ctx, 0)); (err == nil) != (ended == nil) ||
				err != nil && !strings.Contains(err.Error(), ended.Error()) {
				t.Errorf("%v, want %v", err, ended)
			}
		})
	}
}

// What a service finds in the last call of a phase fails the point, whether the server learns of
// that or of the end of the phase first.
func TestAFailureInTheLastCallFailsItsPoint(t *testing.T) {
	const n = 5
	found := errors.New("found in the last call")
	for yields := range 40 {
		plan := engine.Plan{Points: []engine.Point{smallCalls()}, Iterations: n, Verify: true}
		plan.Workloads = serving(func(s engine.CallService, fail func(error)) engine.CallService {
			calls := 0
			return &broken{CallService: s, call: func() {
				if calls++; calls == n {
					go func() {
						for range yields {
							runtime.Gosched()
						}
						fail(found)
					}()
				}
			}}
		}).table()
		withClient(t, plan, nil, func(ctx context.Context, c *engine.Client) {
			// A client that says the end while the server leaves learns of that alone.
			if _, err := enginetest.First(c.Run(ctx, 0)); err == nil {
				t.Errorf("after %d yields: all is well, want %v", yields, found)
			}
		})
	}
}
