package values

import (
	"math"
	"slices"
	"strconv"
	"strings"
)

// maxSweep bounds a sweep: more points than anybody waits for are a typing error.
const maxSweep = 1000

// Counts reads a sweep of whole numbers, given by the flag.
func Counts(flag, s string) ([]int, error) {
	values, err := Sweep(flag, s)
	if err != nil {
		return nil, err
	}
	var counts []int
	for _, v := range values {
		if v != math.Trunc(v) || v > math.MaxInt32 {
			return nil, Wrong(flag, "%q: %v is no whole number", s, v)
		}
		counts = append(counts, int(v))
	}
	return counts, nil
}

// Sweep reads "1000,5000" or "1000:5000:500", whose end is included. All values are
// above 0.
func Sweep(flag, s string) ([]float64, error) {
	if strings.Contains(s, ":") {
		return sweepRange(flag, s)
	}
	values, err := numbers(flag, s, ",")
	for i, v := range values {
		if slices.Contains(values[:i], v) {
			return nil, Wrong(flag, "%q: %v is given twice", s, v)
		}
	}
	return values, err
}

func sweepRange(flag, s string) ([]float64, error) {
	v, err := numbers(flag, s, ":")
	switch {
	case err != nil:
		return nil, err
	case len(v) != 3 || v[0] > v[1]:
		return nil, Wrong(flag, "%q: want FROM:TO:STEP", s)
	case (v[1]-v[0])/v[2] > maxSweep:
		return nil, Wrong(flag, "%q: more than %d values", s, maxSweep)
	}
	var values []float64
	// A small part of a step makes up for rounding, so that the end is not lost.
	for i := 0; v[0]+float64(i)*v[2] <= v[1]+v[2]/1e6; i++ {
		values = append(values, v[0]+float64(i)*v[2])
	}
	return values, nil
}

func numbers(flag, s, separator string) (values []float64, err error) {
	for field := range strings.SplitSeq(s, separator) {
		v, err := strconv.ParseFloat(strings.TrimSpace(field), 64)
		if err != nil || !(v > 0) || math.IsInf(v, 0) {
			return nil, Wrong(flag, "%q: want numbers above 0, got %q", s, field)
		}
		values = append(values, v)
	}
	return values, nil
}
