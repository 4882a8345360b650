package engine

import (
	"testing"
	"time"

	"github.com/rdmaperf/rdmaperf/reports"
)

// steady counts perMilli operations a millisecond, one millisecond after the other.
func steady(p *Peak, from, to, perMilli int64) (operations int64) {
	for ms := from; ms < to; ms++ {
		p.count(ms*1_000_000+1, perMilli)
		operations += perMilli
	}
	return operations
}

func peakOf(p *Peak, operations int64, window time.Duration, outstanding int) *reports.Throughput {
	t := reports.NewThroughput(operations*100, operations, window)
	p.Report(t, 100, outstanding)
	return t
}

// A burst in the middle of a window is the peak; the more is outstanding, the
// longer are the parts that it is looked for in.
func TestPeakIsTheBestPart(t *testing.T) {
	for _, c := range []struct {
		outstanding int
		over        time.Duration
		perMilli    float64
	}{
		{1, 2 * time.Millisecond, 50},
		{6, 8 * time.Millisecond, 50}, // 160 to 168 ms is all burst
		{20, 32 * time.Millisecond, (16*50 + 16*2) / 32.},
	} {
		var p Peak
		p.start(0)
		n := steady(&p, 0, 160, 10)
		n += steady(&p, 160, 176, 50)
		n += steady(&p, 176, 401, 2)
		r := peakOf(&p, n, 400*time.Millisecond, c.outstanding)
		if r.PeakOverNs != int64(c.over) || r.PeakBytesPerSecond != c.perMilli*1e5 {
			t.Errorf("%d outstanding: %v B/s over %d ns, want %v over %v", c.outstanding, r.PeakBytesPerSecond,
				r.PeakOverNs, c.perMilli*1e5, c.over)
		}
	}
}

// A window much longer than the slots folds them, and loses nothing.
func TestPeakFolds(t *testing.T) {
	var p Peak
	p.start(0)
	n := steady(&p, 0, 3000, 4)
	n += steady(&p, 3000, 3008, 40) // one slot of 8 ms
	n += steady(&p, 3008, 4001, 4)
	var sum int64
	for _, s := range p.Slots {
		sum += s
	}
	if sum != n || p.every != 8_000_000 {
		t.Fatalf("%d operations in slots of %d ns, want %d in 8 ms", sum, p.every, n)
	}
	if r := peakOf(&p, n, 4*time.Second, 1); r.PeakBytesPerSecond != 40*1e5 || r.PeakOverNs != 8_000_000 {
		t.Errorf("peak %v over %d ns, want 4e6 over 8 ms", r.PeakBytesPerSecond, r.PeakOverNs)
	}
}

// Workers whose windows ended at different times, and in slots of different length, add up.
func TestPeakMergesWorkers(t *testing.T) {
	for _, longFirst := range []bool{true, false} {
		var short, long Peak
		short.start(0)
		long.start(0)
		n := steady(&short, 0, 100, 10) // slots of 1 ms
		n += steady(&long, 0, 1025, 10) // slots of 4 ms
		sum, other := &short, &long
		if longFirst {
			sum, other = other, sum
		}
		sum.Merge(other)
		r := peakOf(sum, n, 1024*time.Millisecond, 1)
		if r.PeakBytesPerSecond != 20*1e5 || r.PeakOverNs != 4_000_000 {
			t.Errorf("peak %v over %d ns, want 2e6 over 4 ms", r.PeakBytesPerSecond, r.PeakOverNs)
		}
	}
}

// A window too short for two parts has no peak, as perftest has none then.
func TestShortWindowsHaveNoPeak(t *testing.T) {
	var p Peak
	p.start(0)
	n := steady(&p, 0, 2, 10)
	if r := peakOf(&p, n, 1500*time.Microsecond, 1); r.PeakBytesPerSecond != 0 || r.PeakOverNs != 0 {
		t.Errorf("a window of 1.5 ms: %+v, want no peak", r)
	}
	p.start(0)
	n = steady(&p, 0, 100, 1)
	if r := peakOf(&p, n, 100*time.Millisecond, 100); r.PeakOverNs != 0 {
		t.Errorf("100 operations with 100 outstanding: %+v, want no peak", r)
	}
	var none *Peak
	none.Report(&reports.Throughput{}, 1, 1)
}

func TestPeakAllocatesNothing(t *testing.T) {
	var p Peak
	p.start(0)
	at := int64(0)
	if n := testing.AllocsPerRun(1000, func() { at += 7_000_000; p.count(at, 3) }); n != 0 {
		t.Errorf("%v allocations", n)
	}
}
