package engine

import (
	"math/rand/v2"
	"testing"

	"github.com/rdmaperf/rdmaperf/reports"
)

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

// As many messages as can be are looked through at once.
func BenchmarkPeakOfSpans(b *testing.B) {
	var p Peak
	p.exact(Limits{Ops: SpanMessages}, 1)
	p.start(0)
	for i := range int64(SpanMessages) {
		p.Posting(i*1000, 1)
		p.count(i*1000+500+i*i%977, 1)
	}
	for b.Loop() {
		p.span()
	}
}
