package main

import (
	"fmt"
	"slices"
	"strings"

	"github.com/rdmaperf/rdmaperf/ci/targets"
	"github.com/rdmaperf/rdmaperf/reports"
)

// latencyOf and streamOf are points of sends.
func latencyOf(set, stack string, size, work int64) key {
	return key{set, stack, "latency", size, 1, work}
}

func streamOf(set, stack string, size int64, depth int, work int64) key {
	return key{set, stack, "throughput", size, depth, work}
}

// scheme50 is a scheme's latencies of a size.
func (m measures) scheme50(stack string, size int64) []float64 {
	return m.all(latencyOf("schemes", stack, size, 0), p50)
}

// byScheme is the ratio of two schemes' latencies of a size.
func (m measures) byScheme(a, b string, size int64) []float64 {
	return m.ratios(latencyOf("schemes", a, size, 0), latencyOf("schemes", b, size, 0), p50)
}

// f2 is shown when every operation has verified latencies and streams.
func (m measures) f2() (string, verdict) {
	var parts []string
	v := shown
	for _, op := range []string{"send", "write", "read"} {
		of := func(f figure) figure {
			return func(r *reports.Result) (float64, bool) {
				if r.Op != op || !r.Verified {
					return 0, false
				}
				return f(r)
			}
		}
		us, mb := m.all(latencyOf("verbs", raw, 64, 0), of(p50)), m.all(streamOf("verbs", raw, 64<<10, 16, 0),
			of(mbits))
		parts = append(parts, fmt.Sprintf("%s %s us at 64 B, %s Gb/s of 64 KiB", op, show(us, "%.2f"),
			show(gigabits(mb), "%.1f")))
		if len(us) == 0 || len(mb) == 0 {
			v = absent
		}
	}
	return strings.Join(parts, "; "), v
}

func gigabits(mb []float64) (gb []float64) {
	for _, x := range mb {
		gb = append(gb, x/1000)
	}
	return gb
}

// copySizes are those at which one copy is held against two.
var copySizes = []int64{1 << 10, 10_000, 64 << 10}

// copies is how many times one copy's streams, or its latency the other way about, are as
// good as those of two.
func (m measures) copies(workload string, size int64) []float64 {
	if workload == "latency" {
		return m.ratios(latencyOf("copies", twoCopies, size, 0), latencyOf("copies", raw, size, 0), p50)
	}
	return m.ratios(streamOf("copies", raw, size, 16, 0), streamOf("copies", twoCopies, size, 16, 0), mbits)
}

// equal is what one copy must be as good as two by, as a ratio that is 1 on a machine
// without scatter. Three in a hundred are arbitrary: what repeats here scatter by.
const equal = 0.97

// f3 is shown when no size's interval goes down to what is not equal, and missed when one
// lies below it whole.
func (m measures) f3() (string, verdict) {
	var parts []string
	v := shown
	for _, w := range []string{"latency", "throughput"} {
		for _, size := range copySizes {
			xs := m.copies(w, size)
			parts = append(parts, fmt.Sprintf("%s %d B %sx", w, size, interval(xs, "%.2f")))
			switch lo, hi := targets.Interval(xs); {
			case len(xs) == 0:
				v = weaker(v, absent)
			case hi < equal:
				v = weaker(v, missed)
			case lo <= equal:
				v = weaker(v, undecided)
			}
		}
	}
	counts, counted := m.counted()
	zero, zeroed := m.byReference()
	return counts + "; " + zero + fmt.Sprintf("; one equal or better, above %g of two copies: ", equal) +
		strings.Join(parts, ", "), weaker(weaker(v, counted), zeroed)
}

// copied is one copy of a payload byte: headers are copied too, so that it is a little more.
const copied = 1.15

// counted is shown where the code that copies counted one copy of what came on the arm of
// one, and two on that of two.
func (m measures) counted() (string, verdict) {
	of := func(stack string, f figure) []float64 { return m.all(streamOf("copies", stack, 64<<10, 16, 0), f) }
	one, two := of(raw, receivedCopies), of(twoCopies, receivedCopies)
	text := fmt.Sprintf("copies of a byte of 64 KiB: received %s and %s, sent %s (%s beside its header, %s into "+
		"lwIP's segment, %s into the ring, which is the wire)",
		show(one, "%.2f"), show(two, "%.2f"), show(of(raw, sentCopies), "%.2f"),
		show(of(raw, copiesBy("octets_framed")), "%.2f"), show(of(raw, copiesBy("tx_copied")), "%.2f"),
		show(of(raw, copiesBy("tx_octets")), "%.2f"))
	v := weaker(weaker(atMost(one, copied), m.above(one, 1)), weaker(atMost(two, 1+copied), m.above(two, 2)))
	return text, v
}

// headers of 20 octets and a CRC, and what is copied of a payload that is short, are all that is
// copied of what is sent by reference; arbitrary.
const headers = 0.1

// byReference is shown where the code that copies counted headers alone.
func (m measures) byReference() (string, verdict) {
	of := func(f figure) []float64 { return m.all(streamOf("zero", byRef, 64<<10, 16, 0), f) }
	copies := of(copiesBy("octets_framed", "tx_copied"))
	var parts []string
	for _, size := range copySizes {
		parts = append(parts, fmt.Sprintf("%d B latency %sx, streams %sx", size,
			interval(m.ratios(latencyOf("zero", byRef, size, 0), latencyOf("zero", raw, size, 0), p50), "%.2f"),
			interval(m.ratios(streamOf("zero", byRef, size, 16, 0), streamOf("zero", raw, size, 16, 0), mbits),
				"%.2f")))
	}
	return fmt.Sprintf("zero on sending, by an lwIP built for it: sent %s (%s beside its header, %s into lwIP's "+
		"segment, %s into the ring), %s by reference; by one copy: %s",
		show(of(sentCopies), "%.2f"), show(of(copiesBy("octets_framed")), "%.2f"),
		show(of(copiesBy("tx_copied")), "%.2f"), show(of(copiesBy("tx_octets")), "%.2f"),
		show(of(copiesBy("tx_referenced")), "%.2f"), strings.Join(parts, ", ")), atMost(copies, headers)
}

// appWork is where models are judged.
const appWork = 5000

// f4 is judged where every busy thread of both processes has a CPU: c1 and c3 have two each.
func (m measures) f4() (string, verdict) {
	lat := func(a, b string) []float64 {
		return m.ratios(latencyOf("threads", a, 64, 0), latencyOf("threads", b, 64, 0), p50)
	}
	stream := func(a string) []float64 {
		return m.ratios(streamOf("threads", a, 1024, 16, appWork), streamOf("threads", raw, 1024, 16, appWork), mbits)
	}
	c2c3, c3c1, s1, s3 := lat(raw, modelC3), lat(modelC3, modelC1), stream(modelC1), stream(modelC3)
	v := weaker(atMost(c2c3, 1), atMost(c3c1, 1))
	v = weaker(v, weaker(m.above(s1, 1), m.above(s3, 1)))
	if v != absent && m.cpus("threads") < 4 {
		v = fewCPUs
	}
	return fmt.Sprintf("latency c2 by c3 %sx, c3 by c1 %sx; streams with 5 us of work, by c2: c1 %sx, c3 %sx, with "+
		"%d CPUs; %s",
		interval(c2c3, "%.2f"), interval(c3c1, "%.2f"), interval(s1, "%.2f"), interval(s3, "%.2f"), m.cpus("threads"),
		m.roles("threads", 1024, 16, appWork)), v
}

// roles is what each thread of both processes took of a window of streams, as counted there,
// and which models are more busy threads than there are CPUs.
func (m measures) roles(set string, size int64, depth int, work int64) string {
	var parts, wanting []string
	cpus := m.cpus(set)
	for _, s := range []struct {
		name, stack, thread string
		busy                int
	}{{"c1", modelC1, "thread of packets", 4}, {"c2", raw, "", 2}, {"c3", modelC3, "thread that places", 4}} {
		k := streamOf(set, s.stack, size, depth, work)
		side := func(all func(*reports.CPU) float64, of func(*reports.Counters) []reports.DeviceCounters) string {
			sum, thread := m.all(k, cpuOf(all)), m.all(k, threadOf(of))
			if s.thread == "" || len(sum) == 0 || len(thread) == 0 {
				return show(sum, "%.2f")
			}
			return fmt.Sprintf("%.2f and %.2f", targets.Median(sum)-targets.Median(thread), targets.Median(thread))
		}
		role := "all in one"
		if s.thread != "" {
			role = "application and " + s.thread
		}
		parts = append(parts, fmt.Sprintf("%s (%s) %s sending, %s receiving", s.name, role,
			side(func(c *reports.CPU) float64 { return c.ClientSeconds },
				func(c *reports.Counters) []reports.DeviceCounters { return c.Client }),
			side(func(c *reports.CPU) float64 { return c.ServerSeconds },
				func(c *reports.Counters) []reports.DeviceCounters { return c.Server })))
		if s.busy > cpus {
			wanting = append(wanting, s.name)
		}
	}
	text := fmt.Sprintf("CPU seconds with %d us of work: %s", work/1000, strings.Join(parts, ", "))
	if cpus > 0 && len(wanting) > 0 {
		text += fmt.Sprintf("; all of %s wants 4 CPUs", strings.Join(wanting, " and "))
	}
	return text
}

// dropWorks are the application's works that drops are shown at; dropDepth and dropSize are
// what ci/softrdma sends.
var dropWorks = []int64{0, 10_000, 50_000}

const dropDepth, dropSize = 64, 1024

// aboutNone of 1000 frames is as good as none; arbitrary.
const aboutNone = 1

// f5 is shown when c2 drops more with the most work than without, at no step less, and c3
// about none at all, each by its interval; one repeat has none, and decides nothing. c3's
// part wants a CPU for every busy thread.
func (m measures) f5() (string, verdict) {
	var parts []string
	v := shown
	lo, hi, median := map[string][]float64{}, map[string][]float64{}, map[string][]float64{}
	for _, s := range []struct{ name, stack string }{{"c1", modelC1}, {"c2", raw}, {"c3", modelC3}} {
		var shares []string
		for _, work := range dropWorks {
			xs := m.all(streamOf("drops", s.stack, dropSize, dropDepth, work), share)
			switch len(xs) {
			case 0:
				v = weaker(v, absent)
			case 1:
				v = weaker(v, undecided)
			}
			l, h := targets.Interval(xs)
			lo[s.name], hi[s.name], median[s.name] = append(lo[s.name], l), append(hi[s.name], h),
				append(median[s.name], targets.Median(xs))
			shares = append(shares, interval(xs, "%.1f"))
		}
		parts = append(parts, s.name+" "+strings.Join(shares, " / "))
	}
	last := len(dropWorks) - 1
	figure := fmt.Sprintf("dropped of 1000 frames at 0 / 10 / 50 us of work: %s, with %d CPUs; %s",
		strings.Join(parts, ", "), m.cpus("drops"), m.roles("drops", dropSize, dropDepth, dropWorks[last]))
	if v != shown {
		return figure, v
	}
	if lo["c2"][last] <= hi["c2"][0] || !slices.IsSorted(median["c2"]) {
		return figure, missed
	}
	switch few := m.cpus("drops") < 4; {
	case slices.Max(hi["c3"]) <= aboutNone:
		return figure, shown
	case few:
		return figure + ": c2 as claimed, c3 has two busy threads a process", fewCPUs
	}
	return figure, missed
}

func (m measures) f6() (string, verdict) {
	var parts []string
	v := shown
	for _, size := range []int64{64, 1000} {
		a, b := m.byScheme(raw, sequential, size), m.byScheme(sequential, kernel, size)
		parts = append(parts, fmt.Sprintf("%d B raw by sequential %sx, sequential by kernel sockets %sx", size,
			interval(a, "%.2f"), interval(b, "%.2f")))
		v = weaker(v, weaker(atMost(a, 1), atMost(b, 1)))
	}
	return strings.Join(parts, "; ") + " (siw: ci/lab/softrdma.sh)", v
}

// f7: the paper's step from 1 KB to 10 KB is 7.7 times for SoftRDMA.
func (m measures) f7() (string, verdict) {
	step := m.ratios(latencyOf("schemes", raw, 10_000, 0), latencyOf("schemes", raw, 1000, 0), p50)
	return fmt.Sprintf("raw %s, %s, %s us at 64, 1000, 10000 B (paper 6.63, 6.80, 52.20); 10000 by 1000 B %sx (paper "+
			"7.7x)", show(m.scheme50(raw, 64), "%.2f"),
			show(m.scheme50(raw, 1000), "%.2f"), show(m.scheme50(raw, 10_000), "%.2f"), interval(step, "%.1f")),
		m.above(step, 2)
}

// above judges a figure that must not be below bound.
func (m measures) above(xs []float64, bound float64) verdict {
	return of(targets.Target{Bound: bound}.JudgeAll(xs))
}

// f8: raw loses its lead over kernel sockets as messages grow, as SoftRDMA's RNIC does.
func (m measures) f8() (string, verdict) {
	var parts []string
	for _, size := range []int64{64, 10_000, 100_000, 500_000} {
		parts = append(parts, fmt.Sprintf("%d B %sx", size, show(m.byScheme(raw, kernel, size), "%.2f")))
	}
	small, large := m.byScheme(raw, kernel, 64), m.byScheme(raw, kernel, 500_000)
	var closes []float64
	for i := range min(len(small), len(large)) {
		closes = append(closes, large[i]/small[i])
	}
	return "raw by kernel sockets: " + strings.Join(parts, ", "), m.above(closes, 1)
}

// f9 has no bound in the paper. A stream at depth 1 is a message at a time, and half a
// round trip each at least.
func (m measures) f9() (string, verdict) {
	var parts []string
	v := figures
	for _, size := range []int64{10_000, 100_000} {
		one, deep := m.all(streamOf("schemes", raw, size, 1, 0), mbits), m.all(streamOf("schemes", raw, size, 16, 0),
			mbits)
		var by []float64
		for i, us := range m.scheme50(raw, size) {
			if i < len(one) {
				by = append(by, one[i]/(float64(size)*8/us))
			}
		}
		parts = append(parts, fmt.Sprintf("%d B %s and %s Gb/s, depth 1 by size/latency %sx", size,
			show(gigabits(one), "%.2f"), show(gigabits(deep), "%.2f"), interval(by, "%.2f")))
		if len(one) == 0 || len(deep) == 0 {
			v = absent
		}
	}
	return "no bound in the paper: figures only: " + strings.Join(parts, "; "), v
}

// f10 judges stalls where the documents have latencies. Documents exist only where every byte was right, as a mismatch
// ends a run.
func (m measures) f10() (string, verdict) {
	at := func(params string) []float64 {
		return m.all(streamOf("loss", strings.TrimSuffix(raw, ")")+params+")", 64<<10, 16, 0),
			func(r *reports.Result) (float64, bool) {
				if !r.Verified {
					return 0, false
				}
				return mbits(r)
			})
	}
	arms := []struct{ name, params string }{{"clean", ""}, {"loss 0.1 %", ",loss=0.001,seed=1"},
		{"1 %", ",loss=0.01,seed=1"}, {"reordered and doubled 1 %", ",dup=0.01,reorder=0.01,seed=1"},
		{"50 to 70 us late", ",delay=50us,jitter=20us,seed=1"}}
	var parts []string
	v := shown
	clean := at("")
	for _, a := range arms {
		xs := at(a.params)
		parts = append(parts, fmt.Sprintf("%s %s", a.name, show(xs, "%.0f")))
		if len(xs) == 0 {
			v = absent
		} else if a.params != "" {
			var by []float64
			for i := range min(len(xs), len(clean)) {
				by = append(by, xs[i]/clean[i])
			}
			v = weaker(v, atMost(by, 1))
		}
	}
	stalls, stalled := m.stalls()
	figure := "Mb/s, every byte compared: " + strings.Join(parts, ", ")
	if xs := m.all(streamOf("lossxdp", strings.TrimSuffix(overXDP, ")")+",loss=0.001,dup=0.01,reorder=0.01,seed=1)",
		64<<10, 16, 0), mbits); len(xs) > 0 {
		figure += "; over xdp, loss 0.1 %, reordered and doubled 1 % " + show(xs, "%.0f")
	} else {
		v = absent
	}
	return figure + "; " + stalls, weaker(v, stalled)
}

// longestStall is what a segment may take that is lost once, and so may its successor: lwIP
// begins with 3 s (LWIP_TCP_RTO_TIME) and looks every 500 ms. The model test of loss in
// softstack/lwip holds it to the same.
const longestStall = 6.5

// stalls looks for the longest wait for one message: of latencies, that are half a round
// trip, where the documents have some over links that lose.
func (m measures) stalls() (string, verdict) {
	longest := 0.0
	for k, results := range m {
		if (k.set != "loss" && k.set != "lossxdp") || k.workload != "latency" ||
			!strings.Contains(k.stack, "stack=raw") {
			continue
		}
		for _, r := range results {
			if r.Latency != nil {
				longest = max(longest, 2*r.Latency.Max/1e9)
			}
		}
	}
	switch {
	case longest == 0:
		return "stalls -", absent
	case longest > longestStall:
		return fmt.Sprintf("longest stall %.2f s, at most %g s wanted", longest, longestStall), missed
	}
	return fmt.Sprintf("longest stall %.2f s of at most %g s", longest, longestStall), shown
}

// f11: what both sides called, a message of 1000 B at depth 16.
func (m measures) f11() (string, verdict) {
	at := func(stack string) []float64 { return m.all(streamOf("schemes", stack, 1000, 16, 0), bothCalls) }
	user, sockets := at(raw), at(kernel)
	return fmt.Sprintf("a message of 1000 B: raw %s, kernel sockets %s calls of both sides", show(user, "%.4f"),
		show(sockets, "%.2f")), atMost(user, 0.001)
}

// bothCalls are the system calls of both sides a message.
func bothCalls(r *reports.Result) (float64, bool) {
	if r.Counters == nil || r.Operations == 0 {
		return 0, false
	}
	return (counted(r.Counters.Client, calls...) + counted(r.Counters.Server, calls...)) / float64(r.Operations), true
}
