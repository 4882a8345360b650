package engine

import (
	"math"
	"slices"
	"time"

	"github.com/rdmaperf/rdmaperf/reports"
)

// SpanMessages is for how many messages a connection the peak is exact, as perftest (perftest_parameters.c).
const SpanMessages = 20000

// mostMoments bounds the memory of exact peaks to 24 MiB a worker.
const mostMoments = 1 << 20

// moment is when operations were about to be posted, or were seen complete.
type moment struct{ t, posted, done int64 }

// exact has the peak of a counted phase looked for in all spans, as far as its moments fit.
func (p *Peak) exact(lim Limits, lanes int) {
	p.moments = nil
	if n := lim.Ops * int64(lanes); lim.Ops > 0 && lim.Ops <= SpanMessages && 2*n <= mostMoments {
		p.moments = make([]moment, 0, 2*n)
	}
}

// Exact tells whether each post is to be told to Posting.
func (p *Peak) Exact() bool { return p != nil && p.moments != nil }

// Posting counts n operations posted after t. Exact must be true.
func (p *Peak) Posting(t, n int64) {
	if n > 0 {
		p.moments = append(p.moments, moment{t: t, posted: n})
	}
}

// span returns the messages and ns of the span from a post to a completion with the highest rate; zeros where nothing
// was kept. Each round finds the span that gains most over the rate of the one before (Dinkelbach, "On nonlinear
// fractional programming", 1967), in whole numbers, so that the rounds end.
func (p *Peak) span() (ops, ns int64) {
	slices.SortStableFunc(p.moments, func(a, b moment) int { return int(a.t - b.t) })
	for rate := 0.0; ; rate = float64(ops) / float64(ns) {
		var posted, done, from, since, most, long int64
		least, gain := math.Inf(1), 0.0
		for _, m := range p.moments {
			if v := float64(posted) - rate*float64(m.t-p.begin); m.posted > 0 && v < least {
				least, from, since = v, posted, m.t
			}
			posted += m.posted
			if done += m.done; m.done == 0 {
				continue
			}
			if v := float64(done) - rate*float64(m.t-p.begin) - least; v > gain && m.t > since && done > from {
				gain, most, long = v, done-from, m.t-since
			}
		}
		if long == 0 || ns > 0 && most*ns <= ops*long {
			return ops, ns
		}
		ops, ns = most, long
	}
}

// reportSpan fills in the exact peak; false where there is none.
func (p *Peak) reportSpan(t *reports.Throughput, size int) bool {
	if !p.Exact() {
		return false
	}
	ops, ns := p.span()
	if ns == 0 {
		return false
	}
	rate := float64(ops) * float64(size) / time.Duration(ns).Seconds()
	t.PeakBytesPerSecond, t.PeakOverNs = max(rate, t.BytesPerSecond), ns
	return true
}
