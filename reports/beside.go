package reports

import (
	"bufio"
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"

	"github.com/rdmaperf/rdmaperf/reports/view"
)

// Counters is what the devices of both sides counted in the measured phase.
type Counters struct {
	Client []DeviceCounters `json:"client,omitempty"`
	Server []DeviceCounters `json:"server,omitempty"`
}

// DeviceCounters are the counters of one port, or with port 0 of the device as a whole, under the system's names:
// readings, or in a result the change. A negative change says that a counter was reset.
type DeviceCounters struct {
	Device   string           `json:"device"`
	Port     int              `json:"port,omitempty"`
	Counters map[string]int64 `json:"counters"`

	// Detail: they say how the work was done, and the text has them on request.
	Detail bool `json:"detail,omitempty"`
	// Process: each process counts for itself.
	Process bool `json:"process,omitempty"`
}

// Name is the device with its port.
func (c *DeviceCounters) Name() string {
	return c.Device + view.When(c.Port != 0, "/"+view.Integer(int64(c.Port)))
}

// Moved lists the counters in the order of their names, or only those that changed.
func (c *DeviceCounters) Moved(all bool) []string {
	return slices.DeleteFunc(slices.Sorted(maps.Keys(c.Counters)),
		func(name string) bool { return !all && c.Counters[name] == 0 })
}

// CounterChanges are the differences of two readings of what both have.
func CounterChanges(before, after []DeviceCounters) []DeviceCounters {
	var out []DeviceCounters
	for _, b := range after {
		i := slices.IndexFunc(before, func(a DeviceCounters) bool { return a.Device == b.Device && a.Port == b.Port })
		if i < 0 {
			continue
		}
		d := DeviceCounters{Device: b.Device, Port: b.Port, Detail: b.Detail, Process: b.Process,
			Counters: map[string]int64{}}
		for name, v := range b.Counters {
			if was, ok := before[i].Counters[name]; ok {
				d.Counters[name] = v - was
			}
		}
		if len(d.Counters) > 0 {
			out = append(out, d)
		}
	}
	return out
}

// Shared tells whether both sides have the device.
func (c *Counters) Shared(d *DeviceCounters) bool {
	in := func(list []DeviceCounters) bool {
		return slices.ContainsFunc(list, func(o DeviceCounters) bool {
			return o.Device == d.Device && o.Port == d.Port
		})
	}
	return !d.Process && in(c.Client) && in(c.Server)
}

type deviceSide struct {
	Side    string
	Devices []DeviceCounters
}

// Sides are the devices of a result with their side.
func (c *Counters) Sides() []deviceSide {
	if c == nil {
		return nil
	}
	return []deviceSide{{"client", c.Client}, {"server", c.Server}}
}

// Values of RawSamples.Set.
const (
	SamplesLatency     = "latency"
	SamplesProbeAlone  = "probe-alone"  // head-of-line
	SamplesProbeLoaded = "probe-loaded" // head-of-line
)

// RawSamples says where the samples of one set are. Count and Dropped together are the Count of its Latency.
type RawSamples struct {
	Set     string `json:"set"`
	File    string `json:"file"`
	Count   int64  `json:"count"`
	Dropped int64  `json:"dropped"` // beyond Limit: only the histogram has them
	Limit   int64  `json:"limit"`
}

// Sample is one latency as it was recorded.
type Sample struct {
	Thread    int   // client worker, from 0; of calls the goroutine, connection by connection
	OffsetNs  int64 // when the operation ended, from the begin of the window
	Ns        int64 // as in the histogram: half of a ping-pong where Result.RoundTrip says so
	ServiceNs int64 // open loop: without the wait for a late start; else 0
}

const samplesHeader = "result,set,thread,offset_ns,latency_ns,service_ns\n"

// SampleWriter writes raw samples as CSV with a header and line feeds:
//
//	result,set,thread,offset_ns,latency_ns,service_ns
//	0,latency,0,5213,4998,
//
// result is the index in the document's results, service_ns is empty where there is none.
type SampleWriter struct {
	w   *bufio.Writer
	row []byte
}

// NewSampleWriter writes the header. Nothing is sure to be in w before Flush.
func NewSampleWriter(w io.Writer) (*SampleWriter, error) {
	s := &SampleWriter{w: bufio.NewWriterSize(w, 1<<16)}
	_, err := s.w.WriteString(samplesHeader)
	return s, sampleError(err)
}

// Write adds one sample of a set of a result.
func (s *SampleWriter) Write(result int, set string, v Sample, open bool) error {
	b := strconv.AppendInt(s.row[:0], int64(result), 10)
	b = append(b, ',')
	b = append(b, set...)
	for _, n := range [...]int64{int64(v.Thread), v.OffsetNs, v.Ns} {
		b = append(b, ',')
		b = strconv.AppendInt(b, n, 10)
	}
	b = append(b, ',')
	if open {
		b = strconv.AppendInt(b, v.ServiceNs, 10)
	}
	s.row = append(b, '\n')
	_, err := s.w.Write(s.row)
	return sampleError(err)
}

// Flush hands everything to the writer.
func (s *SampleWriter) Flush() error { return sampleError(s.w.Flush()) }

func sampleError(err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("write raw samples: %w", err)
}

// Published is a table of somebody else's figures as text. Where anything is Beside, its first column is a size in
// bytes and its second whose figures they are.
type Published struct {
	Title   string     `json:"title"`
	Source  string     `json:"source"`
	Columns []string   `json:"columns"`
	Rows    [][]string `json:"rows"`
	// Beside are figures of ours that stand among them, a row for each size and stack.
	Beside []Beside `json:"beside,omitempty"`
}

// Beside says which of our figures are of the same kind as published ones.
type Beside struct {
	Workload string `json:"workload"`
	Op       string `json:"op"`
	Depth    int    `json:"depth"`
	Figure   string `json:"figure"` // FigureP50 or FigureMbit
	Column   string `json:"column"` // that it stands in
}

// Figures that may be next to published ones.
const (
	FigureP50  = "p50"  // of the latency, in microseconds
	FigureMbit = "mbit" // of the throughput, in 10^6 bits a second
)

// AddPublished adds tables, each once.
func (d *Document) AddPublished(all []Published) {
	for _, p := range all {
		if !slices.ContainsFunc(d.Published, func(o Published) bool { return o.Title == p.Title }) {
			d.Published = append(d.Published, p)
		}
	}
}

// With are its rows with ours among them: behind those of a size one of every stack that measured it, medians of
// repeats.
func (p *Published) With(results []Result) (rows [][]string) {
	if len(p.Beside) == 0 {
		return p.Rows
	}
	for i, r := range p.Rows {
		rows = append(rows, r)
		if i+1 < len(p.Rows) && p.Rows[i+1][0] == r[0] {
			continue
		}
		for _, of := range GroupBy(Pointers(results), func(o *Result) (string, bool) {
			return o.Stack, strconv.FormatInt(o.SizeBytes, 10) == r[0]
		}) {
			if row := p.ours(of.Samples, r[0], of.Key); row != nil {
				rows = append(rows, row)
			}
		}
	}
	return rows
}

// Names tells whether a column has words, not numbers.
func (p *Published) Names(column int) bool {
	return slices.ContainsFunc(p.Rows, func(row []string) bool {
		if column >= len(row) || row[column] == "-" {
			return false
		}
		_, err := strconv.ParseFloat(row[column], 64)
		return err != nil
	})
}

// Has tells whether a row of With is published, and not ours.
func (p *Published) Has(row []string) bool {
	return slices.ContainsFunc(p.Rows, func(r []string) bool { return slices.Equal(r, row) })
}

func (p *Published) ours(results []*Result, size, stack string) []string {
	row, measured := slices.Repeat([]string{"-"}, len(p.Columns)), false
	row[0], row[1] = size, stack
	for _, b := range p.Beside {
		var values []float64
		for _, r := range results {
			if v, ok := b.of(r); ok {
				values = append(values, v)
			}
		}
		if at := slices.Index(p.Columns, b.Column); at > 1 && len(values) > 0 {
			row[at], measured = strconv.FormatFloat(Median(values), 'f', 2, 64), true
		}
	}
	if !measured {
		return nil
	}
	return row
}

func (b *Beside) of(r *Result) (float64, bool) {
	switch {
	case r.Workload != b.Workload || r.Op != b.Op || r.Depth != b.Depth:
	case b.Figure == FigureP50 && r.Latency != nil:
		return r.Latency.P50 / 1000, true
	case b.Figure == FigureMbit && r.Throughput != nil:
		return r.Throughput.BytesPerSecond * 8 / 1e6, true
	}
	return 0, false
}
