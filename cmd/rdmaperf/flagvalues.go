package main

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/bench"
	"github.com/rdmaperf/rdmaperf/reports"
)

func unique(list []string) []string {
	var out []string
	for _, s := range list {
		if s = strings.TrimSpace(s); !slices.Contains(out, s) {
			out = append(out, s)
		}
	}
	return out
}

// parseBytes reads a size that must fit an int32, as message lengths do.
func parseBytes(s string) (int, error) {
	n, err := reports.ParseSize(strings.TrimSpace(s))
	if err != nil {
		return 0, err
	}
	if n > 1<<31 {
		return 0, fmt.Errorf("size %s is above the limit of 2G", s)
	}
	return int(n), nil
}

// parseDuration reads "3" (seconds, as perftest), "3s" or "500ms".
func parseDuration(s string) (time.Duration, error) {
	d, err := time.ParseDuration(s)
	if n, e := strconv.ParseUint(s, 10, 31); e == nil {
		d, err = time.Duration(n)*time.Second, nil
	}
	if err != nil || d <= 0 {
		return 0, fmt.Errorf("%q: want a time above 0 such as 3, 3s or 500ms", s)
	}
	return d, nil
}

func parseWarmup(s string) (int64, time.Duration, error) {
	switch s {
	case "auto":
		return 1000, 200 * time.Millisecond, nil
	case "none", "0":
		return 0, 0, nil
	}
	if n, err := strconv.ParseInt(s, 10, 40); err == nil && n > 0 {
		return n, 0, nil
	}
	d, err := time.ParseDuration(s)
	if err != nil || d <= 0 {
		return 0, 0, fmt.Errorf("%q: want auto, none, a number of operations or a time such as 200ms", s)
	}
	return 0, d, nil
}

// parseNice reads --nice. 0 asks for what auto would change.
func parseNice(s string) (int, error) {
	if s == "auto" {
		return bench.NiceAuto, nil
	}
	n, err := strconv.Atoi(s)
	if err != nil || n < 0 || n > bench.MostNice {
		return 0, fmt.Errorf("%q: want auto or a nice value of 0 to %d", s, bench.MostNice)
	}
	if n == 0 {
		return bench.NiceNone, nil
	}
	return n, nil
}

// parsePin reads --pin; CPUs are -1 when there is no pinning.
func parsePin(s string, threads int) (auto bool, client, server int, err error) {
	switch s {
	case "auto":
		return true, -1, -1, nil
	case "none":
		return false, -1, -1, nil
	}
	if _, err := fmt.Sscanf(s+"\n", "%d,%d\n", &client, &server); err != nil || client < 0 || server < 0 || client > 1023 || server > 1023 {
		return false, -1, -1, fmt.Errorf("%q: want auto, none or two CPUs such as 3,2", s)
	}
	if threads > 1 {
		return false, -1, -1, fmt.Errorf("%q: one CPU a side cannot hold %d threads", s, threads)
	}
	return false, client, server, nil
}
