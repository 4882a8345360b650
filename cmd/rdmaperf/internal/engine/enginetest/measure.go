package enginetest

import (
	"context"
	"net"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/drive"
	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/engine"
	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/engine/enginetest/scripted"
	"github.com/rdmaperf/rdmaperf/reports"
	"github.com/rdmaperf/rdmaperf/transports"
)

// Measure runs the points of a plan on a scripted stack in a bubble. Of every four ns this process uses process of
// processor time, and the machine machine. A point that fails is the last one.
func Measure(t *testing.T, f *scripted.Fabric, plan engine.Plan, process,
	machine time.Duration) (results []reports.Result) {
	t.Helper()
	Bubble(t, f, plan, nil, process, machine, func(ctx context.Context, c *engine.Client) {
		for i, pt := range plan.Points {
			r, err := First(c.Run(ctx, i))
			if err != nil {
				t.Errorf("%s: %v", pt, err)
				return
			}
			results = append(results, r)
		}
	})
	return results
}

// Bubble gives run a client of such a stack, with a server in the bubble that is made of s; nil for any.
func Bubble(t *testing.T, f *scripted.Fabric, plan engine.Plan, s *engine.Server, process, machine time.Duration,
	run func(ctx context.Context, c *engine.Client)) {
	t.Helper()
	defer engine.RestartClock()
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		engine.RestartClock()
		cpu, sleep := engine.ReadCPU, drive.Sleep
		engine.ReadCPU = func() (time.Duration, time.Duration, int64) {
			d := time.Since(began)
			return d * process / 4, d * machine / 4, 0
		}
		drive.Sleep = func(ns int64) { time.Sleep(time.Duration(ns)) }
		defer func() { engine.ReadCPU, drive.Sleep = cpu, sleep }()
		client, server := f.Ends()
		defer func() {
			if err := f.Close(); err != nil {
				t.Error(err)
			}
		}()
		plan.Transport, plan.Seed, plan.ClientCPU, plan.ServerCPU, plan.Timeout = "scripted", 1, -1, -1, 20*time.Second
		near, far := net.Pipe()
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		served := make(chan struct{})
		go func() { // ends with the client's end of the pipe
			defer close(served)
			if s == nil {
				s = &engine.Server{}
			}
			s.Workloads, s.Open = plan.Workloads, func(string) (transports.Stack, error) { return server, nil }
			s.ServeConn(ctx, far)
		}()
		defer func() { <-served }()
		c, err := engine.ConnectConn(ctx, near, client, plan)
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		run(ctx, c)
	})
}
