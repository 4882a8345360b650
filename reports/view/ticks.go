package view

import (
	"math"
)

// Tick is one labelled position of an axis, in data units.
type Tick struct {
	At    float64
	Label string
}

// LogSpan widens lo..hi, both above 0, to numbers of 1, 2 or 5 times a power of ten.
func LogSpan(lo, hi float64) (float64, float64) {
	if !(lo > 0) || !(hi >= lo) || !Finite(hi) {
		return 1, 10
	}
	// A file may hold any number; an axis of hundreds of decades shows none.
	lo = min(max(lo, axisMin), AxisMax)
	return stepDown(lo), stepUp(min(max(hi, lo), AxisMax))
}

// axisMin and axisMax bound what an axis shows, in ns, MiB/s and the like.
const axisMin, AxisMax = 1e-6, 1e18

func stepDown(v float64) float64 {
	p := math.Pow(10, math.Floor(math.Log10(v)))
	for _, m := range []float64{5, 2} {
		if m*p <= v*0.98 {
			return m * p
		}
	}
	if p > v*0.98 {
		return p / 2
	}
	return p
}

func stepUp(v float64) float64 {
	p := math.Pow(10, math.Floor(math.Log10(v)))
	for _, m := range []float64{1, 2, 5, 10} {
		if m*p >= v*1.02 {
			return m * p
		}
	}
	return 20 * p
}

// LogTicks labels the decades, and 2 and 5 between them where there is room.
func LogTicks(lo, hi float64, label func(float64) string) []Tick {
	decades := math.Log10(hi / lo)
	steps := []float64{1}
	switch {
	case decades < 1.7:
		steps = []float64{1, 2, 5}
	case decades < 3.2:
		steps = []float64{1, 3}
	}
	every := 1
	if decades > 7 {
		every = 2
	}
	var ts []Tick
	for e := int(math.Floor(math.Log10(lo) + 1e-9)); e <= int(math.Ceil(math.Log10(hi))); e++ {
		for _, m := range steps {
			v := m * math.Pow(10, float64(e))
			if v < lo*0.999 || v > hi*1.001 || e%every != 0 {
				continue
			}
			ts = append(ts, Tick{v, label(v)})
		}
	}
	return ts
}

// LinearTicks gives about five round steps from zero to at least hi.
func LinearTicks(hi float64, label func(float64) string) (ts []Tick, top float64) {
	if !(hi > axisMin) || !(hi < AxisMax) {
		hi = 1
	}
	step := math.Pow(10, math.Floor(math.Log10(hi/4)))
	for _, m := range []float64{1, 2, 5, 10} {
		if hi/(m*step) <= 4 {
			step *= m
			break
		}
	}
	n := int(math.Ceil(hi/step - 1e-9))
	for i := 0; i <= n; i++ {
		ts = append(ts, Tick{float64(i) * step, label(float64(i) * step)})
	}
	return ts, float64(n) * step
}
