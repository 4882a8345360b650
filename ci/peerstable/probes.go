package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"regexp"
	"strconv"
	"strings"

	"github.com/rdmaperf/rdmaperf/reports"
)

// values are what one run of a probe measured, by series. Latencies are in ns,
// streams in bytes per second, rates in operations per second.
type values map[string]float64

// probes maps the probe part of a raw file's name to its parser.
var probes = map[string]func([]byte) (values, error){
	"floor-latency": floor,
	"floor-stream":  floor,
	"floor-spread":  floor,
	"run-latency":   document,
	"run-stream":    document,
	"run-rate":      document,
	"fi-latency":    libfabric,
	"ucx-latency":   ucx("latency", 0, 1e3),
	"ucx-stream":    ucx("stream", 4, 1<<20), // ucx_perftest's MB are 2^20 bytes
	"ucx-rate":      ucx("rate", 6, 1),
	"qperf-latency": qperf,
	"qperf-stream":  qperf,
	"record":        goBench,
}

// raw is everything measured: per repeat, by series; and what failed.
type raw struct {
	repeats  map[int]values
	failures []string
}

// readDir parses all files of the directory. A file that cannot be parsed is a
// failure of its probe, not of the table.
func readDir(dir fs.FS) (*raw, error) {
	entries, err := fs.ReadDir(dir, ".")
	if err != nil {
		return nil, err
	}
	r := &raw{repeats: map[int]values{}}
	for _, e := range entries {
		number, probe, _ := strings.Cut(e.Name(), ".")
		repeat, err := strconv.Atoi(number)
		if err != nil {
			continue // logs and binaries beside the results
		}
		b, err := fs.ReadFile(dir, e.Name())
		if err != nil {
			return nil, err
		}
		if name, failed := strings.CutSuffix(probe, ".failed"); failed {
			r.failures = append(r.failures, fmt.Sprintf("repeat %d, %s: %s", repeat, name, bytes.TrimSpace(b)))
			continue
		}
		parse := probes[probe]
		if parse == nil {
			return nil, fmt.Errorf("%s: unknown probe", e.Name())
		}
		v, err := parse(b)
		if err != nil {
			r.failures = append(r.failures, fmt.Sprintf("repeat %d, %s: %v", repeat, probe, err))
		}
		if r.repeats[repeat] == nil {
			r.repeats[repeat] = values{}
		}
		for series, x := range v {
			r.repeats[repeat][series] = x
		}
	}
	return r, nil
}

// floor reads the line of peers.d/floor.c.
func floor(b []byte) (values, error) {
	var f struct {
		Name           string
		P50            float64 `json:"p50_ns"`
		BytesPerSecond float64 `json:"bytes_per_second"`
	}
	if err := json.Unmarshal(b, &f); err != nil {
		return nil, err
	}
	return positive(values{"floor/" + f.Name: math.Max(f.P50, f.BytesPerSecond)})
}

// document reads rdmaperf's result document. A run that ended early, lost an
// operation or did not verify its data has no value here.
func document(b []byte) (values, error) {
	d, err := reports.ReadDocument(bytes.NewReader(b), nil)
	if err != nil {
		return nil, err
	}
	v := values{}
	for _, r := range d.Results {
		switch {
		case r.Errors > 0:
			return v, fmt.Errorf("%s %s %s: %d operations failed", r.Transport, r.Workload, r.Op, r.Errors)
		case !r.Verified:
			return v, fmt.Errorf("%s %s %s: the data was not verified", r.Transport, r.Workload, r.Op)
		case r.Polling != "" && r.Polling != reports.PollingBusy:
			return v, fmt.Errorf("%s %s %s: polling is %s, the goals are for busy", r.Transport, r.Workload, r.Op,
				r.Polling)
		case r.Workload == "latency" && r.Latency != nil && r.SizeBytes == 64:
			v[r.Transport+"/latency"] = r.Latency.P50
		case r.Workload == "throughput" && r.Throughput != nil && r.SizeBytes == 1<<20:
			v[r.Transport+"/stream"] = r.Throughput.BytesPerSecond
		case r.Workload == "throughput" && r.Throughput != nil && r.SizeBytes == 64:
			v[r.Transport+"/rate"] = r.Throughput.OperationsPerSecond
		}
	}
	if d.Error != nil {
		return v, errors.New(d.Error.Message)
	}
	return positive(v)
}

// libfabric reads fi_pingpong's table: the usec/xfer column of the last line.
func libfabric(b []byte) (values, error) {
	lines := strings.Split(strings.TrimSpace(string(b)), "\n")
	head, last := strings.Fields(lines[0]), strings.Fields(lines[len(lines)-1])
	for i, name := range head {
		if name == "usec/xfer" && i < len(last) {
			us, err := strconv.ParseFloat(last[i], 64)
			if err != nil {
				return nil, err
			}
			return positive(values{"libfabric/latency": us * 1e3})
		}
	}
	return nil, errors.New("no usec/xfer column")
}

// ucx reads the last line of ucx_perftest. After "Final:" and the number of
// iterations come the 50th percentile of the last samples, then time, bandwidth
// and message rate, each of the last report and overall. column counts from the
// percentile.
func ucx(series string, column int, unit float64) func([]byte) (values, error) {
	return func(b []byte) (values, error) {
		for line := range strings.Lines(string(b)) {
			f := strings.Fields(line)
			if len(f) == 0 || f[0] != "Final:" {
				continue
			}
			if len(f) != 9 {
				return nil, fmt.Errorf("%d columns, want 9: %q", len(f), line)
			}
			x, err := strconv.ParseFloat(f[2+column], 64)
			if err != nil {
				return nil, err
			}
			return positive(values{"ucx/" + series: x * unit})
		}
		return nil, errors.New(`no "Final:" line`)
	}
}

var (
	qperfLine = regexp.MustCompile(`(?m)^\s*(latency|bw)\s*=\s*([0-9.]+) (\S+)$`)
	qperfUnit = map[string]float64{"ns": 1, "us": 1e3, "ms": 1e6, "bytes/sec": 1, "KB/sec": 1e3, "MB/sec": 1e6,
		"GB/sec": 1e9}
)

// qperf reads "latency = 9.14 us" or "bw = 3.51 GB/sec".
func qperf(b []byte) (values, error) {
	m := qperfLine.FindSubmatch(b)
	if m == nil {
		return nil, errors.New("no latency or bw line")
	}
	unit, known := qperfUnit[string(m[3])]
	if !known {
		return nil, fmt.Errorf("unknown unit %q", m[3])
	}
	x, err := strconv.ParseFloat(string(m[2]), 64)
	if err != nil {
		return nil, err
	}
	series := map[string]string{"latency": "qperf/latency", "bw": "qperf/stream"}[string(m[1])]
	return positive(values{series: x * unit})
}

var benchLine = regexp.MustCompile(`(?m)^BenchmarkRecord(?:-\d+)?\s+\d+\s+([0-9.]+) ns/op`)

// goBench reads the recorder's benchmark.
func goBench(b []byte) (values, error) {
	m := benchLine.FindSubmatch(b)
	if m == nil {
		return nil, errors.New("no BenchmarkRecord line")
	}
	x, err := strconv.ParseFloat(string(m[1]), 64)
	if err != nil {
		return nil, err
	}
	return positive(values{"record/cost": x})
}

// positive refuses what cannot be divided by.
func positive(v values) (values, error) {
	if len(v) == 0 {
		return nil, errors.New("nothing measured")
	}
	for series, x := range v {
		if !(x > 0) || math.IsInf(x, 0) {
			return nil, fmt.Errorf("%s is %v", series, x)
		}
	}
	return v, nil
}
