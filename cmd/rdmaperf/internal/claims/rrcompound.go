package claims

import "time"

var (
	cCases   = &Run{Args: "conform --transport 'grpc(dropin)+iwarp,grpc(fused)+iwarp' --only 'call/*,interop/*,peer/*'"}
	cTCPCase = &Run{Args: "conform --transport 'grpc(dropin)+iwarp' --only chan/without-rdma"}
	cRing    = &Run{Args: "conform --transport 'grpc(dropin,ring=16K)+iwarp,grpc(fused,ring=16K)+iwarp' " +
		"--only call/far-above-the-ring,call/unread-stream,interop/large-unary,chan/large-messages"}
	cStream = modes("stream", "1", 0)
	cUnary  = modes("unary", "1", 0)
	cMany   = modes("stream", "64", 0)
	// for curves alone
	cStreams = modes("stream", "16,64", 3)
	cUnaries = modes("unary", "16,64", 3)
	// each by itself: a stack that polls costs those beside it
	cIdleBP    = &Run{Args: "run --transport 'grpc(dropin,bp)+iwarp' --workload rpc -s 32 -n 1000"}
	cIdleBPEV  = &Run{Args: "run --transport 'grpc(dropin)+iwarp' --workload rpc -s 32 -n 1000"}
	cIdleEvent = &Run{Args: "run --transport 'grpc(dropin,event)+iwarp' --workload rpc -s 32 -n 1000"}
	cBusy      = &Run{Args: "run --transport 'grpc(fused,busy=0s)+iwarp,grpc(fused)+iwarp' --workload rpc -s 32 " +
		"--response 8 --warmup 5ms", Slice: 35 * time.Millisecond}
	cPollers = &Run{Args: "run --transport 'grpc(dropin,busy=0s)+iwarp,grpc(dropin,busy=0s,pollers=3)+iwarp' " +
		"--workload rpc -s 32 --response 8 -q 64 --warmup 5ms", Slice: 35 * time.Millisecond}
	cRings = &Run{Args: "run --transport " +
		"'grpc(dropin,ring=16K)+iwarp,grpc(dropin,ring=256K)+iwarp,grpc(dropin,ring=2M)+iwarp'" +
		" --workload rpc -s 128K --response 8 --warmup 5ms", Slice: 35 * time.Millisecond}
	cConns = &Run{Args: "run --transport 'grpc(tcp),grpc(dropin)+iwarp,grpc(dropin,bp)+iwarp' --workload rpc -s 32 " +
		"--response 8 --qp-sweep 1,64 --rate 2000 --warmup 5ms", Slice: 35 * time.Millisecond}
	cStore = &Run{Args: "run --transport 'grpc(tcp),grpc(fused)+iwarp' --workload kv --ycsb a --records 1000 --warmup 5ms",
		Slice: 35 * time.Millisecond}
	cValues = &Run{Args: "run --transport 'grpc(tcp),grpc(fused)+iwarp' --workload kv --ycsb a,f --records 1000 " +
		"--fields 1 --field-bytes 4096 --warmup 5ms", Slice: 25 * time.Millisecond}
	cGather = &Run{Args: "run --transport 'grpc(tcp),grpc(dropin)+iwarp,grpc(dropin,write=64)+iwarp' --workload rpc " +
		"--rpc stream -s 32 --response 8 --outstanding 16 --warmup 5ms", Slice: 25 * time.Millisecond}
	cSlow = &Run{Args: "run --transport " +
		"'grpc(dropin,busy=0s)+iwarp,grpc(dropin,busy=0s,pollers=2)+iwarp,grpc(dropin,busy=0s,pollers=4)+iwarp' --workload " +
		"rpc -s 32 --response 8 -q 320 --rate 3200 --arrivals poisson --warmup 5ms", Slice: 50 * time.Millisecond}
	cBeside     = neighbours("'grpc(tcp),grpc(dropin)+iwarp,grpc(fused)+iwarp'", "2", 0)
	cBesideAll  = neighbours("'grpc(tcp),grpc(dropin)+iwarp,grpc(fused)+iwarp'", "0,1,4", 3)
	cBesideBP   = neighbours("'grpc(dropin,bp)+iwarp'", "2", 0)
	cSeldomTCP  = seldom("'grpc(tcp)'")
	cSeldomBPEV = seldom("'grpc(dropin)+iwarp'")
	cSeldomBP   = seldom("'grpc(dropin,bp)+iwarp'")
	cThousand   = &Run{Args: "run --transport 'grpc(tcp),grpc(dropin,busy=0s)+iwarp' --workload rpc -s 32 --response 8 " +
		"-q 1024 --rate 10240 --arrivals poisson --warmup 5ms", Slice: 50 * time.Millisecond}
	cLanding = &Run{Args: "run --transport 'grpc(fused)+iwarp,grpc(fused,noland)+iwarp' --workload rpc -s 1K,8K,128K " +
		"--response 8 --warmup 5ms", Slice: 25 * time.Millisecond}
	cTensors = &Run{Args: "run --transport 'grpc(tcp),grpc(fused)+iwarp' --workload tensor --tensor exchange -s 1M " +
		"--warmup 5ms", Slice: 35 * time.Millisecond}
)

const (
	cTCP    = "grpc(tcp)"
	cBP     = "grpc(dropin,bp)+iwarp"
	cBPEV   = "grpc(dropin)+iwarp"
	cEvent  = "grpc(dropin,event)+iwarp"
	cFused  = "grpc(fused)+iwarp"
	cSmall  = "grpc(dropin,ring=16K)+iwarp"
	c256K   = "grpc(dropin,ring=256K)+iwarp"
	c2M     = "grpc(dropin,ring=2M)+iwarp"
	cEach   = "grpc(dropin,write=64)+iwarp" // a write for each message
	cNoLand = "grpc(fused,noland)+iwarp"
	cNoBusy = "grpc(dropin,busy=0s)+iwarp"
)

// modes is a run of all that carries calls, by clients.
func modes(call, clients string, rounds int) *Run {
	return &Run{Args: "run --transport 'grpc(tcp),grpc(dropin,bp)+iwarp,grpc(dropin)+iwarp,grpc(dropin,event)+iwarp' " +
		"--workload rpc --rpc " + call + " -s 32 --response 8 --qp-sweep " + clients + " --warmup 5ms",
		Slice: 20 * time.Millisecond, Rounds: rounds}
}

// seldom is a run by itself: a stack that polls costs those beside it.
func seldom(stack string) *Run {
	return &Run{Args: "run --transport " + stack + " --workload rpc -s 32 --response 8 -q 16 --rate 400 --arrivals " +
		"poisson --warmup 5ms", Slice: 60 * time.Millisecond}
}

// neighbours is a run beside threads that want the CPUs; a slice is many of the kernel's.
func neighbours(stacks, n string, rounds int) *Run {
	return &Run{Args: "run --transport " + stacks + " --workload rpc -s 64 --response 64 --neighbours " + n +
		" --warmup 5ms", Slice: 150 * time.Millisecond, Rounds: rounds}
}

var cClients = []string{"1", "16", "64"}

var rrcompound = Paper{
	Name:   "rrcompound",
	Title:  "RR-Compound: gRPC over RDMA with busy and event polling",
	Source: "TPDS'24; figures of its repository's logs (pwrliang/grpc-rdma)",
	Claims: []Claim{
		{ID: "C1", Says: "gRPC works unchanged over the transport.", Source: "abstract", Rules: []Rule{
			Pass("calls, streams, metadata, deadlines and the interoperability cases", cCases, "call/*", "interop/*")}},
		{ID: "C2", Says: "Where a peer has no RDMA, calls go by TCP, and the log says so.", Source: "as brpc does",
			Rules: []Rule{Pass("a server without RDMA", cTCPCase)}},
		{ID: "C3", Says: "Messages that wrap the ring and exceed it arrive exactly.", Source: "ring_buffer.h",
			Rules: []Rule{Pass("rings of 16 KiB", cRing, "call/far-above-the-ring", "*/large-*")}},
		{ID: "C4", Says: "A reader that is slow stops the sender, which goes on when it reads.", Source: "pair.cc",
			Rules: []Rule{Pass("rings of 16 KiB", cRing, "call/unread-stream")}},
		{ID: "C5", Says: "Streams of small calls are far faster than by TCP, and BPEV is near busy polling.",
			Source:    "logs, th-pitzer-40-threads, numa false",
			Published: []string{"1 client: BPEV 118, BP 256, EVENT 95, TCP 41 kRPC/s", "32 clients: 4011, 4989, 795, 858"},
			Curves: []Curve{{"streams, thousand messages a second by clients; there 64 threads at either end", "qps",
				cClients, 1e3,
				[]Line{
					{"TCP", []string{"41", "616", "1162"}, At{cStream, "rate", cTCP, ""}, cStreams},
					{"BP", []string{"256", "2907", "5291"}, At{cStream, "rate", cBP, ""}, cStreams},
					{"BPEV", []string{"118", "2238", "4307"}, At{cStream, "rate", cBPEV, ""}, cStreams},
					{"EVENT", []string{"95", "853", "793"}, At{cStream, "rate", cEvent, ""}, cStreams},
				}}},
			Rules: []Rule{
				Ratio("one stream, BPEV over TCP", At{cStream, "rate", cBPEV, ""}, At{Stack: cTCP}).AtLeast(1.2).
					Against(At{Stack: cTCP}),
				Ratio("BPEV over BP", At{cStream, "rate", cBPEV, ""}, At{Stack: cBP}).AtLeast(0.8).Against(At{Stack: cEvent}),
				Ratio("EVENT over BP", At{cStream, "rate", cEvent, ""}, At{Stack: cBP}),
			}},
		{ID: "C5m", Says: "BPEV stays near busy polling with many clients, and events do not.", Source: "the same logs",
			Published: []string{"64 clients: BPEV 4307, BP 5291, EVENT 793, TCP 1162 kRPC/s"}, Needs: Needs{CPUs: 4},
			Rules: []Rule{
				Ratio("64 streams, BPEV over BP", At{cMany, "rate", cBPEV, ""}, At{Stack: cBP}).AtLeast(0.8).
					Against(At{Stack: cEvent}),
			}},
		{ID: "C5u", Says: "Unary calls gain less, and with many clients nothing.",
			Source:    "logs, th-pitzer-64-threads-no-coalesce",
			Published: []string{"BPEV over TCP: 1 client 1.6 times, 32 clients 1.0, 64 clients 0.67"},
			Curves: []Curve{{"unary calls, thousands a second by clients", "qps", cClients, 1e3, []Line{
				{"TCP", []string{"29", "346", "734"}, At{cUnary, "rate", cTCP, ""}, cUnaries},
				{"BP", []string{"8", "398", "536"}, At{cUnary, "rate", cBP, ""}, cUnaries},
				{"BPEV", []string{"45", "395", "490"}, At{cUnary, "rate", cBPEV, ""}, cUnaries},
				{"EVENT", []string{"44", "396", "738"}, At{cUnary, "rate", cEvent, ""}, cUnaries},
			}}},
			Rules: []Rule{
				Ratio("one client, BPEV over TCP", At{cUnary, "rate", cBPEV, ""}, At{Stack: cTCP}).AtLeast(1.2).
					Against(At{Stack: cTCP}),
				Ratio("64 clients", At{cUnaries, "rate", cBPEV, "qps=64"}, At{Stack: cTCP}),
			}},
		{ID: "C5c", Says: "Gathering small messages into one write changes the rate of streams little.",
			Source:    "logs, th-pitzer-64-threads-coalesce and -no-coalesce",
			Published: []string{"streams, BPEV: 1 client 114 beside 107 kRPC/s without, 32: 4328 beside 4215"}, Rules: []Rule{
				Ratio("16 streams, gathered over a write each", At{cGather, "rate", cBPEV, ""}, At{Stack: cEach}).AtLeast(0.8).
					AtMost(1.25).Against(At{Stack: cTCP}),
			}},
		{ID: "C6", Says: "Without busy polling calls are slow; the time of it matters little from a round trip on.",
			Source: "logs of the sweep", Rules: []Rule{
				Ratio("p50, busy for 200 us over not", At{cBusy, "p50", cFused, ""}, At{Stack: "grpc(fused,busy=0s)+iwarp"}).
					AtMost(0.9).Against(At{Stack: "grpc(fused,busy=0s)+iwarp"}),
			}},
		{ID: "C7", Says: "Two or three background pollers are enough.", Source: "logs of the sweep", Needs: Needs{CPUs: 4},
			Rules: []Rule{
				Ratio("64 connections, 3 pollers over 1", At{cPollers, "rate", "grpc(dropin,busy=0s,pollers=3)+iwarp", ""},
					At{Stack: "grpc(dropin,busy=0s)+iwarp"}).AtLeast(1.1).Against(At{Stack: "grpc(dropin,busy=0s)+iwarp"}),
			}},
		{ID: "C7b", Says: "More than one background poller answers many slow clients sooner.",
			Source: "experiment of run-all.sh: 320 clients with random delays, 1 to 8 pollers", Needs: Needs{CPUs: 4},
			Rules: []Rule{
				Ratio("p50 of 320 clients of 10 calls a second, 2 pollers over 1",
					At{cSlow, "p50", "grpc(dropin,busy=0s,pollers=2)+iwarp", ""}, At{Stack: cNoBusy}).AtMost(0.95).
					Against(At{Stack: cNoBusy}),
				Ratio("4 over 1", At{cSlow, "p50", "grpc(dropin,busy=0s,pollers=4)+iwarp", ""}, At{Stack: cNoBusy}),
			}},
		{ID: "C8", Says: "A larger ring helps long messages, up to a size.", Source: "logs of the sweep", Rules: []Rule{
			Ratio("128K calls, ring of 256K over 16K", At{cRings, "rate", c256K, ""}, At{Stack: cSmall}).AtLeast(1.2).
				Against(At{Stack: cSmall}),
			Ratio("2M over 256K", At{cRings, "rate", c2M, ""}, At{Stack: c256K}),
		}},
		{ID: "C9", Says: "Idle connections cost busy polling a CPU, BPEV a poller, and events nothing.", Source: "logs",
			Rules: []Rule{
				Count("CPUs of an idle client, BP", At{cIdleBP, "idle.client", cBP, ""}).AtLeast(0.5).
					Against(At{cIdleEvent, "idle.client", cEvent, ""}),
				Count("EVENT", At{cIdleEvent, "idle.client", cEvent, ""}).AtMost(0.1).
					Against(At{cIdleBP, "idle.client", cBP, ""}),
				Count("BPEV", At{cIdleBPEV, "idle.client", cBPEV, ""}).AtMost(0.5).
					Against(At{cIdleBP, "idle.client", cBP, ""}),
			}},
		{ID: "C9b", Says: "Clients that call seldom cost BPEV little more CPU than TCP, and busy polling far more.",
			Source: "experiment of run-all.sh: clients with Poisson delays, CPU and memory of each", Rules: []Rule{
				Ratio("CPU of 16 clients of 25 calls a second, a call, BPEV over TCP", At{cSeldomBPEV, "cpu.call", cBPEV, ""},
					At{Run: cSeldomTCP, Stack: cTCP}).AtMost(2).Against(At{Run: cSeldomBP, Stack: cBP}),
				Ratio("BP over TCP", At{cSeldomBP, "cpu.call", cBP, ""}, At{Run: cSeldomTCP, Stack: cTCP}),
				Value("memory of a client, BPEV", At{cSeldomBPEV, "resident.client_each", cBPEV, ""}),
				Value("TCP", At{cSeldomTCP, "resident.client_each", cTCP, ""}),
			}},
		{ID: "C10", Says: "A connection has memory for a ring and half of one, which without bulk is a small one.",
			Source: "pair.cc; without bulk ours", Published: []string{"ring of 4 MiB, send buffer of half"}, Rules: []Rule{
				Count("registered for a connection, BP, ring of 256K", At{cIdleBP, "registered.each", cBP, ""}).
					AtLeast(1.4 * 256 * 1024).AtMost(1.6 * 256 * 1024).Against(At{cIdleBPEV, "registered.each", cBPEV, ""}),
				Count("BPEV without bulk", At{cIdleBPEV, "registered.each", cBPEV, ""}).AtMost(64 * 1024).
					Against(At{cIdleBP, "registered.each", cBP, ""}),
			}},
		{ID: "C11", Says: "Latency is flat over many connections at a fixed rate.", Source: "logs",
			Published: []string{"22 to 26 us at 320 connections; labelled P99, which is the 0.99th percentile there"},
			Needs:     Needs{CPUs: 4}, Rules: []Rule{
				Growth("p50, 64 over 1 connections, BPEV", At{cConns, "p50", cBPEV, ""}, "qps", "1", "64").AtMost(2).
					Against(At{Stack: cBP}),
			}},
		{ID: "C11b", Says: "With a thousand connections and more BPEV is a little ahead of TCP.",
			Source:    "logs of varying_clients: 900 to 3500 connections, random delays, no busy polling",
			Published: []string{"mean, BPEV 1089 to 1193 us, TCP 1193 to 1391 us"}, Needs: Needs{CPUs: 4}, Rules: []Rule{
				Ratio("mean of 1024 connections of 10 calls a second, BPEV over TCP", At{cThousand, "mean", cNoBusy, ""},
					At{Stack: cTCP}).AtMost(0.95).Against(At{Stack: cTCP}),
			}},
		{ID: "C12", Says: "It is ahead of mRPC.", Source: "abstract",
			Published: []string{"throughput +14.77 % with 64 clients, latency -42.55 %"},
			Needs:     Needs{Other: "mRPC; grpc(service) has its queues in shared memory, but marshals in the program"}},
		{ID: "C13", Says: "A key-value store gains over TCP.", Source: "abstract",
			Published: []string{"up to 2.35 times the throughput, 46.92 % less mean latency, over IPoIB"}, Rules: []Rule{
				Ratio("YCSB a, calls a second, fused over TCP", At{cStore, "rate", cFused, ""}, At{Stack: cTCP}).AtLeast(2.35).
					Published().Against(At{Stack: cTCP}),
				Ratio("mean latency", At{cStore, "mean", cFused, ""}, At{Stack: cTCP}).AtMost(1 - 0.4692).Published().
					Against(At{Stack: cTCP}),
			}},
		{ID: "C13b", Says: "It gains by the authors' own settings too: mixes a and f, values of 4096 B.",
			Source: "gRPC-KVStore, ycsb.sh; there with RocksDB and up to 128 clients", Rules: []Rule{
				Ratio("a, calls a second, fused over TCP", At{cValues, "rate", cFused, "mix=a"}, At{Stack: cTCP}).AtLeast(1.2).
					Against(At{Stack: cTCP}),
				Ratio("f", At{cValues, "rate", cFused, "mix=f"}, At{Stack: cTCP}).AtLeast(1.2).Against(At{Stack: cTCP}),
			}},
		{ID: "C14", Says: "Exchanges of tensors gain over TCP.", Source: "abstract", Rules: []Rule{
			Ratio("1M each way, p50, fused over TCP", At{cTensors, "p50", cFused, ""}, At{Stack: cTCP}).AtMost(0.9).
				Against(At{Stack: cTCP}),
		}},
		{ID: "C15", Says: "Calls to a peer that dies end as unavailable.", Source: "follows from the design",
			Rules: []Rule{Pass("peers that are killed", cCases, "peer/*")}},
		{ID: "C16", Says: "Percentiles are what they are called.", Source: "its logs have a P99 below the mean",
			Rules: []Rule{Order("p50, p90 and p99", []string{"p50", "p90", "p99"}, At{cStore, "p50", cTCP, ""},
				At{cStore, "p90", cTCP, ""}, At{cStore, "p99", cTCP, ""}).Exact().Against(At{Figure: "p99"})}},
		{ID: "C17", Says: "Placing messages without a copy is faster from some size on.",
			Source: "experiment of run-all.sh: zero copy from 1 KB on or off, requests of 1 to 8 KB", Rules: []Rule{
				Ratio("p50 of 128K requests, placed over through the ring", At{cLanding, "p50", cFused, "size=128K"},
					At{Stack: cNoLand}).AtMost(0.95).Against(At{Stack: cNoLand}),
				Ratio("8K", At{cLanding, "p50", cFused, "size=8K"}, At{Stack: cNoLand}),
				Ratio("1K", At{cLanding, "p50", cFused, "size=1K"}, At{Stack: cNoLand}),
			}},
		{ID: "C18", Says: "Calls are no slower than by TCP beside programs that want the CPUs.", Source: "ours",
			Curves: []Curve{{"mean of a call of 64 B, us by threads that spin beside the run", "neighbours",
				[]string{"0", "1", "2", "4"}, 1e3, []Line{
					{Name: "TCP", Here: At{cBeside, "mean", cTCP, ""}, Also: cBesideAll},
					{Name: "BPEV", Here: At{cBeside, "mean", cBPEV, ""}, Also: cBesideAll},
					{Name: "fused", Here: At{cBeside, "mean", cFused, ""}, Also: cBesideAll}}}},
			Rules: []Rule{
				Ratio("mean beside two, fused over TCP", At{cBeside, "mean", cFused, ""}, At{Stack: cTCP}).
					AtMost(1.1).Against(At{Run: cBesideBP, Stack: cBP}),
				Ratio("BPEV over TCP", At{cBeside, "mean", cBPEV, ""}, At{Stack: cTCP}).AtMost(1.1).
					Against(At{Run: cBesideBP, Stack: cBP}),
				Ratio("BP over TCP", At{cBesideBP, "mean", cBP, ""}, At{Run: cBeside, Stack: cTCP}),
			}},
	},
}
