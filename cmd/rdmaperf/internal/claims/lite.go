package claims

import "time"

// A model has a time of its own, without scatter and without rounds.
var (
	lCases = &Run{Args: "conform --transport lite+mem,lite+iwarp --only " +
		"'mem/*,handle/*,call/*,lock/excludes,lock/first-come,lock/not-held'"}
	lMany  = &Run{Args: "run --transport 'model(cx3)+mem,lite+model(cx3)+mem' --workload regions --regions 1,16384 -s 64"}
	lLarge = &Run{Args: "run --transport 'model(cx3)+mem,lite+model(cx3)+mem' --workload regions --total 1,4,64,1024 " +
		"-s 64"}
	lSoft = &Run{Args: "run --transport 'iwarp,lite+iwarp,lite(daemon)+iwarp,lite(daemon,cross)+iwarp' --workload " +
		"latency --op write -s 64 --warmup 5ms", Slice: 30 * time.Millisecond}
	lPin = &Run{Args: "run --workload register -s 4K,64M --pattern new --arms none --pages base --offload none",
		Slice: 20 * time.Millisecond, Each: true}
	lMake   = &Run{Args: "run --transport lite+iwarp --workload regions --make 4K,64M", Round: "-n 200"}
	lUsers  = &Run{Args: "run --transport 'model(cx3)+mem,lite(k=2)+model(cx3)+mem' --workload sharing --users 1,64,1000"}
	lCounts = &Run{Args: "run --transport lite+iwarp --workload rpc -s 64 -n 8000"}
	lCalls  = &Run{Args: "run --transport 'lite+iwarp,lite(rpc=send)+iwarp,lite(rpc=write)+iwarp,grpc(tcp)' --workload " +
		"rpc -s 64 --warmup 5ms", Slice: 35 * time.Millisecond}
	lSizes = &Run{Args: "run --transport 'lite+iwarp,lite(rpc=send)+iwarp,lite(rpc=write)+iwarp,grpc(tcp)' --workload " +
		"rpc -s 64,4K --outstanding 16 --warmup 5ms", Slice: 15 * time.Millisecond}
	// each by itself: the server of a stack that polls takes the CPU of those beside it
	lGapsPolled = &Run{Args: "run --transport lite+iwarp --workload rpc -s 64 --rate-sweep 200,5000 --warmup 5ms",
		Slice: 55 * time.Millisecond}
	lGapsSlept = &Run{Args: "run --transport 'lite(poll=adaptive)+iwarp' --workload rpc -s 64 --rate-sweep 200,5000 " +
		"--warmup 5ms", Slice: 55 * time.Millisecond}
	lDial  = &Run{Args: "run --transport iwarp,lite+iwarp --workload connect", Slice: 25 * time.Millisecond}
	lThink = &Run{Args: "run --transport 'lite+iwarp,lite(poll=adaptive)+iwarp' --workload think --think-time 0,200us",
		Slice: 35 * time.Millisecond}
	lMemory = &Run{Args: "run --transport iwarp,lite+iwarp --workload clients --machines 1,8 -s 4K,64K,1M"}
	lLocks  = &Run{Args: "run --transport lite+iwarp --workload locks --contenders 1,8", Round: "-n 1000"}
	lQoS    = &Run{Args: "run --transport 'lite+iwarp,lite(qos=hwsep)+iwarp,lite(qos=swpri)+iwarp' --workload qos",
		Round: "-D 150ms"}
	lLog   = &Run{Args: "lite log"}
	lWords = &Run{Args: "lite wordcount"}
	lPages = &Run{Args: "lite pagerank"}
	lDSM   = &Run{Args: "lite dsm --accesses 300"}
)

const (
	lNative = "model(cx3)+mem"
	lTier   = "lite+model(cx3)+mem"
	lSWPri  = "lite(qos=swpri)+iwarp"
	lHWSep  = "lite(qos=hwsep)+iwarp"
	lWaits  = "lite(poll=adaptive)+iwarp"
)

var lite = Paper{
	Name:   "lite",
	Title:  "LITE: an indirection tier of named memory and calls",
	Source: "SOSP'17, https://doi.org/10.1145/3132747.3132762",
	Claims: []Claim{
		{ID: "L1", Says: "Nodes join, and share memory by name; a handle that is stale is an error.", Source: "§4.1",
			Rules: []Rule{Pass("regions by name", lCases, "mem/shared-by-name", "handle/*")}},
		{ID: "L2", Says: "What a handle does not permit is refused, and only masters grant and free.", Source: "§4.1, lite.h",
			Rules: []Rule{Pass("permissions and masters", lCases, "mem/password", "mem/read-only", "mem/write-only",
				"mem/atomic-permission", "mem/masters-alone", "mem/grant", "mem/bounds")}},
		{ID: "L3", Says: "A region spans nodes, and an access over its chunks goes to the node of each.", Source: "§4.1",
			Rules: []Rule{Pass("regions over nodes", lCases, "mem/spans-nodes")}},
		{ID: "L4", Says: "Many regions slow native requests down when their keys do not fit the NIC, and LITE's not.",
			Source: "figure of scalability by regions", Rules: []Rule{
				Growth("writes a second, 16384 over 1 regions, native", At{lMany, "rate", lNative, ""}, "regions", "1", "16384").
					AtMost(0.5).Exact().Against(At{Stack: lTier}),
				Growth("LITE", At{lMany, "rate", lTier, ""}, "regions", "1",
					"16384").AtLeast(0.9).Exact().Against(At{Stack: lNative}),
			}},
		{ID: "L5", Says: "Large regions slow native requests down beyond a few MiB, and LITE's not.", Source: "slide 31",
			Curves: []Curve{{"writes of 64 B, million a second by a region's bytes; the slide's axis ends at 6", "region_bytes",
				[]string{"1M", "4M", "64M", "1G"}, 1e6, []Line{{Name: "native", Here: At{lLarge, "rate", lNative, ""}},
					{Name: "LITE", Here: At{lLarge, "rate", lTier, ""}}}}},
			Rules: []Rule{
				Growth("writes a second, 1 GiB over 1 MiB, native", At{lLarge, "rate", lNative, ""}, "region_bytes", "1M", "1G").
					AtMost(0.5).Exact().Against(At{Stack: lTier}),
				Growth("LITE", At{lLarge, "rate", lTier, ""}, "region_bytes", "1M", "1G").AtLeast(0.9).Exact().
					Against(At{Stack: lNative}),
			}},
		{ID: "L6", Says: "The tier costs little, and hiding the crossing to its daemon saves most of that.",
			Source:    "slide 32",
			Published: []string{"user space slightly above kernel space, both slightly above native verbs"}, Rules: []Rule{
				Ratio("p50 of a 64 B write, LITE over native", At{lSoft, "p50", "lite+iwarp", ""}, At{Stack: "iwarp"}).AtMost(1.1).
					Against(At{Stack: "lite(daemon,cross)+iwarp"}),
				Ratio("by a daemon, crossing hidden over not hidden", At{lSoft, "p50", "lite(daemon)+iwarp", ""},
					At{Stack: "lite(daemon,cross)+iwarp"}).AtMost(0.95).Against(At{Stack: "lite(daemon,cross)+iwarp"}),
				Ratio("by a daemon over native", At{lSoft, "p50", "lite(daemon)+iwarp", ""}, At{Stack: "iwarp"}),
			}},
		{ID: "L7", Says: "Registration is avoided: it grows with every page, making a region does not.",
			Source: "figure of registration", Rules: []Rule{
				Growth("pinning 64M over 4K", At{lPin, "register.p50", "pin", ""}, "size", "4K", "64M").AtLeast(100).
					Against(At{lMake, "make_ns", "lite+iwarp", ""}),
				Growth("making a region", At{lMake, "make_ns", "lite+iwarp", ""}, "size", "4K", "64M").AtMost(10).
					Against(At{lPin, "register.p50", "pin", ""}),
			}},
		{ID: "L7b", Says: "Mapping a region by its name, and ending it, do not grow with its size either.",
			Source: "figures of malloc and map by size", Rules: []Rule{
				Growth("mapping, 64M over 4K", At{lMake, "map_ns", "lite+iwarp", ""}, "size", "4K", "64M").AtMost(3).
					Against(At{lPin, "register.p50", "pin", ""}),
				Growth("ending", At{lMake, "end_ns", "lite+iwarp", ""}, "size", "4K", "64M"),
			}},
		{ID: "L8", Says: "Few shared queue pairs reach native rates, and their number does not grow with users.",
			Source: "figure of queue pair sharing", Rules: []Rule{
				Ratio("writes a second of 64 users, 2 queue pairs over one each",
					At{lUsers, "rate", "lite(k=2)+" + lNative, "users=64"}, At{Stack: lNative}).AtLeast(0.9).Exact().
					Against(At{Where: "users=1000", Stack: lNative}),
				Growth("native, 1000 users over 64", At{lUsers, "rate", lNative, ""}, "users", "64", "1000").AtMost(0.5).Exact().
					Against(At{Stack: "lite(k=2)+" + lNative}),
				Growth("queue pairs of 1000 users over 1", At{lUsers, "queue_pairs", "lite(k=2)+" + lNative, ""}, "users", "1",
					"1000").AtMost(1).Exact().Against(At{Stack: lNative}),
			}},
		{ID: "L9", Says: "Calls of every length come back whole, a full ring refuses, and errors have their codes.",
			Source: "lite.h", Rules: []Rule{Pass("calls", lCases, "call/*")}},
		{ID: "L10", Says: "A call is two messages, one each way.", Source: "§5",
			Published: []string{"two writes with immediate"},
			Rules: []Rule{
				Count("messages of the client a call", At{lCounts, "client:messages/op", "lite+iwarp", ""}).AtLeast(0.99).
					AtMost(1.01).Against(At{Figure: "client:credits/op"}),
				Count("of the server", At{lCounts, "server:messages/op", "lite+iwarp", ""}).AtLeast(0.99).AtMost(1.01).
					Against(At{Figure: "server:credits/op"}),
			}},
		{ID: "L11", Says: "The receiver reports the head of a ring once for each quarter of it, and not for each message.",
			Source: "lite.h", Rules: []Rule{
				Count("heads a call", At{lCounts, "server:heads/op", "lite+iwarp", ""}).AtMost(0.01).
					Against(At{Figure: "server:messages/op"}),
			}},
		{ID: "L12", Says: "Calls are near the best of their kind, and far ahead of TCP.", Source: "figures of call latency",
			Rules: []Rule{
				Ratio("p50 of 64 B, LITE over grpc(tcp)", At{lCalls, "p50", "lite+iwarp", ""}, At{Stack: "grpc(tcp)"}).AtMost(0.2).
					Against(At{Stack: "grpc(tcp)"}),
				Ratio("over send and receive", At{lCalls, "p50", "lite+iwarp", ""}, At{Stack: "lite(rpc=send)+iwarp"}).AtMost(1.5).
					Against(At{Stack: "grpc(tcp)"}),
				Ratio("over two writes and polled rings", At{lCalls, "p50", "lite+iwarp", ""}, At{Stack: "lite(rpc=write)+iwarp"}).
					AtMost(1.5).Against(At{Stack: "grpc(tcp)"}),
			}},
		{ID: "L12b", Says: "With many calls outstanding LITE carries as many as its peers, at every size.",
			Source: "figures of call throughput: LITE, two writes, send and receive, FaRM-like", Rules: []Rule{
				Ratio("64 B, 16 outstanding, calls a second, LITE over send and receive",
					At{lSizes, "rate", "lite+iwarp", "size=64"}, At{Stack: "lite(rpc=send)+iwarp"}).AtLeast(0.8).
					Against(At{Stack: "grpc(tcp)"}),
				Ratio("over two writes and polled rings", At{lSizes, "rate", "lite+iwarp", "size=64"},
					At{Stack: "lite(rpc=write)+iwarp"}).AtLeast(0.8).Against(At{Stack: "grpc(tcp)"}),
				Ratio("4K, over send and receive", At{lSizes, "rate", "lite+iwarp", "size=4K"}, At{Stack: "lite(rpc=send)+iwarp"}).
					AtLeast(0.8).Against(At{Stack: "grpc(tcp)"}),
				Ratio("over two writes and polled rings", At{lSizes, "rate", "lite+iwarp", "size=4K"},
					At{Stack: "lite(rpc=write)+iwarp"}).AtLeast(0.8).Against(At{Stack: "grpc(tcp)"}),
			}},
		{ID: "L13", Says: "A caller sleeps in long waits, which frees its CPU and costs a wake-up.",
			Source: "figure of CPU by gap",
			Rules: []Rule{
				Ratio("client's CPU, 200 us of server work, adaptive over polling",
					At{lThink, "client_busy", lWaits, "think=200µs"}, At{Stack: "lite+iwarp"}).AtMost(0.5).
					Against(At{Stack: "lite+iwarp"}),
				Growth("adaptive, 200 us over none", At{lThink, "client_busy", lWaits, ""}, "think", "0s", "200µs").AtMost(0.5).
					Against(At{Stack: "lite+iwarp"}),
				Ratio("time beyond that work, adaptive over polling", At{lThink, "waiting_p50_ns", lWaits, "think=200µs"},
					At{Stack: "lite+iwarp"}),
			}},
		{ID: "L13b", Says: "A call's CPU grows with the gap between calls where callers poll, and not where they sleep.",
			Source: "figure of CPU time a request by the time between two", Rules: []Rule{
				Ratio("CPU of both sides a call, 200 a second, adaptive over polling",
					At{lGapsSlept, "cpu.call", lWaits, "rate=200"}, At{Run: lGapsPolled, Stack: "lite+iwarp"}).AtMost(0.5).
					Against(At{Run: lGapsPolled, Stack: "lite+iwarp"}),
				Ratio("polling, 200 over 5000 a second", At{lGapsPolled, "cpu.call", "lite+iwarp", "rate=200"},
					At{Where: "rate=5000"}).AtLeast(4).Against(At{Run: lGapsSlept, Stack: lWaits}),
				Ratio("adaptive", At{lGapsSlept, "cpu.call", lWaits, "rate=200"}, At{Where: "rate=5000"}),
			}},
		{ID: "L14", Says: "A server has a ring for each client, which is less than receives of the longest message.",
			Source: "figure of memory", Rules: []Rule{
				Growth("server's memory, 8 clients over 1", At{lMemory, "server_bytes", "lite+iwarp", "size=64K"}, "clients",
					"1", "8"),
				Ratio("8 clients of 64 KiB, rings over receives", At{lMemory, "server_bytes", "lite+iwarp", "clients=8 size=64K"},
					At{Stack: "iwarp"}).AtMost(0.5).Exact().Against(At{Stack: "iwarp"}),
			}},
		{ID: "L14b", Says: "With values as various as those of Facebook's stores, up to 1 MiB, rings take a small part of " +
			"receives.",
			Source: "figure of memory by sizes of values; receives must fit the largest", Rules: []Rule{
				Ratio("8 clients of at most 1M, rings over receives", At{lMemory, "server_bytes", "lite+iwarp",
					"clients=8 size=1M"}, At{Stack: "iwarp"}).AtMost(0.1).Exact().Against(At{Stack: "iwarp"}),
				Ratio("of at most 4K", At{lMemory, "server_bytes", "lite+iwarp", "clients=8 size=4K"}, At{Stack: "iwarp"}).Exact(),
			}},
		{ID: "L15", Says: "Memory is set, copied and moved exactly, also over nodes.", Source: "table 1",
			Rules: []Rule{Pass("memset, memcpy and memmove", lCases, "mem/set-and-move")}},
		{ID: "L16", Says: "Locks exclude in order of arrival, and a free one costs about one atomic.", Source: "§7.2",
			Rules: []Rule{
				Pass("locks", lCases, "lock/*"),
				Ratio("a free lock over a fetch-add", At{lLocks, "lock_p50_ns", "lite+iwarp", "contenders=1"},
					At{Figure: "fetch_add_p50_ns"}).AtMost(1.5).Against(At{Figure: "lock_p50_ns", Where: "contenders=8"}),
			}},
		{ID: "L17", Says: "SW-Pri keeps high near what it is alone, and carries more in total than HW-Sep.",
			Source: "figures of QoS", Rules: []Rule{
				Ratio("p99 of high, beside low over alone, SW-Pri", At{lQoS, "high_p99_ns", lSWPri, "at_s=0.055..0.095"},
					At{Where: "at_s=0.105..0.15"}).AtMost(2).Against(At{Stack: "lite+iwarp"}),
				Ratio("bytes of low beside high, SW-Pri over HW-Sep", At{lQoS, "low_bytes", lSWPri, "at_s=0.055..0.095"},
					At{Stack: lHWSep}).AtLeast(1.05).Against(At{Stack: lHWSep}),
				Ratio("reads of high beside low, SW-Pri over HW-Sep", At{lQoS, "high_rate", lSWPri, "at_s=0.055..0.095"},
					At{Stack: lHWSep}),
			}},
		{ID: "L18", Says: "Applications give the answers of one machine.", Source: "§8",
			Published: []string{"lines, of which use LITE: log 330, 36; MapReduce 600, 49; graph 1400, 20; DSM 3000, 45"},
			Rules: []Rule{
				Pass("a log", lLog), Pass("MapReduce", lWords), Pass("PageRank", lPages), Pass("shared memory", lDSM),
			}},
		{ID: "L19", Says: "A node takes longer to join than a queue pair to connect, for all that it shares.",
			Source: "KRCORE (ATC'22), figure 8a, which has LITE's connections beside those of verbs", Rules: []Rule{
				Ratio("connect and read 64 B, LITE over iwarp", At{lDial, "p50", "lite+iwarp", ""}, At{Stack: "iwarp"}).
					AtLeast(1.5).Against(At{Stack: "iwarp"}),
				Value("iwarp", At{lDial, "p50", "iwarp", ""}), Value("LITE", At{lDial, "p50", "lite+iwarp", ""}),
			}},
	},
}
