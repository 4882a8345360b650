package claims

import "time"

var (
	zSame = &Run{Args: "run --transport 'iwarp,iwarp(crc),tcp' --workload latency --op send -s 64",
		Slice: 50 * time.Millisecond}
	zStall = &Run{Args: "run --transport tcp --workload latency --op send -s 64 --rate 1000 --impair stop=300ms",
		Full: "-D 10s", Quick: "-D 3s"}
	zOpen     = &Run{Args: "run --transport tcp --workload latency --op send -s 64 --rate 500", Full: "-D 10s", Quick: "-D 2s"}
	zUnproved = &Run{Args: "run --transport tcp --workload throughput --op write -s 1M -t 1 --verify none",
		Slice: 50 * time.Millisecond}
	zSampled = &Run{Args: "run --transport tcp --workload throughput --op write -s 1M -t 1 --verify sample",
		Slice: 50 * time.Millisecond}
	zProved = &Run{Args: "run --transport tcp --workload throughput --op write -s 1M -t 1 --verify all",
		Slice: 50 * time.Millisecond}
	zAsleep = &Run{Args: "run --transport 'grpc(fused,event)+iwarp,grpc(fused,bp)+iwarp' --workload rpc -s 64",
		Slice: 50 * time.Millisecond}
	zAwake = &Run{Args: "run --awake --transport 'grpc(fused,event)+iwarp,grpc(fused,bp)+iwarp' --workload rpc -s 64",
		Slice: 50 * time.Millisecond}
)

const (
	zSleeps = "grpc(fused,event)+iwarp"
	zPolls  = "grpc(fused,bp)+iwarp"
)

var self = Paper{
	Name:   "self",
	Title:  "rdmaperf about itself",
	Source: "docs/explanation/measuring.md",
	Claims: []Claim{
		{ID: "Z1", Says: "Two stacks that are the same have the same figures.", Source: "comparison by rounds", Rules: []Rule{
			Ratio("p50 of a 64 B send, iwarp(crc) over iwarp, whose default it is", At{zSame, "p50", "iwarp(crc)", ""},
				At{Stack: "iwarp"}).AtLeast(0.95).AtMost(1.05).Against(At{Stack: "tcp"}),
		}},
		{ID: "Z2", Says: "A peer that is stopped for 300 ms is in the longest latencies and not in the median.",
			Source: "open loop, from the intended start", Rules: []Rule{
				Count("longest", At{zStall, "max", "tcp", ""}).AtLeast(250e6).Against(At{Figure: "p50"}),
				Count("median", At{zStall, "p50", "tcp", ""}).AtMost(200e6).Against(At{Figure: "max"}),
			}},
		{ID: "Z3", Says: "What was due is recorded, each once.", Source: "open loop", Rules: []Rule{
			Ratio("completed over due, 500 a second", At{zOpen, "load.completed", "tcp", ""}, At{Figure: "load.due"}).
				AtLeast(0.98).AtMost(1.02).Exact().Against(At{Figure: "load.late"}),
			Ratio("samples over completed", At{zOpen, "samples", "tcp", ""}, At{Figure: "load.completed"}).AtLeast(0.98).
				AtMost(1.02).Exact().Against(At{Figure: "load.late"}),
		}},
		{ID: "Z4", Says: "Comparing a sample of the data costs little beside comparing all of it.",
			Source: "--verify; one message under way, as more of them have a buffer each only where they are compared",
			Rules: []Rule{
				Ratio("1M writes, sample over none", At{zSampled, "bw", "tcp", ""}, At{Run: zUnproved}).AtLeast(0.7).
					Against(At{Run: zProved}),
				Ratio("all over none", At{zProved, "bw", "tcp", ""}, At{Run: zUnproved}),
			}},
		{ID: "Z5", Says: "--awake shortens the wake-ups of stacks that sleep.", Source: "--awake",
			Rules: []Rule{
				Ratio("p50 of a call that sleeps, awake over as it is", At{zAwake, "p50", zSleeps, ""}, At{Run: zAsleep}).
					AtMost(0.95).Against(At{Run: zAsleep}),
				Ratio("of one that polls", At{zAwake, "p50", zPolls, ""}, At{Run: zAsleep}),
			}},
	},
}
