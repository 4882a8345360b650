package answer

import (
	"math"
	"math/rand/v2"
	"time"

	"github.com/rdmaperf/rdmaperf/reports"
)

// maker builds documents of rounds.
type maker struct {
	reports.Document
	rng   *rand.Rand
	sigma float64 // of each figure of a slice
	taken float64 // of each window
}

func newMaker(sigma float64) *maker {
	return &maker{rng: rand.New(rand.NewPCG(1, 2)), sigma: sigma}
}

func (m *maker) noisy(v float64) float64 { return v * math.Exp(m.sigma*m.rng.NormFloat64()) }

// result adds one of a round.
func (m *maker) result(round int, stack, workload, op string, size int64) *reports.Result {
	m.Results = append(m.Results, reports.Result{Stack: stack, Transport: stack, Label: reports.LabelSoft,
		Workload: workload, Op: op, SizeBytes: size, Depth: 1, QPs: 1, Repeat: round, Verified: true,
		DurationNs: int64(100 * time.Millisecond), Operations: 1000,
		Verification: &reports.Verification{Mode: reports.VerifySample, Messages: 1000, Numbers: 200, Whole: 100},
		Disturbance:  &reports.Disturbance{Verdict: reports.VerdictQuiet, Taken: m.taken}})
	return &m.Results[len(m.Results)-1]
}

// times is a distribution around a median, with quantiles that noise can be looked up in.
func (m *maker) times(median float64) reports.Latency {
	p50 := m.noisy(median)
	return reports.Latency{Count: 1000, Min: 0.8 * p50, P50: p50, P90: 1.2 * p50, P99: 2 * p50, P999: 4 * p50,
		P9999: 4 * p50, P99999: 4 * p50, Max: 4 * p50, Mean: 1.1 * p50}
}

// latency measures a ping-pong of sends.
func (m *maker) latency(rounds int, size int64, of map[string]float64, order ...string) {
	for round := range rounds {
		for _, stack := range order {
			r := m.result(round+1, stack, "latency", "send", size)
			l := m.times(of[stack])
			r.Latency, r.RoundTrip = &l, reports.RoundTripHalf
		}
	}
}

// stream measures a bandwidth.
func (m *maker) stream(rounds int, size int64, of map[string]float64, order ...string) {
	for round := range rounds {
		for _, stack := range order {
			v := m.noisy(of[stack])
			m.result(round+1, stack, "throughput", "write", size).Throughput = &reports.Throughput{BytesPerSecond: v,
				OperationsPerSecond: v / float64(size)}
		}
	}
}

// hol measures probes behind bulk, and the bulk.
func (m *maker) hol(rounds int, arm string, probe, bulk map[string]float64, order ...string) {
	for round := range rounds {
		for _, stack := range order {
			r := m.result(round+1, stack, "hol", "write", 1<<20)
			l := m.times(probe[stack])
			r.RoundTrip = reports.RoundTripFull
			r.Description = reports.Description{Shown: []string{"loaded.p50"},
				Dims:      []reports.Dim{{Name: "arm", Value: arm}, {Name: "probe_size_bytes", Value: "64", Unit: "B"}},
				Latencies: []reports.NamedLatency{{Name: "loaded", Latency: &l}},
				Figures: []reports.Figure{{Name: "loaded.bw", Quantity: reports.QuantityBytes, Better: reports.More,
					Value: m.noisy(bulk[stack])}}}
		}
	}
}
