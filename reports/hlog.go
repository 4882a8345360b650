package reports

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"strconv"
	"strings"
	"unicode"

	"github.com/HdrHistogram/hdrhistogram-go"
)

// hgrmTicks is the number of lines per halving of the distance to 100 %, the
// default of HdrHistogram's own tools.
const hgrmTicks = 5

// latencySeries is one set of samples of a document with a name of its own.
type latencySeries struct {
	name    string // file name without extension, unique in the document
	tag     string // transport/op/size, or longer; without commas and spaces
	result  *Result
	latency *Latency
}

// allSeries lists the sets of samples of all results, in order. Results that
// differ in nothing that the name says, such as repeats, get a number.
func allSeries(d *Document) []latencySeries {
	var all []latencySeries
	taken := map[string]bool{}
	for i := range d.Results {
		r := &d.Results[i]
		for _, part := range resultSeries(r) {
			s := latencySeries{tag: seriesTag(r, part.what), result: r, latency: part.latency}
			base := seriesName(r, part.what)
			s.name = base
			for n := 2; taken[s.name]; n++ {
				s.name = base + "-" + strconv.Itoa(n)
			}
			taken[s.name] = true
			all = append(all, s)
		}
	}
	return all
}

// seriesPart is one set of samples of a result; what is empty for the raw one.
type seriesPart struct {
	what    string
	latency *Latency
}

func resultSeries(r *Result) []seriesPart {
	var parts []seriesPart
	if r.Latency != nil {
		parts = append(parts, seriesPart{"", r.Latency})
	}
	if r.LatencyCorrected != nil {
		parts = append(parts, seriesPart{"corrected", r.LatencyCorrected})
	}
	if r.LatencyService != nil {
		parts = append(parts, seriesPart{"service", r.LatencyService})
	}
	if ps := r.ParamServer; ps != nil {
		parts = append(parts, seriesPart{"iteration", &ps.Iteration})
	}
	if k := r.KV; k != nil {
		for i := range k.Operations {
			o := &k.Operations[i]
			parts = append(parts, seriesPart{o.Op, &o.Latency}, seriesPart{o.Op + "-store", &o.Store})
		}
	}
	if h := r.HOL; h != nil {
		parts = append(parts, seriesPart{"probe-alone", &h.ProbeAlone}, seriesPart{"probe-loaded", &h.ProbeLoaded})
	}
	return parts
}

func transportOf(r *Result) string {
	if r.Transport != "" {
		return r.Transport
	}
	return r.Stack
}

// seriesMore is what a name or a tag says beyond the usual: the offered load, the
// QPs of a head-of-line measurement, the kind of samples, the repeat.
func seriesMore(r *Result, what string) []string {
	var more []string
	if r.Rate > 0 {
		more = append(more, "rate"+strconv.FormatFloat(r.Rate, 'f', -1, 64))
	}
	if r.HOL != nil && r.HOL.Arm != "" {
		more = append(more, r.HOL.Arm)
	}
	if ps := r.ParamServer; ps != nil {
		more = append(more, ps.Model, ps.Arm, "ratio"+number(ps.ComputeRatio, -1))
	}
	switch {
	case r.KV != nil:
		more = append(more, "ycsb", r.KV.Mix)
	case r.RPC != nil:
		more = append(more, r.RPC.Call)
	}
	if what != "" {
		more = append(more, what)
	}
	if r.Repeat > 0 {
		more = append(more, "repeat"+strconv.Itoa(r.Repeat))
	}
	return more
}

// seriesTag is the tag of a log line. The format ends a tag at a comma.
func seriesTag(r *Result, what string) string {
	tag := strings.Join(append([]string{transportOf(r), r.Op, FormatSize(r.SizeBytes)}, seriesMore(r, what)...), "/")
	return strings.Map(func(c rune) rune {
		if c == ',' || unicode.IsSpace(c) {
			return '_'
		}
		return c
	}, printable(tag))
}

// seriesName keeps what every file system takes: letters, digits, dash, dot.
func seriesName(r *Result, what string) string {
	parts := append([]string{r.Workload, transportOf(r), r.Op, FormatSize(r.SizeBytes)}, seriesMore(r, what)...)
	name := strings.Map(func(c rune) rune {
		switch {
		case c >= 'a' && c <= 'z', c >= 'A' && c <= 'Z', c >= '0' && c <= '9', c == '-', c == '.':
			return c
		}
		return '_'
	}, strings.Join(parts, "-"))
	return strings.TrimLeft(name, ".-")
}

// WriteHistogramLog writes every set of samples of the document that carries its
// histogram as one line of an HdrHistogram interval log, format 1.3 with V2
// payloads, which HistogramLogReader of any language reads. The tag of a line is
// transport/op/size, and for other samples than the raw ones their kind. Every
// interval begins at the start of the run, because the document does not say
// when a point began; its length is the measured window. Values are ns; the
// column Interval_Max is ms, as everywhere.
func WriteHistogramLog(w io.Writer, d *Document) error {
	var all []latencySeries
	for _, s := range allSeries(d) {
		if s.latency.HDR != "" {
			all = append(all, s)
		}
	}
	b, err := encodeLog(d, all)
	if err != nil {
		return err
	}
	if _, err := w.Write(b); err != nil {
		return fmt.Errorf("write histogram log: %w", err)
	}
	return nil
}

func encodeLog(d *Document, series []latencySeries) ([]byte, error) {
	var out bytes.Buffer
	log := hdrhistogram.NewHistogramLogWriter(&out)
	start := d.Started.UnixMilli()
	base := start / 1000 * 1000 // the header holds whole seconds
	log.SetBaseTime(base)
	err := errors.Join(
		log.OutputComment("[rdmaperf "+printable(d.Environment.Version)+", values in nanoseconds]"),
		log.OutputLogFormatVersion(), log.OutputStartTime(start), log.OutputBaseTime(base), log.OutputLegend())
	for _, s := range series {
		h, e := s.latency.Histogram()
		if e != nil {
			return nil, fmt.Errorf("write histogram log: %s: %w", s.tag, e)
		}
		h.SetTag(s.tag)
		h.SetStartTimeMs(start)
		h.SetEndTimeMs(start + s.result.DurationNs/1e6)
		err = errors.Join(err, log.OutputIntervalHistogram(h))
	}
	if err != nil {
		return nil, fmt.Errorf("write histogram log: %w", err)
	}
	return out.Bytes(), nil
}

// WriteHistogramPercentiles writes the percentile distribution of one set of
// samples as HdrHistogram's plotters read it (.hgrm), values in microseconds.
// Its mean, deviation and maximum rest on the histogram, so that they differ
// from the exact ones of the Latency by up to 0.1 %.
func WriteHistogramPercentiles(w io.Writer, l *Latency) error {
	h, err := l.Histogram()
	if err != nil {
		return err
	}
	if _, err := h.PercentilesPrint(w, hgrmTicks, 1000); err != nil {
		return fmt.Errorf("write percentile distribution: %w", err)
	}
	return nil
}

// WriteHistogramFiles writes NAME.hlog and NAME.hgrm into the directory, which
// must exist, for every set of samples that carries its histogram, and returns
// the names without extension. A reader never sees a part of a file.
func WriteHistogramFiles(dir string, d *Document) ([]string, error) {
	var names []string
	for _, s := range allSeries(d) {
		if s.latency.HDR == "" {
			continue
		}
		log, err := encodeLog(d, []latencySeries{s})
		if err != nil {
			return names, err
		}
		var hgrm bytes.Buffer
		if err := WriteHistogramPercentiles(&hgrm, s.latency); err != nil {
			return names, fmt.Errorf("%s: %w", s.tag, err)
		}
		path := filepath.Join(dir, s.name)
		if err := errors.Join(writeFileAtomic(path+".hlog", log), writeFileAtomic(path+".hgrm", hgrm.Bytes())); err != nil {
			return names, fmt.Errorf("write histogram %s: %w", path, err)
		}
		names = append(names, s.name)
	}
	return names, nil
}
