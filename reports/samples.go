package reports

import (
	"bufio"
	"fmt"
	"io"
	"strconv"
)

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
