package claims

import "time"

var (
	sOrder = &Run{Args: "order"}
	sCut   = &Run{Args: "conform --transport 'sched(slice=1K,window=2K)+iwarp' " +
		"--only 'pri/*,rdw/*,rdr/*,snd/*,wim/*,ord/*,fen/*,atm/*,flu/*,lrg/outstanding'"}
	sHOL = &Run{Args: "run --transport iwarp,sched+iwarp --workload hol --op write --hol-arm same-qp --bulk-size 64K,1M " +
		"--bulk-depth 4 --warmup 5ms", Slice: 30 * time.Millisecond}
	sOwnQP = &Run{Args: "run --transport iwarp --workload hol --op write --hol-arm two-qp --bulk-size 1M --bulk-depth 4 " +
		"--warmup 5ms", Slice: 30 * time.Millisecond}
	sFlows = &Run{Args: "run --transport 'sched+iwarp,sched(scope=device)+iwarp' --workload hol --op write " +
		"--hol-arm two-qp --bulk-size 1M --warmup 5ms", Slice: 30 * time.Millisecond}
	sSlices = &Run{Args: "run --transport " +
		"'sched(slice=2K,window=64K)+iwarp,sched(slice=16K,window=64K)+iwarp,sched(slice=16K,window=1M)+iwarp' --workload " +
		"hol --op write --hol-arm same-qp --bulk-size 1M --bulk-depth 4 --warmup 5ms", Slice: 30 * time.Millisecond}
	sWindows = &Run{Args: "run --transport " +
		"'sched(window=64K)+iwarp,sched(window=256K)+iwarp,sched(window=512K)+iwarp,sched(window=1M)+iwarp," +
		"sched(window=4M)+iwarp' --workload hol --op write --hol-arm same-qp --bulk-size 1M --bulk-depth 16 --warmup 5ms",
		Slice: 30 * time.Millisecond, Rounds: 5}
	sBulk = &Run{Args: "run --transport 'iwarp,sched+iwarp,sched(slice=1K,window=4K)+iwarp' --workload throughput " +
		"--op write -s 64K,1M -t 16 --warmup 5ms", Slice: 30 * time.Millisecond}
	sLow = &Run{Args: "run --transport 'sched(strict)+iwarp,sched(drr)+iwarp' --workload starvation --high-load 120",
		Slice: 50 * time.Millisecond}
	sTrain = train("1", 0)
	sEnds  = train("0,4", 3)
)

const (
	sFine  = "sched(slice=2K,window=64K)+iwarp"
	s16K   = "sched(slice=16K,window=64K)+iwarp"
	sWide  = "sched(slice=16K,window=1M)+iwarp"
	sCheap = "sched(slice=1K,window=4K)+iwarp" // work for every KiB
)

var sWindowSizes = []string{"64K", "256K", "512K", "1M", "4M"}

func train(ratios string, rounds int) *Run {
	return &Run{Args: "run --transport sched+iwarp --workload paramserver --tensor-bytes 0.4 --compute-ratio " + ratios +
		" --warmup 1", Slice: 50 * time.Millisecond, Rounds: rounds}
}

var srdma = Paper{
	Name:   "srdma",
	Title:  "sRDMA: a scheduler and slicer inside one queue pair",
	Source: "APNet'23, https://doi.org/10.1145/3600061.3600082",
	Claims: []Claim{
		{ID: "S1", Says: "A small urgent write posted behind a large one on the same queue pair completes first.",
			Source: "abstract", Rules: []Rule{
				Pass("G, posted behind B and more urgent, completes first", sOrder),
				Pass("priorities are accepted, and keep the order of their own class", sCut, "pri/*"),
			}},
		{ID: "S2", Says: "Slicing preserves data, at every size, offset and gather list.", Source: "follows from the design",
			Rules: []Rule{Pass("writes, reads, sends and immediates cut into slices of 1 KiB", sCut, "rdw/*", "rdr/*", "snd/*",
				"wim/*", "lrg/*")}},
		{ID: "S3", Says: "A work request has one completion, with its identifier, length and status; slices have none.",
			Source: "figure of the architecture", Rules: []Rule{Pass("signaled and unsignaled requests in slices of 1 KiB", sCut,
				"ord/*")}},
		{ID: "S4", Says: "Two requests of two slices each are on the wire as B G G B, and complete as G B.",
			Source: "figure of the workflow", Published: []string{"wire B G G B, completions G B"},
			Rules: []Rule{Pass("as published", sOrder)}},
		{ID: "S5", Says: "Head-of-line blocking is reduced: what a probe waits for does not grow with the bulk behind it.",
			Source: "abstract; no figure is open",
			Curves: []Curve{{"probe p50, us by bytes of the bulk ahead", "bulk_size", []string{"64K", "1M"}, 1e3, []Line{
				{Name: "iwarp", Here: At{sHOL, "loaded.p50", "iwarp", ""}},
				{Name: "sched+iwarp", Here: At{sHOL, "loaded.p50", "sched+iwarp", ""}}}}},
			Rules: []Rule{
				Growth("probe p50, 1M over 64K bulk, iwarp", At{sHOL, "loaded.p50", "iwarp", ""}, "bulk_size", "64K", "1M").
					AtLeast(3).Against(At{Stack: "sched+iwarp"}),
				Growth("the same, sched+iwarp", At{sHOL, "loaded.p50", "sched+iwarp", ""}, "bulk_size", "64K", "1M").
					AtMost(2).Against(At{Stack: "iwarp"}),
				Ratio("probe p50 behind 1M, sched+iwarp over iwarp", At{sHOL, "loaded.p50", "sched+iwarp", "bulk_size=1M"},
					At{Stack: "iwarp"}).AtMost(0.1).Against(At{Stack: "iwarp"}),
			}},
		{ID: "S5c", Says: "Flows of other queue pairs that compete for the device do not block a probe either.",
			Source: "competing flows; one scheduler for the device", Rules: []Rule{
				Ratio("probe p50 beside 1M on another QP, one scheduler over one a QP",
					At{sFlows, "loaded.p50", "sched(scope=device)+iwarp", "arm=two-qp"}, At{Stack: "sched+iwarp"}).AtMost(0.5).
					Against(At{Stack: "sched+iwarp"}),
			}},
		{ID: "S6", Says: "Small slices cost throughput and CPU.", Source: "follows from the design", Rules: []Rule{
			Ratio("bulk rate, slices of 2K over 16K", At{sSlices, "alone.bw", sFine, ""}, At{Stack: s16K}).AtMost(0.9).
				Against(At{Stack: s16K}),
			Ratio("CPU a byte beside probes, slices of 2K over 16K", At{sSlices, "cpu.gb", sFine, ""}, At{Stack: s16K}).
				AtLeast(1.1).Against(At{Stack: s16K}),
		}},
		{ID: "S7", Says: "A wider window of outstanding slices costs latency, and gains throughput.",
			Source: "follows from the design", Curves: []Curve{
				{"probe, us by the window's bytes, behind 16 writes of 1M", "window", sWindowSizes, 1e3, []Line{
					{Name: "p50", Here: At{sWindows, "loaded.p50", "sched(window=%)+iwarp", ""}},
					{Name: "p99", Here: At{sWindows, "loaded.p99", "sched(window=%)+iwarp", ""}}}},
				{"bulk, GB/s by the window's bytes", "window", sWindowSizes, 1e9, []Line{
					{Name: "alone", Here: At{sWindows, "alone.bw", "sched(window=%)+iwarp", ""}},
					{Name: "beside probes", Here: At{sWindows, "loaded.bw", "sched(window=%)+iwarp", ""}}}}},
			Rules: []Rule{
				Ratio("probe p50, window of 1M over 64K", At{sSlices, "loaded.p50", sWide, ""}, At{Stack: s16K}).AtLeast(2).
					Against(At{Stack: s16K}),
				Ratio("bulk rate, window of 1M over 64K", At{sSlices, "alone.bw", sWide, ""}, At{Stack: s16K}),
			}},
		{ID: "S8", Says: "Throughput of bulk alone is not less for the slicing.", Source: "abstract: negligible overhead",
			Rules: []Rule{
				Ratio("rate of 64K writes, sched+iwarp over iwarp", At{sBulk, "bw", "sched+iwarp", "size=64K"},
					At{Stack: "iwarp"}).AtLeast(0.97).Against(At{Stack: sCheap}),
				Ratio("of 1M", At{sBulk, "bw", "sched+iwarp", "size=1M"}, At{Stack: "iwarp"}).AtLeast(0.97).
					Against(At{Stack: sCheap}),
			}},
		{ID: "S9", Says: "The CPU that it takes is negligible.", Source: "abstract: negligible overhead", Rules: []Rule{
			Ratio("CPU a byte of 64K writes, sched+iwarp over iwarp", At{sBulk, "cpu.gb", "sched+iwarp", "size=64K"},
				At{Stack: "iwarp"}).AtMost(1.1).Against(At{Stack: sCheap}),
			Ratio("of 1M", At{sBulk, "cpu.gb", "sched+iwarp", "size=1M"}, At{Stack: "iwarp"}).AtMost(1.1).
				Against(At{Stack: sCheap}),
		}},
		{ID: "S10", Says: "It is as good as a queue pair set apart for urgent messages.",
			Source: "motivation", Rules: []Rule{
				Ratio("probe p50 behind 1M, sched+iwarp over a QP of its own on iwarp",
					At{sHOL, "loaded.p50", "sched+iwarp", "bulk_size=1M"}, At{sOwnQP, "loaded.p50", "iwarp", ""}).
					AtMost(1).Against(At{Stack: "iwarp"}),
				Ratio("p99, sched+iwarp over a QP of its own", At{sHOL, "loaded.p99", "sched+iwarp", "bulk_size=1M"},
					At{sOwnQP, "loaded.p99", "iwarp", ""}),
			}},
		{ID: "S11", Says: "A training with a parameter server gains where communication and computation are alike.",
			Source: "evaluation", Published: []string{"up to 54 % (TensorFlow with BytePS)"}, Rules: []Rule{
				Ratio("iteration, priority over fifo, computation as long as communication",
					At{sTrain, "iteration.p50", "sched+iwarp", "arm=priority compute_ratio=1"}, At{Where: "arm=fifo"}).AtMost(0.95).
					Against(At{Where: "arm=fifo"}),
				Ratio("no computation", At{sEnds, "iteration.p50", "sched+iwarp", "arm=priority compute_ratio=0"},
					At{Where: "arm=fifo"}),
				Ratio("four times as long", At{sEnds, "iteration.p50", "sched+iwarp", "arm=priority compute_ratio=4"},
					At{Where: "arm=fifo"}),
			}},
		{ID: "S12", Says: "A low class gets next to nothing by strict priority, and its share by deficit round robin.",
			Source: "follows from the design", Rules: []Rule{
				Value("low class beside 120 % of high, strict", At{sLow, "low.share", "sched(strict)+iwarp", ""}).AtMost(0.1).
					Against(At{Stack: "sched(drr)+iwarp"}),
				Value("drr", At{sLow, "low.share", "sched(drr)+iwarp", ""}).AtLeast(0.15).
					Against(At{Stack: "sched(strict)+iwarp"}),
			}},
		{ID: "S13", Says: "A request that fails has one completion, with its error, and what is behind it is flushed.",
			Source: "follows from the design", Rules: []Rule{Pass("errors in requests of slices of 1 KiB", sCut, "flu/*",
				"rdw/beyond-end*")}},
		{ID: "S14", Says: "Order within a priority, fences and atomics are kept.", Source: "follows from the design",
			Rules: []Rule{Pass("over slices of 1 KiB", sCut, "pri/*", "fen/*", "atm/*")}},
	},
}
