package values

import (
	"slices"
	"testing"
)

func TestSweepsAreListsOrRanges(t *testing.T) {
	for _, c := range []struct {
		in   string
		want []float64
	}{
		{"5", []float64{5}}, {"10, 20,5", []float64{10, 20, 5}}, {"1:3:1", []float64{1, 2, 3}},
		{"1:3.5:1", []float64{1, 2, 3}},
		{"0.1:0.3:0.1", []float64{0.1, 0.2, 0.30000000000000004}}, {"7:7:2", []float64{7}},
		{"", nil}, {"1:2", nil}, {"1:2:3:4", nil}, {"2:1:1", nil}, {"1:2:0", nil}, {"1:2:-1", nil}, {"0", nil},
		{"-1", nil}, {"x", nil},
		{"NaN", nil}, {"Inf", nil}, {"1,1", nil}, {"1:1e9:1", nil}, {"1,,2", nil},
	} {
		got, err := Sweep("rate-sweep", c.in)
		if !slices.Equal(got, c.want) || (err == nil) != (c.want != nil) {
			t.Errorf("%q: %v, %v, want %v", c.in, got, err, c.want)
		}
	}
}
