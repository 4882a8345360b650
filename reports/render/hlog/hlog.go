// Package hlog writes the histograms of results in the files of HdrHistogram: .hlog and .hgrm.
package hlog

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

	"github.com/rdmaperf/rdmaperf/reports"
	"github.com/rdmaperf/rdmaperf/reports/view"
)

// hgrmTicks is the number of lines per halving of the distance to 100 %, the default of HdrHistogram's own tools.
const hgrmTicks = 5

type latencySeries struct {
	name    string // file name without extension, unique in the document
	tag     string // transport/op/size, or longer; without commas and spaces
	result  *reports.Result
	latency *reports.Latency
}

// allSeries lists the sets of samples of all results, in order, with numbers where names would be equal.
func allSeries(d *reports.Document) []latencySeries {
	var all []latencySeries
	taken := map[string]bool{}
	for _, r := range reports.Pointers(d.Results) {
		for _, part := range r.Distributions() {
			s := latencySeries{tag: seriesTag(r, part.Name), result: r, latency: part.Latency}
			base := seriesName(r, part.Name)
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

// seriesMore is the offered load, the dimensions, the distribution and the repeat.
func seriesMore(r *reports.Result, what string) []string {
	more := []string{view.When(r.Rate > 0, "rate"+reports.Offered(r))}
	for _, d := range r.Dims {
		_, value := d.Short()
		more = append(more, value)
	}
	more = append(more, what, view.When(r.Repeat > 0, "repeat"+strconv.Itoa(r.Repeat)))
	return view.Only(more, func(part string) bool { return part != "" })
}

// seriesTag is the tag of a log line. The format ends a tag at a comma.
func seriesTag(r *reports.Result, what string) string {
	tag := strings.Join(append([]string{reports.TransportOf(r), r.Op, reports.FormatSize(r.SizeBytes)},
		seriesMore(r, what)...), "/")
	return strings.Map(func(c rune) rune {
		if c == ',' || unicode.IsSpace(c) {
			return '_'
		}
		return c
	}, view.Printable(tag))
}

// seriesName keeps what every file system takes: letters, digits, dash, dot.
func seriesName(r *reports.Result, what string) string {
	parts := append([]string{r.Workload, reports.TransportOf(r), r.Op, reports.FormatSize(r.SizeBytes)},
		seriesMore(r, what)...)
	name := strings.Map(func(c rune) rune {
		switch {
		case c >= 'a' && c <= 'z', c >= 'A' && c <= 'Z', c >= '0' && c <= '9', c == '-', c == '.':
			return c
		}
		return '_'
	}, strings.Join(parts, "-"))
	return strings.TrimLeft(name, ".-")
}

// encodeLog is one line of an HdrHistogram interval log, format 1.3 with V2 payloads. The interval begins when its
// window did, else with the run. Values are ns; the column Interval_Max is ms, as everywhere.
func encodeLog(d *reports.Document, s latencySeries) ([]byte, error) {
	h, err := s.latency.Histogram()
	if err != nil {
		return nil, fmt.Errorf("write histogram log: %s: %w", s.tag, err)
	}
	var out bytes.Buffer
	log := hdrhistogram.NewHistogramLogWriter(&out)
	start := d.Started.UnixMilli()
	base := start / 1000 * 1000 // the header holds whole seconds
	log.SetBaseTime(base)
	err = errors.Join(
		log.OutputComment("[rdmaperf "+view.Printable(d.Environment.Version)+", values in nanoseconds]"),
		log.OutputLogFormatVersion(), log.OutputStartTime(start), log.OutputBaseTime(base), log.OutputLegend())
	remark := func(text string) { err = errors.Join(err, log.OutputComment("["+s.tag+": "+text+"]")) }
	if n := s.latency.Unfinished; n > 0 {
		remark(fmt.Sprintf("%d of %d samples are lower bounds, and so are %s", n, s.latency.Count,
			strings.Join(s.latency.AtLeast, " ")))
	}
	if n := s.result.Disturbance; !n.Quiet() {
		remark(view.Printable(n.String()))
	}
	if v := s.result.Verification; v != nil {
		remark(v.String())
	}
	if o := s.result.OpenLoop; o != nil {
		remark(o.String())
	}
	h.SetTag(s.tag)
	from := start
	if !s.result.Started.IsZero() {
		from = s.result.Started.UnixMilli()
	}
	h.SetStartTimeMs(from)
	h.SetEndTimeMs(from + s.result.DurationNs/1e6)
	if err = errors.Join(err, log.OutputIntervalHistogram(h)); err != nil {
		return nil, fmt.Errorf("write histogram log: %w", err)
	}
	return out.Bytes(), nil
}

// WritePercentiles writes a distribution as HdrHistogram's plotters read it (.hgrm), in microseconds. Its mean,
// deviation and maximum are off by up to 0.1 %.
func WritePercentiles(w io.Writer, l *reports.Latency) error {
	h, err := l.Histogram()
	if err != nil {
		return err
	}
	_, err = h.PercentilesPrint(w, hgrmTicks, 1000)
	if err == nil && l.Unfinished > 0 {
		_, err = fmt.Fprintf(w, "#[Unfinished = %d of the samples are lower bounds, and so are %s]\n", l.Unfinished,
			strings.Join(l.AtLeast, " "))
	}
	if err != nil {
		return fmt.Errorf("write percentile distribution: %w", err)
	}
	return nil
}

// WriteFiles writes NAME.hlog and NAME.hgrm into the directory, which must exist, for every set of samples with a
// histogram, and returns the names. A reader never sees a part of a file.
func WriteFiles(dir string, d *reports.Document) ([]string, error) {
	var names []string
	for _, s := range allSeries(d) {
		if s.latency.HDR == "" {
			continue
		}
		log, err := encodeLog(d, s)
		if err != nil {
			return names, err
		}
		var hgrm bytes.Buffer
		if err := WritePercentiles(&hgrm, s.latency); err != nil {
			return names, fmt.Errorf("%s: %w", s.tag, err)
		}
		path := filepath.Join(dir, s.name)
		if err := errors.Join(reports.WriteFileAtomic(path+".hlog", log),
			reports.WriteFileAtomic(path+".hgrm", hgrm.Bytes())); err != nil {
			return names, fmt.Errorf("write histogram %s: %w", path, err)
		}
		names = append(names, s.name)
	}
	return names, nil
}
