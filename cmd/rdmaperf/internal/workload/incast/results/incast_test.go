package results

import (
	"math"
	"testing"
)

func TestJainIndex(t *testing.T) {
	for _, c := range []struct {
		rates []float64
		want  float64
	}{
		{[]float64{5, 5, 5}, 1}, {[]float64{1, 0, 0, 0}, 0.25}, {[]float64{1, 3}, 0.8}, {[]float64{0, 0}, 0}, {nil, 0},
		{[]float64{1e300, 1e300}, 1},
	} {
		if got := JainIndex(c.rates); math.Abs(got-c.want) > 1e-12 {
			t.Errorf("Jain index of %v = %v, want %v", c.rates, got, c.want)
		}
	}
}
