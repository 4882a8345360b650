package main

import (
	"encoding/json"

	"github.com/rdmaperf/rdmaperf/ci/targets"
)

// result is what is read of a result of a document.
type result struct {
	Transport, Workload, Op string
	SizeBytes               int64 `json:"size_bytes"`
	QPs                     int
	Operations              int64
	Latency                 *struct{ P50, P99 float64 }
	Throughput              *struct {
		Operations float64 `json:"operations_per_second"`
	}
	DurationNs int64 `json:"duration_ns"`
	CPU        *struct {
		Client float64 `json:"client_seconds"`
		Server float64 `json:"server_seconds"`
	}
	Register *struct { // of the workload of that name
		Register struct{ P50 float64 }
	}
	X      float64            `json:"-"` // of a curve
	Values map[string]float64 `json:"-"`
}

func (r *result) read(raw json.RawMessage) error {
	if err := json.Unmarshal(raw, r); err != nil {
		return err
	}
	var members map[string]json.RawMessage
	if err := json.Unmarshal(raw, &members); err != nil {
		return err
	}
	if m, ok := members[r.Workload]; ok { // a curve's point is a member named as its workload
		var p struct {
			X      float64
			Values map[string]float64
		}
		if err := json.Unmarshal(m, &p); err != nil {
			return err
		}
		r.X, r.Values = p.X, p.Values
	}
	return nil
}

// results are those of one document, repeats behind each other.
type results []result

// of are those of a stack as it was typed, and that keep holds for.
func (all results) of(transport string, keep func(*result) bool) (some results) {
	for i := range all {
		if r := &all[i]; r.Transport == transport && (keep == nil || keep(r)) {
			some = append(some, *r)
		}
	}
	return some
}

// at is the median over repeats of a curve's value; 0 where there is none.
func (all results) at(transport, op string, size int64, x float64, value string) float64 {
	return all.of(transport, func(r *result) bool { return r.Op == op && r.SizeBytes == size && r.X == x }).median(
		func(r *result) float64 { return r.Values[value] })
}

// p50 is the median over repeats of the median latency, ns.
func (all results) p50(transport string, size int64, qps int) float64 {
	return all.of(transport, func(r *result) bool {
		return r.SizeBytes == size && r.Latency != nil && (qps == 0 || r.QPs == qps)
	}).median(func(r *result) float64 { return r.Latency.P50 })
}

// cpus is how many CPUs the client's process used, 0 where that was not measured.
func (r *result) cpus() float64 {
	if r.CPU == nil || r.DurationNs <= 0 {
		return 0
	}
	return r.CPU.Client * 1e9 / float64(r.DurationNs)
}

func (all results) median(of func(*result) float64) float64 {
	var xs []float64
	for i := range all {
		xs = append(xs, of(&all[i]))
	}
	return targets.Median(xs)
}

// ratio is a over b; 0 where either was not measured.
func ratio(a, b float64) float64 {
	if a <= 0 || b <= 0 {
		return 0
	}
	return a / b
}
