package main

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"math"
	"strconv"
	"strings"

	"github.com/rdmaperf/rdmaperf/reports"
)

// probe says what one raw file measured.
type probe struct {
	device, test string
	size         int64
}

// latency says whether the probe's value is a latency in ns; else it is a rate in
// operations per second.
func (p probe) latency() bool { return strings.HasSuffix(p.test, "_lat") }

// raw holds the values by probe, tool and repeat.
type raw struct {
	values map[probe]map[string]map[int]float64
	// periods are of latencies the mean times from post to post, in ns and halved as
	// the values are: what perftest calls a latency.
	periods  map[probe]map[string]map[int]float64
	failures []string
	whole    map[probe]map[string]map[int]float64 // values of latencies that no stops are in, nil for none
}

// Tools, as names of files have them. verified is rdmaperf with its data compared, adaptive
// with adaptive polling; perftest has neither.
const (
	perftestTool = "perftest"
	busyTool     = "rdmaperf"
	verifiedTool = "verified"
	adaptiveTool = "adaptive"
)

// byTool makes an empty row of values or periods.
func byTool() map[string]map[int]float64 {
	return map[string]map[int]float64{perftestTool: {}, busyTool: {}, verifiedTool: {}, adaptiveTool: {}}
}

// periodsOf takes the periods of o's probes instead of its own, and keeps their values.
func (r *raw) periodsOf(o *raw) {
	r.whole = o.values
	maps.Copy(r.periods, o.periods)
	r.failures = append(r.failures, o.failures...)
}

// readDir parses all files of the directory. A file that cannot be parsed is a
// failure of its probe, not of the table.
func readDir(dir fs.FS) (*raw, error) {
	entries, err := fs.ReadDir(dir, ".")
	if err != nil {
		return nil, err
	}
	r := &raw{values: map[probe]map[string]map[int]float64{}, periods: map[probe]map[string]map[int]float64{}}
	for _, e := range entries {
		name, failed := strings.CutSuffix(e.Name(), ".failed")
		p, tool, repeat, err := parseName(name)
		if err != nil {
			return nil, err
		}
		b, err := fs.ReadFile(dir, e.Name())
		if err != nil {
			return nil, err
		}
		if r.values[p] == nil {
			r.values[p], r.periods[p] = byTool(), byTool()
		}
		x, err := 0.0, errors.New(string(bytes.TrimSpace(b)))
		switch {
		case failed:
		case tool == perftestTool:
			x, err = perftest(b, p)
		case tool == adaptiveTool:
			x, err = document(b, p, reports.PollingAdaptive, false)
		default:
			x, err = document(b, p, reports.PollingBusy, tool == verifiedTool)
		}
		if err != nil {
			r.failures = append(r.failures, fmt.Sprintf("%s: %v", name, err))
			continue
		}
		r.values[p][tool][repeat] = x
		if p.latency() {
			r.periods[p][tool][repeat] = period(tool, b)
		}
	}
	return r, nil
}

// parseName reads REPEAT.TOOL.DEVICE.TEST.SIZE.
func parseName(name string) (p probe, tool string, repeat int, err error) {
	f := strings.Split(name, ".")
	if len(f) != 5 || byTool()[f[1]] == nil || !strings.HasSuffix(f[3], "_lat") && !strings.HasSuffix(f[3], "_bw") {
		return p, "", 0, fmt.Errorf("file %q: want REPEAT.TOOL.DEVICE.TEST.SIZE", name)
	}
	repeat, err = strconv.Atoi(f[0])
	if err != nil {
		return p, "", 0, fmt.Errorf("file %q: repeat: %w", name, err)
	}
	size, err := strconv.ParseInt(f[4], 10, 64)
	if err != nil || size < 1 {
		return p, "", 0, fmt.Errorf("file %q: size %q: want a positive number", name, f[4])
	}
	return probe{device: f[2], test: f[3], size: size}, f[1], repeat, nil
}

// Columns of perftest's tables, as its header names them.
const (
	columnSize    = "#bytes"
	columnTypical = "t_typical[usec]"
	columnMean    = "t_avg[usec]"
	columnAverage = "BW average[MB/sec]"
	columnRate    = "MsgRate[Mpps]"
)

// perftest reads the one row of a table of perftest: the median of a latency test, the
// rate of a bandwidth test. Its MB are 2^20 bytes.
func perftest(b []byte, p probe) (float64, error) {
	value, err := onlyRow(b)
	if err != nil {
		return 0, err
	}
	if got := value[columnSize]; got != float64(p.size) {
		return 0, fmt.Errorf("perftest: row of %v bytes, want %d", got, p.size)
	}
	switch {
	case p.latency():
		return positive("perftest", value[columnTypical]*1e3)
	case p.size < 4096:
		return positive("perftest", value[columnRate]*1e6)
	default:
		return positive("perftest", value[columnAverage]*(1<<20)/float64(p.size))
	}
}

// period is the mean time from post to post of a latency that was read before: 0 when
// it is not there.
func period(tool string, b []byte) float64 {
	if tool == perftestTool {
		value, _ := onlyRow(b)
		return value[columnMean] * 1e3
	}
	d, err := reports.ReadDocument(bytes.NewReader(b), nil)
	if err != nil || len(d.Results) != 1 || d.Results[0].Operations <= 0 {
		return 0
	}
	r := d.Results[0]
	whole := float64(r.DurationNs) / float64(r.Operations)
	if r.RoundTrip == reports.RoundTripHalf {
		return whole / 2
	}
	return whole
}

// onlyRow gives the numbers of the one row of a table.
func onlyRow(b []byte) (map[string]float64, error) {
	var header, row string
	for line := range strings.Lines(string(b)) {
		switch line = strings.TrimSpace(line); {
		case strings.HasPrefix(line, columnSize):
			header = line
		case header != "" && line != "" && line[0] >= '0' && line[0] <= '9':
			if row != "" {
				return nil, errors.New("perftest: more than one row, want one size")
			}
			row = line
		}
	}
	if row == "" {
		return nil, errors.New("perftest: no row of results")
	}
	return cells(header, row)
}

// cells gives the numbers of a row by their columns. Names of columns have blanks
// inside, but only after "BW" and before "percentile".
func cells(header, row string) (map[string]float64, error) {
	names := strings.Fields(strings.NewReplacer("BW ", "BW_", "% percentile", "%_percentile").Replace(header))
	fields := strings.Fields(row)
	if len(names) != len(fields) {
		return nil, fmt.Errorf("perftest: %d columns and %d numbers: %q", len(names), len(fields), row)
	}
	value := map[string]float64{}
	for i, name := range names {
		name = strings.Replace(name, "BW_", "BW ", 1)
		x, err := strconv.ParseFloat(fields[i], 64)
		switch name {
		case columnSize, columnTypical, columnMean, columnAverage, columnRate:
			if err != nil {
				return nil, fmt.Errorf("perftest: column %s: %w", name, err)
			}
			value[name] = x
		}
	}
	return value, nil
}

// document reads rdmaperf's result document, which must hold the probe's point alone,
// polled and verified in the way that the table is going to say.
func document(b []byte, p probe, polling string, verified bool) (float64, error) {
	d, err := reports.ReadDocument(bytes.NewReader(b), nil)
	switch {
	case err != nil:
		return 0, err
	case d.Error != nil:
		return 0, fmt.Errorf("rdmaperf: %s", d.Error.Message)
	case len(d.Results) != 1:
		return 0, fmt.Errorf("rdmaperf: %d results, want one", len(d.Results))
	}
	r := d.Results[0]
	switch {
	case r.Errors > 0:
		return 0, fmt.Errorf("rdmaperf: %d operations failed", r.Errors)
	case r.SizeBytes != p.size:
		return 0, fmt.Errorf("rdmaperf: point of %d bytes, want %d", r.SizeBytes, p.size)
	case r.Polling != polling:
		return 0, fmt.Errorf("rdmaperf: polling %q, want %s", r.Polling, polling)
	case r.Verified != verified:
		return 0, fmt.Errorf("rdmaperf: verified %v, want %v", r.Verified, verified)
	case p.latency() && r.Latency != nil:
		return positive("rdmaperf", r.Latency.P50)
	case !p.latency() && r.Throughput != nil:
		return positive("rdmaperf", r.Throughput.OperationsPerSecond)
	}
	return 0, fmt.Errorf("rdmaperf: a result of workload %s is no %s", r.Workload, p.test)
}

// positive refuses what cannot be divided by.
func positive(tool string, x float64) (float64, error) {
	if !(x > 0) || math.IsInf(x, 0) {
		return 0, fmt.Errorf("%s: the value is %v", tool, x)
	}
	return x, nil
}
