package claims

import "time"

// What registration is measured by. The device pins pages by io_uring, which every Linux has.
var (
	rCost = &Run{Args: "run --workload register --pattern repeated --arms none,prereg --pages base --offload none " +
		"-s 4K,64K,16M", Slice: 10 * time.Millisecond, Each: true}
	rHuge = &Run{Args: "run --workload register --pattern repeated --arms none --pages base,huge --offload none -s 16M",
		Slice: 20 * time.Millisecond, Each: true}
	rHop = &Run{Args: "run --workload register --pattern repeated --arms none,prereg --pages base --offload none,16us " +
		"-s 4K", Slice: 10 * time.Millisecond, Each: true}
	rLazy = &Run{Args: "run --workload register --pattern new --arms prereg,prereg+lazy --pages base --offload none -s " +
		"16M", Slice: 20 * time.Millisecond, Each: true}
	rSafe = &Run{Args: "conform --transport regcache+mem,regcache+iwarp --only 'acc/*'"}
	rSet  = &Run{Args: "run --workload register --pattern set --arms cache --pages base --offload none -s 64K " +
		"--working-set 32,256 --capacity 64", Slice: 10 * time.Millisecond, Each: true}
	rBlind = &Run{Args: "run --workload register --pattern replaced --arms cache --pages base --offload none -s 64K " +
		"--source auto,none", Slice: 10 * time.Millisecond, Each: true}
	rReduce = &Run{Args: "run --transport iwarp --workload allreduce --ranks 2 --arms none,prereg+lazy -s 1M --buffers " +
		"fresh --algorithm ring", Slice: 10 * time.Millisecond, Each: true}
	rReuse = &Run{Args: "run --transport iwarp --workload allreduce --ranks 2 --arms none,cache,prereg -s 1M " +
		"--buffers fresh,reused --algorithm ring", Slice: 10 * time.Millisecond, Each: true, Rounds: 3}
	rODP = &Run{Args: "run --transport verbs --workload register --pattern new --arms none,odp --pages base " +
		"--offload none -s 1M", Slice: 20 * time.Millisecond, Each: true}
	rThreads = &Run{Args: "run --workload register --pattern threads --arms none,cache --pages base --offload none -s " +
		"64K --register-threads 1,2", Slice: 10 * time.Millisecond, Each: true}
)

var registration = Paper{
	Name:   "registration",
	Title:  "Registration by a light-weight kernel: pre-registered memory and late unmapping",
	Source: "EuroMPI'16, https://doi.org/10.1145/2966884.2966889",
	Claims: []Claim{
		{ID: "R1", Says: "Registering costs a constant and a part for each page, of which huge pages need fewer.",
			Source: "evaluation", Rules: []Rule{
				Growth("register, 16 pages over one", At{rCost, "register.p50", "pin", "arm=none"}, "size", "4K", "64K").AtMost(8).
					Against(At{Where: "size=16M"}),
				Growth("4096 pages over one", At{rCost, "register.p50", "pin", "arm=none"}, "size", "4K", "16M").AtLeast(100).
					Against(At{Where: "arm=prereg"}),
				Ratio("16M of huge pages over base pages", At{rHuge, "register.p50", "pin", "pages!=base"},
					At{Where: "pages=base"}).AtMost(0.67).Against(At{Where: "pages=base"}),
			}},
		{ID: "R2", Says: "What was registered when it was mapped costs a look-up, whatever its size.", Source: "evaluation",
			Published: []string{"up to 100 times less than a registration"}, Rules: []Rule{
				Ratio("4K, pre-registered over not", At{rCost, "register.p50", "pin", "arm=prereg size=4K"},
					At{Where: "arm=none"}).AtMost(0.2).Against(At{Where: "arm=none"}),
				Ratio("16M", At{rCost, "register.p50", "pin", "arm=prereg size=16M"}, At{Where: "arm=none"}).AtMost(0.01).
					Published().Against(At{Where: "arm=none"}),
				Flat("look-ups by size", At{rCost, "register.p50", "pin", "arm=prereg"}, "size", 4, "4K", "64K", "16M").
					Against(At{Where: "arm=none"}),
			}},
		{ID: "R3", Says: "The detour to another kernel costs each registration a constant, and a look-up nothing.",
			Source: "evaluation", Rules: []Rule{
				Ratio("register 4K, with 16 us of detour over without", At{rHop, "register.p50", "pin", "arm=none offload=16µs"},
					At{Where: "offload=none"}).AtLeast(2).Against(At{Where: "arm=prereg"}),
				Ratio("look-up", At{rHop, "register.p50", "pin", "arm=prereg offload=16µs"}, At{Where: "offload=none"}).
					AtMost(1.5).Against(At{Where: "arm=none"}),
			}},
		{ID: "R4", Says: "Late unmapping takes unmapping off the path, within a bound.", Source: "design",
			Rules: []Rule{
				Ratio("unmap 16M, late over at once", At{rLazy, "unmap.p50", "pin", "arm=prereg+lazy"}, At{Where: "arm=prereg"}).
					AtMost(0.01).Against(At{Where: "arm=prereg"}),
				Ratio("bytes deferred, most over bound", At{rLazy, "deferred.most", "pin", "arm=prereg+lazy"},
					At{Figure: "deferred.bound"}),
			}},
		{ID: "R5", Says: "A registration that is kept gives no access that it should not.", Source: "design: safety",
			Rules: []Rule{Pass("access cases through the cache", rSafe),
				Count("uses of pages that were replaced", At{rBlind, "stale", "pin", "source=auto"}).AtMost(0).
					Against(At{Where: "source=none"})}},
		{ID: "R6", Says: "The hit ratio has its knee at the capacity.", Source: "follows from the design", Rules: []Rule{
			Count("hits, 32 buffers and room for 64", At{rSet, "set.hits", "pin", "working_set=32"}).AtLeast(0.99).
				Against(At{Where: "working_set=256"}),
			Count("256 buffers", At{rSet, "set.hits", "pin", "working_set=256"}).AtLeast(0.15).AtMost(0.35).
				Against(At{Where: "working_set=32"}),
		}},
		{ID: "R7", Says: "Without a source of events a cache keeps registrations of memory that a raw system call replaced.",
			Source: "issues of UCX and libfabric", Rules: []Rule{
				Count("uses of the old pages, without a source", At{rBlind, "stale", "pin", "source=none"}).AtLeast(1).
					Against(At{Where: "source=auto"}),
			}},
		{ID: "R8", Says: "All-reduce of fresh buffers gains by pre-registration and late unmapping.", Source: "evaluation",
			Published: []string{"up to 15 % for large messages"}, Rules: []Rule{
				Ratio("1M fresh, prereg+lazy over none", At{rReduce, "total.p50", "iwarp", "buffers=fresh arm=prereg+lazy"},
					At{Where: "arm=none"}).AtMost(0.9).Against(At{Where: "arm=none"}),
				Ratio("prereg", At{rReuse, "total.p50", "iwarp", "buffers=fresh arm=prereg"}, At{Where: "arm=none"}),
				Ratio("cache", At{rReuse, "total.p50", "iwarp", "buffers=fresh arm=cache"}, At{Where: "arm=none"}),
				Ratio("1M reused, prereg over none", At{rReuse, "total.p50", "iwarp", "buffers=reused arm=prereg"},
					At{Where: "arm=none"}),
				Ratio("cache", At{rReuse, "total.p50", "iwarp", "buffers=reused arm=cache"}, At{Where: "arm=none"}),
			}},
		{ID: "R9", Says: "With on-demand paging the first touch is slow, and warmed pages are as fast as pinned ones.",
			Source: "follows from the design", Rules: []Rule{
				Ratio("1M, first use over the second", At{rODP, "use.p50", "", "arm=odp"}, At{Figure: "use_again.p50"}).
					AtLeast(1.5).Against(At{Where: "arm=none"}),
				Ratio("second use, paged over pinned", At{rODP, "use_again.p50", "", "arm=odp"}, At{Where: "arm=none"}).
					AtMost(1.5).Against(At{Figure: "use.p50"}),
			}},
		{ID: "R10", Says: "Hits cost nanoseconds, from several threads, too.", Source: "follows from the design",
			Rules: []Rule{
				Value("a hit and its end, one thread", At{rThreads, "each.ns", "pin", "arm=cache threads=1"}).AtMost(100).
					Against(At{Where: "arm=none"}),
				Value("each of two threads", At{rThreads, "each.ns", "pin", "arm=cache threads=2"}).AtMost(200).
					Against(At{Where: "arm=none"}),
			}},
	},
}
