package engine

import (
	"math/rand/v2"
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

// A burst within a window is the peak; the more is outstanding, the longer are the parts.
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

// everySpan is perftest's search (print_report_bw): each post with each later completion.
func everySpan(moments []moment) (ops, ns int64) {
	var posted int64
	for i, from := range moments {
		if from.posted > 0 {
			done := int64(0)
			for j, to := range moments {
				if done += to.done; j > i && to.done > 0 && done > posted && to.t > from.t &&
					(ns == 0 || (done-posted)*ns > ops*(to.t-from.t)) {
					ops, ns = done-posted, to.t-from.t
				}
			}
		}
		posted += from.posted
	}
	return ops, ns
}

func TestPeakOfACountedPhaseIsTheBestOfAllSpans(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	for round := range 300 {
		var p Peak
		p.exact(Limits{Ops: 400}, 1)
		p.start(1000)
		now, posted, done := int64(1000), int64(0), int64(0)
		for done < 400 {
			now += 1 + random.Int64N(int64(10+round*10))
			if n := min(400-posted, 1+random.Int64N(16)); random.IntN(2) == 0 && n > 0 {
				p.Posting(now, n)
				posted += n
			} else if n := min(posted-done, 1+random.Int64N(16)); n > 0 {
				p.count(now, n)
				done += n
			}
		}
		wantOps, wantNs := everySpan(p.moments)
		if ops, ns := p.span(); ns == 0 || ops*wantNs != wantOps*ns {
			t.Fatalf("round %d: %d in %d ns, want %d in %d ns", round, ops, ns, wantOps, wantNs)
		}
	}
}

// Two threads of one window are one stream, as two queue pairs of perftest are.
func TestPeakOfTwoWorkersIsThatOfTheirSum(t *testing.T) {
	var a, b Peak
	for _, p := range []*Peak{&a, &b} {
		p.exact(Limits{Ops: 10}, 1)
		p.start(0)
	}
	a.Posting(10, 10)
	b.Posting(10, 10)
	a.count(110, 10)
	b.count(120, 10)
	a.Merge(&b)
	tp := reports.Throughput{BytesPerSecond: 1}
	a.Report(&tp, 100, 1)
	if tp.PeakOverNs != 110 || int64(tp.PeakBytesPerSecond) != 2000_000_000_000/110 {
		t.Errorf("%+v, want 20 messages of 100 bytes in 110 ns", tp)
	}
}

func TestPeakIsExactUpToPerftestsLimitAlone(t *testing.T) {
	for _, c := range []struct {
		limits Limits
		lanes  int
		want   bool
	}{
		{Limits{Ops: SpanMessages}, 1, true}, {Limits{Ops: SpanMessages + 1}, 1, false}, {Limits{Dur: 1}, 1, false},
		{Limits{Ops: SpanMessages}, 1000, false}, // of memory
	} {
		var p Peak
		if p.exact(c.limits, c.lanes); p.Exact() != c.want {
			t.Errorf("%+v with %d connections: exact %v", c.limits, c.lanes, p.Exact())
		}
	}
}
