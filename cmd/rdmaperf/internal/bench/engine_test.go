package bench

import (
	"fmt"
	"testing"

	"github.com/rdmaperf/rdmaperf/transports"
)

// Every workload and operation that a stack declares gives the exact number of
// operations, verified, on one QP and on several.
func TestEveryOperationCountsExactly(t *testing.T) {
	for name, e := range map[string]ends{"mem": memEnds, "tcp": tcpEnds} {
		client, server := e(t)
		caps := client.Caps()
		client.Close()
		server.Close()
		for _, polling := range []string{PollingBusy, PollingEvent} {
			for k := transports.KindSend; k < transports.KindCall; k++ {
				if !caps.Kinds.Has(k) || polling == PollingEvent && !caps.Events {
					continue
				}
				sizes := []int{1, 64, 5000, 1 << 20}
				if isAtomic(k) {
					sizes = []int{8}
				}
				t.Run(fmt.Sprintf("%s/%s/%s", name, polling, k), func(t *testing.T) {
					plan := quickPlan()
					plan.Polling = polling
					plan.QPs = 2
					plan.Iterations = 40
					plan.WarmupIterations = 10
					for _, size := range sizes {
						plan.Points = append(plan.Points, Point{WorkloadLatency, k.String(), size}, Point{WorkloadThroughput, k.String(), size})
					}
					results, err := runPoints(t, e, plan)
					if err != nil {
						t.Fatal(err)
					}
					for _, r := range results {
						if r.Operations != 80 || !r.Verified || r.Errors != 0 {
							t.Errorf("%s %d: %d operations, verified %v, errors %d, want 80, true, 0", r.Workload, r.SizeBytes, r.Operations, r.Verified, r.Errors)
						}
						if r.Workload == WorkloadLatency && r.Latency.Count != 80 {
							t.Errorf("latency %d: %d samples, want 80", r.SizeBytes, r.Latency.Count)
						}
					}
				})
			}
		}
	}
}
