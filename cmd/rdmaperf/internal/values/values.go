package values

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/rdmaperf/rdmaperf/reports"
)

// Unique is the list without spaces around its words and without repetitions.
func Unique(list []string) []string {
	var out []string
	for _, s := range list {
		if s = strings.TrimSpace(s); !slices.Contains(out, s) {
			out = append(out, s)
		}
	}
	return out
}

// Bytes reads a size that must fit an int32, as message lengths do.
func Bytes(s string) (int, error) {
	n, err := reports.ParseSize(strings.TrimSpace(s))
	if err != nil {
		return 0, err
	}
	if n > 1<<31 {
		return 0, fmt.Errorf("size %s is above the limit of 2G", s)
	}
	return int(n), nil
}

// Sizes reads message sizes, each once and at least 1 byte.
func Sizes(list []string) ([]int, error) {
	var sizes []int
	for _, s := range list {
		n, err := Bytes(s)
		switch {
		case err != nil:
			return nil, err
		case n == 0:
			return nil, fmt.Errorf("sizes start at 1 byte")
		case slices.Contains(sizes, n):
			return nil, fmt.Errorf("size %s is given twice", s)
		}
		sizes = append(sizes, n)
	}
	return sizes, nil
}

// Works reads a comma list of times that may be 0.
func Works(flag, s string) ([]time.Duration, error) {
	var all []time.Duration
	for _, part := range strings.Split(s, ",") {
		d, err := time.ParseDuration(strings.TrimSpace(part))
		if err != nil || d < 0 {
			return nil, Wrong(flag, "%q: want 0 or a time such as 5us", part)
		}
		all = append(all, d)
	}
	return all, nil
}

// Duration reads "3" and "0.5" (seconds, as perftest), "3s" or "500ms".
func Duration(s string) (time.Duration, error) {
	d, err := time.ParseDuration(s)
	if strings.Trim(s, "0123456789.") == "" {
		d, err = time.ParseDuration(s + "s")
	}
	if err != nil || d <= 0 {
		return 0, fmt.Errorf("%q: want a time above 0 such as 3, 0.5, 3s or 500ms", s)
	}
	return d, nil
}
