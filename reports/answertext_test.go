package reports

import "testing"

func TestCountsOfComparisonsInASentence(t *testing.T) {
	for want, a := range map[string]Answer{
		"": {},
		"1 more difference; 2 of 9 comparisons showed no difference": {Omitted: 1, Comparisons: 9, Undecided: 2},
		"1 of 1 comparison showed a difference":                      {Comparisons: 1},
		"3 of 3 comparisons showed no difference":                    {Comparisons: 3, Undecided: 3},
	} {
		if got := a.CountsNote(); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}
